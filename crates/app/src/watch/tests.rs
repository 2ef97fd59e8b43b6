use std::path::{Path, PathBuf};

use tenure_core::id::{Epoch, HostId};
use tenure_core::key::Key;
use tenure_core::process::{Ancestor, CallerFacts, ProcessAppearance};
use tenure_core::registration::RegistrationSource;
use tenure_core::session::{Session, Workdir};
use tenure_core::store::{Store, StoreError, StoreWatch, Tx, TxMode};
use tenure_core::time::Deadline;
use tenure_host::machine::Machine;
use tenure_service::{ActFor, CheckOutcome, Grant, Pick, RegisterRequest, Subject};
use tenure_store::SqliteStore;
use tenure_testkit::RecordingStore;
use tenure_testkit::conformance::sample;

use super::*;
use crate::settings::Settings;

/// How many times the store is asked for changes before its key becomes free: more often than a
/// waiter asks that is not told to ask again.
const ASKED: usize = 6;

/// A store without watchable files, whose key becomes free during the wait.
struct Remote {
    store: RecordingStore<SqliteStore>,
    file: PathBuf,
    machine: Machine,
    asked: usize,
}

fn connect(file: &Path, machine: &Machine) -> SqliteStore {
    let boot = machine.observer().boot.clone();
    let clock = Box::new(move || tenure_host::clock::now(&boot));
    SqliteStore::open(file, clock).unwrap()
}

impl Store for Remote {
    fn begin_until(
        &mut self,
        mode: TxMode,
        until: Option<Instant>,
    ) -> Result<Box<dyn Tx + '_>, StoreError> {
        self.store.begin_until(mode, until)
    }

    fn locks_rows(&self) -> bool {
        self.store.locks_rows()
    }

    fn changes(&mut self) -> Result<u64, StoreError> {
        self.asked += 1;
        if self.asked == ASKED {
            let mut another = connect(&self.file, &self.machine);
            sample::write(&mut another, |tx| {
                let end = sample::end(tenure_core::claim::EndedBy::Release);
                tx.end_hold(&sample::key("wp:a"), Epoch(1), end).unwrap();
            });
        }
        self.store.changes()
    }

    fn watch(&mut self, about: Option<&[WaitTopic]>) -> StoreWatch {
        let watch = self.store.watch(about);
        assert!(matches!(watch, StoreWatch::Poll { .. }), "{watch:?}");
        watch
    }

    fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    fn location(&self) -> String {
        self.store.location()
    }
}

/// This process as the caller's only ancestor, in a store where another session holds the key.
fn context(state: &Path, file: &Path, is_shared: bool) -> Context {
    let machine = || Machine::new(HostId::new("host-one")).unwrap();
    let observer = machine().observer().clone();
    let mut store = connect(file, &machine());
    sample::write(&mut store, |tx| {
        let now = tx.now().unwrap();
        let holder = Session {
            process: None,
            lease: Deadline {
                era: now.era,
                at: now.steady + 600_000,
            },
            ..sample::session(1)
        };
        tx.insert_session(&holder).unwrap();
        let held = sample::hold("wp:a", 1, 1);
        tx.insert_hold(&held, Epoch::NONE).unwrap();
    });
    let mut store = RecordingStore::new(store);
    store.is_shared = is_shared;
    let own = Ancestor {
        process: tenure_host::process::identify(std::process::id(), &observer).unwrap(),
        looks: ProcessAppearance::default(),
        leads_terminal: false,
        forked: false,
    };
    Context {
        store: Box::new(Remote {
            store,
            file: file.to_owned(),
            machine: machine(),
            asked: 0,
        }),
        machine: machine(),
        facts: CallerFacts {
            observer,
            chain: vec![own],
            chain_broken: None,
            has_terminal: false,
            at_terminal: false,
            session_variable: None,
            native_variables: Vec::new(),
            dir: String::new(),
            repository: None,
            token: None,
        },
        settings: Settings::default(),
        witnesses: crate::witness::Witnesses::default(),
        dir: state.to_owned(),
        repo: None,
        news: None,
        made: None,
        absent: None,
        keeper: None,
        looks_only: false,
    }
}

/// The caller as a session, and what it wants.
fn registered(context: &mut Context) -> ClaimRequest {
    let register = RegisterRequest {
        subject: Subject::Given(context.facts.chain.clone()),
        agent: Some(sample::agent()),
        native_id: None,
        transcript: None,
        source: RegistrationSource::Start,
        hosted: false,
        workdir: Workdir::default(),
        place_named: false,
        title: None,
        parent: None,
        reason: None,
        metadata: Default::default(),
    };
    context.service().register(&register).unwrap();
    ClaimRequest {
        keys: vec![Key::parse("wp:a").unwrap()],
        pick: Pick::Any,
        request: None,
        once: false,
        reopen: false,
        note: None,
        require_quiet: false,
    }
}

fn into_check_result(turn: CheckOutcome) -> CheckResult<Vec<Grant>> {
    match turn {
        CheckOutcome::Granted(grants) => CheckResult::Done(grants),
        CheckOutcome::Wait(wait) => CheckResult::Wait(wait),
    }
}

#[test]
fn a_waiter_is_granted_by_a_store_that_has_no_files_to_watch() {
    let (state, away) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut context = context(state.path(), &away.path().join("tenure.db"), false);
    let request = registered(&mut context);
    let mut watch = Watch::on(&context.service().watch(None));
    // Less than the time after which a waiter checks without being woken.
    let patience = AT_LEAST_EVERY - Duration::from_secs(1);
    let granted = wait_for_turn(
        &mut context,
        &mut watch,
        patience,
        |service, waiting| service.claim_turn(&ActFor::default(), &request, waiting),
        into_check_result,
    );
    let granted = granted.unwrap_or_else(|failed| panic!("{}", failed.problem.message));
    assert_eq!(granted.value[0].epoch, 2);
}

fn unknown() -> Failure {
    let (store, request) = ("the store".to_owned(), Some("r1".to_owned()));
    StoreError::OutcomeUnknown { store, request }.into()
}

#[test]
fn a_waiter_in_line_asks_again_after_a_lost_race_and_after_an_unknown_outcome() {
    let (state, away) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut context = context(state.path(), &away.path().join("tenure.db"), true);
    // Neither of these may be answered with what the session holds already.
    let request = ClaimRequest {
        once: true,
        ..registered(&mut context)
    };
    let request = repeatable(&context, &request);
    let mut watch = Watch::on(&context.service().watch(None));
    let (mut checks, mut is_lost) = (0, false);
    let granted = wait_for_turn(
        &mut context,
        &mut watch,
        Duration::from_secs(60),
        |service, waiting| {
            checks += 1;
            if checks == 2 {
                assert!(waiting.ticket.is_some(), "it is in line");
                return Err(StoreError::Conflict.into());
            }
            let turn = service.claim_turn(&ActFor::default(), &request, waiting)?;
            if matches!(turn.value, CheckOutcome::Granted(_)) && !is_lost {
                is_lost = true;
                return Err(unknown());
            }
            Ok(turn)
        },
        into_check_result,
    );
    let granted = granted.unwrap_or_else(|failed| panic!("{}", failed.problem.message));
    assert!(is_lost);
    // It was granted once, and is told so as if the first answer had arrived.
    assert_eq!(granted.value[0].already_held, Some(false));
    assert_eq!(granted.value[0].epoch, 2);
}

#[test]
fn a_waiter_whose_time_ends_after_an_unknown_outcome_says_that_it_is_unknown() {
    let (state, away) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut context = context(state.path(), &away.path().join("tenure.db"), true);
    let mut watch = Watch::on(&context.service().watch(None));
    let mut checks = 0;
    let failed = wait_for_turn(
        &mut context,
        &mut watch,
        AWAY.0 / 2,
        |_, _| -> Reply<CheckOutcome> {
            checks += 1;
            match checks {
                1 => Err(unknown()),
                _ => Err(StoreError::Conflict.into()),
            }
        },
        into_check_result,
    );
    let failed = failed.expect_err("its time is over");
    assert_eq!(checks, 2);
    assert_eq!(failed.problem.kind, "store_outcome_unknown");
}

#[test]
fn a_wait_that_fails_leaves_the_line() {
    let (state, away) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut context = context(state.path(), &away.path().join("tenure.db"), false);
    let request = registered(&mut context);
    let mut watch = Watch::on(&context.service().watch(None));
    let mut place = None;
    let failed = wait_for_turn(
        &mut context,
        &mut watch,
        AT_LEAST_EVERY,
        |service, waiting| match waiting.ticket {
            None => service.claim_turn(&ActFor::default(), &request, waiting),
            Some(_) => {
                place = waiting.ticket;
                Err(StoreError::Conflict.into())
            }
        },
        into_check_result,
    );
    assert!(failed.is_err() && place.is_some(), "it was in line");
    let why = context.service().why(&request.keys[0]).unwrap();
    assert_eq!(why.value.why.waiters.len(), 0);
}
