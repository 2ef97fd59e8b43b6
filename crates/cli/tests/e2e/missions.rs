//! Missions from the outside: who takes part, what each works on, and which mission is meant.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, add_worktree, poll, scratch_git};

use crate::env;
use crate::support::line::{SOON, crew, events, handle, refused, run, session, text};
use crate::support::mission::{join, participants};

fn part(rows: &[Value], agent: &str, name: &str) -> Value {
    let row = rows.iter().find(|row| row["session"]["handle"] == agent);
    row.unwrap_or_else(|| panic!("{agent} is not in {rows:?}"))[name].clone()
}

#[test]
fn a_session_joins_focuses_drives_and_leaves() {
    let (env, [ann]) = crew(["ann"]);
    let joined = run(&ann, 0, "mission join 041-login --role developer");
    assert_eq!(
        (&joined["joined"], &joined["warnings"]),
        (&json!("new"), &json!([]))
    );
    let one = &joined["participant"];
    assert_eq!(one["session"]["handle"], handle(&ann).as_str());
    assert_eq!(
        (&one["role"], &one["focus"], &one["drive"]),
        (&json!("developer"), &Value::Null, &json!("inactive"))
    );
    assert_eq!(text(&one["participant_id"]).len(), 26);
    assert_eq!(
        run(&ann, 0, "mission focus wp:WP01")["participant"]["focus"],
        "wp:WP01"
    );
    assert_eq!(
        run(&ann, 0, "mission drive active")["participant"]["drive"],
        "active"
    );
    let rows = participants(&env, "041-login");
    assert_eq!(rows.len(), 1);
    for (name, is) in [
        ("role", "developer"),
        ("focus", "wp:WP01"),
        ("drive", "active"),
        ("state", "live"),
    ] {
        assert_eq!(rows[0][name], is, "{name}");
    }
    assert_eq!(
        run(&ann, 0, "mission focus none")["participant"]["focus"],
        Value::Null
    );
    run(&ann, 0, "mission leave");
    assert_eq!(participants(&env, "041-login").len(), 0);
    refused(
        &ann,
        4,
        "not_found",
        "mission focus wp:1 --mission 041-login",
    );
    refused(&ann, 4, "not_found", "mission leave 041-login");
    let kinds: Vec<String> = events(&ann, "")
        .iter()
        .map(|event| text(&event["kind"]))
        .collect();
    let changed = "mission.changed";
    assert_eq!(
        kinds[1..],
        ["mission.joined", changed, changed, changed, "mission.left"]
    );
}

#[test]
fn the_second_driver_is_warned_with_the_firsts_name_and_strict_refuses() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    for agent in [&ann, &bob] {
        join(agent, "m");
        run(agent, 0, "mission focus wp:1");
    }
    let first = run(&ann, 0, "mission drive active --strict");
    assert_eq!(first["warnings"], json!([]));
    let error = refused(&bob, 3, "collision", "mission drive active --strict");
    assert_eq!(error["drivers"], json!([handle(&ann)]));
    assert_eq!(
        part(&participants(&env, "m"), &handle(&bob), "drive"),
        "inactive",
        "nothing changed"
    );
    let warned = bob.tenure(&["mission", "drive", "active"]).ok();
    let name = handle(&ann);
    assert!(
        warned.stderr.contains("warning: ") && warned.stderr.contains(&name),
        "{warned}"
    );
    let rows = participants(&env, "m");
    assert_eq!(part(&rows, &name, "collides_with"), json!([handle(&bob)]));
    let shown = env
        .tenure(&["mission", "status", "--mission", "m"])
        .ok()
        .stdout;
    assert!(
        shown.contains("active !") && shown.contains("collision: "),
        "{shown}"
    );
    run(&bob, 0, "mission focus wp:2 --strict");
    refused(&bob, 3, "collision", "mission focus wp:1 --strict");
    assert_eq!(
        part(&participants(&env, "m"), &handle(&bob), "focus"),
        "wp:2"
    );
}

#[test]
fn only_one_of_many_gets_to_drive_one_focus_strictly() {
    let env = env();
    let agents: Vec<Agent> = (0..6).map(|_| session(&env, "racer")).collect();
    for agent in &agents {
        join(agent, "m");
        run(agent, 0, "mission focus wp:1");
    }
    let strict = ["mission", "drive", "active", "--strict", "--json"];
    let jobs: Vec<_> = agents
        .iter()
        .map(|agent| agent.start(Cmd::new("tenure").args(strict)))
        .collect();
    let mut codes: Vec<i32> = jobs.into_iter().map(|job| job.wait().code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 3, 3, 3, 3, 3]);
}

/// Which mission is meant, by what.
#[track_caller]
fn meant(agent: &Agent, dir: &std::path::Path) -> (String, String) {
    let output = agent
        .tenure_in(dir, &["mission", "use", "--json"])
        .ok()
        .json();
    let pointer = &output["pointer"];
    (text(&pointer["mission"]), text(&pointer["by"]))
}

#[test]
fn the_mission_is_the_named_one_else_the_sessions_the_repositorys_the_users() {
    let env = env();
    let (repo, tree) = (env.dir().join("repo"), env.dir().join("tree"));
    scratch_git(&repo, Some("https://github.com/acme/web"));
    add_worktree(&repo, &tree, "other");
    let work = env.work();
    let ann = session(&env, "ann");
    let neither = refused(&ann, 4, "no_mission", "mission focus wp:1");
    let hints = neither["hints"].to_string();
    assert!(
        hints.contains("--mission") && hints.contains(r#"["join","#),
        "{hints}"
    );
    for mission in ["user", "repo", "session", "flag"] {
        join(&ann, mission);
    }
    run(&ann, 0, "mission use session");
    ann.tenure_in(&repo, &["mission", "use", "repo", "--for", "repo"])
        .ok();
    run(&ann, 0, "mission use user --for user");
    let is = |mission: &str, by: &str| (mission.to_owned(), by.to_owned());
    assert_eq!(meant(&ann, &tree), is("session", "session"));
    let flag = run(&ann, 0, "mission focus wp:1 --mission flag");
    assert_eq!(
        (&flag["participant"]["mission"], &flag["pointer"]["by"]),
        (&json!("flag"), &json!("flag"))
    );
    run(&ann, 0, "mission use --clear");
    assert_eq!(
        meant(&ann, &tree),
        is("repo", "repo"),
        "all worktrees are one repository"
    );
    assert_eq!(meant(&ann, &work), is("user", "user"));
    ann.tenure_in(&tree, &["mission", "use", "--clear", "--for", "repo"])
        .ok();
    assert_eq!(meant(&ann, &repo), is("user", "user"));
    let said = ann.tenure(&["mission", "focus", "wp:1", "-v"]).ok().stdout;
    assert!(said.contains("user: this user's active mission"), "{said}");
    run(&ann, 0, "mission use --clear --for user");
    refused(&ann, 4, "no_mission", "mission focus wp:1");
    ann.tenure_in(&work, &["mission", "use", "repo", "--for", "repo"])
        .fails(4);
}

#[test]
fn a_pointer_to_what_is_not_joined_is_said_and_not_followed() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    join(&ann, "m");
    run(&ann, 0, "mission use m --for user");
    let error = refused(&bob, 4, "no_mission", "mission focus wp:1");
    assert!(
        text(&error["message"]).contains("has not joined"),
        "{error}"
    );
    let hints = error["hints"].to_string();
    assert!(
        hints.contains(r#"["use","--clear","--for","user"]"#),
        "{hints}"
    );
    refused(&bob, 4, "not_found", "mission use m");
    refused(&bob, 4, "not_found", "mission use nowhere --for user");
    let check = refused(&bob, 6, "invalid", "mission check");
    assert_eq!(check["faults"][0]["field"], "pointer");
    assert_eq!(
        env.tenure(&["mission", "status"])
            .ok()
            .stdout
            .lines()
            .count(),
        3,
        "anybody may look"
    );
    run(&bob, 0, "mission join own --role x");
    let focused = bob.tenure(&["mission", "focus", "wp:1"]).ok();
    assert!(focused.stdout.contains("in own"), "{focused}");
    run(&ann, 0, "mission leave m");
    refused(&ann, 4, "no_mission", "mission status");
}

#[test]
fn a_watched_roster_shows_what_changes_and_who_dies() {
    let (_env, [ann, bob]) = crew(["ann", "bob"]);
    for agent in [&ann, &bob] {
        join(agent, "m");
    }
    let follow = |more: &[&str]| {
        let args = ["mission", "status", "--watch"].iter().chain(more).copied();
        bob.start(Cmd::new("tenure").args(args))
    };
    let (plain, lines) = (follow(&[]), follow(&["--json"]));
    let shows = |what: &str| {
        poll(SOON, what, || {
            (plain.stdout().contains(what) && lines.stdout().contains(what)).then_some(())
        });
    };
    shows(&handle(&ann));
    run(&ann, 0, "mission focus wp:new");
    shows("wp:new");
    ann.kill9();
    shows("dead");
    for line in lines.stdout().lines() {
        let object: Value = serde_json::from_str(line).expect("one object on each line");
        assert!(object["participants"].is_array(), "{line}");
    }
    for follower in [plain, lines] {
        follower.kill9();
    }
}

#[test]
fn a_watched_roster_has_the_notices_of_who_watches() {
    let (_env, [ann, bob]) = crew(["ann", "bob"]);
    join(&bob, "m");
    let args = ["mission", "status", "--watch", "--json"];
    let lines = bob.start(Cmd::new("tenure").args(args));
    let first = || lines.stdout().lines().next().map(str::to_owned);
    let first = poll(SOON, "the roster", first);
    let first: Value = serde_json::from_str(&first).expect("an object");
    assert_eq!(first["notices"], json!([]), "{first}");
    run(&ann, 0, &format!("tell {} hello", handle(&bob)));
    poll(SOON, "the notice", || {
        let said = lines.stdout();
        let mut objects = said
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let has_it = |one: &Value| one["notices"].to_string().contains("hello");
        objects.any(|one| has_it(&one)).then_some(())
    });
    lines.kill9();
}

#[test]
fn f_k09_eight_processes_lose_no_update_of_one_participant() {
    let (env, [ann]) = crew(["ann"]);
    ann.set_patience(Duration::from_secs(300));
    join(&ann, "m");
    // One writes the role, one the drive, six the focus.
    let line = |n: usize| match n {
        0 => "mission join m --role r$i".to_owned(),
        1 => "mission drive $([ $((i % 2)) = 1 ] && echo active || echo inactive)".to_owned(),
        n => format!("mission focus wp:{n}-$i"),
    };
    let start = |n: usize| {
        let each = line(n);
        let all = format!("for i in $(seq 1 25); do tenure {each} -q || exit 1; done");
        ann.start(Cmd::shell(&all))
    };
    let writers: Vec<_> = (0..8).map(start).collect();
    let mut read = 0;
    while writers.iter().any(tenure_testkit::Background::is_alive) {
        let rows = participants(&env, "m");
        assert_eq!(rows.len(), 1, "a row is never torn");
        read += 1;
    }
    assert!(read > 0);
    for writer in writers {
        writer.wait().ok();
    }
    let row = participants(&env, "m").remove(0);
    assert_eq!(row["revision"], 200);
    assert_eq!(
        (&row["role"], &row["drive"]),
        (&json!("r25"), &json!("active"))
    );
    // Every change of a field begins with what the change before it left.
    let said: Vec<String> = events(&ann, "--limit 1000")
        .iter()
        .filter(|event| event["kind"] == "mission.changed")
        .map(|event| text(&event["evidence"]))
        .collect();
    for (field, count) in [("role", 25), ("drive", 25), ("focus", 150)] {
        let changes = said
            .iter()
            .filter_map(|text| text.strip_prefix(&format!("m: {field} ")));
        let pairs: Vec<(&str, &str)> = changes.filter_map(|text| text.split_once(" -> ")).collect();
        assert_eq!(pairs.len(), count, "{field}");
        assert!(
            pairs.windows(2).all(|two| two[0].1 == two[1].0),
            "{field}: {pairs:?}"
        );
    }
}

#[test]
fn missions_are_shown_as_people_read_them() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    for (agent, role) in [(&ann, "developer"), (&bob, "reviewer")] {
        run(agent, 0, &format!("mission join 041-login --role {role}"));
    }
    run(&ann, 0, "mission focus wp:WP01");
    run(&ann, 0, "mission drive active");
    let _bound = crate::support::output::settings(&env).bind_to_scope();
    assert_snapshot!(ann.tenure(&["mission", "status", "-v"]), @r"
    exit code: 0
    --- stdout
    041-login: 2 participants, 2 live, 1 driving
    ROLE  WHO  FOCUS  DRIVE  STATE  LAST ACTIVITY
    developer  ann-XXXX  wp:WP01  active  live  [span]
    reviewer  bob-XXXX  -  inactive  live  [span]
      041-login: this session's active mission, set [time]
    --- stderr
    ");
    assert_snapshot!(ann.tenure(&["mission", "list"]), @r"
    exit code: 0
    --- stdout
    MISSION  PARTICIPANTS  LIVE  DRIVING  JOINED  LAST ACTIVITY
    041-login  2  2  1  yes  [span]
    --- stderr
    ");
    assert_snapshot!(ann.tenure(&["mission", "check"]), @r"
    exit code: 0
    --- stdout
    no errors (2 records checked)
    --- stderr
    ");
    assert_snapshot!(bob.tenure(&["mission", "focus", "wp:"]), @r#"
    exit code: 2
    --- stdout

    --- stderr
    error: focus "wp:" is not valid: wp: has no id after it
    hint: use a focus such as wp:WP01, step:42 or none
    "#);
    bob.tenure(&["mission", "focus", "wp:WP01"]).ok();
    assert_snapshot!(bob.tenure(&["mission", "drive", "active"]), @r"
    exit code: 0
    --- stdout
    bob-XXXX in 041-login: focus wp:WP01, drive active
    --- stderr
    warning: wp:WP01 is also being worked on by ann-XXXX
    ");
    assert_snapshot!(bob.tenure(&["mission", "leave"]), @r"
    exit code: 0
    --- stdout
    left 041-login; it is no longer this session's active mission
    --- stderr
    ");
    assert_snapshot!(bob.tenure(&["mission", "status"]), @r"
    exit code: 4
    --- stdout

    --- stderr
    error: no mission was given and none is active
    store: [dir]/state/tenure.db
    hint: run `tenure mission join MISSION --role ROLE` to join one and make it active
    hint: add --mission MISSION to name one
    ");
    let own = ann.tenure(&["whoami"]).ok().stdout;
    for word in ["mission ", "role ", "focus ", "drive "] {
        assert!(own.contains(&format!("\n  {word}")), "{word}: {own}");
    }
}

#[test]
fn every_verb_of_a_mission_explains_itself_and_answers_with_one_object() {
    let (env, [ann]) = crew(["ann"]);
    for call in [
        "join m --role developer",
        "focus wp:1",
        "drive active",
        "use m",
        "use m --for user",
        "use",
        "status",
        "list",
        "check",
        "check --all",
        "use --clear --for user",
        "leave",
    ] {
        let verb = call.split(' ').next().expect("a verb");
        let help = env.tenure(&["mission", verb, "--help"]).ok();
        assert!(
            help.stdout.contains(&format!("  tenure mission {verb}")),
            "{help}"
        );
        let words: Vec<&str> = ["mission"]
            .into_iter()
            .chain(call.split(' '))
            .chain(["--json"])
            .collect();
        let json = crate::support::output::one_object(&ann.tenure(&words).ok());
        assert!(
            json.as_object().is_some_and(|parts| parts.len() > 2),
            "{call}: {json}"
        );
    }
}

#[test]
fn the_schema_has_what_missions_answer() {
    let (env, [ann]) = crew(["ann"]);
    join(&ann, "m");
    let schema = env.tenure(&["schema"]).ok().json();
    let status = run(&ann, 0, "mission status");
    let gone = refused(&ann, 6, "invalid", "verify --file /nowhere");
    for (name, answer) in [
        ("participant", &status["participants"][0]),
        ("participant", &run(&ann, 0, "whoami")["participant"]),
        ("mission", &status["mission"]),
        ("pointer", &status["pointer"]),
        ("fault", &gone["faults"][0]),
    ] {
        let known = schema["$defs"][name]["properties"].as_object().expect(name);
        let parts = answer.as_object().expect(name);
        assert!(
            parts.keys().all(|part| known.contains_key(part)),
            "{name}: {answer}"
        );
        for part in schema["$defs"][name]["required"].as_array().expect(name) {
            assert!(parts.contains_key(&text(part)), "{name}.{part}: {answer}");
        }
    }
}

#[test]
fn a_run_id_an_address_and_a_token_belong_to_the_participant() {
    let env = env();
    let dir = env.home().join(".config/tenure");
    std::fs::create_dir_all(&dir).unwrap();
    let mirror = "[[mirror]]\nformat = \"spec-kitty\"\npath = \"~/.spec-kitty\"\n";
    std::fs::write(dir.join("config.toml"), mirror).unwrap();
    let ann = session(&env, "ann");
    refused(&ann, 4, "no_mission", "mission set run_id r-7");
    join(&ann, "m");
    let set = run(&ann, 0, "mission set run_id r-7");
    assert_eq!(set["participant"]["run_id"], "r-7");
    run(&ann, 0, "mission set api_url https://api.example.com/v1");
    refused(&ann, 2, "malformed", "mission set api_url example.com");
    refused(&ann, 2, "usage", "mission set token s3cret");
    let said = ann
        .tenure_stdin(&["mission", "set", "token", "-", "--json"], "s3cret\n")
        .ok();
    assert!(!said.stdout.contains("s3cret"), "{said}");
    let file = text(&said.json()["token_file"]);
    assert!(file.starts_with(env.state().to_str().unwrap()), "{file}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "s3cret");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    for name in ["tenure.db", "tenure.db-wal"] {
        let bytes = std::fs::read(env.state().join(name)).unwrap_or_default();
        let found = bytes.windows(6).any(|part| part == b"s3cret");
        assert!(!found, "it is in {name}");
    }
    for line in [
        "log",
        "whoami",
        "mission status",
        "mission list",
        "show ann",
    ] {
        let said = run(&ann, 0, line).to_string();
        assert!(!said.contains("s3cret"), "{line}: {said}");
    }
    let shown = env.home().join(".spec-kitty/missions/m/session.json");
    let read = || serde_json::from_str::<Value>(&std::fs::read_to_string(&shown).unwrap()).unwrap();
    assert_eq!(
        (
            &read()["mission_run_id"],
            &read()["saas_api_url"],
            &read()["session_token"]
        ),
        (
            &json!("r-7"),
            &json!("https://api.example.com/v1"),
            &json!("s3cret")
        )
    );
    let other = env.dir().join("token");
    std::fs::write(&other, "0ther\n").unwrap();
    run(
        &ann,
        0,
        &format!("mission set token --file {}", other.display()),
    );
    assert_eq!(read()["session_token"], "0ther");
    run(&ann, 0, "mission set token none");
    assert_eq!(read()["session_token"], Value::Null);
    run(&ann, 0, "mission leave m");
    assert!(!std::path::Path::new(&file).exists());
}

#[test]
fn a_remedy_for_another_session_names_it_and_a_reason() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    join(&ann, "m");
    join(&bob, "m");
    if let Some((server, schema)) = env.server() {
        server.run(&format!("UPDATE {schema}.participants SET role = ''"));
    } else {
        let store = rusqlite::Connection::open(env.state().join("tenure.db")).unwrap();
        let emptied = store.execute("UPDATE participants SET role = ''", []);
        assert_eq!(emptied, Ok(2));
    }
    let faults = refused(&ann, 6, "invalid", "mission check --mission m")["faults"].clone();
    let faults = faults.as_array().unwrap().clone();
    let args = |who: &str| {
        let fault = faults.iter().find(|fault| fault["subject"] == who).unwrap();
        fault["hints"][0]["args"].clone()
    };
    assert_eq!(args(&handle(&ann)), json!(["leave", "m"]));
    let bob = handle(&bob);
    assert_eq!(
        args(&bob),
        json!(["leave", "m", "--session", bob, "--reason", "REASON"])
    );
    ann.tenure(&[
        "mission",
        "leave",
        "m",
        "--session",
        &bob,
        "--reason",
        "test",
    ])
    .ok();
}
