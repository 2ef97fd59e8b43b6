//! The end of a wrapped run: what code inside leaves running ends with it, or the run says that it is unknown.
//!
//! `scripts/test --stage wraps` runs these: they need bubblewrap, and root for another user.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::{Cmd, Env, Scripted, poll};

use crate::env;
use crate::support::cloned::{rule, set_up};
use crate::support::forge_api::jobs;
use crate::support::git_host::GitHost;
use crate::support::line::{SOON, text};
use crate::support::run::{kill9, newest, pid_of, runner_of, until};
use crate::support::webhook::{Dispatcher, comment, issue, person};

/// A process that hides the run's variable and is found by its arguments.
struct Daemon(String);

impl Daemon {
    /// Each test has a number of its own.
    fn new(number: u32) -> Self {
        Self(format!("{number}.{}", std::process::id()))
    }

    /// The shell line that starts it.
    fn starts(&self) -> String {
        format!(
            "setsid env -i sleep {} </dev/null >/dev/null 2>&1 &",
            self.0
        )
    }

    /// Those that run now.
    fn pids(&self) -> Vec<u32> {
        let all = std::fs::read_dir("/proc").expect("there is a /proc");
        let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let is_it = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line == format!("sleep\0{}\0", self.0).as_bytes()
        };
        pids.filter(is_it).collect()
    }

    #[track_caller]
    fn pid(&self) -> u32 {
        poll(SOON, "the daemon runs", || self.pids().first().copied())
    }

    #[track_caller]
    fn is_gone(&self) {
        poll(SOON, "the daemon is gone", || {
            self.pids().is_empty().then_some(())
        });
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Only where a test failed.
        for pid in self.pids() {
            let pid = i32::try_from(pid)
                .ok()
                .and_then(rustix::process::Pid::from_raw);
            pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
        }
    }
}

/// A rule under bubblewrap that shows the machine without this user's home and state.
fn bubblewrap(env: &Env, shown: &Path, more: &str) -> String {
    let bwrap = std::env::var("TENURE_BWRAP").expect("TENURE_BWRAP is set by scripts/tools");
    let hidden = [env.home(), env.state()].map(|dir| format!("\"--tmpfs\", {dir:?}"));
    rule(&format!(
        "model = {{ url = \"http://127.0.0.1:1\" }}\n\
         wrap = [{bwrap:?}, \"--unshare-all\", {more} \"--ro-bind\", \"/\", \"/\", \"--proc\", \"/proc\", \
         \"--dev\", \"/dev\", {}, \"--bind\", {shown:?}, {shown:?}, \"--bind\", \"{{home}}\", \"{{home}}\", \
         \"--bind\", \"{{dir}}\", \"{{dir}}\", \"--bind-try\", \"{{socket}}\", \"{{socket}}\", \"--setenv\", \"HOME\", \"{{home}}\"]",
        hidden.join(", ")
    ))
}

const DIES: &str = "\"--die-with-parent\",";

fn host(env: &Env) -> GitHost {
    let host = GitHost::start(&env.dir().join("host"));
    host.commit("refs/heads/main", "a", "1");
    host
}

#[test]
#[ignore = "needs bubblewrap: scripts/test --stage wraps"]
fn a_runner_that_is_killed_leaves_nothing_inside_bubblewrap() {
    let env = env();
    let daemon = Daemon::new(86_401);
    let mine = Scripted::new(
        &env,
        "mine",
        &format!(
            "cat >/dev/null; init; {} hold $dir/flag; done_",
            daemon.starts()
        ),
    );
    mine.keep("flag");
    let host = host(&env);
    set_up(&env, &host, "", "", &bubblewrap(&env, mine.dir(), DIES));
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(1, "opened"));
    daemon.pid();
    let run = until(&env, "it is named", |run| run["native_id"] == "c-1");
    let socket = env
        .state()
        .join("s")
        .join(run["id"].as_str().expect("an id"));
    UnixStream::connect(&socket).expect("its runner listens");
    kill9(&ann, runner_of(&run));
    daemon.is_gone();
    // The kernel ends what is inside with the first thread of the runner, and closes its files with the last.
    poll(SOON, "nobody listens", || {
        UnixStream::connect(&socket).err().map(drop)
    });
    let ended = until(&env, "it is over", |run| run["state"] == "ended");
    assert_eq!(ended["outcome"], "interrupted", "{ended:#}");
    assert!(!socket.exists(), "the socket goes with the run");
}

#[test]
#[ignore = "needs bubblewrap: scripts/test --stage wraps"]
fn what_an_agent_leaves_inside_bubblewrap_ends_with_its_run() {
    for (number, dies) in [(86_402, DIES), (86_403, "")] {
        let env = env();
        let daemon = Daemon::new(number);
        let mine = Scripted::new(
            &env,
            "mine",
            &format!(
                "cat >/dev/null; init; {} hold $dir/flag; done_",
                daemon.starts()
            ),
        );
        let flag = mine.keep("flag");
        let host = host(&env);
        set_up(&env, &host, "", "", &bubblewrap(&env, mine.dir(), dies));
        let ann = env.agent("ann");
        let door = Dispatcher::start(&ann);
        door.deliver("issues", "d-1", &issue(1, "opened"));
        daemon.pid();
        std::fs::remove_file(flag).expect("it was kept");
        let ended = until(&env, "it is over", |run| run["state"] == "ended");
        assert_eq!(ended["outcome"], "done", "{ended:#}");
        daemon.is_gone();
        let why = ended["why"].as_str().expect("a reason");
        // Without the flag it is the namespace's first process that is ended, and all with it.
        assert_eq!(why.contains("ended what it left running"), dies.is_empty());
        assert!(!why.contains("unknown"), "{why}");
    }
}

/// The guide's wrap for another user, and the directory of its places.
fn another_user(env: &Env, mine: &Scripted, user: u32) -> (String, String) {
    assert!(rustix::process::geteuid().is_root(), "this needs root");
    let mode = |path: &Path, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, mode).expect("the environment is ours");
    };
    mode(env.dir(), 0o711);
    // As a home is, so that nobody else reads its settings.
    mode(&env.home(), 0o700);
    mode(mine.dir(), 0o777);
    let places = env.dir().join("places");
    std::fs::create_dir(&places).expect("the environment is ours");
    mode(&places, 0o700);
    chown(&places, Some(user), Some(user)).expect("this is root");
    let id = user.to_string();
    let words = [
        "setpriv",
        "--reuid",
        &id,
        "--regid",
        &id,
        "--clear-groups",
        "--no-new-privs",
        "--",
        "env",
        "-i",
        "PATH=/usr/local/bin:/usr/bin:/bin",
        "HOME={home}",
        "LANG=C.UTF-8",
        "TENURE_RUN={run}",
    ];
    let rule = rule(&format!("wrap = {words:?}"));
    (format!("places = {places:?}"), rule)
}

#[test]
#[ignore = "needs root: scripts/test --stage wraps"]
fn a_run_of_another_user_ends_what_it_left_and_names_what_may_be_its_own() {
    let env = env();
    let (hidden, shown) = (Daemon::new(86_404), Daemon::new(86_405));
    let mine = Scripted::new(
        &env,
        "mine",
        &format!(
            "cat >/dev/null; init; setsid sleep {} </dev/null >/dev/null 2>&1 & {} hold $dir/flag; done_",
            shown.0,
            hidden.starts()
        ),
    );
    let flag = mine.keep("flag");
    let host = host(&env);
    let (top, rule) = another_user(&env, &mine, 64_021);
    set_up(&env, &host, &top, "", &rule);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(1, "opened"));
    let (left, ended) = (hidden.pid(), shown.pid());
    std::fs::remove_file(flag).expect("it was kept");
    let run = until(&env, "it is over", |run| run["state"] == "ended");
    assert_eq!(run["outcome"], "done", "{run:#}");
    shown.is_gone();
    let why = run["why"].as_str().expect("a reason");
    let told = format!(
        "ended what it left running: pid {ended} (sleep {})",
        shown.0
    );
    assert!(why.contains(&told), "{why}");
    let told = format!(
        "it is unknown whether it left processes running: user 64021 runs pid {left} (sleep {})",
        hidden.0
    );
    assert!(why.contains(&told), "{why}");
    let id = run["id"].as_str().expect("an id");
    let said = env.tenure(&["runs", "show", id]).ok();
    assert!(said.stdout.contains("it is unknown whether"), "{said}");
    kill9(&ann, left);
}

#[test]
#[ignore = "needs root: scripts/test --stage wraps"]
fn after_a_run_of_another_user_was_cut_off_the_next_waits_until_nothing_can_be_left_of_it() {
    let env = env();
    let daemon = Daemon::new(86_406);
    let mine = Scripted::new(
        &env,
        "mine",
        &format!(
            "cat >/dev/null; init; {} hold $dir/flag; done_",
            daemon.starts()
        ),
    );
    mine.keep("flag");
    let host = host(&env);
    let (top, rule) = another_user(&env, &mine, 64_022);
    set_up(&env, &host, &top, "", &rule);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(1, "opened"));
    let left = daemon.pid();
    let run = until(&env, "it is named", |run| run["native_id"] == "c-1");
    let (runner, agent) = (runner_of(&run), pid_of(&run));
    kill9(&ann, runner);
    kill9(&ann, agent);
    let cut_off = until(&env, "it is over", |run| run["state"] == "ended");
    assert_eq!(cut_off["outcome"], "interrupted", "{cut_off:#}");
    mine.does("cat >/dev/null; init; done_");
    door.deliver("issue_comment", "d-2", &comment(1, 7, "alice", "Go on."));
    let waits = poll(SOON, "the next job says why it waits", || {
        let jobs = jobs(&env);
        let says = |job: &&Value| {
            job["failure"]
                .as_str()
                .is_some_and(|why| why.contains("it is unknown whether"))
        };
        jobs.iter().find(says).cloned()
    });
    let why = waits["failure"].as_str().expect("a reason");
    assert!(
        why.contains(&format!("user 64022 runs pid {left} (")),
        "{why}"
    );
    assert_eq!(
        newest(&env)["id"],
        cut_off["id"],
        "nothing was started beside it"
    );
    kill9(&ann, left);
    let job = waits["id"].as_str().expect("an id").to_owned();
    ann.run(Cmd::new("tenure").args(["queue", "retry", &job]))
        .ok();
    let next = until(&env, "the next run is over", |run| {
        run["id"] != cut_off["id"] && run["state"] == "ended"
    });
    assert_eq!(next["outcome"], json!("done"), "{next:#}");
    assert_eq!(next["before"], json!("c-1"), "it goes on: {next:#}");
}

/// A comment of alice's on a pull request of carol's.
fn about_pull(number: u64, id: u64) -> Value {
    let mut payload = comment(number, id, "alice", "Go on.");
    payload["is_pull"] = true.into();
    payload["issue"]["user"] = person("carol", 8);
    payload["issue"]["pull_request"] = json!({});
    payload
}

/// First nobody whom the settings name wrote the code. Then they name its author, and at last they have no wrap. What
/// the first agent left in its place, its home and its conversation reaches none of the runs with more trust.
#[test]
#[ignore = "needs bubblewrap: scripts/test --stage wraps"]
fn what_ran_code_of_a_stranger_is_never_continued_with_more_trust() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo $mode $(cat change) $(ls $HOME/left .git/left left 2>/dev/null | wc -l) >>$dir/seen; \
         cat >/dev/null; init ${2:-c-$TENURE_RUN}; \
         touch $HOME/left .git/left left; done_",
    );
    let host = host(&env);
    host.push_pull(9, "of-carol");
    let ann = env.agent("ann");
    let wrap = bubblewrap(&env, mine.dir(), DIES);
    let named = |rule: &str| rule.replace("\"alice\"", "\"alice\", \"carol\"");
    let stages = [
        (wrap.clone(), "outside", "fresh of-carol 0"),
        (wrap.clone(), "outside", "resume of-carol 3"),
        (named(&wrap), "trusted", "fresh of-carol 0"),
        (named(&rule("")), "trusted", "fresh of-carol 0"),
        // The place of the first trust is as it was; the conversation with more trust is not continued there.
        (wrap, "outside", "fresh of-carol 3"),
    ];
    for (id, (rules, trust, expected)) in (1..).zip(stages) {
        set_up(&env, &host, "", "", &rules);
        let door = Dispatcher::start(&ann);
        let delivery = format!("d-{id}");
        door.deliver("issue_comment", &delivery, &about_pull(9, id));
        let job = poll(SOON, "it is over", || {
            let jobs = jobs(&env);
            let is_over = jobs.iter().all(|job| job["state"] == "ended");
            (jobs.len() as u64 == id && is_over).then(|| jobs[0].clone())
        });
        door.process.kill9();
        assert_eq!(
            (&job["outcome"], &job["trust"]),
            (&json!("done"), &json!(trust)),
            "{id}: {job:#}"
        );
        let seen = mine.wrote("seen").expect("it ran");
        assert_eq!(seen.lines().last(), Some(expected), "{id}: {seen}");
        let says = ["this one began anew", "a new one was begun"];
        let log = text(&newest(&env)["log"]);
        let files = std::fs::read_dir(&log).expect("it is kept").flatten();
        let mut files = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        let is_said = files.any(|file| says.iter().any(|words| file.contains(words)));
        assert_eq!(is_said, id > 2, "{id}: {log}");
    }
}
