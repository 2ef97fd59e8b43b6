//! Runs that do not start: what a skill, a repository, a disk or the kernel says against it.

use std::path::PathBuf;

use tenure_testkit::{Agent, Background, Cmd, Env, Output, poll, scratch_git};

use super::page::Page;
use crate::env;
use crate::support::git_host::before_git;
use crate::support::installed::put;
use crate::support::line::{SOON, run, session, take};
use crate::support::preload::library;
use crate::support::refusing::refusing;
use crate::support::run::{fake_claude, kill9, pid_of, runner_of, start, until};
use crate::support::waiter::{holder, in_line};

/// A clone of acme/web, which the user's settings do not trust.
fn clone(env: &Env) -> PathBuf {
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    repo
}

#[test]
fn templates() {
    let env = env();
    let mut page = Page::new("65-skill-files", &env);
    let human = session(&env, "human");
    let repo = clone(&env);
    page.cd(&env.work());
    page.title("Skills that cannot be rendered");
    let skills = env.home().join(".config/tenure/skills");
    let chain = vec!["title"; 200].join(" or ");
    let elifs = "{% elif title %}b".repeat(61);
    let ten = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
    let repeat = format!("{{% for a in {ten} %}}").repeat(4);
    let ends = "{% endfor %}".repeat(4);
    for (name, text) in [
        ("long-tag", format!("{{{{ {chain} }}}}")),
        ("branches", format!("{{% if title %}}a{elifs}{{% endif %}}")),
        (
            "recursive",
            "{% for x in title|lines recursive %}{{ x }}{% endfor %}".to_owned(),
        ),
        (
            "list",
            "{% for x in [title] %}{{ x }}{% endfor %}".to_owned(),
        ),
        (
            "huge",
            format!("{repeat}{}{ends}", "This line is too long. ".repeat(10)),
        ),
    ] {
        put(&skills.join(format!("{name}.md")), &text);
        page.run(
            &human,
            &format!("tenure skill render {name} --var title='Login fails'"),
        );
    }
    page.title("Skills that cannot be found or read");
    std::fs::create_dir(skills.join("folder.md")).expect("the home is ours");
    page.run(&human, "tenure skill render folder");
    std::fs::remove_dir(skills.join("folder.md")).expect("it was just made");
    page.run(&human, "HOME= tenure skill render fix");
    page.cd(&repo);
    before_git(
        &env,
        "echo 'fatal: detected dubious ownership in repository' >&2; exit 128",
    );
    page.run(&human, "tenure skill list");
    page.check(&env);
}

#[test]
fn trust() {
    let env = env();
    let mut page = Page::new("65-run-trust", &env);
    let human = session(&env, "human");
    let repo = clone(&env);
    page.cd(&repo);
    page.title("A repository that is not trusted");
    let machine = env.dir().join("qwen-settings.json");
    let qwen = format!(
        "QWEN_CODE_SYSTEM_SETTINGS_PATH={} tenure run qwen wp:1 --prompt 'fix it'",
        machine.display()
    );
    put(&machine, "{\"ui\": {}}\n");
    page.run(&human, &qwen);
    std::fs::remove_file(&machine).expect("it was just made");
    std::fs::create_dir(&machine).expect("the environment is ours");
    page.run(&human, &qwen);
    let codex = "tenure run codex wp:1 --prompt 'fix it'";
    let config = env.home().join(".codex/config.toml");
    put(
        &config,
        &format!("[projects.{repo:?}]\ntrust_level = \"trusted\"\n"),
    );
    page.run(&human, codex);
    put(&config, "projects = = 1\n");
    page.run(&human, codex);
    put(&config, "");
    let changed = format!(
        "LD_PRELOAD={} TENURE_TEST_CHANGED={}",
        library(&env, "changed_between"),
        config.display()
    );
    let said = human.run(Cmd::shell(&format!("{changed} {codex}")).dir(&repo));
    page.show(human.pid(), codex, said, Some("untrusted"));
    page.check(&env);
}

/// Shows the same id for a run that was never recorded, and the same name for its unfinished file.
fn hide_names(page: &mut Page, said: &Output) {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    for word in said.stderr.split(|c: char| !is_letter(c)) {
        let code = word.split('.').nth(2);
        if word.starts_with("r-") && word.len() == 12 {
            page.replace(word, "r-t6rb");
        } else if let Some(code) = code.filter(|_| word.starts_with(".prompt.")) {
            page.replace(code, "1a2b3c4d5");
        }
    }
}

/// A run that waits for wp:3, which another session holds.
fn waiting(env: &Env, human: &Agent) -> (Background, u32) {
    let window = start(human, "claude wp:3 --exclusive --wait 5m");
    let runner = poll(SOON, "it waits", || in_line(env, "wp:3").pop());
    (window, runner)
}

const WAITS: &str = "tenure run claude wp:3 --exclusive --wait 5m --prompt 'do it'";

#[test]
fn run_starts() {
    let env = env();
    let mut page = Page::new("65-run-starts", &env);
    let (human, codex) = (session(&env, "human"), session(&env, "codex"));
    fake_claude(&env, "keeps; init; ok 'done'");
    page.learn(&env);
    page.title("Arguments");
    page.run(
        &human,
        "tenure run claude wp:1 --prompt 'fix it' -- --resume 7f3c",
    );
    page.run(
        &human,
        "tenure run claude wp:1 --prompt 'fix it' --dir /dev/null/web",
    );
    page.title("A state directory or a kernel that refuses what a run needs");
    put(&env.state().join("tmp"), "");
    let said = page.run(&human, "tenure run claude wp:1 --prompt 'fix it'");
    hide_names(&mut page, &said);
    std::fs::remove_file(env.state().join("tmp")).expect("it was just made");
    let typed = "tenure run claude wp:1 --prompt 'fix it'";
    let said = human.run(refusing(&env, &["memfd_create:38:1:1"], typed));
    page.show(human.pid(), typed, said, Some("internal"));
    let calls = ["memfd_create:38:1:11", "unlink:13", "unlinkat:13"];
    let said = human.run(refusing(&env, &calls, typed));
    hide_names(&mut page, &said);
    page.show(human.pid(), typed, said, Some("internal"));
    page.title("A run that waits for its item");
    take(&codex, "wp:3");
    let (window, runner) = waiting(&env, &human);
    human
        .run(Cmd::new("kill").args(["-TERM".to_owned(), runner.to_string()]))
        .ok();
    page.show(human.pid(), WAITS, window.wait(), Some("interrupted"));
    let words = WAITS.split(' ').skip(1).take(6);
    let window = human.start(
        Cmd::new("tenure")
            .args(words)
            .args(["--prompt", "do it"])
            .env("LD_PRELOAD", "/usr/lib/missing.so"),
    );
    let runner = poll(SOON, "it waits", || in_line(&env, "wp:3").pop());
    kill9(&human, runner);
    let typed = format!("LD_PRELOAD=/usr/lib/missing.so {WAITS}");
    page.show(human.pid(), &typed, window.wait(), Some("internal"));
    let (window, _) = waiting(&env, &human);
    let prompt = poll(SOON, "its prompt is kept", || {
        let dirs = std::fs::read_dir(env.state().join("runs")).ok()?;
        let prompts = dirs.flatten().map(|dir| dir.path().join("prompt"));
        let made = |file: &PathBuf| file.metadata().and_then(|at| at.modified()).ok();
        prompts.filter(|file| file.exists()).max_by_key(made)
    });
    std::fs::remove_file(&prompt).expect("it is ours");
    std::fs::create_dir(&prompt).expect("it is ours");
    put(&prompt.join("kept"), "");
    run(&codex, 0, "release wp:3");
    let said = window.wait();
    hide_names(&mut page, &said);
    page.show(human.pid(), WAITS, said, Some("internal"));
    page.title("A session that held something when its last run was killed");
    fake_claude(
        &env,
        "keeps; init; tenure claim wp:9 >/dev/null; exec sleep 1000",
    );
    let window = start(&human, "claude wp:4");
    let killed = until(&env, "it runs", |run| run["native_id"].is_string());
    poll(SOON, "it has a claim", || holder(&env, "wp:9").0);
    window.kill9();
    let agent = pid_of(&killed);
    kill9(&human, runner_of(&killed));
    kill9(&human, agent);
    page.learn(&env);
    page.run(&human, "tenure runs");
    fake_claude(&env, "keeps; init; ok 'done'");
    page.run_once(&human, "tenure run claude wp:4 --prompt 'fix it'", None);
    page.check(&env);
}
