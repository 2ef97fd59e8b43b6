//! Sessions: who they are, whether they live, how they end and come back.

use tenure_testkit::{Cmd, poll, scratch_git};

use super::page::Page;
use crate::env;
use crate::support::forge::{forge, forge_process};
use crate::support::line::{SOON, register, run, session, take, text};

#[test]
fn registering() {
    let env = env();
    let mut page = Page::new("10-register", &env);
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    page.cd(&repo);
    let (out, stranger) = (env.agent("outsider"), env.agent("claude"));
    let (claude, codex) = (env.agent("claude"), env.agent("codex"));
    let (nightly, plain) = (env.agent("nightly"), env.agent("plain"));
    page.title("Outside a session");
    page.run(&out, "tenure ps");
    page.run(&out, "tenure status");
    page.run(&out, "tenure whoami");
    page.run(&out, "tenure register");
    page.run(&stranger, "tenure whoami");
    page.title("Register");
    page.run(&claude, "tenure register");
    page.run(&claude, "tenure register --title 'fix login'");
    page.run(
        &codex,
        "tenure register --native-id 7f3c --title 'write docs' --meta team=blue -v",
    );
    page.run(
        &out,
        &format!("tenure register --agent nightly --pid {}", nightly.pid()),
    );
    page.run(&out, "tenure register --unverified --agent cron");
    page.title("Register: refused");
    page.run(&out, "tenure register --agent nightly --pid 4194303");
    page.run(&out, "tenure register --meta team");
    page.run(&out, "tenure register --dir ./missing");
    page.run(&out, "tenure register --agent 'My Agent'");
    page.run(&out, &format!("tenure register --pid {}", claude.pid()));
    page.run(&claude, "tenure register --parent codex");
    page.run(&claude, "tenure register --parent nobody --reason test");
    page.title("Adopt an agent that runs without hooks");
    let gemini = env.agent("gemini");
    let seen = format!(
        "TENURE_PS_UNMANAGED=true tenure who {}",
        env.work().display()
    );
    page.run(&out, &seen);
    page.run(&out, &format!("tenure adopt {}", gemini.pid()));
    page.run(&out, &format!("tenure adopt {}", gemini.pid()));
    page.run(&out, &format!("tenure adopt {} --title docs", gemini.pid()));
    page.run(&out, &format!("tenure adopt {}", plain.pid()));
    page.run(&out, "tenure adopt 4194303");
    page.title("Resume in a new process");
    take(&codex, "wp:1");
    take(&codex, "wp:2");
    page.learn(&env);
    codex.kill9();
    take(&claude, "wp:2");
    let again = env.agent("codex");
    page.run(&again, "tenure register --native-id 7f3c");
    page.check(&env);
}

#[test]
fn seeing() {
    let env = env();
    let mut page = Page::new("11-sessions", &env);
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    page.cd(&repo);
    let dir = format!("--dir {}", repo.display());
    let [claude, codex, gemini] = ["claude", "codex", "gemini"].map(|name| env.agent(name));
    let out = env.agent("outsider");
    register(
        &claude,
        "claude",
        &format!("{dir} --native-id 7f3c --title login --meta team=blue"),
    );
    register(&codex, "codex", &dir);
    register(&gemini, "gemini", &dir);
    run(
        &out,
        0,
        &format!("register --unverified --agent cron {dir}"),
    );
    take(&claude, "issue:acme/web#42");
    take(&gemini, "wp:7");
    gemini.kill9();
    page.title("List");
    page.run(&codex, "tenure ps");
    page.run(&codex, "tenure ps -q");
    page.run(&codex, "tenure ps --limit 1");
    page.run(&codex, "tenure who");
    page.run(&codex, "tenure who --exit-code");
    let alone = env.dir().join("alone");
    std::fs::create_dir(&alone).expect("the environment is ours");
    let there = format!(
        "register --unverified --agent timer --dir {}",
        alone.display()
    );
    run(&out, 0, &there);
    page.run(
        &codex,
        &format!("tenure who {} --exit-code", alone.display()),
    );
    page.run(
        &codex,
        &format!("tenure who {} --exit-code", env.work().display()),
    );
    page.run(&codex, "tenure who /missing");
    page.run(&claude, "tenure status");
    page.run(&out, "tenure status");
    page.run(&out, "tenure status --session nobody");
    page.title("One session");
    page.run(&claude, "tenure whoami");
    page.run(&codex, "tenure show claude");
    page.run(&codex, "tenure show gemini");
    page.run(&codex, "tenure show nobody");
    // What every handle has in common.
    page.run(&codex, "tenure show -");
    page.run(&codex, "tenure alive claude");
    page.run(&codex, "tenure alive gemini");
    page.run(&codex, "tenure alive cron");
    page.run(&codex, "tenure alive nobody");
    page.run(&codex, "tenure wait gemini");
    page.run(&codex, "tenure wait claude --timeout 50ms");
    page.run(&codex, "tenure wait cron --timeout 50ms");
    page.run(&codex, "tenure wait nobody");
    page.run(&codex, "tenure goto claude");
    page.run(
        &codex,
        "TENURE_GOTO_COMMAND='true {pid}' tenure goto claude",
    );
    page.run(
        &codex,
        "TENURE_GOTO_COMMAND='false {pid}' tenure goto claude",
    );
    page.run(&codex, "tenure goto gemini");
    page.run(&codex, "tenure goto nobody");
    page.run(&codex, "tenure resume claude");
    page.title("Title, metadata, messages");
    page.run(&codex, "tenure rename claude 'Login fails on Safari'");
    page.run(
        &codex,
        "tenure rename claude 'Login fails on Safari' --reason 'clearer title'",
    );
    page.run(&claude, "tenure rename claude ''");
    page.run(&codex, "tenure rename nobody title");
    page.run(&claude, "tenure meta set team red");
    page.run(&claude, "tenure meta get");
    page.run(&claude, "tenure meta get team");
    page.run(&claude, "tenure meta unset team");
    page.run(&claude, "tenure meta get team");
    page.run(&claude, "tenure meta set 'Not A Key' x");
    page.run(&out, "tenure meta get");
    page.run(&codex, "tenure tell claude 'main is frozen until noon'");
    page.run(&codex, "tenure tell gemini 'main is frozen until noon'");
    page.run(&codex, "tenure tell nobody hello");
    page.run(&claude, "tenure renew");
    page.run(&claude, "tenure renew --for 2h --reason 'long build'");
    page.run(&claude, "tenure renew --for 9h");
    page.run(&codex, "tenure renew --session claude --reason test");
    page.run(&out, "tenure renew");
    page.title("Verify");
    page.run(&claude, "tenure verify");
    page.run(&claude, "tenure verify --project /");
    page.run(&claude, "tenure verify --session codex");
    page.run(&claude, "tenure verify --file /missing.json");
    page.run(&out, "tenure verify");
    page.title("Log");
    page.run(&codex, "tenure log");
    page.run(&codex, "tenure log claude --limit 2");
    page.run(&codex, "tenure log wp:nothing");
    page.run(&codex, "tenure log nobody");
    page.run(&codex, "tenure log claude --session codex");
    page.run(&codex, "tenure log --since yesterday");
    page.check(&env);
}

#[test]
fn ending() {
    let env = env();
    let mut page = Page::new("12-ends", &env);
    let out = env.agent("outsider");
    let claude = session(&env, "claude");
    let human = session(&env, "human");
    page.title("End");
    take(&claude, "wp:1");
    page.run(&claude, "tenure end human");
    page.run(&human, "tenure end claude");
    page.run(&claude, "tenure end codex");
    page.run(&claude, "tenure end");
    page.run(&claude, "tenure end");
    page.run(&claude, "tenure claim wp:1");
    page.run(&out, "tenure end");
    let stuck = session(&env, "gemini");
    page.run(
        &claude,
        "tenure end gemini --kill --reason 'its window is closed'",
    );
    page.run(
        &human,
        "tenure end gemini --kill --reason 'its window is closed'",
    );
    poll(SOON, "it is gone", || (!stuck.is_alive()).then_some(()));
    page.title("Resume and dismiss");
    page.run(&human, "tenure resume");
    page.run(&human, "tenure dismiss --all");
    let mut one = String::new();
    for id in ["8a1b", "9c2d"] {
        let agent = env.agent("codex");
        let born = register(&agent, "codex", &format!("--native-id {id}"));
        one = text(&born["session"]["handle"]);
        agent.kill9();
    }
    let lost = env.agent("opencode");
    register(&lost, "opencode", "");
    take(&lost, "wp:2");
    lost.kill9();
    page.learn(&env);
    page.run(&human, "tenure ps");
    page.run(&human, "tenure status");
    page.run(&human, "tenure resume");
    page.run(&human, "tenure resume --all --print");
    page.run(&human, "tenure resume --all");
    page.run(&human, "tenure resume opencode");
    page.run(&human, "tenure resume human");
    page.run(&human, "tenure resume nobody");
    page.run(&human, "tenure resume codex");
    let bin = env.dir().join("tools");
    std::fs::create_dir(&bin).expect("the environment is ours");
    page.run(
        &human,
        &format!("PATH={} tenure resume {one}", bin.display()),
    );
    std::fs::write(bin.join("codex"), "not a program").expect("the environment is ours");
    page.run(
        &human,
        &format!("PATH={} tenure resume {one}", bin.display()),
    );
    let codex = session(&env, "codex");
    page.run(&codex, "tenure resume --all");
    page.run(&codex, "tenure dismiss opencode");
    page.run(&codex, "tenure dismiss --all --reason test");
    page.run(&human, "tenure dismiss opencode");
    page.run(&human, "tenure dismiss opencode");
    page.run(&human, "tenure dismiss nobody");
    page.run(&human, "tenure dismiss --all");
    page.run(&human, "tenure ps -a");
    page.run(&human, "tenure log");
    page.check(&env);
}

/// A process of an earlier life of a session, and two processes in one conversation.
#[test]
fn lives() {
    let env = env();
    let mut page = Page::new("13-lives", &env);
    let first = env.agent("codex");
    let born = register(&first, "codex", "--native-id 7f3c");
    let id = text(&born["session"]["id"]);
    // Taken for dead, and alive: what a wrong answer of the kernel would look like.
    forge_process(&env, &id, "start_ticks = start_ticks - 500");
    let second = env.agent("codex");
    register(&second, "codex", "--native-id 7f3c");
    forge(
        &env,
        "UPDATE lives SET start_ticks = start_ticks + 500 WHERE life = 1",
    );
    page.learn(&env);
    page.title("A process that was left behind by an earlier life of its session");
    for line in [
        "tenure whoami",
        "tenure status",
        "tenure claim wp:1",
        "tenure takeover wp:1 --reason stuck",
        "tenure renew",
        "tenure verify",
        "tenure mission join 041-login --role developer",
        "tenure end",
        "tenure register",
    ] {
        page.run(&first, line);
    }
    let out = env.agent("outsider");
    page.run(&out, &format!("TENURE_SESSION={id}.1 tenure whoami"));
    page.title("Two processes in one conversation");
    let twin = env.agent("codex");
    page.run(&twin, "tenure register --native-id 7f3c");
    page.run(&twin, "tenure whoami");
    page.run(&second, "tenure ps");
    page.run(&second, "tenure status");
    page.check(&env);
}

/// Acting for a session that has ended.
#[test]
fn on_behalf() {
    let env = env();
    let mut page = Page::new("15-on-behalf", &env);
    let (codex, gemini) = (session(&env, "codex"), session(&env, "gemini"));
    take(&codex, "wp:2");
    let gone = env.agent("claude");
    register(&gone, "claude", "--native-id 7f3c");
    take(&gone, "wp:1");
    page.learn(&env);
    gone.kill9();
    run(&gemini, 0, "end");
    page.title("On behalf of a session that has died");
    for line in [
        "tenure claim wp:2 --session claude --reason test",
        "tenure release wp:1 --session claude --reason test",
        "tenure renew --session claude --reason test",
        "tenure meta set team blue --session claude --reason test",
        "tenure mission join 041-login --role developer --session claude --reason test",
        "tenure handoff wp:2 --to claude",
        "tenure end claude --reason test",
    ] {
        page.run(&codex, line);
    }
    let nightly = env.agent("nightly");
    let parent = "--parent claude --reason test";
    let line = format!(
        "tenure register --agent nightly --pid {} {parent}",
        nightly.pid()
    );
    page.run(&nightly, &line);
    let note = r#"{"sessionId":"7f3c","type":"note"}"#;
    page.feed(
        &codex,
        note,
        "tenure transcript append claude --reason test",
    );
    page.title("A process whose session has ended");
    page.run(&gemini, "tenure whoami");
    page.run(&codex, &format!("tenure adopt {}", gemini.pid()));
    page.run(
        &codex,
        &format!("tenure adopt {} --reason test", gemini.pid()),
    );
    page.check(&env);
}

/// What is said to a person who interrupts a wait.
#[test]
fn interrupted() {
    let env = env();
    let mut page = Page::new("14-interrupted", &env);
    let (claude, codex) = (session(&env, "claude"), session(&env, "codex"));
    take(&claude, "wp:1");
    page.title("Interrupted");
    for line in ["tenure claim wp:1 --wait 10m", "tenure wait claude"] {
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        let waiter = codex.start(Cmd::new("tenure").args(words));
        poll(SOON, "it catches signals", || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", waiter.pid)).ok()?;
            let caught = status.lines().find(|line| line.starts_with("SigCgt:"))?;
            let mask = u64::from_str_radix(caught.split_whitespace().nth(1)?, 16).ok()?;
            (mask & 2 != 0).then_some(())
        });
        assert!(waiter.signal(rustix::process::Signal::INT));
        let said = waiter.wait();
        page.show(codex.pid(), line, said, Some("interrupted"));
    }
    page.check(&env);
}
