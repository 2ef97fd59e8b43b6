//! Paths as items: what can match one file conflicts, whoever spells it how.

use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::{Agent, Env, add_worktree, scratch_git};

use crate::env;
use crate::support::line::{handle, refused, register, run, session, take, text};
use crate::support::waiter::{ends, holder, waits};

/// A glob of one repository as a key.
fn key(glob: &str) -> String {
    format!("path:acme/web:{glob}")
}

#[track_caller]
fn holds(agent: &Agent, glob: &str) -> u64 {
    take(agent, &key(glob))
}

/// Whether a session may write a file, as an exit code.
fn guard(agent: &Agent, file: &str) -> i32 {
    agent.tenure(&["guard", &key(file)]).code
}

#[test]
fn f_c20_globs_that_can_match_one_file_conflict() {
    let env = env();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    let pairs = [
        ("src/**", "src/a.rs"),
        ("src/**", "src/**/*.rs"),
        ("src/*.rs", "src/a*"),
        ("**/*.md", "docs/**"),
        ("{src,docs}/a", "docs/?"),
        ("a/[a-m]*", "a/[m-z]*"),
        ("**", "Cargo.toml"),
    ];
    for (one, other) in pairs {
        for (held, asked) in [(one, other), (other, one)] {
            holds(&ann, held);
            let asked = key(asked);
            let error = refused(&bob, 3, "overlaps", &format!("claim {asked}"));
            let said = text(&error["message"]);
            assert!(said.contains(&key(held)), "{held} against {asked}: {said}");
            assert_eq!(error["holder"]["handle"], handle(&ann).as_str());
            assert_eq!(holder(&env, &asked).0, None);
            run(&ann, 0, &format!("release {}", key(held)));
        }
    }
}

#[test]
fn f_c20_globs_that_no_file_matches_both_do_not_conflict() {
    let env = env();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    let pairs = [
        ("src/**", "src"),
        ("src/*", "src/a/b"),
        ("src/*.rs", "src/*.md"),
        ("a/[a-m]*", "a/[n-z]*"),
        ("lib/**", "src/**"),
        ("Src/**", "src/**"),
    ];
    for (one, other) in pairs {
        holds(&ann, one);
        holds(&bob, other);
        run(&ann, 0, &format!("release {}", key(one)));
        run(&bob, 0, &format!("release {}", key(other)));
    }
    holds(&ann, "src/**");
    take(&bob, "path:acme/api:src/**");
}

#[test]
fn one_session_may_hold_globs_that_overlap() {
    let env = env();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    holds(&ann, "src/**");
    holds(&ann, "src/a.rs");
    run(&ann, 0, &format!("release {}", key("src/**")));
    assert_eq!(guard(&ann, "src/a.rs"), 0);
    refused(&bob, 3, "overlaps", &format!("claim {}", key("src/*")));
    holds(&bob, "src/b.rs");
}

#[test]
fn a_file_is_guarded_by_a_hold_that_contains_it() {
    let env = env();
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| session(&env, name));
    let child = ann.nest("kid");
    register(&child, "kid", "");
    holds(&ann, "src/**");
    for yes in ["src/a.rs", "src/db/b.rs", "src/db/**", "src/**"] {
        assert_eq!(guard(&ann, yes), 0, "{yes}");
        assert_eq!(guard(&bob, yes), 3, "{yes}");
    }
    let covered = run(&child, 0, &format!("guard {}", key("src/a.rs")));
    assert_eq!(covered["claim"]["via"], handle(&ann).as_str());
    for wider in ["**", "**/*.rs", "{src,docs}/a"] {
        assert_eq!(guard(&ann, wider), 1, "it holds only a part of {wider}");
        assert_eq!(guard(&bob, wider), 3, "{wider}");
    }
    for free in ["docs/a.md", "src", "Cargo.toml"] {
        assert_eq!(guard(&ann, free), 1, "{free}");
    }
    let epoch = |number: u32| format!("guard {} --epoch {number}", key("src/a.rs"));
    run(&ann, 0, &epoch(1));
    refused(&ann, 5, "no_such_epoch", &epoch(2));
    ann.kill9();
    assert_eq!(guard(&eve, "src/a.rs"), 1);
}

#[test]
fn f_c05_a_file_is_lost_with_the_hold_that_contained_it() {
    let env = env();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    holds(&ann, "src/**");
    let taken = format!("takeover {} --reason test", key("src/**"));
    run(&bob, 0, &taken);
    for file in ["src/a.rs", "src/**"] {
        assert_eq!(guard(&ann, file), 5, "{file}");
        assert_eq!(guard(&bob, file), 0, "{file}");
    }
    assert_eq!(guard(&ann, "docs/a.md"), 1);
    run(&bob, 0, &format!("release {}", key("src/**")));
    for file in ["src/a.rs", "src/**"] {
        assert_eq!(guard(&ann, file), 5, "{file}, which nobody has now");
    }
    holds(&ann, "src/**");
    assert_eq!(guard(&ann, "src/a.rs"), 0);
}

/// A session that died with a hold of `src/**`, and another that took a file of it since.
fn overlapped(env: &Env) -> (Agent, Agent) {
    let (ann, bob) = (env.agent("ann"), session(env, "bob"));
    register(&ann, "ann", "--native-id n1");
    holds(&ann, "src/**");
    holds(&ann, "docs/**");
    ann.kill9();
    holds(&bob, "src/a.rs");
    let again = env.agent("ann");
    (again, bob)
}

#[test]
fn an_overlapping_hold_of_the_dead_ends_as_taken_and_is_not_granted_again() {
    let env = env();
    let (again, bob) = overlapped(&env);
    let log = run(&bob, 0, &format!("log {}", key("src/**")))["events"].clone();
    let log = log.as_array().expect("a list");
    let freed = log.iter().find(|event| event["kind"] == "claim.freed");
    assert_eq!(freed.expect("it ended")["mechanism"], "taken");
    let back = register(&again, "ann", "--native-id n1");
    assert_eq!(back["session"]["registered"], "resumed");
    let kept = json!([{"key": key("docs/**"), "epoch": 2}]);
    assert_eq!(back["regranted"], kept);
    for file in ["src/a.rs", "src/**"] {
        assert_ne!(guard(&again, file), 0, "{file}");
    }
    assert_eq!(guard(&again, "src/a.rs"), 5);
    assert_eq!(guard(&bob, "src/a.rs"), 0);
    let ask = format!("claim {}", key("src/**"));
    refused(&again, 3, "overlaps", &ask);
    run(&bob, 0, &format!("release {}", key("src/a.rs")));
    run(&again, 0, &ask);
}

#[test]
fn who_resumes_is_told_which_paths_others_took() {
    let env = env();
    let (again, bob) = overlapped(&env);
    let back = register(&again, "ann", "--native-id n1");
    let said = format!("{} {}", back["taken"], back["notices"]);
    assert!(said.contains(&key("src/**")), "{back}");
    assert!(said.contains(&handle(&bob)), "{back}");
}

/// An ended session's hold is granted again only where nobody's living hold is in the way.
#[test]
fn a_path_is_granted_again_unless_a_living_session_has_a_part_of_it() {
    let env = env();
    for bob_lives in [true, false] {
        let (ann, bob) = (env.agent("ann"), session(&env, "bob"));
        register(&ann, "ann", "--native-id n1");
        holds(&ann, "src/**");
        run(&ann, 0, "end");
        holds(&bob, "src/a.rs");
        if !bob_lives {
            bob.kill9();
        }
        let back = register(&ann, "ann", "--native-id n1");
        let count = back["regranted"].as_array().map(Vec::len);
        assert_eq!(count, Some(usize::from(!bob_lives)), "{back}");
        let code = if bob_lives { 3 } else { 0 };
        assert_eq!(guard(&ann, "src/a.rs"), code, "bob lives: {bob_lives}");
        run(&ann, 0, "end");
    }
}

/// Whatever becomes of a hold, one file never belongs to two.
#[test]
fn f_c20_neither_takeover_nor_handoff_gives_one_file_to_two_sessions() {
    let env = env();
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| session(&env, name));
    let wide = key("src/**");
    for act in ["takeover", "handoff"] {
        holds(&ann, "src/**");
        holds(&ann, "src/a.rs");
        let said = match act {
            "takeover" => bob.tenure(&["takeover", &wide, "--reason", "test"]),
            _ => ann.tenure(&["handoff", &wide, "--to", &handle(&bob)]),
        };
        let may = [&ann, &bob, &eve].map(|agent| guard(agent, "src/a.rs") == 0);
        let count = may.iter().filter(|yes| **yes).count();
        assert_eq!(count, 1, "{act}: {may:?} after {said}");
        for agent in [&ann, &bob] {
            for glob in ["src/**", "src/a.rs"] {
                let given = agent.tenure(&["release", &key(glob)]);
                assert!([0, 1, 3, 5].contains(&given.code), "{given}");
            }
        }
    }
}

#[test]
fn a_waiter_gets_a_path_when_the_one_in_its_way_is_given_back() {
    let env = env();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    holds(&ann, "src/**");
    let asked = key("src/a.rs");
    let waiter = waits(&env, &bob, &asked, &format!("claim {asked} --wait 5m"));
    run(&ann, 0, &format!("release {}", key("src/**")));
    ends(waiter).ok();
    let waiter = waits(
        &env,
        &ann,
        &key("src/*"),
        &format!("claim {} --wait 5m", key("src/*")),
    );
    bob.kill9();
    ends(waiter).ok();
}

/// What a claim of a typed key comes to, in a directory.
#[track_caller]
fn claimed(agent: &Agent, dir: &Path, typed: &str, code: i32) -> Value {
    let said = agent.tenure_in(dir, &["claim", typed, "--json"]);
    said.fails(code).json()
}

#[test]
fn f_c20_a_short_path_is_completed_from_the_repository() {
    let env = env();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    let repo = env.dir().join("repo");
    let linked = env.dir().join("linked");
    scratch_git(&repo, Some("git@github.com:acme/web.git"));
    add_worktree(&repo, &linked, "feature");
    std::fs::create_dir(repo.join("sub")).unwrap();
    let won = claimed(&ann, &repo, "path:src/**", 0);
    assert_eq!(won["claim"]["key"], key("src/**").as_str());
    for (dir, typed) in [
        (&repo, "path:src/a.rs"),
        (&linked, "path:src/a.rs"),
        (&repo.join("sub"), "path:../src/a.rs"),
    ] {
        let error = claimed(&bob, dir, typed, 3)["error"].clone();
        assert_eq!(error["kind"], "overlaps");
        assert_eq!(error["key"], key("src/**").as_str());
        assert!(
            text(&error["message"]).contains(&key("src/a.rs")),
            "{error}"
        );
    }
    refused(&bob, 3, "overlaps", &format!("claim {}", key("src/a.rs")));
    bob.tenure(&["claim", "path:src/a.rs"]).fails(2);
}

#[test]
fn f_c20_a_short_path_needs_no_remote() {
    let env = env();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    let [repo, other, linked] = ["repo", "other", "linked"].map(|name| env.dir().join(name));
    scratch_git(&repo, None);
    scratch_git(&other, None);
    add_worktree(&repo, &linked, "feature");
    claimed(&ann, &repo, "path:src/**", 0);
    let error = claimed(&bob, &linked, "path:src/a.rs", 3)["error"].clone();
    assert_eq!(error["kind"], "overlaps");
    claimed(&bob, &other, "path:src/a.rs", 0);
}

#[test]
fn malformed_globs_are_refused() {
    let env = env();
    let ann = session(&env, "ann");
    for glob in [
        "",
        "../src",
        "src/../../a",
        "*/../a",
        "a[",
        "a{b",
        "a**",
        "a\\",
        "[]",
        "..",
    ] {
        for verb in ["claim", "guard", "why", "release"] {
            let said = ann.tenure(&[verb, &key(glob)]);
            assert_eq!(said.code, 2, "{verb} {glob:?}\n{said}");
        }
    }
    ann.tenure(&["claim", "path::src/**"]).fails(2);
    let held = run(&ann, 0, "claims");
    assert_eq!(held["claims"], json!([]));
}

/// A dead session that held several parts of what is asked for is in nobody's way.
#[test]
fn several_overlapping_holds_of_one_dead_session_end_together() {
    let env = env();
    for (held, asked) in [
        (vec!["src/a/**", "src/b/**"], vec!["src/**"]),
        (vec!["src/a/**", "src/b/**"], vec!["src/a/x", "src/b/y"]),
        (vec!["src/**", "src/a/**"], vec!["src/**", "src/a/**"]),
        (vec!["src/**"], vec!["src/a/x", "src/b/y"]),
    ] {
        let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
        for glob in &held {
            holds(&ann, glob);
        }
        ann.kill9();
        let keys: Vec<String> = asked.iter().map(|glob| key(glob)).collect();
        run(&bob, 0, &format!("claim --all {}", keys.join(" ")));
        for glob in &asked {
            assert_eq!(guard(&bob, glob), 0, "{held:?} {glob}");
        }
        run(&bob, 0, "end");
    }
}

#[test]
fn a_path_is_taken_over_from_the_dead_whatever_else_they_held() {
    let env = env();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    holds(&ann, "src/**");
    holds(&ann, "src/a.rs");
    ann.kill9();
    run(
        &bob,
        0,
        &format!("takeover {} --reason test", key("src/**")),
    );
    assert_eq!(guard(&bob, "src/a.rs"), 0);
}

/// Two overlapping holds of one living session do not protect each other from a takeover.
#[test]
fn a_path_is_taken_over_from_the_living_with_all_that_overlaps_it() {
    let env = env();
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| session(&env, name));
    let globs = ["src/**", "src/a.rs"];
    for (asked, other) in [(globs[0], globs[1]), (globs[1], globs[0])] {
        let epochs = globs.map(|glob| holds(&ann, glob));
        let epoch = if other == globs[0] {
            epochs[0]
        } else {
            epochs[1]
        };
        holds(&ann, "docs/**");
        let asked = key(asked);
        let wrong = format!("takeover {asked} --from {} --reason stuck", handle(&eve));
        refused(&bob, 3, "held", &wrong);
        let won = run(&bob, 0, &format!("takeover {asked} --reason stuck"));
        let along = json!([{"key": key(other), "epoch": epoch}]);
        assert_eq!(won["claim"]["taken_from"]["also_ended"], along);
        let may = [&ann, &bob].map(|agent| guard(agent, "src/a.rs"));
        assert_eq!(may, [5, 0], "{asked}");
        assert_eq!(guard(&ann, "docs/a.md"), 0);
        let log = run(&bob, 0, &format!("log {}", key(other)))["events"].clone();
        let log = log.as_array().expect("a list");
        let is_end = |event: &&Value| event["kind"] == "claim.freed" && event["epoch"] == epoch;
        let end = log.iter().find(is_end).expect("it ended");
        assert_eq!(end["mechanism"], "taken");
        assert_eq!(end["reason"], "stuck");
        assert!(text(&end["evidence"]).contains(&asked), "{end}");
        run(&bob, 0, &format!("release {asked}"));
    }
}

#[test]
fn taker_and_loser_are_told_what_was_taken_along() {
    let env = env();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    holds(&ann, "src/**");
    holds(&ann, "src/a.rs");
    let said = bob.tenure(&["takeover", &key("src/**"), "--reason", "stuck"]);
    let said = said.ok().stdout;
    assert!(said.contains("it lost path:acme/web:src/a.rs (epoch 1) as well"));
    let told = run(&ann, 0, "whoami")["notices"].clone();
    let lost: Vec<&Value> = told.as_array().expect("a list").iter().collect();
    let keys: Vec<_> = lost.iter().map(|notice| notice["key"].clone()).collect();
    assert_eq!(keys, [key("src/**"), key("src/a.rs")].map(Value::from));
    assert!(text(&lost[1]["message"]).contains("stuck"), "{told}");
    assert_eq!(run(&ann, 0, "whoami")["notices"], json!([]), "once");
}
