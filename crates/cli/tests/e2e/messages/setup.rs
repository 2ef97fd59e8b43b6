//! The files that `install` writes, and settings that it refuses to edit.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::Value;
use tenure_testkit::{Agent, Cmd, Env, Output, add_worktree, poll, scratch_git};

use super::page::Page;
use crate::env;
use crate::support::hooked::Hooked;
use crate::support::installed::put;
use crate::support::line::SOON;

/// Shows what a shell's line prints of a file, apart from what commands say.
fn show_file(page: &mut Page, agent: &Agent, dir: &Path, line: &str) {
    let mut said = agent.run(Cmd::shell(line).dir(dir)).ok();
    let indented = said.stdout.lines().map(|line| format!("    {line}\n"));
    said.stdout = indented.collect();
    page.show(agent.pid(), line, said, None);
}

#[test]
fn written_files() {
    let env = env();
    let mut page = Page::new("81-written-files", &env);
    page.keep_spans();
    let out = env.agent("outsider");
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    page.cd(&repo);
    let file = |page: &mut Page, line: &str| show_file(page, &out, &repo, line);
    page.title("Claude Code");
    page.run(&out, "tenure install claude --statusline");
    file(&mut page, "head -n 13 ~/.claude/settings.json");
    file(&mut page, "grep statusline ~/.claude/settings.json");
    page.title("Claude Code, as a plugin");
    page.run(&out, "tenure install claude --plugin plugin --dry-run");
    page.run(&out, "tenure install claude --plugin plugin");
    file(&mut page, "cat plugin/README.md");
    file(&mut page, "cat plugin/.claude-plugin/plugin.json");
    page.title("Codex");
    put(&env.home().join(".codex/config.toml"), "model = \"o3\"\n");
    page.run(&out, "tenure install codex");
    file(&mut page, "cat ~/.codex/config.toml");
    page.title("opencode");
    page.run(&out, "tenure install opencode");
    file(&mut page, "head -n 10 ~/.config/opencode/plugin/tenure.js");
    page.title("git");
    let own = repo.join(".git/hooks/pre-push");
    put(&own, "#!/bin/sh\n");
    fs::set_permissions(&own, PermissionsExt::from_mode(0o755)).expect("it is ours");
    page.run(&out, "tenure install git");
    file(&mut page, "cat .git/hooks/pre-commit");
    page.check(&env);
}

/// Marks each hook of Codex in its config as `more` says.
fn review(env: &Env, more: &str) {
    let home = env.home().join(".codex");
    let hooks = home.join("hooks.json");
    let text = fs::read_to_string(&hooks).expect("it was written");
    let hooks_of: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut config = String::new();
    for event in hooks_of["hooks"].as_object().expect("an object").keys() {
        let mut label = String::new();
        for letter in event.chars() {
            if letter.is_uppercase() && !label.is_empty() {
                label.push('_');
            }
            label.extend(letter.to_lowercase());
        }
        let file = hooks.display();
        config += &format!("[hooks.state.\"{file}:{label}:0:0\"]\n{more}\n");
    }
    put(&home.join("config.toml"), &config);
}

/// Answers the question of `install` at a terminal.
fn answered(env: &Env) -> Output {
    let shell = env.shell_at_terminal();
    let mut said = std::thread::scope(|scope| {
        let typed = scope.spawn(|| shell.line("tenure install claude 2>/dev/tty"));
        poll(SOON, "it asks", || {
            shell.shown().contains("[y/N]").then_some(())
        });
        shell.press("n\r");
        typed.join().expect("it was typed")
    });
    let shown = shell.shown();
    let asked = shown.lines().find(|line| line.contains("[y/N]"));
    said.stderr = asked.expect("it asked").trim().to_owned();
    said
}

#[test]
fn refused_settings() {
    let env = env();
    let mut page = Page::new("82-settings-of-agents", &env);
    let out = env.agent("outsider");
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    page.cd(&repo);
    let settings = env.home().join(".claude/settings.json");
    let config = env.home().join(".codex/config.toml");
    page.title("Settings of another form");
    for text in ["[]", "{\"hooks\": []}", "{\"hooks\": {\"Stop\": {}}}"] {
        put(&settings, text);
        page.run(&out, "tenure install claude");
    }
    for text in [
        "sandbox_workspace_write = true",
        "sandbox_workspace_write.writable_roots = \"/data\"",
        "sandbox_workspace_write = { network_access.enabled = true }",
    ] {
        put(&config, text);
        page.run(&out, "tenure install codex");
    }
    fs::remove_file(&config).expect("it is ours");
    fs::remove_file(&settings).expect("it is ours");
    symlink(env.dir().join("dotfiles/settings.json"), &settings).expect("the home is ours");
    page.run(&out, "tenure install claude");
    fs::remove_file(&settings).expect("it is ours");
    let homeless = Cmd::new("tenure").args(["install", "claude"]).unset("HOME");
    let said = out.run(homeless);
    page.show(
        out.pid(),
        "env -u HOME tenure install claude",
        said,
        Some("not_found"),
    );
    let bin = env.dir().join("bin");
    page.run(&out, &format!("PATH={} tenure install git", bin.display()));
    let strange = env.dir().join("two\nlines");
    fs::create_dir(&strange).expect("the environment is ours");
    let strange = strange.join("tenure");
    fs::copy(env.tenure_path(), &strange).expect("the environment is ours");
    let said = out.run(Cmd::new(strange.display().to_string()).args(["install", "claude"]));
    page.show(
        out.pid(),
        "/home/dev/two*lines/tenure install claude",
        said,
        Some("invalid"),
    );
    page.title("Hooks that do not run");
    put(&settings, "{\n  \"disableAllHooks\": true\n}\n");
    page.run(&out, "tenure install claude");
    page.run(&out, "tenure install codex --project .");
    page.run(&out, "tenure install codex");
    review(&env, "trusted_hash = \"sha256:1a2b\"");
    page.run(&out, "tenure install codex --check");
    review(&env, "enabled = false");
    page.run(&out, "tenure install codex --check");
    page.title("The status line");
    page.run(&out, "tenure install claude --check");
    let said = answered(&env);
    page.show(out.pid(), "tenure install claude", said, None);
    let text = fs::read_to_string(&settings).expect("it was written");
    let other = "{\n  \"statusLine\": {\"type\": \"command\", \"command\": \"mine\"},";
    put(&settings, &text.replacen('{', other, 1));
    page.run(&out, "tenure install claude --check");
    page.title("Uninstall");
    page.run(&out, "tenure uninstall claude");
    let tree = env.dir().join("tree");
    add_worktree(&repo, &tree, "two");
    let _works = Hooked::start(&env, "claude", "a1", &tree);
    page.learn(&env);
    page.run(&out, "tenure uninstall --all");
    put(
        &env.state().join("installed.json"),
        "{\"edits\": [{\"kind\": \"from a later version\"}]}",
    );
    page.run(&out, "tenure uninstall --all");
    page.check(&env);
}
