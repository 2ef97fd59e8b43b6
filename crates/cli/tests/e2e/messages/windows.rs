//! Going to windows that cannot be shown.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use tenure_testkit::{Cmd, terminal_pair};

use super::page::Page;
use crate::env;
use crate::support::installed::put;
use crate::support::line::{handle, register, session};
use crate::windowless::in_background;

#[test]
fn windows() {
    let mut env = env();
    let mut page = Page::new("19-windows", &env);
    let socket = env.dir().join("tmux.sock");
    let tmux = env.dir().join("bin/tmux");
    env.set("TENURE_TMUX", tmux.display().to_string());
    let human = env.agent_at_terminal("bash");
    env.set("TMUX", format!("{},1,0", socket.display()));
    env.set("TMUX_PANE", "%1");
    let claude = env.agent("claude");
    register(&claude, "claude", "");
    let name = handle(&claude);
    let listener = UnixListener::bind(&socket).expect("the environment is ours");
    // `looked` is there from the first look on.
    let looked = env.dir().join("looked");
    let answers = |attached: u32, then: &str, act: &str| {
        std::fs::remove_file(&looked).ok();
        let (looked, pid) = (looked.display(), claude.pid());
        let text = format!(
            "#!/bin/sh\ncase \"$*\" in *list-panes*) echo '{}{pid}|{attached}|main:1.0'
             if [ -e {looked} ]; then {then}; fi; : >{looked};; *) {act};; esac\n",
            "P|%1|/dev/pts/9999|"
        );
        put(&tmux, &text);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&tmux, mode).expect("it was just made");
    };
    let goes = format!("tenure goto {name}");
    page.learn(&env);
    page.title("A tmux that does not do what it is asked");
    let socket_name = socket.display();
    for (then, act) in [
        (":", "exit 1"),
        (":", "exec sleep 20"),
        ("rm $0", ":"),
        (&*format!("rm {socket_name}; echo >{socket_name}"), "exit 1"),
    ] {
        answers(1, then, act);
        page.run_once(&human, &goes, Some("not_shown"));
    }
    drop(listener);
    std::fs::remove_file(&socket).expect("it was just made");
    let listener = UnixListener::bind(&socket).expect("the environment is ours");
    answers(0, ":", ":");
    page.run_once(&human, &goes, Some("not_shown"));
    let inside = format!("TMUX=/tmp/tmux-1000/default,1,0 {goes}");
    page.run_once(&human, &inside, Some("not_shown"));
    let command = format!("TENURE_GOTO_COMMAND='focus {{handle}}' {goes}");
    page.run_once(&human, &command, Some("not_shown"));
    drop(listener);
    page.title("A session without a window");
    let keeper = env.agent("keeper");
    let (master, terminal) = terminal_pair();
    let line = format!(
        "trap '' HUP; exec sleep 1000 <{0} >{0} 2>&1",
        terminal.display()
    );
    let pid = keeper.orphan(Cmd::shell(&line)).to_string();
    let words = ["register", "--agent", "gemini", "--pid", &pid, "--json"];
    let born = env.tenure(&words).ok().json();
    let gone = born["session"]["handle"]
        .as_str()
        .expect("a handle")
        .to_owned();
    drop(master);
    let person = session(&env, "human");
    let (_agent, served) = in_background(&env);
    page.learn(&env);
    page.run(&person, &format!("tenure goto {gone}"));
    page.run(&human, &format!("tenure goto {served}"));
    page.check(&env);
    env.tenure(&["end", &gone, "--kill", "--reason", "the test is over"])
        .ok();
}
