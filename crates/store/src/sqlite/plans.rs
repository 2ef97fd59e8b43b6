//! How the statements run: every one that a single-key command or a hook needs uses an index.
//!
//! Checked twice: the plan has no scan of a growing table, and the number of steps of SQLite's machine does not
//! grow with the rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;
use rusqlite::types::Value;
use tenure_core::claim::EndedBy;
use tenure_core::event::EventFilter;
use tenure_core::id::{Epoch, RunId, SessionToken};
use tenure_core::repository::Home;
use tenure_core::store::{
    ClaimFilter, ConversationFilter, Lost, Mode, ProcessPlace, RunFilter, SessionFilter, Store, Tx,
};
use tenure_core::time::Timestamp;
use tenure_testkit::conformance::sample::*;

use super::{
    SqliteStore, claim, conversation, delivery, doubt, event, job, metadata, mission, native,
    notice, process, reply, run, session, write,
};

/// SQLite's plan, one line per step.
fn plan(conn: &Connection, sql: &str) -> Vec<String> {
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let nulls = vec![Value::Null; statement.parameter_count()];
    let steps = statement
        .query_map(rusqlite::params_from_iter(nulls), |row| row.get(3))
        .unwrap();
    steps.collect::<Result<_, _>>().unwrap()
}

#[track_caller]
fn assert_uses(conn: &Connection, sql: &str, indexes: &[&str]) {
    let steps = plan(conn, sql);
    let text = steps.join("\n");
    for step in &steps {
        let partial = step.contains("_open") || step.contains("_waiting");
        assert!(
            !step.starts_with("SCAN") || partial || is_derived(step),
            "{sql}\n{text}"
        );
    }
    for index in indexes {
        assert!(text.contains(index), "{sql}\nuses no {index}:\n{text}");
    }
}

/// A scan of what the statement itself has just gathered.
fn is_derived(step: &str) -> bool {
    ["SCAN n", "SCAN (", "SCAN LIST", "SCAN json_each"]
        .iter()
        .any(|prefix| step.starts_with(prefix))
}

#[test]
fn single_key_statements_use_their_indexes() {
    let store = SqliteStore::in_memory(clock()).unwrap();
    let cases: &[(&str, &[&str])] = &[
        (session::BY_ID, &["sessions_id"]),
        (session::BY_HANDLE, &["sessions_handle"]),
        (
            session::AT_PLACE,
            &["sessions_open_place (pid=? AND boot_id=? AND pid_ns=? AND host_id=?)"],
        ),
        (
            session::BELOW_PLACE,
            &["sessions_open_daemon (daemon_pid=? AND boot_id=? AND pid_ns=? AND host_id=?)"],
        ),
        (session::UPDATE, &["sessions_id"]),
        (session::UPDATE_SAME_INDEX, &["sessions_id"]),
        (session::TOUCH, &["sessions_id"]),
        (
            session::MATCH_PREFIX,
            &["sessions_handle", "sessions_code", "sessions_id"],
        ),
        (session::MATCH_OPEN, &["sessions_open_newest"]),
        (
            process::LIVES_AT,
            &["lives_place (pid=? AND boot_id=? AND pid_ns=? AND host_id=?)"],
        ),
        (native::OWNER, &["PRIMARY KEY (agent=? AND native_id=?)"]),
        (native::VISITORS, &["PRIMARY KEY (agent=? AND native_id=?)"]),
        (native::LINEAGE, &["natives_owner", "visits_visitor"]),
        (
            claim::BY_KEY,
            &[
                "c USING PRIMARY KEY (key=?)",
                "h USING PRIMARY KEY (key=? AND epoch=?)",
            ],
        ),
        (claim::RAISE, &["PRIMARY KEY (key=?)"]),
        (claim::END, &["PRIMARY KEY (key=? AND epoch=?)"]),
        (claim::NEWEST_OF, &["holds_session (session=? AND key=?)"]),
        (claim::OPEN_OF, &["holds_open_session (session=?)"]),
        (
            claim::ALL_NEWEST_OF,
            &[
                "holds_session (session=?)",
                "PRIMARY KEY (key=? AND epoch=?)",
            ],
        ),
        (
            claim::LOST_SINCE,
            &[
                "holds_lost_at (session=? AND ended_at>?)",
                "holds_session (session=? AND key=?)",
            ],
        ),
        (
            claim::LOST_BELOW,
            &[
                "holds_lost_key (session=? AND key>? AND key<?)",
                "holds_session (session=? AND key=?)",
            ],
        ),
        (
            claim::LOST_OF,
            &[
                "holds_lost_at (session=? AND ended_at>?)",
                "holds_session (session=? AND key=?)",
            ],
        ),
        (claim::LAST_GRANT, &["holds_granted (session=?)"]),
        (notice::ANY, &["notices_waiting (recipient=?)"]),
        (notice::WAITING, &["notices_waiting (recipient=?)"]),
        (notice::COUNT, &["notices_waiting (recipient=?)"]),
        (notice::DELIVER, &["notices_waiting (recipient=? AND id=?)"]),
        (notice::CHANNEL, &["PRIMARY KEY (session=?)"]),
        (metadata::OF, &["PRIMARY KEY (session=?)"]),
        (doubt::ANY, &["PRIMARY KEY (asker=?)"]),
        (mission::ONE, &["PRIMARY KEY (mission=? AND session=?)"]),
        (mission::OF_MISSION, &["PRIMARY KEY (mission=?)"]),
        (mission::OF_SESSION, &["participants_session (session=?)"]),
        (mission::OF_SESSIONS, &["participants_session (session=?)"]),
        (write::SINCE, &["writes_session (session=? AND at>?)"]),
        (mission::UPDATE, &["PRIMARY KEY (mission=? AND session=?)"]),
        (mission::BY_ID, &["PRIMARY KEY (id=?)"]),
        (mission::POINTER, &["PRIMARY KEY (scope=? AND name=?)"]),
        (conversation::ONE, &["PRIMARY KEY (item=? AND agent=?)"]),
        (
            conversation::WITH_ID,
            &["conversations_native (agent=? AND native_id=?)"],
        ),
        (conversation::OF_ITEM, &["PRIMARY KEY (item=?)"]),
        (conversation::UPDATE, &["PRIMARY KEY (item=? AND agent=?)"]),
        (
            conversation::PAST,
            &["past_ids_conversation (item=? AND agent=?)"],
        ),
        (
            conversation::END_PAST,
            &["past_ids_open (item=? AND agent=?)"],
        ),
        (conversation::ITEM, &["PRIMARY KEY (item=?)"]),
        (conversation::LINKED, &["items_root (root=?)"]),
        (run::BY_ID, &["runs_id (id=?)"]),
        (run::UPDATE, &["runs_id (id=?)"]),
        (
            run::OPEN_OF,
            &["runs_open_conversation (root=? AND agent=?)"],
        ),
        (run::ALL_OPEN_OF, &["runs_open_conversation (root=?)"]),
        (run::OPEN_IN, &["runs_open_in (dir=? AND host_id=?)"]),
        (run::OPEN_OF_SESSION, &["runs_open_session (session=?)"]),
        (run::NEWEST_OF_SESSION, &["runs_session (session=?)"]),
        (run::MATCH, &["runs_id (id>? AND id<?)"]),
        (
            run::CUT_OFF_IN,
            &["runs_cut_off_in (dir=? AND host_id=? AND boot_id=?)"],
        ),
        (
            run::CUT_OFF_OF,
            &["runs_cut_off_of (root=? AND agent=? AND host_id=? AND boot_id=?)"],
        ),
        (run::LEFT, &["runs_after (agent=? AND after_id=?"]),
        (job::BY_ID, &["jobs_id (id=?)"]),
        (job::UPDATE, &["jobs_id (id=?)"]),
        (job::MATCH, &["jobs_id (id>? AND id<?)"]),
        (
            job::OPEN_OF,
            &["jobs_open_conversation (root=? AND agent=?)"],
        ),
        (job::OPEN_FOR, &["jobs_open_item (item=?)"]),
        (job::TAKEN_OF_RUN, &["jobs_run (run=?)"]),
        (job::DELAYED, &["jobs_delayed (not_before<?)"]),
        (
            job::NEXT_REPO,
            &["USING INDEX jobs_waiting_repo (<expr>>?)"],
        ),
        (job::UNPARKED, &["jobs_parked (parked_until<?)"]),
        (job::EVENTS, &["job_events_job (job=?)"]),
        (job::BEGUN, &["runs_item (item=? AND created_at>?)"]),
        (job::COST, &["runs_item (item=? AND created_at>?)"]),
        (delivery::BY_ID, &["PRIMARY KEY (rowid=?)"]),
        (
            delivery::BY_DELIVERY,
            &["deliveries_delivery (endpoint=? AND delivery_id=?)"],
        ),
        (
            delivery::BY_CONTENT,
            &["deliveries_content (endpoint=? AND content_key=?)"],
        ),
        (delivery::OF_ITEM, &["deliveries_item (item=?)"]),
        (reply::BY_ID, &["INTEGER PRIMARY KEY"]),
        (reply::FORGET_DONE, &["replies_done (done_at<?)"]),
        (reply::FORGET_LEFT, &["jobs_id (id=?)"]),
        (reply::ABOUT, &["replies_comment (job=? AND kind=?)"]),
        (reply::OPEN, &["replies_open (forge=? AND id>?)"]),
        (reply::DUTY, &["PRIMARY KEY (name=?)"]),
        (
            reply::WAITING,
            &["waiting_deliveries_next (endpoint=? AND next_at<?)"],
        ),
        (doubt::TAKE, &["PRIMARY KEY (asker=?)"]),
        (native::TAKE, &["PRIMARY KEY (agent=? AND native_id=?)"]),
        (claim::END_OF, &["holds_open_session (session=?)"]),
        (claim::CARRY, &["holds_open_session (session=?)"]),
        (claim::HOMES, &["COVERING INDEX holds_open_home"]),
        (
            claim::SPELLINGS,
            &["PRIMARY KEY (canonical>? AND canonical<?)"],
        ),
    ];
    for (sql, indexes) in cases {
        assert_uses(&store.conn, sql, indexes);
    }
}

/// A part can be anywhere in a name, so all names are read, but nothing else.
#[test]
fn a_name_that_nobody_has_is_looked_for_in_the_indexes_alone() {
    let store = SqliteStore::in_memory(clock()).unwrap();
    for (sql, index) in [
        (session::IN_A_HANDLE, "sessions_handle"),
        (session::IN_AN_ID, "sessions_id"),
    ] {
        let step = format!("SCAN sessions USING COVERING INDEX {index}");
        assert_eq!(plan(&store.conn, sql), [step]);
    }
}

#[test]
fn listing_sessions_touches_only_open_ones() {
    let store = SqliteStore::in_memory(clock()).unwrap();
    let open = SessionFilter::default();
    let in_repo = SessionFilter {
        repo: Some("acme/web".into()),
        ..open.clone()
    };
    let under = SessionFilter {
        under: Some("/w".into()),
        ..open.clone()
    };
    let children = SessionFilter {
        parent: Some(token(1)),
        ..open.clone()
    };
    let died_here = SessionFilter {
        died_since: Some(Timestamp(1)),
        ..in_repo.clone()
    };
    for (filter, index) in [
        (died_here, "sessions_died (closed_at>?)"),
        (open, "sessions_open_newest"),
        (in_repo, "sessions_open_repo (repo=?)"),
        (under, "sessions_open_dir"),
        (
            children,
            "sessions_parent (parent_id=? AND parent_life=? AND closed_at=?)",
        ),
    ] {
        assert_uses(&store.conn, &session::list_statement(&filter).0, &[index]);
    }
    let everything = SessionFilter {
        closed_too: true,
        limit: 20,
        ..SessionFilter::default()
    };
    let steps = plan(&store.conn, &session::list_statement(&everything).0);
    assert_eq!(
        steps,
        ["SCAN sessions USING INDEX sessions_newest"],
        "in order, so that it can stop"
    );
}

/// A page costs the same however many rows there are: each list is read in the order of an index.
#[test]
fn lists_of_runs_and_conversations_are_read_in_the_order_of_an_index() {
    let store = SqliteStore::in_memory(clock()).unwrap();
    let in_order = |sql: &str, index: &str| {
        let steps = plan(&store.conn, sql);
        assert!(
            steps.len() == 1 && steps[0].contains(index),
            "{sql}\nuses no {index}:\n{steps:?}"
        );
    };
    let all = RunFilter {
        before: Some((Timestamp(1), RunId::mint([1; 16]))),
        limit: 20,
        ..RunFilter::default()
    };
    let of_item = RunFilter {
        item: Some(key("wp:1")),
        ..all.clone()
    };
    let of_agent = RunFilter {
        agent: Some(agent()),
        ..all.clone()
    };
    let failed = RunFilter {
        failed: true,
        ..of_agent.clone()
    };
    let open = RunFilter {
        open: true,
        ..all.clone()
    };
    for (filter, index) in [
        (all, "runs_newest ("),
        (of_item, "runs_item (item=? AND "),
        (of_agent, "runs_agent (agent=? AND "),
        (failed, "runs_failed ("),
        (open, "runs_open ("),
    ] {
        in_order(&run::list_statement(&filter).0, index);
        let counted = RunFilter {
            before: None,
            ..filter
        };
        let (sql, _) = run::count_statement(&counted);
        let steps = plan(&store.conn, &sql);
        let counts_in_index = |step: &String| step.contains("COVERING INDEX runs_");
        let reads_rows = |step: &String| step.contains("INDEX runs_") || step.contains("runs_open");
        assert!(
            steps
                .iter()
                .any(|step| counts_in_index(step) || reads_rows(step)),
            "{sql}:\n{steps:?}"
        );
    }
    let all = ConversationFilter {
        after: Some((key("wp:1"), agent())),
        limit: 20,
        ..ConversationFilter::default()
    };
    let of_item = ConversationFilter {
        item: Some(key("wp:1")),
        ..all.clone()
    };
    let of_agent = ConversationFilter {
        agent: Some(agent()),
        ..all.clone()
    };
    let closed_too = ConversationFilter {
        closed_too: true,
        ..all.clone()
    };
    for (filter, index) in [
        (all, "conversations_open ((item,agent)>(?,?))"),
        (of_item, "(item=?"),
        (of_agent, "conversations_open_agent (agent=? AND "),
        (closed_too, "PRIMARY KEY ((item,agent)>(?,?))"),
    ] {
        in_order(&conversation::list_statement(&filter).0, index);
    }
}

#[test]
fn listing_claims_touches_only_open_holds() {
    let store = SqliteStore::in_memory(clock()).unwrap();
    let held = ClaimFilter::default();
    let with_prefix = ClaimFilter {
        prefix: Some("wp:".into()),
        ..held.clone()
    };
    let of_home = ClaimFilter {
        home: Some(Home {
            dir: "/r/.git".into(),
            mark: None,
        }),
        ..held.clone()
    };
    let of_session = ClaimFilter {
        session: Some(id(1)),
        ..held.clone()
    };
    for (filter, index) in [
        (held, "holds_open"),
        (with_prefix, "holds_open (key>? AND key<?)"),
        (of_session, "holds_open_session (session=?)"),
        (of_home, "holds_open_home (home=?"),
    ] {
        let sql = claim::list_statement(&filter).0;
        assert_uses(&store.conn, &sql, &[index, "c USING PRIMARY KEY (key=?)"]);
        let steps = plan(&store.conn, &sql);
        assert!(
            !steps.iter().any(|step| step.contains("TEMP B-TREE")),
            "{steps:?}"
        );
    }
}

#[test]
fn events_are_found_by_their_indexes_in_the_order_of_the_log() {
    let store = SqliteStore::in_memory(clock()).unwrap();
    let of = |key_too: bool, session_too: bool, since: bool| EventFilter {
        key: key_too.then(|| key("wp:1")),
        session: session_too.then(|| id(1)),
        since: since.then_some(Timestamp(1)),
        limit: 20,
        ..EventFilter::default()
    };
    for after in [None, Some(7)] {
        let uses = |filter, indexes: &[&str]| {
            assert_uses(&store.conn, &event::statement(&filter, after).0, indexes);
        };
        uses(of(true, false, false), &["events_key (key=?"]);
        uses(of(true, false, true), &["events_key (key=?"]);
        uses(
            of(false, true, false),
            &["events_session (session=?", "events_actor (actor=?"],
        );
        uses(
            of(true, true, true),
            &["events_session (session=?", "events_actor (actor=?"],
        );
    }
    let recent = event::statement(&of(false, false, true), None).0;
    assert_uses(&store.conn, &recent, &["events_at (at>?)"]);
}

/// Fills a store with `count` closed sessions and keys that were held and released, and ten open ones.
fn filled(count: u32) -> SqliteStore {
    let mut store = SqliteStore::in_memory(clock()).unwrap();
    write(&mut store, |tx| {
        for n in 0..count + 10 {
            let mut one = session(n);
            if n >= 10 {
                one.closed = closed(tenure_core::session::ClosedBy::Death);
            }
            tx.insert_session(&one).unwrap();
            tx.insert_life(token(n), one.process.as_ref().unwrap(), one.started_at)
                .unwrap();
            tx.set_native_owner(
                &agent(),
                &native(&format!("ses_{n}")),
                None,
                id(n),
                one.started_at,
            )
            .unwrap();
            // One session works for a long time: it claimed and released a key for every other session.
            let past = format!("path:acme/web:old/{n}.rs");
            grant(tx, &hold(&past, 1, 8));
            tx.end_hold(&key(&past), Epoch(1), end(EndedBy::Release))
                .unwrap();
            let name = format!("wp:{n}");
            grant(tx, &hold(&name, 1, n));
            if n >= 10 {
                tx.end_hold(&key(&name), Epoch(1), end(EndedBy::Release))
                    .unwrap();
            }
            let mut change = event(n, "granted");
            change.key = Some(key(&name));
            tx.append_event(&change, one.started_at).unwrap();
            tx.append_event(&event(8, "released"), one.started_at)
                .unwrap();
            tx.add_notice(&notice(n, "hear")).unwrap();
            if n >= 10 {
                deliver_all(tx, n);
            }
        }
    });
    store
}

/// Marks all notices of the `n`th session as delivered; returns how many there were.
fn deliver_all(tx: &mut dyn Tx, n: u32) -> usize {
    let waiting = tx.pending_notices(id(n), 0).unwrap();
    let ids: Vec<_> = waiting.iter().filter_map(|notice| notice.id).collect();
    tx.mark_delivered(id(n), &ids, Timestamp(1)).unwrap();
    waiting.len()
}

type Verb = (&'static str, fn(&mut dyn Tx));

/// One command of each kind, as a caller would use it.
fn verbs() -> Vec<Verb> {
    vec![
        ("beat", |tx| {
            assert!(
                tx.touch_session(token(3), Timestamp(1), &lease(1), None, None)
                    .unwrap()
            );
        }),
        ("who am i", |tx| {
            let processes = [process(1003, 3), process(1004, 4)];
            let places: Vec<_> = processes.iter().map(ProcessPlace::from).collect();
            assert_eq!(tx.sessions_at_any(&places).unwrap().len(), 2);
            assert_eq!(tx.lives_at_any(&places).unwrap().len(), 2);
            assert!(tx.has_notices(id(3)).unwrap());
            assert!(!tx.has_doubts(id(3)).unwrap());
        }),
        ("register", |tx| {
            let another = session(400_000);
            tx.insert_session(&another).unwrap();
            tx.insert_life(another.token(), &process(9, 9), Timestamp(1))
                .unwrap();
            tx.set_native_owner(&agent(), &native("ses_new"), None, another.id, Timestamp(1))
                .unwrap();
        }),
        ("change", |tx| tx.update_session(&session(4)).unwrap()),
        ("find by name", |tx| {
            assert!(tx.session_by_handle(handle(5).as_str()).unwrap().is_some());
            assert_eq!(
                tx.match_sessions(handle(5).as_str(), 8).unwrap()[0].0,
                id(5)
            );
        }),
        ("claim a free key", |tx| {
            let free = key("wp:20");
            assert_eq!(tx.lock_claim(&free).unwrap().epoch, Epoch(1));
            assert!(tx.newest_hold_of(id(1), &free).unwrap().is_none());
            tx.insert_hold(&hold("wp:20", 2, 1), Epoch(1)).unwrap();
            tx.append_event(&event(1, "granted"), Timestamp(1)).unwrap();
        }),
        ("claim a new key", |tx| grant(tx, &hold("wp:never", 1, 1))),
        ("release", |tx| {
            tx.end_hold(&key("wp:2"), Epoch(1), end(EndedBy::Release))
                .unwrap();
        }),
        ("what i hold", |tx| {
            assert_eq!(tx.open_holds(id(6)).unwrap().len(), 1);
            assert_eq!(tx.newest_holds(id(6)).unwrap().len(), 1);
        }),
        ("what an old session lost", |tx| {
            let since = Lost::Since(Timestamp(0));
            assert_eq!(tx.lost_holds(id(8), since).unwrap(), []);
            let below = Lost::Below("path:acme/web:");
            assert_eq!(tx.lost_holds(id(8), below).unwrap(), []);
            assert!(tx.last_grant(id(8)).unwrap().is_some());
        }),
        ("what an old session holds", |tx| {
            assert_eq!(tx.open_holds(id(8)).unwrap().len(), 1);
        }),
        ("tell notices", |tx| {
            assert_eq!(deliver_all(tx, 7), 1);
            assert!(!tx.has_model_channel(token(7)).unwrap());
        }),
        ("log of a key", |tx| {
            let filter = EventFilter {
                key: Some(key("wp:8")),
                limit: 20,
                ..EventFilter::default()
            };
            assert_eq!(tx.events(&filter).unwrap().len(), 1);
        }),
        ("what an old session met lately", |tx| {
            let filter = EventFilter {
                session: Some(id(8)),
                limit: 5,
                ..EventFilter::default()
            };
            assert_eq!(tx.events(&filter).unwrap().len(), 5);
        }),
        ("ps", |tx| {
            assert_eq!(
                tx.list_sessions(&SessionFilter::default()).unwrap().len(),
                10
            );
        }),
        ("claims", |tx| {
            assert_eq!(tx.list_claims(&ClaimFilter::default()).unwrap().len(), 10);
        }),
        ("children", |tx| {
            let parent = SessionToken {
                id: id(9),
                life: token(9).life,
            };
            let filter = SessionFilter {
                parent: Some(parent),
                ..SessionFilter::default()
            };
            assert_eq!(tx.list_sessions(&filter).unwrap(), []);
        }),
    ]
}

/// How many steps SQLite's machine takes for each command.
fn steps(store: &mut SqliteStore) -> Vec<(&'static str, u64)> {
    let taken = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&taken);
    let counting = move || {
        count.fetch_add(1, Ordering::Relaxed);
        false
    };
    store.conn.progress_handler(1, Some(counting)).unwrap();
    let mut counted = Vec::new();
    for (name, verb) in verbs() {
        // Once to prepare the statements, once to count.
        for round in 0..2 {
            let mut tx = store.begin(Mode::Write).unwrap();
            taken.store(0, Ordering::Relaxed);
            verb(&mut *tx);
            if round == 1 {
                counted.push((name, taken.load(Ordering::Relaxed)));
            }
        }
    }
    counted
}

#[test]
fn no_verb_takes_more_steps_where_there_is_more_that_is_over() {
    let few = steps(&mut filled(100));
    let many = steps(&mut filled(10_000));
    for ((name, before), (_, after)) in few.into_iter().zip(many) {
        assert!(before > 0, "{name} was not counted");
        assert!(
            after * 10 <= before * 13,
            "{name} took {before} steps with 100 rows and {after} with 10,000"
        );
    }
}

/// However many jobs are over, what waits and what runs is read from indexes of these alone, in their order.
#[test]
fn what_waits_and_runs_is_read_in_the_order_of_its_own_index() {
    let store = SqliteStore::in_memory(clock()).unwrap();
    for (sql, index) in [
        (job::TAKEN, "SCAN jobs USING INDEX jobs_taken"),
        (job::READY, "SCAN own USING INDEX jobs_ready"),
        (
            job::DELAYED,
            "SEARCH own USING INDEX jobs_delayed (not_before<?)",
        ),
        (
            job::UNPARKED,
            "SEARCH own USING INDEX jobs_parked (parked_until<?)",
        ),
        (
            job::READY_IN,
            "SEARCH own USING INDEX jobs_waiting_repo (<expr>=? AND <expr>=?)",
        ),
        (
            job::DUE_IN,
            "SEARCH own USING INDEX jobs_waiting_repo (<expr>=? AND <expr>>? AND <expr><?)",
        ),
    ] {
        let steps = plan(&store.conn, sql);
        assert_eq!(steps.first().map(String::as_str), Some(index), "{steps:?}");
        assert!(
            !steps.iter().any(|step| step.contains("TEMP B-TREE")),
            "{steps:?}"
        );
    }
}
