//! What a repository can make tenure run, and whom its name makes trusted.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tenure_testkit::{Cmd, Env, Output, scratch_git};

use crate::env;

const HERE: &str = "https://github.com/acme/web";

fn write(path: &Path, text: &str) {
    let dir = path.parent().expect("it is below a scratch directory");
    std::fs::create_dir_all(dir).expect("a scratch directory is writable");
    std::fs::write(path, text).expect("a scratch directory is writable");
}

fn config(env: &Env, text: &str) -> PathBuf {
    let file = env.home().join(".config/tenure/config.toml");
    write(&file, text);
    file
}

#[track_caller]
fn git(env: &Env, dir: &Path, args: &[&str]) {
    let who = ["-c", "user.name=T", "-c", "user.email=t@example.invalid"];
    let words = who.iter().chain(args).copied();
    env.agent("some-editor")
        .run(Cmd::new("git").args(words).dir(dir))
        .ok();
}

fn tenure(env: &Env, dir: &Path, args: &[&str]) -> Output {
    env.agent("some-editor").tenure_in(dir, args)
}

/// A repository with a skill on `main`.
fn repository(env: &Env, name: &str, remote: &str) -> PathBuf {
    let repo = env.dir().join(name);
    scratch_git(&repo, Some(remote));
    write(&repo.join(".tenure/skills/fix.md"), "from main\n");
    write(&repo.join(".gitattributes"), "* filter=c diff=c merge=c\n");
    git(env, &repo, &["add", "."]);
    git(env, &repo, &["commit", "--quiet", "-m", "skill"]);
    repo
}

/// Programs that leave a file each when they run.
struct Canaries {
    dir: PathBuf,
}

impl Canaries {
    fn new(env: &Env) -> Self {
        let dir = env.dir().join("canaries");
        std::fs::create_dir_all(dir.join("sang")).expect("a scratch directory is writable");
        Self { dir }
    }

    /// The path of a program with this name.
    fn program(&self, name: &str) -> String {
        let path = self.dir.join(name);
        let sang = self.dir.join("sang").join(name);
        write(&path, &format!("#!/bin/sh\n: > {}\n", sang.display()));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("ours");
        path.to_str().expect("it is text").to_owned()
    }

    #[track_caller]
    fn are_silent(&self, after: &str) {
        let all = std::fs::read_dir(self.dir.join("sang")).expect("it is ours");
        let names: Vec<_> = all.map(|one| one.expect("ours").file_name()).collect();
        assert!(names.is_empty(), "{after} ran {names:?}");
    }
}

/// Settings with a fixed name that name a program.
const FIXED: &[&str] = &[
    "core.fsmonitor",
    "core.sshCommand",
    "core.gitProxy",
    "core.editor",
    "core.pager",
    "core.askPass",
    "core.alternateRefsCommand",
    "sequence.editor",
    "diff.external",
    "interactive.diffFilter",
    "credential.helper",
    "gpg.program",
    "gpg.ssh.program",
    "gpg.ssh.defaultKeyCommand",
    "gc.recentObjectsHook",
];

/// Settings with a name of the author's choice that name a program.
const FREE: &[&str] = &[
    "filter.c.clean",
    "filter.c.smudge",
    "filter.c.process",
    "diff.c.command",
    "diff.c.textconv",
    "merge.c.driver",
    "credential.https://github.com.helper",
    "remote.origin.uploadpack",
    "remote.origin.receivepack",
    "alias.status",
    "hook.c.command",
];

/// Plants hooks and what has a fixed name, and takes a blob away that a partial clone would fetch.
fn plant_fixed(env: &Env, repo: &Path, canaries: &Canaries) {
    for name in FIXED {
        git(env, repo, &["config", name, &canaries.program(name)]);
    }
    let hooks = repo.join(".git/own-hooks");
    for hook in [
        "post-checkout",
        "reference-transaction",
        "post-index-change",
    ] {
        for dir in [&hooks, &repo.join(".git/hooks")] {
            std::fs::create_dir_all(dir).expect("it is ours");
            let program = canaries.program(hook);
            std::fs::copy(program, dir.join(hook)).expect("it is ours");
        }
    }
    let hooks = hooks.to_str().expect("it is text");
    for (name, value) in [
        ("core.hooksPath", hooks),
        ("remote.origin.url", "git@evil.example:acme/web.git"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.partialclonefilter", "blob:none"),
        ("core.repositoryformatversion", "1"),
        ("extensions.partialClone", "origin"),
    ] {
        git(env, repo, &["config", name, value]);
    }
    let objects = repo.join(".git/objects");
    let blob = env.agent("some-editor").run(
        Cmd::new("git")
            .args(["hash-object", "--no-filters", ".tenure/skills/fix.md"])
            .dir(repo),
    );
    let blob = blob.ok().stdout;
    let (first, rest) = blob.trim().split_at(2);
    std::fs::remove_file(objects.join(first).join(rest)).expect("the blob is loose");
    let sang = canaries.dir.join("sang");
    std::fs::remove_dir_all(&sang).expect("it is ours");
    std::fs::create_dir(&sang).expect("it is ours");
}

fn plant_free(env: &Env, repo: &Path, canaries: &Canaries) {
    for name in FREE {
        git(env, repo, &["config", name, &canaries.program(name)]);
    }
    let included = repo.join(".git/more");
    let program = canaries.program("include");
    write(&included, &format!("[filter \"c\"]\n\tclean = {program}\n"));
    let included = included.to_str().expect("it is text");
    git(env, repo, &["config", "include.path", included]);
    let instead = format!("url.ext::{}.insteadOf", canaries.program("insteadOf"));
    git(env, repo, &["config", &instead, "https://github.com/"]);
    git(env, repo, &["config", "protocol.ext.allow", "always"]);
    write(&repo.join(".git/info/attributes"), "* filter=c diff=c\n");
}

const LOOKS: &[&[&str]] = &[
    &["skill", "list"],
    &["skill", "render", "fix"],
    &["ps"],
    &["ps", "-a"],
    &["status"],
    &["who", "path:a"],
    &["whoami"],
    &["why", "#1"],
    &["claims"],
    &["config"],
    &["conversation", "list"],
    &["runs"],
    &["claim", "path:a"],
];

const RUN: &[&str] = &["run", "claude", "issue:acme/web#1", "--prompt", "x"];

#[test]
fn looking_at_a_repository_that_is_not_trusted_runs_nothing_of_it() {
    let env = env();
    let repo = repository(&env, "web", HERE);
    let canaries = Canaries::new(&env);
    plant_free(&env, &repo, &canaries);
    plant_fixed(&env, &repo, &canaries);
    for look in LOOKS {
        tenure(&env, &repo, look);
        canaries.are_silent(&look.join(" "));
    }
    let refused = tenure(&env, &repo, &[RUN, &["--worktree"]].concat());
    canaries.are_silent("run --worktree");
    refused.fails(125);
}

/// How to trust a repository, as a hint has it.
fn line(env: &Env, name: &str) -> String {
    let file = env.home().join(".config/tenure/config.toml");
    format!("add [repo.\"{name}\"] trusted = true to {}", file.display())
}

#[test]
fn a_worktree_is_refused_with_the_setting_that_stands_in_the_way() {
    let env = env();
    let repo = repository(&env, "web", HERE);
    let canaries = Canaries::new(&env);
    write(&repo.join(".git/info/attributes"), "* filter=c diff=c\n");
    let programs = FREE.iter().map(|name| (*name, canaries.program(name)));
    let others = [
        ("include.path", "/dev/null"),
        ("core.unknownCommand", "x"),
        ("extensions.worktreeConfig", "true"),
        ("url.https://evil.example/.insteadOf", "https://github.com/"),
    ];
    let others = others.map(|(name, value)| (name, value.to_owned()));
    for (name, value) in programs.chain(others) {
        git(&env, &repo, &["config", name, &value]);
        let refused = tenure(&env, &repo, &[RUN, &["--worktree", "--json"]].concat()).fails(125);
        canaries.are_silent(name);
        let error = &refused.json()["error"];
        assert_eq!(error["kind"], "untrusted", "{error}");
        let lower = error["message"].to_string().to_lowercase();
        assert!(lower.contains(&name.to_lowercase()), "{name}: {error}");
        let hints = error["hints"].to_string().replace('\\', "");
        // Who follows an include out of the git directory cannot know the remote.
        let dir = repo.join(".git").display().to_string();
        let named = match name {
            "include.path" => dir.as_str(),
            _ => "github.com/acme/web",
        };
        assert!(hints.contains(&line(&env, named)), "{hints}");
        git(&env, &repo, &["config", "--unset", name]);
    }
}

#[test]
fn looking_at_a_trusted_repository_fetches_nothing_and_runs_no_fixed_program() {
    let env = env();
    let repo = repository(&env, "web", HERE);
    let canaries = Canaries::new(&env);
    config(&env, "[repo.\"evil.example/acme/web\"]\ntrusted = true\n");
    assert!(
        tenure(&env, &repo, &["skill", "list"])
            .ok()
            .stdout
            .contains("no skills")
    );
    plant_fixed(&env, &repo, &canaries);
    for look in LOOKS {
        tenure(&env, &repo, look);
        canaries.are_silent(&look.join(" "));
    }
    let said = tenure(&env, &repo, &["skill", "render", "fix"]);
    assert!(said.stderr.contains("git cat-file blob failed"), "{said}");
}

#[test]
fn git_checks_the_owner_of_a_repository() {
    let env = env();
    let repo = repository(&env, "web", HERE);
    config(&env, "[repo.\"github.com/acme/web\"]\ntrusted = true\n");
    tenure(&env, &repo, &["skill", "render", "fix"]).ok();
    let is_root = std::os::unix::fs::chown(&repo, Some(65534), None).is_ok();
    if !is_root {
        return;
    }
    std::os::unix::fs::chown(repo.join(".git"), Some(65534), None).expect("root may");
    let said = tenure(&env, &repo, &["skill", "render", "fix"]).fails(6);
    assert!(said.stderr.contains("dubious ownership"), "{said}");
    let said = tenure(&env, &repo, &["install", "git"]).fails(4);
    assert!(said.stderr.contains("dubious ownership"), "{said}");
    let said = tenure(&env, &repo, &[RUN, &["--worktree"]].concat()).fails(125);
    assert!(said.stderr.contains("dubious ownership"), "{said}");
}

#[test]
fn a_clone_from_another_host_is_not_trusted() {
    let env = env();
    let own = repository(&env, "own", HERE);
    let evil = repository(&env, "evil", "https://evil.example/acme/web");
    config(&env, "[repo.\"github.com/acme/web\"]\ntrusted = true\n");
    tenure(&env, &own, &["skill", "render", "fix"]).ok();
    let said = tenure(&env, &evil, &["skill", "render", "fix"]).fails(4);
    assert!(
        said.stderr.contains(&line(&env, "evil.example/acme/web")),
        "{said}"
    );
    // Groups that look like the host.
    let url = "https://evil.example/github.com/acme/web";
    let nested = repository(&env, "nested", url);
    tenure(&env, &nested, &["skill", "render", "fix"]).fails(4);
    // An alias of ssh.
    let alias = repository(&env, "alias", "git@github-work:acme/web.git");
    tenure(&env, &alias, &["skill", "render", "fix"]).fails(4);
    let same = "[repo.\"github.com/acme/web\"]\ntrusted = true\nsame_as = [\"github-work\"]\n";
    config(&env, same);
    tenure(&env, &alias, &["skill", "render", "fix"]).ok();
}

const ID: &str = "0b1c2d3e-4f50-4a6b-8c7d-9e0f1a2b3c4d";

#[test]
fn a_name_without_a_host_is_refused_once_two_hosts_have_it() {
    let env = env();
    let own = repository(&env, "own", HERE);
    let evil = repository(&env, "evil", "https://evil.example/acme/web");
    config(&env, "[repo.\"acme/web\"]\ntrusted = true\n");
    tenure(&env, &own, &["skill", "render", "fix"]).ok();
    tenure(&env, &own, &["conversation", "set", "claude", "#6", ID]).ok();
    tenure(&env, &own, &["skill", "render", "fix"]).ok();
    for verb in [&["skill", "render", "fix"][..], &["skill", "list"], RUN] {
        let said = tenure(&env, &evil, verb);
        assert_ne!(said.code, 0, "{said}");
        for word in [
            "evil.example",
            "github.com",
            "[repo.\"github.com/acme/web\"]",
        ] {
            assert!(said.stderr.contains(word), "{said}");
        }
    }
    // Two remotes of one checkout say as much.
    git(
        &env,
        &own,
        &["remote", "add", "fork", "git@evil.example:x/y"],
    );
    let said = tenure(&env, &own, &["skill", "list"]).fails(6);
    assert!(said.stderr.contains("evil.example"), "{said}");
}

#[test]
fn a_conversation_is_elsewhere_from_a_clone_of_another_host() {
    let env = env();
    let own = repository(&env, "own", HERE);
    let evil = repository(&env, "evil", "https://evil.example/acme/web");
    tenure(&env, &own, &["conversation", "set", "claude", "#6", ID]).ok();
    let get = ["conversation", "get", "claude", "#6", "--json"];
    let seen = |dir: &Path| tenure(&env, dir, &get).ok().json()["conversation"].clone();
    assert_eq!(seen(&own)["elsewhere"], serde_json::Value::Null);
    assert_eq!(seen(&own)["home"]["repo_host"], "github.com");
    assert_eq!(seen(&evil)["elsewhere"], "repository");
    let run = ["run", "claude", "#6", "--prompt", "x", "--json"];
    let said = tenure(&env, &evil, &run).fails(125);
    assert!(said.stdout.contains("elsewhere"), "{said}");
    // Claims have no host.
    let key = |dir: &Path| {
        let claimed = tenure(&env, dir, &["why", "#6", "--json"]).ok().json();
        claimed.to_string().contains("issue:acme/web#6")
    };
    assert!(key(&own) && key(&evil));
    // Two names of one host.
    config(
        &env,
        "[repo.\"github.com/acme/web\"]\nsame_as = [\"evil.example\"]\n",
    );
    assert_eq!(seen(&evil)["elsewhere"], serde_json::Value::Null);
}

#[test]
fn settings_that_others_can_change_are_refused() {
    let env = env();
    let file = config(&env, "[goto]\ncommand = \"true\"\n");
    let mode = |bits: u32| {
        let bits = std::fs::Permissions::from_mode(bits);
        std::fs::set_permissions(&file, bits).expect("it is ours");
    };
    let ask = || tenure(&env, &env.work(), &["config"]);
    for good in [0o600, 0o644, 0o400] {
        mode(good);
        ask().ok();
    }
    for bad in [0o620, 0o602, 0o666] {
        mode(bad);
        let said = ask().fails(2);
        let help = format!("chmod 600 {}", file.display());
        assert!(said.stderr.contains("others can write it"), "{said}");
        assert!(said.stderr.contains(&help), "{said}");
    }
    // A link is as good as what it leads to.
    let real = env.home().join("real.toml");
    std::fs::rename(&file, &real).expect("it is ours");
    std::os::unix::fs::symlink(&real, &file).expect("it is ours");
    assert!(ask().fails(2).stderr.contains("others can write it"));
    mode(0o644);
    ask().ok();
    if std::os::unix::fs::chown(&real, Some(65534), None).is_ok() {
        let said = ask().fails(2);
        assert!(said.stderr.contains("belongs to uid 65534"), "{said}");
    }
}

#[test]
fn a_password_in_settings_that_others_can_read_is_refused() {
    let env = env();
    for (text, is_secret) in [
        ("store = \"postgres://u:pw@127.0.0.1:1/db\"\n", true),
        (
            "store = \"postgres://u@127.0.0.1:1/db?password=pw\"\n",
            true,
        ),
        (
            "store = \"postgres://u@127.0.0.1:1/db?password_file=/x\"\n",
            false,
        ),
        (
            "[goto]\ncommand = \"open http://127.0.0.1:80/a@b\"\n",
            false,
        ),
    ] {
        let file = config(&env, text);
        for (bits, is_open) in [(0o644, true), (0o640, true), (0o600, false)] {
            let mode = std::fs::Permissions::from_mode(bits);
            std::fs::set_permissions(&file, mode).expect("it is ours");
            let said = tenure(&env, &env.work(), &["config"]);
            let refused = said
                .stderr
                .contains("it has a password, and others can read it");
            assert_eq!(refused, is_secret && is_open, "{bits:o} {text} {said}");
            assert!(!said.stderr.contains("pw"), "{said}");
        }
        std::fs::remove_file(&file).expect("it is ours");
    }
}

#[test]
fn hooks_answer_whatever_is_wrong_with_the_settings() {
    let env = env();
    let file = config(&env, "lease = \"1h\"\n");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).expect("ours");
    let event = r#"{"hook_event_name": "PreToolUse", "session_id": "c-1", "tool_name": "Write",
        "tool_input": {"file_path": "/tmp/a"}}"#;
    let said = env.agent("claude").tenure_stdin(&["hook", "claude"], event);
    assert_eq!(
        (said.code, said.stdout.contains("deny")),
        (0, false),
        "{said}"
    );
    assert!(said.stderr.contains("others can write it"), "{said}");
}

#[test]
fn hooks_are_installed_outside_a_repository_only_where_that_is_named() {
    let env = env();
    let repo = repository(&env, "web", HERE);
    let outside = env.dir().join("hooks of all");
    let named = outside.to_str().expect("it is text");
    for path in [named, "missing/../../../hooks of all"] {
        git(&env, &repo, &["config", "core.hooksPath", path]);
        let said = tenure(&env, &repo, &["install", "git"]).fails(6);
        assert!(said.stderr.contains("outside this repository"), "{said}");
        assert!(said.stderr.contains("--hooks-path"), "{said}");
        assert!(!outside.exists());
    }
    git(&env, &repo, &["config", "core.hooksPath", named]);
    let other = env.dir().join("other");
    let other = other.to_str().expect("it is text");
    tenure(&env, &repo, &["install", "git", "--hooks-path", other]).fails(2);
    tenure(&env, &repo, &["install", "claude", "--hooks-path", named]).fails(2);
    assert!(!outside.exists());
    tenure(&env, &repo, &["install", "git", "--hooks-path", named]).ok();
    assert!(outside.join("pre-commit").exists());
    tenure(&env, &repo, &["uninstall", "git"]).ok();
    assert!(!outside.join("pre-commit").exists());
    git(&env, &repo, &["config", "core.hooksPath", ".husky"]);
    tenure(&env, &repo, &["install", "git"]).ok();
    assert!(repo.join(".husky/pre-commit").exists());
}
