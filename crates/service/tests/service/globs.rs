//! Paths as items: globs that can match the same file conflict, however they are spelled.

use serde_json::json;

use crate::words::line::{events, handle, holder, refused, register, run, session, take, text};
use crate::words::{House, Worker, house};

/// A glob of one repository as a key.
fn key(glob: &str) -> String {
    format!("path:acme/web:{glob}")
}

#[track_caller]
fn holds(worker: &Worker, glob: &str) -> u64 {
    take(worker, &key(glob))
}

/// Whether a session may write a file, as an exit code.
fn guard(worker: &Worker, file: &str) -> i32 {
    worker.tenure(&["guard", &key(file)]).code
}

/// A session that died with a hold of `src/**`, and another that took a file of it since.
fn overlapped(env: &House) -> (Worker, Worker) {
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
fn f_c20_globs_that_can_match_one_file_conflict() {
    let env = house();
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
    let env = house();
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
    let env = house();
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
    let env = house();
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
    let env = house();
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

#[test]
fn an_overlapping_hold_of_the_dead_ends_as_taken_and_is_not_granted_again() {
    let env = house();
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
    let env = house();
    let (again, bob) = overlapped(&env);
    let back = register(&again, "ann", "--native-id n1");
    let said = format!("{} {}", back["taken"], back["notices"]);
    assert!(said.contains(&key("src/**")), "{back}");
    assert!(said.contains(&handle(&bob)), "{back}");
}

/// An ended session's hold is granted again only if no live hold is in the way.
#[test]
fn a_path_is_granted_again_unless_a_living_session_has_a_part_of_it() {
    for bob_lives in [true, false] {
        let env = house();
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

/// Whatever happens to a hold, one file never belongs to two sessions.
#[test]
fn f_c20_neither_takeover_nor_handoff_gives_one_file_to_two_sessions() {
    let env = house();
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
        assert_eq!(count, 1, "{act}: {may:?} after {said:?}");
        for agent in [&ann, &bob] {
            for glob in ["src/**", "src/a.rs"] {
                let given = agent.tenure(&["release", &key(glob)]);
                assert!([0, 1, 3, 5].contains(&given.code), "{given:?}");
            }
        }
    }
}

/// A dead session that held several parts of the requested path blocks no one.
#[test]
fn several_overlapping_holds_of_one_dead_session_end_together() {
    let env = house();
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

/// The same if the dead session also holds the requested key: only its other holds are rivals.
#[test]
fn an_overlapping_hold_of_a_dead_holder_ends_as_taken_and_is_not_granted_again() {
    let path = key("src/db/x");
    for (held, asked) in [("wp:1".to_owned(), "src/db/**"), (key("src/**"), "src/**")] {
        let env = house();
        let (ann, bob) = (env.agent("ann"), session(&env, "bob"));
        register(&ann, "ann", "--native-id n1");
        take(&ann, &held);
        take(&ann, &path);
        ann.kill9();
        let mut wanted = vec![held.clone(), key(asked)];
        wanted.dedup();
        let all = run(&bob, 0, &format!("claim --all {}", wanted.join(" ")));
        let previous = &all["claims"][0]["taken_from"];
        assert_eq!(previous["by"], "death", "{all}");
        assert_ne!(text(&previous["proof"]), "", "{all}");
        let how = |key: &str| {
            let log = events(&bob, key);
            let freed = log.iter().find(|event| event["kind"] == "claim.freed");
            text(&freed.expect("it ended")["mechanism"])
        };
        assert_eq!((how(&held), how(&path)), ("death".into(), "taken".into()));
        let died = events(&bob, "");
        let died = died.iter().filter(|event| event["kind"] == "session.died");
        assert_eq!(died.count(), 1, "its death is recorded");
        for one in &wanted {
            run(&bob, 0, &format!("release {one}"));
        }
        let back = register(&env.agent("ann"), "ann", "--native-id n1");
        assert_eq!(back["session"]["registered"], "resumed");
        assert_eq!(back["regranted"], json!([]), "{held}");
    }
}

#[test]
fn a_path_is_taken_over_from_the_dead_whatever_else_they_held() {
    let env = house();
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

/// What `why` announces is what a claim gets.
#[test]
fn why_names_the_claim_that_a_path_overlaps() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    holds(&ann, "src/**");
    let asked = key("src/db/main.rs");
    refused(&bob, 3, "overlaps", &format!("claim {asked}"));
    for who in [&bob, &env.agent("outsider")] {
        let said = run(who, 0, &format!("why {asked}"));
        assert_eq!(said["why"]["answer"], "refused: overlaps", "{said:#}");
        let because = said["why"]["because"].to_string();
        assert!(because.contains(&key("src/**")), "{because}");
        assert!(because.contains(&handle(&ann)), "{because}");
        let hints = said["why"]["hints"].to_string();
        assert!(!hints.contains("to claim it\""), "{hints}");
    }
    let own = run(&ann, 0, &format!("why {asked}"));
    assert_eq!(own["why"]["answer"], "granted", "{own:#}");
    ann.kill9();
    let free = run(&bob, 0, &format!("why {asked}"));
    assert_eq!(free["why"]["answer"], "granted", "{free:#}");
    take(&bob, &asked);
}

/// A free path is not to be claimed either while another claim overlaps it.
#[test]
fn a_takeover_of_a_free_path_names_the_claim_that_it_overlaps() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    let asked = format!("takeover {} --reason stuck", key("src/db/main.rs"));
    refused(&bob, 1, "free", &asked);
    holds(&ann, "src/**");
    refused(&bob, 3, "overlaps", &asked);
    refused(&ann, 1, "free", &asked);
    ann.kill9();
    refused(&bob, 1, "free", &asked);
}
