//! `install` and `uninstall`: the settings of the agents in a private HOME.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tenure_testkit::{Cmd, Env, Output, scratch_git};

use crate::env;
use crate::support::line::text;

/// opencode reads its plugin when it starts, so a new mode reaches only the next one.
#[test]
fn who_runs_another_mode_is_named_until_it_is_restarted() {
    let env = env();
    std::fs::create_dir_all(env.home().join(".config/opencode")).unwrap();
    let install = |args: &[&str]| {
        let words = [&["install", "opencode"], args].concat();
        env.tenure(&words).ok().stdout
    };
    install(&[]);
    let opencode = env.agent("opencode");
    opencode.outlives_its_first_ticks();
    let still = format!(
        "pid {} still runs mode warn; restart it for mode block",
        opencode.pid()
    );
    assert!(!install(&["--check"]).contains("still"));
    let installed = install(&["--mode", "block"]);
    assert!(installed.contains(&still), "{installed}");
    let checked = install(&["--check"]);
    assert!(checked.contains(&format!("opencode: {still}")), "{checked}");
    opencode.kill9();
    let _again = env.agent("opencode");
    let checked = install(&["--check"]);
    assert!(!checked.contains("still"), "{checked}");
}

/// An environment in which no agent is to be found.
fn bare() -> Env {
    let mut env = env();
    env.set("PATH", "/nowhere");
    env
}

fn put(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("it works");
    std::fs::write(path, content).expect("it works");
}

fn get(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file below, with what is in it.
fn tree(dir: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).expect("it works").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(tree(&path));
        } else {
            found.insert(path.clone(), get(&path));
        }
    }
    found
}

fn claude(env: &Env) -> PathBuf {
    env.home().join(".claude/settings.json")
}

/// The answer's part about one agent.
fn about(output: &Output, agent: &str) -> Value {
    let json = output.json();
    let all = json["agents"].as_array().expect("a list");
    let one = all.iter().find(|one| one["agent"] == agent);
    one.unwrap_or_else(|| panic!("{agent} is not in {json}"))
        .clone()
}

const CLAUDE: &str = "{\n\t\"model\": \"opus\",\r\n\t\"hooks\": {\"Stop\": [ {\"hooks\": [{\"type\":\"command\",\"command\":\"mine\"}]}],\n  \"PreToolUse\":[]}, \"env\": {\"A\":\"b\"}}";

const GEMINI: &str =
    "// my settings\n{\n  \"ui\": {}, /* later */\n  \"hooks\": {\n    // nothing yet\n  }\n}\n";

const CODEX: &str = "model = \"o3\" # the good one\n\n[sandbox_workspace_write]\nwritable_roots = [\n  \"/data\", # big\n]";

const CODEX_HOOKS: &str =
    "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"mine\"}]}]}}";

fn furnish(env: &Env) -> BTreeMap<PathBuf, String> {
    let home = env.home();
    put(&home.join(".claude/settings.json"), CLAUDE);
    put(&home.join(".gemini/settings.json"), GEMINI);
    put(&home.join(".codex/config.toml"), CODEX);
    put(&home.join(".codex/hooks.json"), CODEX_HOOKS);
    put(&home.join(".config/opencode/opencode.json"), "{}");
    tree(&home)
}

#[test]
fn f_h07_install_twice_and_uninstall_leaves_everything_as_it_was() {
    let env = bare();
    let before = furnish(&env);
    let first = env.tenure(&["install", "--json"]).ok();
    for agent in ["claude", "codex", "gemini", "opencode"] {
        let one = about(&first, agent);
        assert_eq!(
            (text(&one["state"]), &one["changed"]),
            ("installed".into(), &true.into())
        );
    }
    let once = tree(&env.home());
    let inode = std::fs::metadata(claude(&env)).unwrap().ino();
    let second = env.tenure(&["install", "--json"]).ok();
    assert_eq!(about(&second, "claude")["changed"], false);
    assert_eq!(tree(&env.home()), once);
    assert_eq!(
        std::fs::metadata(claude(&env)).unwrap().ino(),
        inode,
        "it was written again"
    );
    for (path, content) in &before {
        assert!(
            once[path].len() >= content.len(),
            "{} lost something",
            path.display()
        );
        let copy = PathBuf::from(format!("{}.tenure-backup", path.display()));
        if !path.ends_with("opencode.json") {
            assert_eq!(&once[&copy], content, "the copy of {}", path.display());
        }
    }
    env.tenure(&["uninstall", "--all"]).ok();
    assert_eq!(tree(&env.home()), before);
}

#[test]
fn what_was_made_for_the_hooks_goes_with_them() {
    let env = bare();
    let agents = ["claude", "codex", "gemini", "opencode"];
    env.tenure(&[&["install"], &agents[..]].concat()).ok();
    let made = tree(&env.home());
    assert_eq!(made.len(), 5, "{:?}", made.keys());
    for path in made.keys() {
        let mode = std::fs::metadata(path).unwrap().mode() & 0o777;
        let dir = std::fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777;
        assert_eq!((mode, dir), (0o600, 0o700), "{}", path.display());
    }
    // An update does not mean that the file was there before.
    env.tenure(&["install", "--mode", "block"]).ok();
    env.tenure(&["uninstall", "--all"]).ok();
    assert_eq!(tree(&env.home()), BTreeMap::new());
    assert!(
        env.tenure(&["uninstall", "--all"])
            .ok()
            .stdout
            .contains("nothing to remove")
    );
}

#[test]
fn a_dry_run_shows_the_change_and_makes_none() {
    let env = bare();
    let before = furnish(&env);
    let shown = env.tenure(&["install", "--dry-run"]).ok().stdout;
    let file = format!("would change {}", claude(&env).display());
    assert!(
        shown.contains(&file) && shown.contains("hook claude"),
        "{shown}"
    );
    for line in shown.lines() {
        let is_changed = line.starts_with("    + ") || line.starts_with("    - ");
        assert!(!is_changed || line.chars().count() < 180, "{line}");
        assert!(!line.contains("mine\"}]}]}]"), "{line}");
    }
    assert!(shown.contains("fetches a package"), "{shown}");
    assert_eq!(tree(&env.home()), before);
    assert!(!env.state().exists());
    env.tenure(&["install"]).ok();
    let with = tree(&env.home());
    let shown = env
        .tenure(&["uninstall", "--all", "--dry-run", "--json"])
        .ok();
    assert!(text(&about(&shown, "gemini")["diff"]).contains("hook gemini"));
    assert_eq!(tree(&env.home()), with);
}

#[test]
fn check_says_how_things_stand() {
    let env = bare();
    let none = env.tenure(&["install", "--check"]).fails(4);
    assert!(
        none.stderr.contains("hint: run `tenure install claude`"),
        "{none}"
    );
    env.tenure(&["install"]).fails(4);
    put(&claude(&env), CLAUDE);
    let state = |code: i32| {
        let output = env.tenure(&["install", "--check", "--json"]).fails(code);
        about(&output, "claude")
    };
    assert_eq!(state(1)["state"], "not_installed");
    env.tenure(&["install", "--mode", "block"]).ok();
    let one = state(0);
    assert_eq!(
        (&one["state"], &one["mode"]),
        (&"installed".into(), &"block".into())
    );
    assert_eq!(one["file"], claude(&env).to_str().unwrap());
    let tenure = env.tenure_path().to_str().unwrap();
    put(
        &claude(&env),
        &get(&claude(&env)).replace(tenure, "/old/tenure"),
    );
    assert_eq!(state(1)["state"], "outdated");
    let told = env.tenure(&["install", "--check"]).fails(1).stdout;
    assert!(
        told.contains("claude: no hook runs: /old/tenure is gone; run `tenure install claude`"),
        "{told}"
    );
    // Brought up to date, it is as strict as it was.
    env.tenure(&["install"]).ok();
    assert_eq!(state(0)["mode"], "block");
    assert!(!get(&claude(&env)).contains("/old/tenure"));
    let named = env.tenure(&["install", "--check", "--json", "gemini"]).ok();
    assert_eq!(about(&named, "gemini")["state"], "not_found");
}

#[test]
fn a_file_that_does_not_parse_is_refused_and_the_other_agents_are_installed() {
    let env = bare();
    furnish(&env);
    let broken = env.home().join(".gemini/settings.json");
    put(&broken, "{\n  \"a\": 1\n  \"b\": 2\n}\n");
    let before = tree(&env.home());
    let place = format!("{}, line 2, column 9: expected comma", broken.display());
    for verb in [
        &["uninstall", "--all"][..],
        &["install", "--dry-run"],
        &["install", "gemini"],
    ] {
        let refused = env.tenure(verb).fails(6);
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert!(said.contains(&place), "{refused}");
        assert_eq!(tree(&env.home()), before);
    }
    let refused = env.tenure(&["install", "gemini", "--json"]).fails(6).json();
    assert_eq!(
        (&refused["error"]["line"], &refused["error"]["column"]),
        (&2.into(), &9.into())
    );
    let others = env.tenure(&["install", "--json"]).fails(6).json();
    assert_eq!(others["failed"][0]["agent"], "gemini");
    assert_eq!(others["failed"][0]["line"], 2);
    assert_eq!(get(&broken), before[&broken]);
    assert!(get(&claude(&env)).contains("hook claude"));
    let said = env.tenure(&["install"]).fails(6);
    let said = format!("{}{}", said.stdout, said.stderr);
    assert!(said.contains("gemini: not installed: "), "{said}");
}

#[test]
fn uninstalling_speaks_of_what_was_edited_and_of_the_state_directory() {
    let env = bare();
    put(&claude(&env), CLAUDE);
    put(&env.home().join(".codex/config.toml"), "model = \"o3\"\n");
    env.tenure(&["install", "claude"]).ok();
    let said = env.tenure(&["uninstall", "--all"]).ok().stdout;
    assert!(said.contains("claude: uninstalled"), "{said}");
    assert!(
        !said.contains("codex") && !said.contains("gemini"),
        "{said}"
    );
    let delete = format!("rm -r {}", env.state().display());
    assert!(said.contains(&delete), "{said}");
}

#[test]
fn uninstalling_takes_codexs_trust_in_our_hooks_away() {
    let env = bare();
    let config = env.home().join(".codex/config.toml");
    put(&config, "model = \"o3\"\n");
    env.tenure(&["install", "codex"]).ok();
    let hooks = env.home().join(".codex/hooks.json");
    let state = |name: &str| {
        format!(
            "\n[hooks.state.\"{}:{name}:0:0\"]\ntrusted_hash = \"sha256:1\"\n",
            hooks.display()
        )
    };
    let other = "\n[hooks.state.\"/elsewhere/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:2\"\n";
    let with = format!("{}{}{other}", get(&config), state("session_start"));
    put(&config, &with);
    env.tenure(&["uninstall", "codex"]).ok();
    let left = get(&config);
    assert!(!left.contains("session_start"), "{left}");
    assert!(left.contains("sha256:2") && left.contains("o3"), "{left}");
}

#[test]
fn a_linked_settings_file_stays_a_link_and_keeps_its_mode() {
    let env = bare();
    let real = env.home().join("dotfiles/claude.json");
    put(&real, CLAUDE);
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::create_dir(env.home().join(".claude")).unwrap();
    symlink("../dotfiles/claude.json", claude(&env)).unwrap();
    env.tenure(&["install"]).ok();
    assert!(claude(&env).is_symlink());
    assert!(get(&real).contains("hook claude"));
    assert_eq!(std::fs::metadata(&real).unwrap().mode() & 0o777, 0o640);
    assert_eq!(
        std::fs::read_dir(real.parent().unwrap()).unwrap().count(),
        1
    );
    env.tenure(&["uninstall", "claude"]).ok();
    assert_eq!(get(&real), CLAUDE);
}

#[test]
fn a_file_of_another_user_and_what_is_no_file_are_left_alone() {
    let env = bare();
    std::fs::create_dir_all(claude(&env)).unwrap();
    let refused = env.tenure(&["install", "claude"]).fails(6);
    assert!(
        refused.stderr.contains("is not a regular file"),
        "{refused}"
    );
    std::fs::remove_dir(claude(&env)).unwrap();
    if !chown_away(&claude(&env)) {
        symlink("/etc/passwd", claude(&env)).unwrap();
    }
    let refused = env.tenure(&["install", "claude"]).fails(6);
    assert!(refused.stderr.contains("belongs to uid"), "{refused}");
    assert_eq!(
        std::fs::read_dir(env.home().join(".claude"))
            .unwrap()
            .count(),
        1
    );
}

/// Makes a file of another user's; only root can, and for root /etc/passwd is its own.
fn chown_away(path: &Path) -> bool {
    put(path, "{}");
    if chown(path, Some(1), None).is_ok() {
        return true;
    }
    std::fs::remove_file(path).expect("it works");
    false
}

/// Runs a hook's command as agents do.
fn sh(command: &str) -> Option<i32> {
    let mut sh = Command::new("/bin/sh");
    let output = sh
        .args(["-c", command])
        .env_clear()
        .output()
        .expect("it works");
    output.status.code()
}

#[test]
fn f_h06_a_tenure_that_is_gone_or_broken_is_never_exit_2() {
    let env = bare();
    let own = env.dir().join("it's here/tenure");
    std::fs::create_dir(own.parent().unwrap()).unwrap();
    std::fs::copy(env.tenure_path(), &own).unwrap();
    let mut install = Command::new(&own);
    install.args(["install", "claude"]).env_clear();
    install
        .env("HOME", env.home())
        .env("TENURE_HOME", env.state())
        .env("TENURE_TEST", "1");
    assert!(install.current_dir(env.work()).status().unwrap().success());
    let settings: Value = serde_json::from_str(&get(&claude(&env))).unwrap();
    let command = text(&settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]);
    std::fs::remove_file(&own).unwrap();
    assert_eq!(sh(&command), Some(0), "gone");
    std::fs::create_dir(&own).unwrap();
    assert_ne!(sh(&command), Some(2), "a directory");
    std::fs::remove_dir(&own).unwrap();
    std::fs::write(&own, b"\x7fELF\x02\x01\x01\x00(;)&\n((").unwrap();
    assert_eq!(sh(&command), Some(0), "not executable");
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_ne!(sh(&command), Some(2), "of another machine");
    std::fs::write(&own, "#!/bin/sh\ntest \"$*\" = 'hook claude' && exit 2\n").unwrap();
    assert_eq!(sh(&command), Some(2), "a deliberate block passes");
}

#[test]
fn f_h04_every_event_of_claude_is_registered_without_a_matcher() {
    let env = bare();
    env.tenure(&["install", "claude"]).ok();
    let settings: Value = serde_json::from_str(&get(&claude(&env))).unwrap();
    let hooks = settings["hooks"].as_object().unwrap();
    assert_eq!(hooks.len(), 14);
    for (event, groups) in hooks {
        assert_eq!(groups.as_array().unwrap().len(), 1, "{event}");
        assert_eq!(
            groups[0].as_object().unwrap().len(),
            1,
            "{event} has more than hooks"
        );
        assert_eq!(groups[0]["hooks"][0]["timeout"], 5, "{event}");
    }
}

#[test]
fn codex_may_write_to_the_state_directory_and_its_trust_is_told() {
    let env = bare();
    furnish(&env);
    let output = env.tenure(&["install", "codex"]).ok();
    assert!(output.stdout.contains("sandbox to write to"), "{output}");
    assert!(output.stdout.contains("type /hooks"), "{output}");
    assert!(
        env.state().is_dir(),
        "a sandbox cannot open what is not there"
    );
    let config = get(&env.home().join(".codex/config.toml"));
    assert!(
        config.contains(&format!(
            "  \"/data\", # big\n  \"{}\",\n]",
            env.state().display()
        )),
        "{config}"
    );
    let check = env.tenure(&["install", "--check", "--json", "codex"]).ok();
    assert_eq!(about(&check, "codex")["trust"], "untrusted");
    let project = env.work();
    let here = env
        .tenure(&["install", "codex", "--project", project.to_str().unwrap()])
        .ok();
    assert!(
        here.stdout.contains("only if it trusts the project"),
        "{here}"
    );
    assert!(project.join(".codex/hooks.json").exists());
    assert!(!project.join(".codex/config.toml").exists());
}

#[test]
fn the_agents_own_variables_and_projects_say_where_settings_are() {
    let mut env = bare();
    for (name, dir) in [
        ("CLAUDE_CONFIG_DIR", "c"),
        ("CODEX_HOME", "x"),
        ("XDG_CONFIG_HOME", "o"),
    ] {
        env.set(name, env.dir().join(dir).to_str().unwrap());
    }
    env.tenure(&["install", "claude", "codex", "opencode"]).ok();
    for file in [
        "c/settings.json",
        "x/hooks.json",
        "x/config.toml",
        "o/opencode/plugin/tenure.js",
    ] {
        assert!(env.dir().join(file).exists(), "{file}");
    }
    assert_eq!(tree(&env.home()), BTreeMap::new());
    let project = env.work();
    let at = project.to_str().unwrap();
    env.tenure(&["install", "claude", "gemini", "opencode", "--project", at])
        .ok();
    for file in [
        ".claude/settings.json",
        ".gemini/settings.json",
        ".opencode/plugin/tenure.js",
    ] {
        assert!(project.join(file).exists(), "{file}");
    }
    env.tenure(&["uninstall", "--all", "--project", at]).ok();
    assert_eq!(tree(&project), BTreeMap::new());
    env.tenure(&["install", "claude", "--project", "no/such"])
        .fails(4);
}

#[test]
fn a_plugin_of_opencodes_user_is_not_overwritten() {
    let env = bare();
    let file = env.home().join(".config/opencode/plugin/tenure.js");
    put(&file, "export const Mine = async () => ({})\n");
    let refused = env.tenure(&["install", "opencode"]).fails(6);
    assert!(
        refused.stderr.contains("was not written by tenure"),
        "{refused}"
    );
    env.tenure(&["uninstall", "opencode"]).ok();
    assert_eq!(get(&file), "export const Mine = async () => ({})\n");
}

#[test]
fn a_plugin_directory_for_claude_is_written_and_kept_up_to_date() {
    let env = bare();
    let dir = env.dir().join("plugin");
    let at = dir.to_str().unwrap();
    let output = env.tenure(&["install", "claude", "--plugin", at]).ok();
    assert!(
        output
            .stdout
            .contains("claude plugin install tenure@tenure"),
        "{output}"
    );
    assert!(!claude(&env).exists());
    let hooks: Value = serde_json::from_str(&get(&dir.join("hooks/hooks.json"))).unwrap();
    assert_eq!(hooks["hooks"].as_object().unwrap().len(), 14);
    let before = tree(&dir);
    let again = env
        .tenure(&["install", "claude", "--plugin", at, "--json"])
        .ok();
    assert_eq!(about(&again, "claude")["changed"], false);
    assert_eq!(tree(&dir), before);
    env.tenure(&["install", "claude", "--plugin", at, "--mode", "block"])
        .ok();
    assert!(get(&dir.join("hooks/hooks.json")).contains("hook claude --mode block"));
    put(
        &dir.join(".claude-plugin/plugin.json"),
        "{\"name\": \"another\"}",
    );
    env.tenure(&["install", "claude", "--plugin", at]).fails(6);
    env.tenure(&["install", "gemini", "--plugin", at]).fails(2);
}

#[test]
fn hooks_that_are_switched_off_are_told() {
    let env = bare();
    put(&claude(&env), "{\"disableAllHooks\": true}");
    put(
        &env.home().join(".gemini/settings.json"),
        "{\"hooksConfig\": {\"enabled\": false}}",
    );
    let output = env.tenure(&["install"]).ok();
    assert!(
        output.stdout.contains("while disableAllHooks is true"),
        "{output}"
    );
    assert!(
        output.stdout.contains("while hooksConfig.enabled is false"),
        "{output}"
    );
}

#[test]
fn a_wrong_command_line_is_exit_2() {
    let env = bare();
    for words in [
        &["uninstall"][..],
        &["install", "emacs"],
        &["install", "--mode", "shout"],
        &["install", "--user", "--project", "."],
        &["install", "--check", "--dry-run"],
    ] {
        env.tenure(words).fails(2);
    }
}

#[test]
fn a_store_that_only_the_environment_names_is_kept_for_agents_that_are_started_without_it() {
    let mut env = bare();
    put(&claude(&env), "{}");
    let config = env.home().join(".config/tenure/config.toml");
    let store = env.dir().join("team/tenure.db").display().to_string();
    let without = env.tenure(&["config", "--json"]).ok();
    env.set("TENURE_STORE", &store);
    let dry = env.tenure(&["install", "claude", "--dry-run"]).ok();
    assert!(dry.stdout.contains("store: would add"), "{dry}");
    assert!(!config.exists());
    let done = env.tenure(&["install", "claude"]).ok();
    assert!(done.stdout.contains("store: added"), "{done}");
    assert!(get(&config).contains(&store));
    let again = env.tenure(&["install", "claude"]).ok();
    assert!(!again.stdout.contains("store:"), "{again}");
    assert_eq!(get(&config).matches("store = ").count(), 1);
    let other = env.dir().join("other/tenure.db").display().to_string();
    env.set("TENURE_STORE", &other);
    for verb in ["ps", "status"] {
        let said = env.tenure(&[verb]);
        let all = format!("{}{}", said.stdout, said.stderr);
        assert!(all.contains("TENURE_STORE names"), "{verb}: {said}");
    }
    // An empty variable names nothing.
    env.set("TENURE_STORE", "");
    let kept = env.tenure(&["config", "--json"]).ok();
    assert!(kept.stdout.contains(&store), "{kept}");
    env.tenure(&["uninstall", "--all"]).ok();
    assert!(!config.exists());
    assert_eq!(
        env.tenure(&["config", "--json"]).ok().stdout,
        without.stdout
    );
}

#[test]
fn install_git_and_keeper_unit_keep_the_store_without_its_password_and_a_project_keeps_none() {
    const WITH: &str = "postgres://ann:s3cret@127.0.0.1:1/team?sslmode=disable";
    const WITHOUT: &str = "postgres://ann@127.0.0.1:1/team?sslmode=disable";
    let mut env = env();
    let config = env.home().join(".config/tenure/config.toml");
    let (repo, project) = (env.dir().join("repo"), env.dir().join("project"));
    scratch_git(&repo, None);
    std::fs::create_dir_all(&project).unwrap();
    env.set("TENURE_STORE", WITH);
    let of_project = project.display().to_string();
    let person = env.agent("human");
    for words in [["install", "git"], ["keeper", "unit"]] {
        env.tenure(&["install", "claude", "--project", &of_project])
            .ok();
        assert!(!config.exists(), "{}", get(&config));
        let said = person.run(Cmd::new("tenure").args(words).dir(&repo));
        assert_eq!(said.code, 0, "{words:?}: {said}");
        let shown = format!("{}{}", said.stdout, said.stderr);
        assert!(shown.contains(WITHOUT), "{words:?}: {said}");
        let kept = get(&config);
        assert!(kept.contains(&format!("store = \"{WITHOUT}\"")), "{kept}");
        let hook = repo.join(".git/hooks/pre-commit");
        let hook = if words[1] == "git" {
            get(&hook)
        } else {
            String::new()
        };
        let settings = get(&project.join(".claude/settings.json"));
        for text in [&shown, &kept, &hook, &settings] {
            assert!(!text.contains("s3cret"), "{words:?}: {text}");
        }
        // The store cannot be reached, so worktrees that its sessions locked stay locked.
        let undone = env.tenure(&["uninstall", "--all"]).fails(8);
        assert!(!undone.stdout.contains("s3cret"), "{undone}");
        assert!(!config.exists(), "{words:?}: {}", get(&config));
    }
}

#[test]
fn uninstall_removes_only_the_line_that_install_wrote() {
    let mut env = bare();
    put(&claude(&env), "{}");
    let config = env.home().join(".config/tenure/config.toml");
    let own = env.dir().join("own/tenure.db").display().to_string();
    let other = env.dir().join("team/tenure.db").display().to_string();
    env.set("TENURE_STORE", &other);
    for (written, adds) in [
        (format!("# ours\nstore = \"{own}\"\n"), false),
        ("# ours\n[guard]\non_error = \"closed\"\n".to_owned(), true),
    ] {
        put(&config, &written);
        let done = env.tenure(&["install", "claude"]).ok();
        assert_eq!(done.stdout.contains("store: added"), adds, "{done}");
        assert_eq!(get(&config) != written, adds);
        assert_eq!(get(&config).contains(&other), adds);
        env.tenure(&["uninstall", "--all"]).ok();
        assert_eq!(get(&config), written);
    }
}
