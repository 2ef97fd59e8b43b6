//! Runs, and parked agents.

use tenure_core::conversation::fitness::Left;
use tenure_core::id::{AgentName, HostId, WorkerRole};
use tenure_core::process::BootId;
use tenure_core::run::end::Stop;
use tenure_core::run::{Outcome, Park, Run, RunEnd, RunState, StopAsked, Trigger, Usage};
use tenure_core::store::{CutOff, RunFilter, Store};
use tenure_core::time::Timestamp;

use super::sample::*;

fn ended(n: u8, outcome: Outcome) -> Run {
    Run {
        end: Some(RunEnd {
            at: Timestamp(EPOCH + 100 + i64::from(n)),
            outcome,
            why: "it was time".into(),
            exit_code: Some(0),
            left: Left::Sound,
            parked_until: None,
        }),
        ..run(n)
    }
}

fn with(store: &mut dyn Store, runs: &[Run]) {
    write(store, |tx| {
        for run in runs {
            tx.insert_run(run).unwrap();
        }
    });
}

pub fn a_run_reads_back_with_every_field(store: &mut dyn Store) {
    // Every field is listed, so that a new field does not compile without a value.
    let full = Run {
        timeout: Some(std::time::Duration::from_millis(1_800_000)),
        id: run_id(1),
        agent: agent(),
        role: role(),
        item: key("issue:acme/web#1"),
        host: HostId::new("host-one"),
        dir: "/work/1".into(),
        created_at: Timestamp(EPOCH + 1),
        root: key("issue:acme/web#99"),
        session: Some(token(1)),
        runner: Some(process(77, u64::MAX)),
        before: Some(native("ses_1")),
        intended: Some(native("ses_2")),
        after: Some(native("ses_3")),
        shares_dir: true,
        exclusive: true,
        trigger: Trigger::Resume,
        skill: Some("implement".into()),
        prompt_hash: Some("ab12".into()),
        log: Some("/state/runs/x.log".into()),
        goes_on: Some(run_id(9)),
        begun_at: Some(Timestamp(EPOCH + 2)),
        fell_back: true,
        stop: Some(StopAsked {
            cause: Stop::TimedOut,
            at: Timestamp(EPOCH + 3),
            by: Some(id(1)),
            why: "wrong branch".into(),
        }),
        usage: Usage {
            turns: Some(3),
            tokens_in: Some(1 << 40),
            tokens_out: Some(0),
            cost: Some(0.25),
        },
        end: Some(RunEnd {
            at: Timestamp(EPOCH + 4),
            outcome: Outcome::Parked,
            why: "usage limit".into(),
            exit_code: Some(137),
            left: Left::Overflowed,
            parked_until: Some(Timestamp(EPOCH + 5)),
        }),
        revision: 6,
    };
    with(store, &[full.clone(), run(2)]);
    read(store, |tx| {
        assert_eq!(tx.run_by_id(&full.id).unwrap(), Some(full.clone()));
        assert_eq!(tx.run_by_id(&run_id(2)).unwrap(), Some(run(2)));
        assert_eq!(tx.run_by_id(&run_id(3)).unwrap(), None);
        assert_eq!(tx.newest_run_of_session(id(1)).unwrap(), Some(full.clone()));
        assert_eq!(tx.open_run_of_session(id(1)).unwrap(), None, "it ended");
        let newest = tx.newest_runs_of_sessions(&[id(1), id(2)]).unwrap();
        assert_eq!(newest, std::slice::from_ref(&full));
    });
}

pub fn a_run_is_changed_by_comparing_its_revision(store: &mut dyn Store) {
    with(store, &[run(1)]);
    let begun = Run {
        session: Some(token(1)),
        begun_at: Some(Timestamp(EPOCH + 1)),
        ..run(1)
    };
    write(store, |tx| tx.update_run(&begun).unwrap());
    conflict(store, |tx| tx.update_run(&begun));
    read(store, |tx| {
        let found = tx.open_run_of_session(id(1)).unwrap().unwrap();
        assert_eq!(found.state(), RunState::Begun);
        assert_eq!(
            found,
            Run {
                revision: 1,
                ..begun
            }
        );
    });
    conflict(store, |tx| tx.update_run(&run(2)));
    conflict(store, |tx| tx.insert_run(&run(1)));
}

pub fn a_conversation_has_one_open_run(store: &mut dyn Store) {
    let root = key("issue:acme/web#6");
    let of_root = |n: u8| Run {
        root: root.clone(),
        ..run(n)
    };
    with(store, &[of_root(1)]);
    conflict(store, |tx| tx.insert_run(&of_root(2)));
    let codex = Run {
        agent: AgentName::known("codex"),
        ..of_root(3)
    };
    let no_role = Run {
        role: WorkerRole::default(),
        ..of_root(4)
    };
    with(store, &[codex.clone(), no_role.clone()]);
    read(store, |tx| {
        let open = tx.open_run_of(&agent(), &role(), &root).unwrap();
        assert_eq!(open, Some(of_root(1)));
        assert_eq!(
            tx.open_runs_of(&root).unwrap(),
            [no_role, of_root(1), codex]
        );
        let other = key("issue:acme/web#60");
        assert_eq!(tx.open_runs_of(&other).unwrap(), []);
    });
    let over = Run {
        end: ended(1, Outcome::Done).end,
        ..of_root(1)
    };
    write(store, |tx| tx.update_run(&over).unwrap());
    with(store, &[of_root(2)]);
}

pub fn a_directory_has_one_open_run_unless_it_is_shared(store: &mut dyn Store) {
    let host = HostId::new("host-one");
    let in_dir = |n: u8, shares_dir: bool| Run {
        dir: "/srv/web".into(),
        shares_dir,
        ..run(n)
    };
    with(store, &[in_dir(1, false)]);
    conflict(store, |tx| tx.insert_run(&in_dir(2, false)));
    let elsewhere = Run {
        host: HostId::new("host-two"),
        ..in_dir(3, false)
    };
    with(store, &[elsewhere, in_dir(4, true)]);
    read(store, |tx| {
        let there = tx.open_runs_in(&host, "/srv/web").unwrap();
        assert_eq!(there, [in_dir(1, false), in_dir(4, true)]);
        assert_eq!(tx.open_runs_in(&host, "/work").unwrap(), []);
    });
}

pub fn the_newest_runs_are_listed_first_and_a_page_goes_on(store: &mut dyn Store) {
    let item = key("issue:acme/web#6");
    let runs: Vec<Run> = (1..=6)
        .map(|n| {
            let outcome = match n % 3 {
                0 => Outcome::Failed,
                1 => Outcome::Done,
                _ => Outcome::Parked,
            };
            let agent = match n {
                1..=4 => agent(),
                _ => AgentName::known("codex"),
            };
            Run {
                agent,
                item: item.clone(),
                created_at: Timestamp(EPOCH),
                ..ended(n, outcome)
            }
        })
        .collect();
    with(store, &runs);
    with(store, &[run(7)]);
    read(store, |tx| {
        let mut ids = |filter: RunFilter| {
            let found = tx.list_runs(&filter).unwrap();
            assert_eq!(tx.count_runs(&filter).unwrap(), found.len());
            found.into_iter().map(|run| run.id).collect::<Vec<_>>()
        };
        let all = RunFilter::default();
        let expected: Vec<_> = [7, 6, 5, 4, 3, 2, 1].map(run_id).into();
        assert_eq!(ids(all.clone()), expected);
        let later = RunFilter {
            since: Some(Timestamp(EPOCH + 1)),
            ..all.clone()
        };
        assert_eq!(ids(later), expected[..1]);
        let of_item = RunFilter {
            item: Some(item.clone()),
            ..all.clone()
        };
        assert_eq!(ids(of_item), expected[1..]);
        let failed = RunFilter {
            failed: true,
            ..all.clone()
        };
        assert_eq!(ids(failed.clone()), [run_id(6), run_id(3)]);
        let codex = RunFilter {
            agent: Some(AgentName::known("codex")),
            ..all.clone()
        };
        assert_eq!(ids(codex), [run_id(6), run_id(5)]);
        let failed_codex = RunFilter {
            agent: Some(AgentName::known("codex")),
            ..failed
        };
        assert_eq!(ids(failed_codex), [run_id(6)]);
        let open = RunFilter { open: true, ..all };
        assert_eq!(ids(open), [run_id(7)]);
        let mut page = RunFilter {
            limit: 2,
            ..RunFilter::default()
        };
        let mut seen = Vec::new();
        loop {
            let found = tx.list_runs(&page).unwrap();
            assert_eq!(tx.count_runs(&page).unwrap(), 7);
            let some = RunFilter {
                count_to: 4,
                ..page.clone()
            };
            assert!((4..=7).contains(&tx.count_runs(&some).unwrap()));
            let Some(last) = found.last() else { break };
            page.before = Some((last.created_at, last.id.clone()));
            seen.extend(found.into_iter().map(|run| run.id));
        }
        assert_eq!(seen, expected);
    });
}

pub fn runs_are_found_by_a_part_of_their_id(store: &mut dyn Store) {
    with(store, &[run(1), run(2)]);
    read(store, |tx| {
        let whole = run_id(1).to_string();
        let code = whole.strip_prefix("r-").unwrap();
        for part in [whole.as_str(), code, &code[..4], &whole[..5]] {
            assert_eq!(tx.match_runs(part, 8).unwrap(), [run_id(1)], "{part}");
        }
        assert_eq!(tx.match_runs("r-", 8).unwrap(), [run_id(2), run_id(1)]);
        assert_eq!(tx.match_runs("r-", 1).unwrap(), [run_id(2)]);
        assert_eq!(tx.match_runs("x", 8).unwrap(), []);
    });
}

pub fn what_the_newest_run_left_of_a_conversation_is_known(store: &mut dyn Store) {
    let left = |n: u8, at: i64, native_id: &str, left: Left| {
        let mut run = ended(n, Outcome::Failed);
        run.after = Some(native(native_id));
        if let Some(end) = &mut run.end {
            end.left = left;
            end.at = Timestamp(EPOCH + at);
        }
        run
    };
    with(
        store,
        &[
            left(1, 10, "ses_1", Left::Sound),
            left(2, 20, "ses_1", Left::Unusable),
            left(3, 5, "ses_1", Left::Sound),
            left(4, 30, "ses_2", Left::Sound),
        ],
    );
    let open = Run {
        after: Some(native("ses_3")),
        ..run(5)
    };
    with(store, &[open]);
    read(store, |tx| {
        let mut of = |text: &str| tx.newest_left(&agent(), &native(text)).unwrap();
        assert_eq!(of("ses_1"), Some((run_id(2), Left::Unusable)));
        assert_eq!(of("ses_2"), Some((run_id(4), Left::Sound)));
        assert_eq!(of("ses_3"), None, "it has no end");
        assert_eq!(of("ses_4"), None);
    });
}

pub fn runs_that_were_cut_off_are_found_by_directory_and_by_conversation(store: &mut dyn Store) {
    let outcomes = [
        Outcome::Done,
        Outcome::Failed,
        Outcome::Refused,
        Outcome::Timeout,
        Outcome::Stopped,
        Outcome::Interrupted,
        Outcome::Unusable,
        Outcome::Parked,
    ];
    let runner = process(7, 70);
    let (host, boot) = (runner.host.clone(), runner.boot.clone());
    let mut all = Vec::new();
    for (exit_code, from) in [(Some(1), 0), (None, 10)] {
        for (n, outcome) in (from..).zip(outcomes) {
            let mut run = ended(n, outcome);
            run.host = host.clone();
            run.runner = Some(runner.clone());
            if let Some(end) = &mut run.end {
                end.exit_code = exit_code;
            }
            all.push(run);
        }
    }
    let open = Run {
        host: host.clone(),
        runner: Some(runner),
        ..run(50)
    };
    with(store, &all);
    with(store, &[open]);
    let other = BootId {
        id: "another".into(),
        ..boot.clone()
    };
    read(store, |tx| {
        let mut cut_off = 0;
        for run in &all {
            let expected: Vec<Run> = Some(run.clone())
                .filter(Run::was_cut_off)
                .into_iter()
                .collect();
            cut_off += expected.len();
            for place in [
                CutOff::In(&run.dir),
                CutOff::Of(&run.agent, &run.role, &run.root),
            ] {
                let found = tx.runs_cut_off(&host, &boot, place).unwrap();
                assert_eq!(found, expected, "{place:?}");
                let elsewhere = HostId::new("elsewhere");
                assert_eq!(tx.runs_cut_off(&elsewhere, &boot, place).unwrap(), []);
                assert_eq!(tx.runs_cut_off(&host, &other, place).unwrap(), []);
            }
        }
        assert_eq!(cut_off, 5);
        let dir = CutOff::In("/work/50");
        assert_eq!(tx.runs_cut_off(&host, &boot, dir).unwrap(), []);
    });
}

pub fn an_agent_is_parked_on_one_host(store: &mut dyn Store) {
    let host = HostId::new("host-one");
    let park = |n: u8, until: i64| Park {
        agent: agent(),
        host: host.clone(),
        until: Timestamp(EPOCH + until),
        count: u32::from(n),
        why: "usage limit".into(),
        run: run_id(n),
        at: Timestamp(EPOCH),
    };
    write(store, |tx| tx.set_park(None, &park(1, 10)).unwrap());
    conflict(store, |tx| tx.set_park(None, &park(2, 20)));
    conflict(store, |tx| tx.set_park(Some(&park(3, 30)), &park(2, 20)));
    write(store, |tx| {
        tx.set_park(Some(&park(1, 10)), &park(2, 20)).unwrap();
        let elsewhere = Park {
            host: HostId::new("host-two"),
            ..park(4, 40)
        };
        tx.set_park(None, &elsewhere).unwrap();
        tx.clear_park(&AgentName::known("codex"), &host).unwrap();
    });
    read(store, |tx| {
        assert_eq!(tx.park(&agent(), &host).unwrap(), Some(park(2, 20)));
        assert_eq!(tx.parks().unwrap().len(), 2);
        let codex = tx.park(&AgentName::known("codex"), &host).unwrap();
        assert_eq!(codex, None);
    });
    write(store, |tx| tx.clear_park(&agent(), &host).unwrap());
    read(store, |tx| {
        assert_eq!(tx.park(&agent(), &host).unwrap(), None);
    });
}
