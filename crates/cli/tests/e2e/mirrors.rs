//! Mirrors and the check of context files: whole at every instant, one's own, and never in the way.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env, poll, scratch_git};

use crate::env;
use crate::support::hook::claude;
use crate::support::line::{SOON, handle, refused, register, run, session, text};
use crate::support::mount::with_mounts;
use crate::support::output::verbs;

/// Writes the user's settings.
fn configure(env: &Env, settings: &str) {
    let dir = env.home().join(".config/tenure");
    fs::create_dir_all(&dir).expect("a private home");
    fs::write(dir.join("config.toml"), settings).expect("a private home");
}

fn mirror(format: &str, path: &Path, more: &str) -> String {
    format!(
        "[[mirror]]\nformat = \"{format}\"\npath = \"{}\"\n{more}\n",
        path.display()
    )
}

fn read(path: &Path) -> Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{}: {error}\n{text}", path.display()))
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path)
        .expect("it is there")
        .permissions()
        .mode()
        & 0o7777
}

#[test]
fn pacts_file_is_written_at_the_start_on_changes_and_at_the_end() {
    let env = env();
    let file = env.home().join("pact/context.json");
    configure(&env, &mirror("pact", &file, "end = \"mark\""));
    let ann = env.agent("ann");
    register(&ann, "ann", "--native-id n1");
    let first = read(&file);
    assert_eq!(
        (&first["session_id"], &first["team_name"]),
        (&json!("n1"), &json!(""))
    );
    assert_eq!(first["project_dir"], env.work().to_str().unwrap());
    assert!(first["started_at"].is_string());
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    run(&ann, 0, "meta set team blue");
    assert_eq!(read(&file)["team_name"], "blue");
    register(&ann, "ann", "--native-id n2");
    assert_eq!(read(&file)["session_id"], "n2", "a new conversation");
    run(&ann, 0, "end");
    assert!(read(&file)["ended_at"].is_string());
}

#[test]
fn an_agents_own_events_keep_its_mirror_too() {
    let env = env();
    let file = env.home().join("pact/context.json");
    configure(&env, &mirror("pact", &file, "end = \"remove\""));
    let ann = env.agent("claude");
    let (first, second) = (
        "11111111-1111-4111-8111-111111111111",
        "22222222-2222-4222-8222-222222222222",
    );
    let _heard = claude(&env, &ann, "SessionStart.startup", first).ok();
    assert_eq!(read(&file)["session_id"], first);
    let _heard = claude(&env, &ann, "SessionEnd.clear", first).ok();
    let _heard = claude(&env, &ann, "SessionStart.clear", second).ok();
    assert_eq!(read(&file)["session_id"], second);
    let _heard = claude(&env, &ann, "SessionEnd.other", second).ok();
    assert!(!file.exists());
}

#[test]
fn spec_kittys_files_follow_the_missions_and_the_pointer() {
    let env = env();
    let root = env.home().join(".spec-kitty");
    configure(&env, &mirror("spec-kitty", Path::new("~/.spec-kitty"), ""));
    let ann = session(&env, "ann");
    let (pointer, one) = (
        root.join("session.json"),
        root.join("missions/041-login/session.json"),
    );
    assert_eq!(read(&pointer)["active_mission_id"], Value::Null);
    let joined = run(&ann, 0, "mission join 041-login --role developer")["participant"].clone();
    run(&ann, 0, "mission focus wp:WP01");
    run(&ann, 0, "mission drive active");
    let file = read(&one);
    let fields = "mission_id mission_run_id participant_id role joined_at last_activity_at drive_intent focus \
        session_token saas_api_url";
    for field in fields.split_whitespace() {
        assert!(file.get(field).is_some(), "{field}: {file}");
    }
    assert_eq!(file["participant_id"], joined["participant_id"]);
    assert_eq!(
        (&file["focus"], &file["drive_intent"]),
        (&json!("wp:WP01"), &json!("active"))
    );
    assert_eq!(read(&pointer)["active_mission_id"], "041-login");
    assert_eq!((mode(&one), mode(&pointer)), (0o600, 0o600));
    run(&ann, 0, "mission join 042-search --role reviewer");
    let two = root.join("missions/042-search/session.json");
    assert_eq!(
        (&read(&two)["role"], &read(&one)["role"]),
        (&json!("reviewer"), &json!("developer"))
    );
    assert_eq!(read(&pointer)["active_mission_id"], "042-search");
    run(&ann, 0, "mission leave 041-login");
    assert!(!one.exists() && two.exists());
    run(&ann, 0, "end");
    assert!(!two.exists() && !pointer.exists());
}

#[test]
fn our_own_file_has_the_whole_context_at_a_path_of_the_sessions_own() {
    let env = env();
    configure(&env, "[[mirror]]\n");
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    run(&ann, 0, "claim wp:1");
    run(&ann, 0, "mission join m --role developer");
    let file = |agent: &Agent| {
        let id = text(&run(agent, 0, "whoami")["session"]["id"]);
        env.state().join("mirrors").join(format!("{id}.json"))
    };
    let (anns, bobs) = (file(&ann), file(&bob));
    let own = read(&anns);
    assert_eq!(
        own["session"]["claims"],
        json!([{"key": "wp:1", "epoch": 1}])
    );
    assert_eq!(own["missions"][0]["role"], "developer");
    assert_eq!(read(&bobs)["session"]["claims"], json!([]));
    run(&bob, 0, "takeover wp:1 --reason test");
    assert_eq!(
        read(&anns)["session"]["claims"],
        json!([]),
        "who lost it is shown without it"
    );
    ann.kill9();
    run(&bob, 0, "ps");
    assert!(
        !anns.exists(),
        "the session that records a death removes what the dead one left"
    );
    run(&bob, 0, "end");
    assert!(!bobs.exists());
}

#[test]
fn a_path_that_names_what_a_session_lacks_waits_for_it() {
    let env = env();
    let dir = env.home().join("by");
    let path = format!("{}/{{repo}}/{{native_id}}.json", dir.display());
    configure(&env, &mirror("json", Path::new(&path), ""));
    let repo = env.dir().join("repo");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    let ann = env.agent("ann");
    register(&ann, "ann", &format!("--dir {}", repo.display()));
    assert!(!dir.exists());
    register(&ann, "ann", "--native-id n1");
    assert!(dir.join("acme%2Fweb/n1.json").exists());
}

/// Targets that cannot be written, and what must stand in the warning.
fn bad_targets(env: &Env) -> Vec<(PathBuf, &'static str)> {
    let dir = env.dir().join("targets");
    fs::create_dir_all(dir.join("directory")).expect("a private directory");
    fs::write(dir.join("theirs"), "theirs").expect("a private directory");
    symlink(dir.join("theirs"), dir.join("link")).expect("a private directory");
    symlink(dir.join("nowhere"), dir.join("dangling")).expect("a private directory");
    vec![
        (dir.join("directory"), "directory"),
        (dir.join("link"), "symbolic link"),
        (dir.join("dangling"), "symbolic link"),
        (dir.join("theirs/below/it"), "theirs"),
        (PathBuf::from("/proc/self/tenure-mirror"), "/proc"),
    ]
}

#[test]
fn f_k12_a_target_that_cannot_be_written_fails_no_command_and_is_kept() {
    let env = env();
    let targets = bad_targets(&env);
    let good = env.dir().join("good.json");
    let all: Vec<PathBuf> = targets
        .iter()
        .map(|(path, _)| path.clone())
        .chain([good.clone()])
        .collect();
    configure(
        &env,
        &all.iter()
            .map(|path| mirror("json", path, ""))
            .collect::<String>(),
    );
    let ann = env.agent("ann");
    let pid = ann.pid().to_string();
    let said = ann
        .tenure(&["register", "--agent", "ann", "--pid", &pid])
        .ok();
    for (path, word) in &targets {
        let path = path.display().to_string();
        let line = said.stderr.lines().find(|line| line.contains(&path));
        let line = line.unwrap_or_else(|| panic!("nothing is said of {path}\n{said}"));
        assert!(
            line.starts_with("warning: ") && line.contains(word),
            "{line}"
        );
    }
    assert_eq!(
        read(&good)["session"]["handle"],
        handle(&ann).as_str(),
        "the others are written"
    );
    assert_eq!(
        fs::read(env.dir().join("targets/theirs")).unwrap(),
        b"theirs"
    );
    let kept = run(&ann, 0, "status")["status"]["warnings"].to_string();
    for (path, _) in &targets {
        assert!(kept.contains(path.to_str().unwrap()), "{kept}");
    }
    fs::remove_file(env.dir().join("targets/link")).unwrap();
    run(&ann, 0, "meta set team blue");
    let kept = run(&ann, 0, "status")["status"]["warnings"].to_string();
    assert!(
        !kept.contains("targets/link") && kept.contains("targets/dangling"),
        "{kept}"
    );
}

/// A disk that is full, and then is not.
const FULL: &str = "
    mkdir $DISK; mount -t tmpfs -o size=64k,mode=700 tmpfs $DISK
    tenure register --agent w --pid $$
    dd if=/dev/zero of=$DISK/filler bs=512 2>/dev/null || true
    tenure meta set team blue >$OUT/code 2>$OUT/told; echo $? >$OUT/code
    cat $DISK/context.json >$OUT/full
    tenure status --json >$OUT/kept
    rm $DISK/filler
    tenure meta set team red
    cat $DISK/context.json >$OUT/after
    tenure status --json >$OUT/forgotten
    ls -A $DISK >$OUT/left";

#[test]
fn f_d08_a_full_disk_leaves_the_old_mirror_and_the_command_succeeds() {
    let env = env();
    let (out, disk) = (env.dir().join("out"), env.dir().join("disk"));
    fs::create_dir(&out).unwrap();
    configure(&env, &mirror("json", &disk.join("context.json"), ""));
    let full = with_mounts(FULL)
        .env("OUT", out.to_str().unwrap())
        .env("DISK", disk.to_str().unwrap());
    env.agent("ann").run(full).ok();
    let file = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    assert_eq!(file("code").trim(), "0");
    assert!(
        file("told").contains("warning: cannot write the mirror"),
        "{}",
        file("told")
    );
    assert_eq!(
        read(&out.join("full"))["meta"],
        json!({}),
        "the old one is whole"
    );
    assert!(
        file("kept").contains("could not write the mirror"),
        "{}",
        file("kept")
    );
    assert_eq!(read(&out.join("after"))["meta"], json!({"team": "red"}));
    assert!(!file("forgotten").contains("could not write the mirror"));
    assert_eq!(file("left").trim(), "context.json");
}

#[test]
fn f_k09_a_reader_never_sees_a_torn_or_missing_mirror_while_writers_are_killed() {
    let env = env();
    let file = env.dir().join("context.json");
    configure(&env, &mirror("json", &file, ""));
    let ann = session(&env, "ann");
    ann.set_patience(Duration::from_secs(300));
    // Four writers, 50 writes each; every one is killed with -9 after 5 to 124 ms, done or not.
    let writer = |n: usize| {
        let write = format!(
            "timeout -s KILL $(printf 0.%03d $((i * 37 % 120 + 5))) tenure meta set k{n} v$i -q"
        );
        let all = format!(
            "done=0; for i in $(seq 1 50); do {write} && done=$((done+1)); done; echo $done"
        );
        ann.start(Cmd::shell(&all))
    };
    let writers: Vec<_> = (0..4).map(writer).collect();
    let mut reads = 0;
    while writers.iter().any(tenure_testkit::Background::is_alive) {
        assert_eq!(read(&file)["v"], 1);
        reads += 1;
    }
    assert!(reads > 200, "{reads} reads");
    let finished: usize = writers
        .into_iter()
        .map(|writer| writer.wait().ok().stdout.trim().parse::<usize>().unwrap())
        .sum();
    assert!(
        (1..200).contains(&finished),
        "{finished} of 200 writes were not killed"
    );
    run(&ann, 0, "meta set last one");
    assert_eq!(read(&file)["meta"], run(&ann, 0, "meta get")["meta"]);
    let left: Vec<_> = fs::read_dir(env.dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    let left: Vec<_> = left
        .iter()
        .filter(|name| name.to_string_lossy().ends_with(".tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn f_k15_a_mirror_shows_what_the_store_says_once_its_path_is_locked() {
    let env = env();
    let file = env.dir().join("context.json");
    configure(&env, &mirror("json", &file, ""));
    let ann = session(&env, "ann");
    let (path, go) = (file.display(), env.dir().join("go"));
    let hold = format!("until [ -e {} ]; do sleep 0.01; done", go.display());
    let holder = ann.start(Cmd::shell(&format!(
        "tenure lock --path {path} -- sh -c '{hold}'"
    )));
    let waiting = |count: u64| {
        poll(SOON, "the lock is held and waited for", || {
            let locks = ann.tenure(&["locks", "--held", "--json"]).ok().json();
            let mut locks = locks["locks"].as_array().expect("a list").iter();
            locks.any(|lock| lock["waiting"] == count).then_some(())
        });
    };
    waiting(0);
    let writer = ann.start(Cmd::new("tenure").args(["meta", "set", "a", "1"]));
    waiting(1);
    // A change that writes no mirror, made after the writer's and before it has the lock.
    let elsewhere = env.dir().join("elsewhere");
    let unmirrored = [("HOME", elsewhere.to_str())];
    ann.tenure_env(&unmirrored, &["meta", "set", "b", "2"]).ok();
    fs::write(&go, "").unwrap();
    writer.wait().ok();
    holder.wait().ok();
    assert_eq!(read(&file)["meta"], json!({"a": "1", "b": "2"}));
}

#[test]
fn a_singleton_is_its_last_writers_and_an_end_leaves_anothers_alone() {
    let env = env();
    let file = env.dir().join("context.json");
    configure(&env, &mirror("pact", &file, ""));
    let (ann, bob) = (env.agent("ann"), env.agent("bob"));
    register(&ann, "ann", "--native-id n1");
    register(&bob, "bob", "--native-id n2");
    assert_eq!(read(&file)["session_id"], "n2");
    let path = file.to_str().unwrap();
    bob.tenure(&["verify", "--file", path]).ok();
    let told = ann
        .tenure(&["verify", "--file", path, "--json"])
        .fails(6)
        .json();
    let fields: Vec<String> = told["error"]["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| text(&one["field"]))
        .collect();
    assert_eq!(fields[..2], ["session_id", "tenure.session"], "{told}");
    run(&ann, 0, "end");
    assert_eq!(read(&file)["session_id"], "n2", "it is bob's");
    run(&bob, 0, "end");
    assert!(!file.exists());
}

#[test]
fn a_dead_sessions_mirror_is_gone_whichever_session_records_the_death() {
    let env = env();
    let dir = env.home().join("by");
    let path = format!("{}/{{native_id}}.json", dir.display());
    configure(&env, &mirror("pact", Path::new(&path), ""));
    let (ann, bob) = (env.agent("claude"), env.agent("claude"));
    let (anns, bobs) = (
        "11111111-1111-4111-8111-111111111111",
        "22222222-2222-4222-8222-222222222222",
    );
    let file = |id: &str| dir.join(format!("{id}.json"));
    let _heard = claude(&env, &ann, "SessionStart.startup", anns).ok();
    assert!(file(anns).exists());
    ann.kill9();
    let _heard = claude(&env, &bob, "SessionStart.startup", bobs).ok();
    assert!(
        !file(anns).exists(),
        "a hook of another session saw the death"
    );
    assert!(file(bobs).exists());
    let elsewhere = env.dir().join("elsewhere");
    let unmirrored = [("HOME", elsewhere.to_str())];
    bob.kill9();
    let carl = env.agent("claude");
    let recorded = carl.tenure_env(&unmirrored, &["ps", "-a", "--json"]).ok();
    assert!(recorded.stdout.contains("\"dead\""), "{recorded}");
    assert!(file(bobs).exists(), "recorded by one that keeps no mirrors");
    carl.tenure(&["ps"]).ok();
    assert!(!file(bobs).exists(), "the next one catches up with the log");
}

#[test]
fn a_mirror_that_was_deleted_or_overwritten_is_right_again_at_the_next_event() {
    let env = env();
    let file = env.home().join("pact/context.json");
    configure(&env, &mirror("pact", &file, ""));
    let ann = env.agent("claude");
    let id = "11111111-1111-4111-8111-111111111111";
    let _heard = claude(&env, &ann, "SessionStart.startup", id).ok();
    let whole = read(&file);
    let damages: [&dyn Fn(); 4] = [
        &|| fs::remove_file(&file).unwrap(),
        &|| fs::write(&file, "").unwrap(),
        &|| fs::write(&file, "{\"session_id\": \"fixture\"}").unwrap(),
        &|| {
            let moved = fs::read_to_string(&file).unwrap();
            let moved = moved.replace(env.work().to_str().unwrap(), "/tmp/fixture");
            fs::write(&file, moved).unwrap();
        },
    ];
    for (which, damage) in damages.iter().enumerate() {
        damage();
        let _heard = claude(&env, &ann, "PreToolUse.Bash", id).ok();
        assert_eq!(read(&file)["project_dir"], whole["project_dir"], "{which}");
        assert_eq!(read(&file)["session_id"], id, "{which}");
        damage();
        env.tenure(&["ps"]).ok();
        assert_eq!(read(&file)["project_dir"], whole["project_dir"], "{which}");
    }
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    let _heard = claude(&env, &ann, "PreToolUse.Bash", id).ok();
    let after = fs::metadata(&file).unwrap().modified().unwrap();
    assert_eq!(before, after, "a right one is not written again");
}

#[test]
fn a_singleton_names_a_living_session_while_there_is_one() {
    let env = env();
    let file = env.dir().join("context.json");
    configure(&env, &mirror("pact", &file, "end = \"mark\""));
    let agents = [env.agent("ann"), env.agent("bob"), env.agent("carl")];
    let [ann, bob, carl] = &agents;
    for (agent, name) in [(ann, "n1"), (bob, "n2"), (carl, "n3")] {
        register(agent, "any", &format!("--native-id {name}"));
    }
    assert_eq!(read(&file)["session_id"], "n3");
    run(carl, 0, "end");
    assert_eq!(read(&file)["session_id"], "n2", "seen last of the others");
    bob.kill9();
    env.tenure(&["ps"]).ok();
    assert_eq!(read(&file)["session_id"], "n1");
    assert_eq!(read(&file)["ended_at"], Value::Null);
    run(ann, 0, "end");
    assert!(read(&file)["ended_at"].is_string(), "nobody is left");
}

#[test]
fn fields_and_paths_are_templates() {
    let env = env();
    let path = format!("{}/{{project}}/{{native_id:4}}.json", env.dir().display());
    let more = "team_name = \"session-{native_id:8}\"\nroom = \"{project}/{agent}\"";
    configure(&env, &mirror("pact", Path::new(&path), more));
    let ann = env.agent("ann");
    register(&ann, "ann", "--native-id 0123456789abcdef");
    let project = env.work().file_name().unwrap().to_str().unwrap().to_owned();
    let file = env.dir().join(&project).join("0123.json");
    let written = read(&file);
    assert_eq!(written["team_name"], "session-01234567");
    assert_eq!(written["room"], format!("{project}/ann"));
    ann.tenure(&["verify", "--file", file.to_str().unwrap()])
        .ok();
    run(&ann, 0, "meta set team blue");
    assert_eq!(read(&file)["team_name"], "blue", "its own value");
    let listed = ann.tenure(&["config", "--json"]).ok().json();
    assert_eq!(
        listed["mirrors"][0]["fields"]["team_name"],
        "session-{native_id:8}"
    );
}

#[test]
fn f_d09_a_stale_fixture_is_told_apart_field_by_field_and_replaced_by_a_fresh_session() {
    let env = env();
    let file = env.home().join(".claude/pact-session-context.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let fixture = json!({
        "team_name": "pact-test1234", "session_id": "aaaaaaaa-1111-2222-3333-444444444444",
        "project_dir": "/tmp/pytest-of-user/pytest-0/project", "started_at": "2026-01-01T00:00:00Z",
    });
    fs::write(&file, fixture.to_string()).unwrap();
    let ann = env.agent("ann");
    register(&ann, "ann", "--native-id n1 --meta team=blue");
    let path = file.to_str().unwrap();
    {
        let _bound = crate::support::output::settings(&env).bind_to_scope();
        assert_snapshot!(ann.tenure(&["verify", "--file", path]), @r#"
        exit code: 6
        --- stdout

        --- stderr
        error: [dir]/home/.claude/pact-session-context.json for ann-XXXX is not valid (4 faults)
          [dir]/home/.claude/pact-session-context.json, session_id "aaaaaaaa-1111-2222-3333-444444444444": it belongs to another session; this session is n1
          [dir]/home/.claude/pact-session-context.json, project_dir "/tmp/pytest-of-user/pytest-0/project": this session works in [dir]/work
          [dir]/home/.claude/pact-session-context.json, started_at "[time]": this session started at [time]
          [dir]/home/.claude/pact-session-context.json, team_name "pact-test1234": this session has "blue"
        hint: run `tenure whoami` and use its output instead of this file
        "#);
    }
    configure(&env, &mirror("pact", &file, ""));
    let bob = env.agent("bob");
    register(&bob, "bob", "--native-id n2");
    assert_eq!(read(&file)["session_id"], "n2");
    bob.tenure(&["verify", "--file", path]).ok();
    bob.kill9();
    ann.tenure(&["verify", "--file", path]).fails(6);
}

#[test]
fn verify_lists_every_disagreement() {
    let env = env();
    let (repo, other) = (env.dir().join("repo"), env.dir().join("other"));
    for (dir, remote) in [(&repo, "acme/web"), (&other, "acme/api")] {
        scratch_git(dir, Some(&format!("https://github.com/{remote}")));
    }
    let (ann, bob) = (env.agent("ann"), session(&env, "bob"));
    register(&ann, "ann", &format!("--dir {}", repo.display()));
    let project = |dir: &Path| format!("verify --project {}", dir.display());
    run(&ann, 0, "verify");
    run(&ann, 0, &project(&repo));
    let own = handle(&ann);
    run(&ann, 0, &format!("verify --session {own}"));
    assert_eq!(run(&ann, 0, "verify")["verified"]["session"], own.as_str());
    let fields = |error: &Value| -> Vec<String> {
        error["faults"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| text(&one["field"]))
            .collect()
    };
    let error = refused(
        &ann,
        6,
        "invalid",
        &format!("{} --session {}", project(&other), handle(&bob)),
    );
    assert_eq!(fields(&error), ["session", "project"]);
    let wrong = [("TENURE_SESSION", Some("nonsense"))];
    let told = ann
        .tenure_env(&wrong, &["verify", "--json"])
        .fails(6)
        .json();
    assert_eq!(fields(&told["error"]), ["environment"]);
    ann.tenure_env(&wrong, &["whoami"]).ok();
    for missing in ["/nowhere/file", "/proc", other.to_str().unwrap()] {
        let error = refused(&ann, 6, "invalid", &format!("verify --file {missing}"));
        assert_eq!(fields(&error), ["file"], "{missing}");
    }
    // Neither a directory above the project nor another clone of it is the project.
    let (above, clone) = (env.dir().to_owned(), env.dir().join("clone"));
    scratch_git(&clone, Some("https://github.com/acme/web"));
    for elsewhere in [&above, &clone] {
        let error = refused(&ann, 6, "invalid", &project(elsewhere));
        assert_eq!(fields(&error), ["project"], "{}", elsewhere.display());
    }
    fs::create_dir(repo.join("src")).unwrap();
    run(&ann, 0, &project(&repo.join("src")));
    let plain = env.dir().join("plain/below");
    fs::create_dir_all(&plain).unwrap();
    let carl = env.agent("carl");
    register(&carl, "carl", &format!("--dir {}", plain.display()));
    run(&carl, 0, &project(&plain));
    run(&carl, 6, &project(plain.parent().unwrap()));
    env.tenure(&["verify"]).fails(4);
    env.tenure(&["verify", "--session", &own]).ok();
    ann.kill9();
    let told = env
        .tenure(&["verify", "--session", &own, "--json"])
        .fails(6)
        .json();
    assert_eq!(fields(&told["error"]), ["state"]);
}

#[test]
fn f_h16_a_projects_file_sets_no_mirror() {
    let env = env();
    let repo = env.dir().join("repo");
    scratch_git(&repo, None);
    let file = env.dir().join("stolen.json");
    fs::write(repo.join(".tenure.toml"), mirror("json", &file, "")).unwrap();
    let ann = env.agent("ann");
    let pid = ann.pid().to_string();
    ann.tenure_in(&repo, &["register", "--agent", "ann", "--pid", &pid])
        .ok();
    assert!(!file.exists());
    let config = ann.tenure_in(&repo, &["config", "--json"]).ok().json();
    assert_eq!(config["mirrors"], json!([]));
    assert_eq!(config["ignored"][0]["key"], "mirror");
    configure(&env, "[[mirror]]\nformat = \"xml\"\n");
    let said = ann.tenure(&["ps"]).fails(2).stderr;
    assert!(
        said.contains("xml") && said.contains("config.toml"),
        "{said}"
    );
}

#[test]
fn a_command_under_a_claim_is_mirrored_while_it_runs() {
    let env = env();
    configure(&env, "[[mirror]]\n");
    let dir = env.state().join("mirrors");
    let look = format!(
        "claim wp:1 -- sh -c 'for i in $(seq 1 500); do ls {0}/*.json 2>/dev/null && exit 0; done; exit 1'",
        dir.display()
    );
    env.agent("ann")
        .run(Cmd::shell(&format!("tenure {look}")))
        .ok();
    assert_eq!(
        fs::read_dir(&dir).unwrap().count(),
        0,
        "it is removed with the command's end"
    );
}

/// Everything below a directory.
fn everything(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        found.push(entry.path());
        found.extend(everything(&entry.path()));
    }
    found
}

#[test]
fn f_d09_no_verb_touches_the_real_home_from_a_test() {
    let env = env();
    let ann = env.agent("ann");
    let forgotten = [("TENURE_HOME", None)];
    for verb in verbs(&env) {
        let more: &[&str] = match verb.as_str() {
            "mission" => &["list"],
            "meta" => &["get"],
            "transcript" => &["show", "x"],
            "lock" => &["x", "--", "true"],
            "hook" => &["claude"],
            "claim" | "release" | "guard" | "why" | "show" | "alive" | "wait" => &["wp:1"],
            _ => &[],
        };
        let words: Vec<&str> = [verb.as_str()]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        let _whatever_it_says = ann.tenure_env(&forgotten, &words);
        assert_eq!(everything(&env.home()), Vec::<PathBuf>::new(), "{verb}");
    }
    let told = ann.tenure_env(&forgotten, &["register"]).fails(8);
    assert!(told.stderr.contains("TENURE_TEST"), "{told}");
}
