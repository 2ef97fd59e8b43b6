//! Names, patterns, files and processes that are not what a command needs.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use tenure_testkit::{Agent, Cmd, Env, Scripted, scratch_git};

use super::page::Page;
use crate::env;
use crate::support::dispatch::payload;
use crate::support::installed::put;
use crate::support::line::{session, text};
use crate::support::mount::with_mounts;
use crate::support::run::{fake_claude, start, until};
use crate::support::webhook::set_up;

/// Rules with patterns of branches that cannot be read.
fn branches() -> String {
    let wrong = ["/a", "a/", "a//b", "a/../b", "a:b", "a\\u0007", "{,.}"];
    let rule = |branch: &&str| {
        format!(
            "[[rule]]\nname = \"fix\"\nrepo = \"acme/web\"\non = [\"pr.opened\"]\nauthors = [\"alice\"]\n\
             agent = \"claude\"\nskill = \"fix\"\nbranch = \"{branch}\"\n\n"
        )
    };
    wrong.iter().map(rule).collect()
}

#[test]
fn names() {
    let env = env();
    let mut page = Page::new("03-names-and-files", &env);
    let claude = session(&env, "claude");
    let repo = env.dir().join("repo");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    fs::create_dir(repo.join("src")).expect("the clone is ours");
    put(&repo.join("README.md"), "");
    page.cd(&repo.join("src"));
    page.title("Names");
    page.run(&claude, "tenure claim path:README.md");
    let long = |count: usize| "x".repeat(count);
    for line in [
        format!("mission join 041-login --role {}", long(65)),
        format!("skill render {}", long(65)),
        "skill render fix-delta".to_owned(),
        "lock --path missing/.. -- true".to_owned(),
    ] {
        page.run(&claude, &format!("tenure {line}"));
    }
    page.run(&claude, "tenure mission use --clear --verbose");
    page.title("Patterns of branches");
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    put(&repo.join("src/dispatch.toml"), &branches());
    page.run(&claude, "tenure dispatch check --config dispatch.toml");
    page.title("Deliveries without a repository or an account");
    deliveries(&mut page, &env, &claude, &repo);
    page.title("Files");
    files(&mut page, &env, &claude);
    page.check(&env);
}

fn deliveries(page: &mut Page, env: &Env, claude: &Agent, repo: &Path) {
    let text = fs::read_to_string(payload("forgejo/pull_request")).expect("it is there");
    let mut fork: Value = serde_json::from_str(&text).expect("it is JSON");
    fork["pull_request"]["head"]["repo"] = Value::Null;
    put(&repo.join("src/fork.json"), &fork.to_string());
    let text = fs::read_to_string(payload("forgejo/issue")).expect("it is there");
    let mut nobody: Value = serde_json::from_str(&text).expect("it is JSON");
    nobody["sender"] = serde_json::json!({});
    nobody["issue"]["user"] = serde_json::json!({});
    put(&repo.join("src/nobody.json"), &nobody.to_string());
    let config = env.home().join(".config/tenure/dispatch.toml");
    let text = fs::read_to_string(&config).expect("it was written");
    let text = text.replace("\"issue.opened\"", "\"pr.opened\", \"issue.opened\"");
    put(&config, &text);
    page.run(
        claude,
        "tenure dispatch explain fork.json --event pull_request",
    );
    page.run(claude, "tenure dispatch explain nobody.json --event issues");
}

fn files(page: &mut Page, env: &Env, claude: &Agent) {
    let settings = env.home().join(".claude/settings.json");
    fs::create_dir_all(env.home().join(".claude")).expect("the home is ours");
    symlink("missing.json", &settings).expect("the home is ours");
    page.run(claude, "tenure install claude");
    fs::remove_file(&settings).expect("the home is ours");
    put(&settings, &" ".repeat(16 * 1024 * 1024 + 1));
    page.run(claude, "tenure install claude");
    fs::remove_file(&settings).expect("the home is ours");
    let lock = env.state().join("locks/n-build");
    fs::create_dir_all(env.state().join("locks")).expect("the state is ours");
    mknodat(CWD, &lock, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("the state is ours");
    page.run(claude, "tenure lock build -- true");
    let file = env.work().join("pact.json");
    put(&file, r#"{"started_at": "yesterday"}"#);
    page.run(claude, &format!("tenure verify --file {}", file.display()));
    let mine = env.agent("mine");
    let pid = mine.pid();
    page.run(
        &mine,
        &format!("tenure register --agent mine --pid {pid} --native-id 7f3c --transcript /tmp/other.jsonl"),
    );
    let id = env.state().join("host-id");
    let kept = fs::read_to_string(&id).expect("the state is ours");
    put(&id, "build-3\n");
    page.run(claude, "tenure ps");
    put(&id, &kept);
}

/// A `git` that does this, before the real one.
fn fake_git(env: &Env, script: &str) {
    let file = env.dir().join("bin/git");
    put(&file, script);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

#[test]
fn git() {
    let env = env();
    let mut page = Page::new("67-git", &env);
    let claude = session(&env, "claude");
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    page.cd(&repo);
    fake_claude(&env, "keeps; init; ok 'done'");
    let line = "tenure run claude wp:1 --prompt 'fix it' --worktree";
    for (title, script) in [
        ("A git that fails without a word", "#!/bin/sh\nexit 1\n"),
        (
            "A git that fails with a reason",
            "#!/bin/sh\necho 'fatal: not now' >&2\nexit 128\n",
        ),
        (
            "A git that answers nonsense",
            "#!/bin/sh\nprintf '\\377\\n'\n",
        ),
    ] {
        page.title(title);
        fake_git(&env, script);
        page.run(&claude, line);
    }
    page.title("No git");
    fake_git(&env, "#!/missing/sh\n");
    let only = env.dir().join("bin").display().to_string();
    page.run(&claude, &format!("PATH={only} {line}"));
    fs::remove_file(env.dir().join("bin/git")).expect("it is ours");
    page.check(&env);
}

/// Files of the kernel with something else in them, which only one command sees.
#[test]
fn kernel() {
    let env = env();
    let mut page = Page::new("89-kernel", &env);
    let claude = session(&env, "claude");
    let other = env.agent("other");
    let pid = other.pid();
    page.replace(&format!("/proc/{pid}/"), "/proc/20999/");
    let odd = env.dir().join("odd");
    put(&odd, "1 (odd)\n");
    let far = env.dir().join("far");
    put(&far, "monotonic 0 0\nboottime 999999999 0\n");
    let offsets = "/proc/$$/timens_offsets";
    for (title, file, place, kind) in [
        (
            "A process without a state",
            &odd,
            format!("/proc/{pid}/stat"),
            "cannot_tell",
        ),
        (
            "A process without a user",
            &odd,
            format!("/proc/{pid}/status"),
            "cannot_tell",
        ),
        (
            "A process that is older than the machine",
            &far,
            offsets.to_owned(),
            "cannot_tell",
        ),
        (
            "A time namespace that cannot be read",
            &odd,
            offsets.to_owned(),
            "internal",
        ),
    ] {
        let line = format!("tenure register --agent mine --pid {pid}");
        let mount = format!("mount --bind {} {place}; exec {line}", file.display());
        let said = claude.run(with_mounts(&format!("{mount} --json")));
        assert_eq!(said.json()["error"]["kind"], kind, "{said}");
        let said = claude.run(with_mounts(&mount));
        page.title(title);
        page.show(claude.pid(), &line, said, Some(kind));
    }
    page.title("A state directory that nobody names");
    let homeless = Cmd::new("tenure")
        .arg("ps")
        .unset("HOME")
        .unset("TENURE_HOME")
        .unset("TENURE_TEST")
        .unset("XDG_STATE_HOME");
    let said = claude.run(homeless);
    page.show(
        claude.pid(),
        "env -i tenure ps",
        said,
        Some("store_unavailable"),
    );
    page.title("A descriptor that is no gate");
    page.run_once(&claude, "tenure __exec --gate 1 -- true", None);
    page.check(&env);
}

#[test]
fn stopped() {
    let env = env();
    let mut page = Page::new("66-run-stopped", &env);
    let human = session(&env, "human");
    let dir = fake_claude(&env, "keeps; init; hold $dir/flag; ok hi");
    put(&dir.join("flag"), "");
    let window = start(&human, "claude wp:1");
    let running = until(&env, "it runs", |run| run["pid"].is_u64());
    let id = text(&running["id"]);
    page.learn(&env);
    page.title("A run that is stopped without a reason");
    page.run_once(&human, &format!("tenure runs stop {id}"), None);
    assert_ne!(window.wait().code, 0);
    page.check(&env);
}
