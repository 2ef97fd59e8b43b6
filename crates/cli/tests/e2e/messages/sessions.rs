//! Sessions: who they are, whether they live, how they end and come back.

use tenure_testkit::{Env, poll, scratch_git};

use super::page::Page;
use crate::support::line::{self, SOON, run, session, take, text};

pub(super) fn register(env: &mut Env, page: &mut Page) {
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
    page.run(&claude, "tenure register --parent codex");
    page.title("Adopt an agent that runs without hooks");
    let gemini = env.agent("gemini");
    let seen = format!(
        "TENURE_PS_UNMANAGED=true tenure who {}",
        env.work().display()
    );
    page.run(&out, &seen);
    page.run(&out, &format!("tenure adopt {}", gemini.pid()));
    page.run(&out, &format!("tenure adopt {}", gemini.pid()));
    page.run(&out, &format!("tenure adopt {}", plain.pid()));
    page.run(&out, "tenure adopt 4194303");
    page.title("Resume in a new process");
    take(&codex, "wp:1");
    take(&codex, "wp:2");
    page.learn(env);
    codex.kill9();
    take(&claude, "wp:2");
    let again = env.agent("codex");
    page.run(&again, "tenure register --native-id 7f3c");
}

pub(super) fn sessions(env: &mut Env, page: &mut Page) {
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    page.cd(&repo);
    let dir = format!("--dir {}", repo.display());
    let [claude, codex, gemini] = ["claude", "codex", "gemini"].map(|name| env.agent(name));
    let out = env.agent("outsider");
    line::register(
        &claude,
        "claude",
        &format!("{dir} --native-id 7f3c --title login --meta team=blue"),
    );
    line::register(&codex, "codex", &dir);
    line::register(&gemini, "gemini", &dir);
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
    page.run(&codex, "tenure ps --limit 1");
    page.run(&codex, "tenure ps --agent codex");
    page.run(&codex, "tenure ps --state asks,failed");
    page.run(&codex, "tenure ps --state tired");
    page.run(&codex, "tenure top");
    page.run(&codex, "tenure statusline plain");
    page.run(&codex, "tenure who");
    page.run(&codex, "tenure who --exit-code");
    page.run(
        &codex,
        &format!("tenure who {} --exit-code", env.work().display()),
    );
    page.run(&claude, "tenure status");
    page.run(&out, "tenure status");
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
    page.run(&codex, "tenure wait gemini");
    page.run(&codex, "tenure wait claude --timeout 50ms");
    page.run(&codex, "tenure goto");
    page.run(&codex, "tenure goto claude");
    page.run(
        &codex,
        "TENURE_GOTO_COMMAND='true {pid}' tenure goto claude",
    );
    page.run(&codex, "tenure resume claude");
    page.title("Title, metadata, messages");
    page.run(&codex, "tenure rename claude 'Login fails on Safari'");
    page.run(
        &codex,
        "tenure rename claude 'Login fails on Safari' --reason 'clearer title'",
    );
    page.run(&claude, "tenure meta set team red");
    page.run(&claude, "tenure meta get");
    page.run(&claude, "tenure meta get team");
    page.run(&claude, "tenure meta get team");
    page.run(&claude, "tenure meta set 'Not A Key' x");
    page.run(&codex, "tenure tell claude 'main is frozen until noon'");
    page.run(&codex, "tenure tell gemini 'main is frozen until noon'");
    page.run(&codex, "tenure answer claude allow");
    page.run(&out, "tenure answer");
    page.run(&claude, "tenure renew");
    page.run(&claude, "tenure renew --for 2h --reason 'long build'");
    page.run(&claude, "tenure renew --for 9h");
    page.run(&codex, "tenure renew --session claude --reason test");
    page.run(&out, "tenure renew");
    page.title("Verify");
    page.run(&claude, "tenure verify");
    page.run(&claude, "tenure verify --file /missing.json");
    page.title("Log");
    page.run(&codex, "tenure log");
    page.run(&codex, "tenure log claude --limit 2");
    page.run(&codex, "tenure log wp:nothing");
    page.run(&codex, "tenure log --since yesterday");
}

pub(super) fn ends(env: &mut Env, page: &mut Page) {
    let out = env.agent("outsider");
    let claude = session(env, "claude");
    let human = session(env, "human");
    page.title("End");
    take(&claude, "wp:1");
    page.run(&claude, "tenure end human");
    page.run(&human, "tenure end claude");
    page.run(&claude, "tenure end codex");
    page.run(&claude, "tenure end");
    page.run(&claude, "tenure end");
    page.run(&claude, "tenure claim wp:1");
    page.run(&out, "tenure end");
    let stuck = session(env, "gemini");
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
        let born = line::register(&agent, "codex", &format!("--native-id {id}"));
        one = text(&born["session"]["handle"]);
        agent.kill9();
    }
    let lost = env.agent("opencode");
    line::register(&lost, "opencode", "");
    take(&lost, "wp:2");
    lost.kill9();
    page.learn(env);
    page.run(&human, "tenure ps");
    page.run(&human, "tenure status");
    page.run(&human, "tenure resume");
    page.run(&human, "tenure resume --all --print");
    page.run(&human, "tenure resume --all");
    page.run(&human, "tenure resume --when-reset");
    page.run(&human, "tenure resume opencode --when-reset");
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
    let codex = session(env, "codex");
    page.run(&codex, "tenure resume --all");
    page.run(&codex, "tenure dismiss opencode");
    page.run(&codex, "tenure dismiss --all --reason test");
    page.run(&human, "tenure dismiss opencode");
    page.run(&human, "tenure dismiss opencode");
    page.run(&human, "tenure dismiss nobody");
    page.run(&human, "tenure dismiss --all");
    page.run(&human, "tenure ps -a");
    page.run(&human, "tenure log");
}
