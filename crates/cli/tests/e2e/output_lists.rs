//! Lists are complete for programs, and say for people how much is missing.

use serde_json::Value;
use tenure_testkit::{Agent, Cmd};

use crate::env;
use crate::support::line::{crew, run};

fn count(answer: &Value, name: &str) -> usize {
    answer[name].as_array().expect("a list").len()
}

/// What people are shown: how many lines, and the last.
fn shown(agent: &Agent, words: &[&str]) -> (usize, String) {
    let said = agent.tenure(words).ok();
    let last = said.stdout.lines().last().expect("a line").to_owned();
    (said.stdout.lines().count(), last)
}

#[test]
fn claims_beyond_a_screen_are_counted() {
    let (_env, [ann]) = crew(["ann"]);
    let keys: Vec<String> = (0..205).map(|n| format!("wp:{n}")).collect();
    run(&ann, 0, &format!("claim --all {}", keys.join(" ")));
    let all = run(&ann, 0, "claims");
    assert_eq!((count(&all, "claims"), &all["more"]), (205, &0.into()));
    let some = run(&ann, 0, "claims --limit 5");
    assert_eq!((count(&some, "claims"), &some["more"]), (5, &200.into()));
    let exact = run(&ann, 0, "claims --limit 205");
    assert_eq!(exact["more"], 0);
    let more = "5 more; run `tenure claims --mine --limit 0` to see them".to_owned();
    assert_eq!(shown(&ann, &["claims", "--mine"]), (1 + 200 + 1, more));
    assert_eq!(shown(&ann, &["claims", "--limit", "0"]).0, 1 + 205);
    let log = run(&ann, 0, "log");
    assert_eq!((count(&log, "events"), &log["more"]), (206, &0.into()));
    let some = run(&ann, 0, "log --limit 6");
    assert_eq!((count(&some, "events"), &some["more"]), (6, &200.into()));
    let (lines, last) = shown(&ann, &["log"]);
    assert_eq!(lines, 101);
    assert!(
        last.starts_with("106 more; run `tenure log --limit 0`"),
        "{last}"
    );
}

#[test]
fn sessions_beyond_a_screen_are_counted() {
    let env = env();
    let ann = env.agent("ann");
    let register = "tenure register --unverified --agent cron -q --native-id";
    let line = format!("for i in $(seq 204); do {register} n$i || exit 1; done");
    ann.run(Cmd::shell(&line)).ok();
    let all = run(&ann, 0, "ps");
    assert_eq!((count(&all, "sessions"), &all["more"]), (204, &0.into()));
    let some = run(&ann, 0, "ps --limit 200");
    assert_eq!((count(&some, "sessions"), &some["more"]), (200, &4.into()));
    let (lines, last) = shown(&ann, &["ps"]);
    assert_eq!(
        (lines, last.as_str()),
        (202, "4 more; run `tenure ps --limit 0` to see them")
    );
    assert_eq!(shown(&ann, &["ps", "-a", "--limit", "0"]).0, 205);
    let others = run(&ann, 0, "who");
    assert_eq!(count(&others, "sessions"), 204);
}

/// A history of several pages is one object, as complete as a short one; what cannot be read ends it with the reason.
#[test]
fn a_long_history_is_one_object_even_if_its_end_cannot_be_read() {
    let (env, [ann]) = crew(["ann"]);
    run(&ann, 0, "claim wp:1");
    let store = env.state().join("tenure.db");
    let copy = "INSERT INTO events (at, kind, session, mechanism, evidence) \
         SELECT at, kind, session, mechanism, 'copy ' || ?1 FROM events WHERE id = 1";
    let conn = rusqlite::Connection::open(&store).unwrap();
    conn.execute_batch("BEGIN").unwrap();
    for n in 0..1_200 {
        conn.execute(copy, [n]).unwrap();
    }
    conn.execute_batch("COMMIT").unwrap();
    let newest = |said: &Value| said["events"].as_array().expect("a list").last().cloned();
    let all = run(&ann, 0, "log");
    assert_eq!((count(&all, "events"), &all["more"]), (1_202, &0.into()));
    assert_eq!(all["notices"], Value::Array(Vec::new()));
    assert_eq!(newest(&all).expect("an event")["cursor"], all["cursor"]);
    let some = run(&ann, 0, "log --limit 2");
    assert_eq!(
        (
            count(&some, "events"),
            &some["more"],
            &some["more_is_least"]
        ),
        (2, &1_000.into(), &true.into())
    );
    assert_eq!(newest(&some), newest(&all));
    let (_, last) = shown(&ann, &["log"]);
    assert_eq!(
        last,
        "more than 1000 others; run `tenure log --limit 0` to see them"
    );
    // The third page has a row that nobody can read.
    conn.execute("UPDATE events SET session = 'x' WHERE id = 1100", [])
        .unwrap();
    let object = ann.tenure(&["log", "--json"]).fails(8).json();
    assert_eq!(count(&object, "events"), 1_201);
    assert_eq!(object["error"]["kind"], "store_damaged");
    // From there on the file itself cannot be read.
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(conn);
    let mut bytes = fs_err::read(&store).unwrap();
    let text = b"copy 1098";
    let at = bytes.windows(text.len()).rposition(|here| here == text);
    let page = at.expect("the text is in the file") / 4096 * 4096;
    bytes[page..page + 4096].fill(0);
    fs_err::write(&store, bytes).unwrap();
    let object = ann.tenure(&["log", "--json"]).fails(8).json();
    let shown = count(&object, "events");
    assert!((1..1_100).contains(&shown), "{shown} events");
    assert_eq!(object["error"]["kind"], "store_damaged");
    assert!(object["notices"].is_array());
}

/// Several runs were created at one time, so a page may end between two of them.
#[test]
fn a_long_list_of_runs_has_each_of_them_once() {
    let (env, [ann]) = crew(["ann"]);
    run(&ann, 0, "claim wp:1");
    let conn = rusqlite::Connection::open(env.state().join("tenure.db")).unwrap();
    let letters = "23456789bcdfghjkmnpqrstvwz".as_bytes();
    let add = "INSERT INTO runs (id, agent, role, item, root, host_id, dir, shares_dir, exclusive, started_by, created_at, \
         fell_back, ended_at, outcome, why, conversation_left, revision) \
         SELECT ?1, 'claude', '', 'wp:1', 'wp:1', host_id, '/w', 0, 0, 'call', ?2, 0, ?2, 'done', '', 'sound', 1 FROM sessions";
    conn.execute_batch("BEGIN").unwrap();
    for n in 0..1_200_u32 {
        let place = |divisor: u32| char::from(letters[usize::try_from(n / divisor % 26).unwrap()]);
        let id = format!("r-2222222{}{}{}", place(676), place(26), place(1));
        conn.execute(add, rusqlite::params![id, 1_000 + n / 7])
            .unwrap();
    }
    conn.execute_batch("COMMIT").unwrap();
    let ids = |said: &Value| -> Vec<String> {
        let runs = said["runs"].as_array().expect("a list").iter();
        runs.map(|run| run["id"].as_str().expect("an id").to_owned())
            .collect()
    };
    let all = ids(&run(&ann, 0, "runs"));
    let each: std::collections::BTreeSet<&String> = all.iter().collect();
    assert_eq!((all.len(), each.len()), (1_200, 1_200));
    let some = run(&ann, 0, "runs --limit 700");
    assert_eq!(
        (ids(&some).as_slice(), &some["more"]),
        (&all[..700], &500.into())
    );
}
