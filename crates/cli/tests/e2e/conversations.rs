//! Conversations from the outside: what continues for an agent and an item.

use std::collections::BTreeSet;
use std::fs;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tenure_testkit::{Agent, Scripted, poll, scratch_git};

use crate::env;
use crate::support::crowd::at_once;
use crate::support::line::{SOON, crew, events, handle, refused, register, run, session, text};
use crate::support::output::settings;
use crate::support::run::{newest, start, until};

const ISSUE: &str = "issue:acme/web#6";
const PR: &str = "pr:acme/web#9";

#[track_caller]
fn set(agent: &Agent, item: &str, native_id: &str) -> Value {
    let line = format!("conversation set codex {item} {native_id}");
    run(agent, 0, &line)["conversation"].clone()
}

#[track_caller]
fn get(agent: &Agent, item: &str) -> Value {
    run(agent, 0, &format!("conversation get codex {item}"))["conversation"].clone()
}

#[track_caller]
fn history(agent: &Agent, item: &str) -> Vec<Value> {
    let answer = run(agent, 0, &format!("conversation history codex {item}"));
    answer["history"].as_array().expect("a list").clone()
}

const CROWD: usize = 50;

#[test]
fn of_50_processes_that_set_at_once_every_one_lands_and_the_last_is_current() {
    let env = env();
    let crowd: Vec<Agent> = (0..CROWD).map(|_| env.agent("w")).collect();
    let answers = at_once(&crowd, |one| {
        let own = format!("ses-{}", one.pid());
        let words = ["conversation", "set", "codex", ISSUE, &own, "--json"];
        (own.clone(), one.tenure(&words))
    });
    let mut revisions = BTreeSet::new();
    let mut last = (0, String::new());
    for (own, answer) in &answers {
        assert_eq!(answer.code, 0, "{answer}");
        let said = answer.json()["conversation"].clone();
        assert_eq!(said["native_id"], own.as_str());
        let revision = said["revision"].as_u64().expect("a number");
        assert!(revisions.insert(revision), "revision {revision} came twice");
        last = last.max((revision, own.clone()));
    }
    let past = history(&crowd[0], ISSUE);
    let ids: BTreeSet<String> = past.iter().map(|one| text(&one["native_id"])).collect();
    let acknowledged: BTreeSet<String> = answers.into_iter().map(|(own, _)| own).collect();
    assert_eq!(ids, acknowledged);
    assert_eq!(past.len(), CROWD);
    let now = get(&crowd[0], ISSUE);
    assert_eq!(now["native_id"], last.1.as_str());
    let open = past.iter().filter(|one| one["until"].is_null());
    let open: Vec<_> = open.map(|one| text(&one["native_id"])).collect();
    assert_eq!(open, [last.1]);
}

#[test]
fn of_50_processes_that_name_one_revision_one_sets_it_and_the_others_change_nothing() {
    let env = env();
    let crowd: Vec<Agent> = (0..CROWD).map(|_| env.agent("w")).collect();
    let answers = at_once(&crowd, |one| {
        let own = format!("ses-{}", one.pid());
        let words = ["conversation", "set", "codex", ISSUE, &own];
        one.tenure(&[&words[..], &["--revision", "0", "--json"]].concat())
    });
    let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|one| one.code == 0);
    assert_eq!(won.len(), 1);
    for answer in lost {
        assert_eq!(answer.code, 5, "{answer}");
        let error = &answer.json()["error"];
        assert_eq!(
            (&error["kind"], &error["named_revision"]),
            (&json!("revised"), &json!(0))
        );
        assert_eq!(error["conversation"]["revision"], 1, "{answer}");
    }
    assert_eq!(history(&crowd[0], ISSUE).len(), 1);
}

#[test]
fn dropping_an_item_leaves_longer_numbers_other_kinds_and_other_repositories() {
    let (_env, [ann]) = crew(["ann"]);
    let others = [
        "issue:acme/web#60",
        "issue:acme/web#61",
        "pr:acme/web#6",
        "issue:acme/web2#6",
        "issue:other/web#6",
        "branch:acme/web:6",
    ];
    for (n, item) in [ISSUE].into_iter().chain(others).enumerate() {
        set(&ann, item, &format!("ses-{n}"));
    }
    run(&ann, 0, &format!("conversation set gemini {ISSUE} ses-g"));
    // Any spelling of the item means the same one.
    let dropped = run(
        &ann,
        0,
        "conversation drop issue:Acme/Web#006 --agent codex",
    );
    assert_eq!(dropped["conversations"].as_array().map(Vec::len), Some(1));
    refused(
        &ann,
        4,
        "not_found",
        &format!("conversation get codex {ISSUE}"),
    );
    run(&ann, 0, &format!("conversation get gemini {ISSUE}"));
    run(&ann, 0, &format!("conversation drop {ISSUE}"));
    let left = run(&ann, 0, "conversation list");
    let left = left["conversations"].as_array().expect("a list").iter();
    let left: BTreeSet<String> = left.map(|one| text(&one["item"])).collect();
    assert_eq!(left, others.map(str::to_owned).into());
    let past = history(&ann, ISSUE);
    assert_eq!(past[0]["why"], "dropped");
    refused(&ann, 4, "not_found", &format!("conversation drop {ISSUE}"));
}

#[test]
fn a_link_goes_to_the_root_and_never_round() {
    let env = env();
    let repo = env.dir().join("repo");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    let ann = session(&env, "ann");
    set(&ann, ISSUE, "ses-1");
    set(&ann, PR, "ses-own");
    // Short forms are completed from the repository.
    let words = ["conversation", "link", "!9", "#6", "--json"];
    let linked = ann.tenure_in(&repo, &words).ok().json()["link"].clone();
    assert_eq!(
        (&linked["item"], &linked["root"]),
        (&json!(PR), &json!(ISSUE))
    );
    assert_eq!(linked["own"][0]["native_id"], "ses-own");
    let through = run(
        &ann,
        0,
        &format!("conversation link branch:acme/web:fix {PR}"),
    );
    assert_eq!(through["link"]["root"], ISSUE);
    for target in [PR, "branch:acme/web:fix", ISSUE] {
        refused(
            &ann,
            6,
            "invalid",
            &format!("conversation link {ISSUE} {target}"),
        );
    }
    assert_eq!(get(&ann, PR)["native_id"], "ses-1");
    assert_eq!(
        get(&ann, ISSUE)["linked"],
        json!(["branch:acme/web:fix", PR])
    );
    refused(&ann, 1, "linked", &format!("conversation drop {PR}"));
    let back = run(&ann, 0, &format!("conversation unlink {PR}"))["link"].clone();
    assert_eq!(
        (&back["root"], &back["before"]),
        (&Value::Null, &json!(ISSUE))
    );
    assert_eq!(get(&ann, PR)["native_id"], "ses-own");
    refused(&ann, 4, "not_found", &format!("conversation unlink {PR}"));
}

#[test]
fn what_a_run_is_in_is_dropped_only_after_the_run_was_stopped() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "init; work; ready $dir/on; hold $dir/flag");
    mine.keep("flag");
    let ann = session(&env, "ann");
    let window = start(&ann, "mine wp:1");
    poll(SOON, "the agent works", || mine.wrote("on"));
    let live = until(&env, "it is named", |run| run["native_id"] == "c-1");
    for line in ["drop wp:1", "link wp:2 wp:1", "link wp:1 wp:2"] {
        let error = refused(&ann, 3, "held", &format!("conversation {line}"));
        assert_eq!(error["run"], live["id"], "{line}");
    }
    let one = run(&ann, 0, "conversation get mine wp:1")["conversation"].clone();
    assert_eq!(
        (&one["native_id"], &one["run"]),
        (&json!("c-1"), &live["id"])
    );
    let dropped = run(&ann, 0, "conversation drop wp:1 --stop");
    assert_eq!(dropped["conversations"][0]["native_id"], "c-1");
    assert_eq!(window.wait().code, 143);
    let ended = newest(&env);
    assert_eq!(ended["outcome"], "stopped");
    assert_eq!(ended["stop_asked"]["by"], handle(&ann).as_str());
    refused(&ann, 4, "not_found", "conversation get mine wp:1");
}

#[test]
fn an_id_that_belongs_elsewhere_is_refused_with_both_sides_in_the_log() {
    let env = env();
    let ann = session(&env, "ann");
    let bob = env.agent("codex");
    register(&bob, "codex", "--native-id ses-bob");
    set(&ann, ISSUE, "ses-1");
    let other = refused(
        &ann,
        6,
        "invalid",
        &format!("conversation set codex {PR} ses-1"),
    );
    assert!(text(&other["message"]).contains(ISSUE), "{other}");
    let live = refused(
        &ann,
        6,
        "invalid",
        &format!("conversation set codex {PR} ses-bob"),
    );
    assert!(text(&live["message"]).contains(&handle(&bob)), "{live}");
    let subagent = format!("conversation set claude {PR} agent-a2a8");
    refused(&ann, 6, "invalid", &subagent);
    let contaminations = |item: &str| {
        let all = events(&ann, item);
        let of = all
            .into_iter()
            .filter(|event| event["kind"] == "contamination");
        of.map(|event| text(&event["evidence"])).collect::<Vec<_>>()
    };
    assert_eq!(contaminations(PR).len(), 3);
    assert_eq!(contaminations(ISSUE).len(), 1);
    refused(
        &ann,
        4,
        "not_found",
        &format!("conversation get codex {PR}"),
    );
    // Its own session may, and so may anybody when it is gone.
    set(&bob, PR, "ses-bob");
    run(&ann, 0, &format!("conversation drop {PR}"));
    bob.kill9();
    set(&ann, PR, "ses-bob");
}

#[test]
fn whether_the_agent_still_has_it_is_looked_for_in_its_own_home() {
    let env = env();
    let ann = session(&env, "ann");
    let id = "0b1c2d3e-4f50-4a6b-8c7d-9e0f1a2b3c4d";
    let own = env.dir().join("other-claude");
    let project = own.join("projects/-work");
    fs::create_dir_all(&project).expect("a directory");
    fs::write(project.join(format!("{id}.jsonl")), "{}\n").expect("a file");
    let variable = own.display().to_string();
    let set = ["conversation", "set", "claude", ISSUE, id, "--json"];
    let said = ann.tenure_env(&[("CLAUDE_CONFIG_DIR", Some(&variable))], &set);
    let home = said.ok().json()["conversation"]["home"].clone();
    assert_eq!(home["agent_home"], variable.as_str());
    let seen = || {
        let seen = run(&ann, 0, &format!("conversation get claude {ISSUE}"));
        let one = &seen["conversation"];
        let listed = run(&ann, 0, "conversation list");
        let same = &listed["conversations"][0];
        for part in ["fitness", "existence"] {
            assert_eq!(same[part], one[part], "{listed}");
        }
        (text(&one["fitness"]), text(&one["existence"]))
    };
    assert_eq!(seen(), ("resume".into(), "present".into()));
    fs::remove_file(project.join(format!("{id}.jsonl"))).expect("it is there");
    assert_eq!(seen(), ("unknown".into(), "absent".into()));
    let status = run(&ann, 0, "status");
    let warnings = status["status"]["warnings"].to_string();
    assert!(warnings.contains(ISSUE), "{warnings}");
}

#[test]
fn bad_input_changes_nothing() {
    let (env, [ann]) = crew(["ann"]);
    set(&ann, ISSUE, "ses-1");
    let before = events(&ann, "").len();
    for (code, line) in [
        (2, "set Codex wp:1 ses-2"),
        (2, "set codex no-key ses-2"),
        (2, "set codex #7 ses-2"),
        (2, "set codex wp:1 ../../etc/passwd"),
        (2, "set codex wp:1 unknown"),
        (2, "set codex wp:1 ses-2 --revision x"),
        (4, "set codex wp:1 ses-2 --dir /no/such/directory"),
        (2, "get codex wp:"),
        (2, "list --agent A!"),
        (4, "history codex wp:1"),
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let output = ann.tenure(&[&["conversation"], &words[..]].concat());
        assert_eq!(output.code, code, "{line}\n{output}");
    }
    let nowhere = env.dir().join("file");
    fs::write(&nowhere, "").expect("a file");
    let line = format!("set codex wp:1 ses-2 --dir {}", nowhere.display());
    run(&ann, 2, &format!("conversation {line}"));
    assert_eq!(events(&ann, "").len(), before);
    assert_eq!(
        run(&ann, 0, "conversation list")["conversations"][0]["revision"],
        1
    );
}

#[test]
fn whoami_and_people_see_the_conversation() {
    let (env, [ann]) = crew(["ann"]);
    let dir = env.work();
    let _bound = settings(&env).bind_to_scope();
    let at = |words: &[&str]| ann.tenure_in(&dir, words);
    assert_snapshot!(at(&["conversation", "list"]), @r"
    exit code: 0
    --- stdout
    no conversations
    --- stderr
    ");
    assert_snapshot!(at(&["conversation", "set", "codex", ISSUE, "ses-1"]), @r"
    exit code: 0
    --- stdout
    codex on issue:acme/web#6 (ses-1) in [dir]/work, revision 1
    --- stderr
    ");
    at(&["conversation", "set", "codex", ISSUE, "ses-2"]).ok();
    at(&["conversation", "set", "codex", PR, "ses-3"]).ok();
    assert_snapshot!(at(&["conversation", "link", PR, ISSUE]), @r"
    exit code: 0
    --- stdout
    pr:acme/web#9 continues the conversations of issue:acme/web#6
      set aside: codex on pr:acme/web#9 (ses-3)
    --- stderr
    ");
    assert_snapshot!(at(&["conversation", "get", "codex", PR]), @r"
    exit code: 0
    --- stdout
    codex on issue:acme/web#6 (ses-2) in [dir]/work, revision 2, continued by pr:acme/web#9
      cannot be resumed: codex does not have it
      set [span] by ann-XXXX
    --- stderr
    ");
    assert_snapshot!(at(&["conversation", "list"]), @r"
    exit code: 0
    --- stdout
    ITEM  AGENT  NATIVE ID  STATE  SET  DIRECTORY
    issue:acme/web#6 (and pr:acme/web#9)  codex  ses-2  not found  [span]  [dir]/work
    pr:acme/web#9  codex  ses-3  set aside  [span]  [dir]/work
    --- stderr
    ");
    assert_snapshot!(at(&["conversation", "history", "codex", ISSUE]), @r"
    exit code: 0
    --- stdout
    NATIVE ID  SET  BY  ENDED  WHY  BY
    ses-1  [span]  ann-XXXX  [span]  replaced  ann-XXXX
    ses-2  [span]  ann-XXXX  -  current  -
    --- stderr
    ");
    assert_snapshot!(at(&["conversation", "unlink", PR]), @r"
    exit code: 0
    --- stdout
    pr:acme/web#9 no longer continues the conversations of issue:acme/web#6
      back: codex on pr:acme/web#9 (ses-3)
    --- stderr
    ");
    assert_snapshot!(at(&["conversation", "drop", PR]), @r"
    exit code: 0
    --- stdout
    dropped codex on pr:acme/web#9 (ses-3)
    --- stderr
    ");
    assert_snapshot!(at(&["conversation", "get", "codex", PR]), @r"
    exit code: 4
    --- stdout

    --- stderr
    error: codex has no conversation for pr:acme/web#9
    store: [dir]/state/tenure.db
    hint: run `tenure conversation list` to see all of them
    ");
    let stale = [
        "conversation",
        "set",
        "codex",
        ISSUE,
        "ses-4",
        "--revision",
        "1",
    ];
    assert_snapshot!(at(&stale), @r"
    exit code: 5
    --- stdout

    --- stderr
    error: the codex conversation of issue:acme/web#6 has revision 2 now, not 1; nothing was changed
    hint: run `tenure conversation get codex issue:acme/web#6` to see it
    hint: run `tenure conversation history codex issue:acme/web#6` to see who set it
    ");
    let bob = env.agent("codex");
    register(&bob, "codex", "--native-id ses-bob");
    set(&bob, "wp:1", "ses-bob");
    let who = run(&bob, 0, "whoami");
    assert_eq!(who["conversation"]["item"], "wp:1");
    let said = bob.tenure(&["whoami"]).ok().stdout;
    assert!(said.contains("conversation  wp:1 (revision 1)"), "{said}");
    assert_eq!(run(&ann, 0, "whoami")["conversation"], Value::Null);
}
