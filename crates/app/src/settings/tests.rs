use tenure_core::notification::Reason;

use super::*;

fn load(user: &str, project: &str, variables: &[(&str, &str)]) -> Result<Settings, Problem> {
    let dir = tempfile::tempdir().unwrap();
    let xdg = dir.path().join("xdg");
    fs_err::create_dir_all(xdg.join("tenure")).unwrap();
    fs_err::write(xdg.join("tenure/config.toml"), user).unwrap();
    fs_err::write(dir.path().join(".tenure.toml"), project).unwrap();
    let env = |name: &str| match name {
        "XDG_CONFIG_HOME" => Some(xdg.clone().into_os_string()),
        _ => variables
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| OsString::from(value)),
    };
    Settings::load(&env, Some(dir.path()))
}

#[test]
fn later_layers_win_and_say_where_they_are() {
    let config = load(
        "lease = \"5m\"\nlock_delay = \"1s\"",
        "",
        &[("TENURE_LEASE", "2m")],
    )
    .unwrap();
    assert_eq!(config.policy.lease.as_secs(), 120);
    assert_eq!(config.policy.lock_delay.as_secs(), 1);
    let origin = |key: &str| {
        config
            .listed
            .iter()
            .find(|s| s.key == key)
            .unwrap()
            .origin
            .clone()
    };
    assert_eq!(origin("lease"), "TENURE_LEASE");
    assert!(origin("lock_delay").ends_with("config.toml"));
    assert_eq!(origin("stalled_after"), "default");
}

#[test]
fn a_setting_is_read_from_the_variable_of_its_name() {
    let variables: Vec<String> = KNOWN.iter().map(SettingSpec::variable).collect();
    let names = "STORE LEASE LOCK_DELAY HOST_LEASE HOOK_WAIT KEEPER_START STALLED_AFTER AGENT_BRIEF PS_UNMANAGED \
                 PRIVACY_TITLES GOTO_COMMAND GUARD_MODE GUARD_REQUIRE_CLAIM GUARD_ON_ERROR GUARD_RECENT_WRITES OPENCLAW_HEAL GRACE \
                 RETRY_EVERY BUDGET_RUN BUDGET_ITEM_DAY BUDGET_DAY BUDGET_DAY_TOKENS ANSWERS_AGENTS ANSWERS_WAIT RUN_STOP_GRACE RUN_KEEP_FOR \
                 RUN_KEEP_LAST RETENTION WAKE_AGENTS WAKE_FROM_AGENTS MISSIONS_ROLES";
    let names = names
        .split_whitespace()
        .map(|name| format!("TENURE_{name}"));
    assert_eq!(variables, names.collect::<Vec<String>>());
    let read = load("", "", &[("TENURE_GUARD_MODE", "block")]).unwrap();
    assert_eq!(read.guard_mode, Some(GuardMode::Block));
}

#[test]
fn a_budget_is_a_number_above_zero_of_the_user() {
    let load = |user: &str, project: &str| load(user, project, &[]).map(|all| all.budgets);
    let budget = |user: &str, project: &str| load(user, project).map(|all| all.run);
    assert_eq!(budget("", "").unwrap(), None);
    assert_eq!(budget("[budget]\nrun = 2.5", "").unwrap(), Some(2.5));
    assert_eq!(budget("[budget]\nrun = 3", "").unwrap(), Some(3.0));
    for key in ["run", "item_day", "day"] {
        for wrong in ["0", "-1", "\"2\"", "nan", "inf"] {
            let text = format!("[budget]\n{key} = {wrong}");
            assert!(load(&text, "").is_err(), "{text}");
        }
    }
    for wrong in ["-1", "1.5", "\"2\""] {
        let text = format!("[budget]\nday_tokens = {wrong}");
        assert!(load(&text, "").is_err(), "{text}");
    }
    let all = "[budget]\nitem_day = 1\nday = 20.5\nday_tokens = 1000000";
    let expected = Budgets {
        run: None,
        item_day: Some(1.0),
        day: Some(20.5),
        day_tokens: 1_000_000,
    };
    assert_eq!(load(all, "").unwrap(), expected);
    assert_eq!(load("", all).unwrap(), Budgets::default());
}

#[test]
fn how_long_a_write_counts_is_the_users_to_set() {
    let minutes = |config: &Settings| config.policy.recent_writes.as_secs() / 60;
    assert_eq!(minutes(&load("", "", &[]).unwrap()), 60);
    let user = "[guard]\nrecent_writes = \"20m\"";
    assert_eq!(minutes(&load(user, "", &[]).unwrap()), 20);
    // With it, a project could silence the guard.
    let config = load("", user, &[]).unwrap();
    assert_eq!((minutes(&config), config.ignored.len()), (60, 1));
}

#[test]
fn f_h16_a_projects_file_cannot_move_state() {
    let project =
        "store = \"/tmp/evil.db\"\nlease = \"1ms\"\nstalled_after = \"1m\"\nrun = \"evil\"";
    let config = load("", project, &[]).unwrap();
    assert_eq!(config.store, None);
    assert_eq!(config.policy.lease.as_secs(), 600);
    assert_eq!(config.policy.stalled_after.as_secs(), 60);
    let ignored: Vec<&str> = config.ignored.iter().map(|i| i.key.as_str()).collect();
    assert_eq!(ignored, ["lease", "run", "store"]);
    assert!(load("", "not toml", &[]).is_ok());
}

#[test]
fn channels_for_notifications_are_the_users_alone_to_set() {
    let channels = "[[notify]]\nchannel = \"desktop\"\non = [\"asks\", \"failed\"]\n\
                    [[notify]]\nchannel = \"webhook\"\nurl = \"https://ntfy.example/t\"\nformat = \"ntfy\"";
    let config = load(channels, "", &[]).unwrap();
    let names: Vec<&str> = config.notify.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["desktop", "webhook"]);
    assert_eq!(config.notify[0].on, [Reason::Asks, Reason::Failed]);
    assert_eq!(config.notify[1].on, Reason::FOR_A_PERSON);
    assert!(!config.notify[0].titles);
    for project in [channels, "[notify]\nchannel = \"desktop\""] {
        let config = load("", project, &[]).unwrap();
        assert_eq!((config.notify.len(), config.ignored.len()), (0, 1));
    }
    for bad in [
        "channel = \"pigeon\"",
        "on = [\"asks\"]",
        "channel = \"desktop\"\non = [\"nothing\"]",
        "channel = \"desktop\"\non = []",
        "channel = \"desktop\"\nurl = \"https://x\"",
        "channel = \"command\"",
        "channel = \"webhook\"\nurl = \"file:///x\"",
        "channel = \"webhook\"\nurl = \"https://x\"\nsecret_file = \"x\"",
        "channel = \"terminal\"\nform = \"loud\"",
        "channel = \"desktop\"\nname = \"a b\"",
        "channel = \"desktop\"\n[[notify]]\nchannel = \"desktop\"",
    ] {
        let error = load(&format!("[[notify]]\n{bad}"), "", &[]).unwrap_err();
        assert!(error.message.contains("notify"), "{bad}");
    }
    let error = load("[notify]\nchannel = \"desktop\"", "", &[]).unwrap_err();
    assert!(error.message.contains("two brackets"), "{error:?}");
}

#[test]
fn mirrors_are_the_users_alone_to_set() {
    let mirror = "[[mirror]]\npath = \"/tmp/x\"";
    assert_eq!(load(mirror, "", &[]).unwrap().mirrors.len(), 1);
    let config = load("", mirror, &[]).unwrap();
    assert_eq!((config.mirrors.len(), config.ignored.len()), (0, 1));
    let config = load("", "[mirror]\npath = \"/tmp/x\"", &[]).unwrap();
    assert_eq!((config.mirrors.len(), config.ignored.len()), (0, 1));
    for bad in ["[[mirror]]\nformat = \"xml\"", "[mirror]\npath = \"/x\""] {
        assert!(
            load(bad, "", &[]).unwrap_err().message.contains("mirror"),
            "{bad}"
        );
    }
}

#[test]
fn f_r29_a_repository_cannot_trust_itself() {
    let trusted = "[repo.\"Acme/Web.git\"]\ntrusted = true\n[repo.\"/srv/x\"]\ntrusted = false";
    let user = load(trusted, "", &[]).unwrap();
    let names: Vec<(&str, bool)> = user
        .repos
        .iter()
        .map(|repo| (repo.name.as_str(), repo.trusted))
        .collect();
    assert_eq!(names, [("/srv/x", false), ("acme/web", true)]);
    assert!(user.repos[0].origin.ends_with("config.toml"));
    let project = load("", trusted, &[]).unwrap();
    assert_eq!((project.repos.len(), project.ignored.len()), (0, 2));
    assert_eq!(project.ignored[0].why, "a project's file may not set this");
    for bad in [
        "[repo.\"acme/web\"]\ntrusted = 1",
        "[repo.web]\ntrusted = true",
        "repo = true",
    ] {
        let problem = load(bad, "", &[]).unwrap_err();
        assert!(problem.message.contains("repo"), "{}", problem.message);
    }
}

#[test]
fn a_project_may_keep_prompts_out_of_the_store_but_not_let_them_in() {
    let titles = |user: &str, project: &str| load(user, project, &[]).unwrap().titles;
    let (on, off) = ("[privacy]\ntitles = true", "[privacy]\ntitles = false");
    assert!(titles("", ""));
    assert!(!titles(off, ""));
    assert!(!titles("", off));
    assert!(!titles(off, on));
    let ignored = load("", on, &[]).unwrap().ignored;
    assert_eq!(
        ignored[0].why,
        "a project's file may only set this to false"
    );
}

#[test]
fn f_h16_a_projects_file_runs_no_command() {
    let project = "[goto]\ncommand = \"evil {pid}\"";
    assert_eq!(load("", project, &[]).unwrap().goto_command, None);
    let user = load(project, "", &[]).unwrap();
    assert_eq!(user.goto_command.as_deref(), Some("evil {pid}"));
}

#[test]
fn roles_are_a_list() {
    let roles = |user: &str, env: &[(&str, &str)]| load(user, "", env).unwrap().roles;
    assert_eq!(roles("", &[]), [""; 0]);
    assert_eq!(
        roles("[missions]\nroles = [\"a\", \"b c\"]", &[]),
        ["a", "b c"]
    );
    assert_eq!(roles("", &[("TENURE_MISSIONS_ROLES", "x,y")]), ["x", "y"]);
    for bad in [
        "roles = \"a\"",
        "roles = [1]",
        "roles = [\"\"]",
        "roles = [\"a,b\"]",
    ] {
        assert!(
            load(&format!("[missions]\n{bad}"), "", &[]).is_err(),
            "{bad}"
        );
    }
}

#[test]
fn a_bad_value_names_file_and_key() {
    for (user, word) in [
        ("lease = \"-5m\"", "lease"),
        ("lease = 5", "lease"),
        ("leese = \"5m\"", "leese"),
        ("x", "the settings"),
    ] {
        let problem = load(user, "", &[]).unwrap_err();
        assert!(
            problem.message.contains(word) && problem.message.contains("config.toml"),
            "{}",
            problem.message
        );
        assert_eq!(problem.class, Class::Usage);
    }
    assert!(load("", "", &[("TENURE_LEASE", "100y")]).is_err());
}
