//! Runs, skills and conversations.

use tenure_testkit::{Env, scratch_git};

use super::page::Page;
use crate::support::installed::put;
use crate::support::line::{session, take, text};
use crate::support::run::{fake_claude, newest, start, until};

pub(super) fn runs(env: &mut Env, page: &mut Page) {
    let (human, codex) = (session(env, "human"), session(env, "codex"));
    page.title("Run");
    page.run(&human, "tenure runs");
    fake_claude(env, "keeps; init; ok 'the test passes now'");
    page.run(&human, "tenure run claude wp:1 --prompt 'fix the test'");
    page.run(
        &human,
        "tenure run claude wp:1 --prompt 'and the docs?' --quiet",
    );
    page.run(&human, "tenure runs");
    let first = text(&newest(env)["id"]);
    page.run(&human, &format!("tenure runs show {first}"));
    page.run(&human, &format!("tenure runs tail {first}"));
    page.title("Run: refused");
    page.run(&human, "tenure run claude wp:1");
    page.run(&human, "tenure run nightly wp:1 --prompt 'fix it'");
    page.run(&human, "tenure run claude wp:1 --skill missing");
    page.run(
        &human,
        "tenure run claude wp:1 --prompt 'fix it' --worktree",
    );
    let other = env.dir().join("other");
    std::fs::create_dir(&other).expect("the environment is ours");
    let elsewhere = format!(
        "tenure run claude wp:1 --prompt 'fix it' --dir {}",
        other.display()
    );
    page.run(&human, &elsewhere);
    take(&codex, "wp:3");
    page.run(
        &human,
        "tenure run claude wp:3 --prompt 'fix it' --exclusive",
    );
    page.title("A run that goes wrong");
    fake_claude(env, "keeps; init; exit 3");
    page.run_once(&human, "tenure run claude wp:4 --prompt 'fix it'", None);
    fake_claude(env, "keeps; init; poisoned");
    page.run_once(&human, "tenure run claude wp:5 --prompt 'fix it'", None);
    page.run(&human, "tenure run claude wp:5 --prompt 'fix it'");
    fake_claude(env, "init; ok 'started again'");
    page.run_once(&human, "tenure run claude wp:9 --prompt 'fix it'", None);
    page.run_once(&human, "tenure run claude wp:9 --prompt 'fix it'", None);
    fake_claude(env, "keeps; init; unknown");
    page.run_once(&human, "tenure run claude wp:1 --prompt 'fix it'", None);
    page.run(&human, "tenure run claude wp:1 --prompt 'fix it'");
    page.run(&human, "tenure runs --failed");
    page.title("A run that is in use, and stopped");
    let dir = fake_claude(env, "keeps; init; hold $dir/flag; ok hi");
    put(&dir.join("flag"), "");
    let window = start(&human, "claude wp:6");
    let running = until(env, "it runs", |run| run["pid"].is_u64());
    let id = text(&running["id"]);
    page.learn(env);
    page.run(&human, "tenure run claude wp:6 --prompt 'fix it'");
    page.run(
        &human,
        "tenure run claude wp:7 --prompt 'fix it' --wait 50ms",
    );
    page.run(&human, &format!("tenure runs resume {id}"));
    page.run(
        &human,
        &format!("tenure runs stop {id} --reason 'not needed any more'"),
    );
    page.show(
        human.pid(),
        "tenure run claude wp:6 --prompt 'do it'",
        window.wait(),
        None,
    );
    page.run(&human, &format!("tenure runs stop {id}"));
    page.run(&human, "tenure runs stop r-none");
    page.run(&human, "tenure runs show r-none");
    fake_claude(env, "keeps; init; ok 'done now'");
    page.run_once(&human, &format!("tenure runs resume {id}"), None);
    page.title("A usage limit");
    fake_claude(env, "keeps; init; limited 4102444800");
    page.run_once(&human, "tenure run claude wp:8 --prompt 'fix it'", None);
    page.run(&human, "tenure run claude wp:8 --prompt 'fix it'");
    let parked = text(&newest(env)["id"]);
    page.run(&human, &format!("tenure runs resume {parked}"));
    page.run(&human, "tenure runs");
    page.run(&human, "tenure log");
}

pub(super) fn conversations(env: &mut Env, page: &mut Page) {
    let human = session(env, "human");
    page.title("Conversations");
    page.run(&human, "tenure conversation list");
    page.run(&human, "tenure conversation get claude wp:1");
    page.run(&human, "tenure conversation set claude wp:1 7f3c");
    page.run(
        &human,
        "tenure conversation set claude wp:1 8a1b --revision 9",
    );
    page.run(&human, "tenure conversation set claude wp:1 8a1b");
    page.run(&human, "tenure conversation set claude wp:2 8a1b");
    page.run(&human, "tenure conversation get claude wp:1");
    page.run(&human, "tenure conversation history claude wp:1");
    page.title("Link");
    page.run(&human, "tenure conversation link wp:2 wp:1");
    page.run(&human, "tenure conversation link wp:2 wp:1");
    page.run(&human, "tenure conversation drop wp:2");
    page.run(&human, "tenure conversation list");
    page.run(&human, "tenure conversation unlink wp:2");
    page.run(&human, "tenure conversation unlink wp:2");
    page.title("Drop");
    page.run(&human, "tenure conversation drop wp:1");
    page.run(&human, "tenure conversation drop wp:1");
    page.run(&human, "tenure conversation list --all");
    page.run(&human, "tenure log");
}

pub(super) fn skills(env: &mut Env, page: &mut Page) {
    let human = session(env, "human");
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    page.cd(&repo);
    page.title("Skills");
    page.run(&human, "tenure skill list");
    let folder = env.home().join(".config/tenure/skills");
    put(&folder.join("fix.md"), "Fix {{ title }}.\n");
    put(&folder.join("broken.md"), "Fix {{ title.\n");
    page.run(&human, "tenure skill list");
    page.run(&human, "tenure skill render fix --var title='Login fails'");
    page.run(
        &human,
        "tenure skill render fix --delta --var title='Login fails'",
    );
    page.run(&human, "tenure skill render fix --continue");
    page.run(&human, "tenure skill render fix");
    page.run(&human, "tenure skill render broken --var title=x");
    page.run(&human, "tenure skill render missing");
    page.run(&human, "tenure skill render fix --var title");
}
