//! Valid values to put into a store, and a clock that a test controls.

use std::cell::Cell;

use tenure_core::claim::{EndedBy, Hold, HoldEnd, Means};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::{
    AgentName, Epoch, Handle, HostId, JobId, Life, NativeId, RunId, SessionId, SessionToken,
    WorkerRole,
};
use tenure_core::key::Key;
use tenure_core::notice::{Notice, NoticeKind};
use tenure_core::process::{BootId, Process, StartTicks};
use tenure_core::queue::code::JobCode;
use tenure_core::queue::{Caps, Job, JobAsk, JobSpec, JobState, JobWorkdir, Trust};
use tenure_core::run::{Run, Trigger, Usage};
use tenure_core::session::{Closed, ClosedBy, Session, Workdir};
use tenure_core::store::{Store, StoreError, Tx, TxMode};
use tenure_core::time::{Deadline, Era, Now, Timestamp};

/// The wall-clock time at which the tests start.
pub const EPOCH: i64 = 1_700_000_000_000;

/// A clock that advances by one millisecond at each reading.
pub fn clock() -> Box<dyn Fn() -> Now> {
    let asked = Cell::new(0);
    Box::new(move || {
        asked.set(asked.get() + 1);
        Now {
            wall: Timestamp(EPOCH + asked.get()),
            era: era(),
            steady: asked.get(),
        }
    })
}

/// The era of [`clock`].
pub fn era() -> Era {
    Era {
        id: "boot-one".into(),
        private: false,
    }
}

/// The id of the `n`th session.
pub fn id(n: u32) -> SessionId {
    let mut random = [0; 10];
    random[6..].copy_from_slice(&n.to_be_bytes());
    SessionId::mint(EPOCH + i64::from(n), random)
}

/// The `n`th session in its first life.
pub fn token(n: u32) -> SessionToken {
    SessionToken {
        id: id(n),
        life: Life::FIRST,
    }
}

pub fn agent() -> AgentName {
    AgentName::known("claude")
}

pub fn role() -> WorkerRole {
    WorkerRole::parse("reviewer").expect("a role")
}

/// The handle of the `n`th session. Its code has no letter that an id can have.
pub fn handle(n: u32) -> Handle {
    const LETTERS: [char; 10] = ['g', 'h', 'j', 'k', 'm', 'n', 'p', 'q', 'r', 's'];
    let code: String = format!("{n:06}")
        .bytes()
        .map(|digit| LETTERS[usize::from(digit - b'0')])
        .collect();
    Handle::parse(&format!("claude-{code}")).unwrap()
}

pub fn native(text: &str) -> NativeId {
    NativeId::parse(text).unwrap()
}

pub fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

/// A process on the tests' machine.
pub fn process(pid: u32, ticks: u64) -> Process {
    Process {
        host: HostId::new("host-one"),
        boot: BootId {
            id: "boot-one".into(),
            private: false,
        },
        pid_ns: 4_026_531_836,
        pid,
        start: StartTicks {
            ticks,
            shifted: false,
        },
    }
}

/// The `n`th session: open, in its first life, in process 1000 + n.
pub fn session(n: u32) -> Session {
    let at = Timestamp(EPOCH + i64::from(n));
    Session {
        workdir: Workdir {
            dir: format!("/work/{n}"),
            ..Workdir::default()
        },
        process: Some(process(1000 + n, u64::from(n))),
        ..Session::new(id(n), handle(n), agent(), at, lease(60_000))
    }
}

/// What a dispatched job of the samples asks for.
pub fn job_spec() -> JobSpec {
    JobSpec {
        ask: JobAsk::Text("do it".into()),
        workdir: JobWorkdir {
            dir: "/work".into(),
            worktree: false,
        },
        args: Vec::new(),
        env: Vec::new(),
        wrap: Vec::new(),
        exclusive: false,
        fresh: false,
        shares_dir: false,
        timeout_ms: None,
        caps: Caps::default(),
        dispatched: true,
        trusted_repo: false,
        code: JobCode::default(),
    }
}

/// The `n`th job, of an item of its own.
pub fn job(n: u8) -> Job {
    let item = key(&format!("issue:acme/web#{n}"));
    Job {
        id: JobId::mint([n; 16]),
        agent: agent(),
        role: role(),
        root: item.clone(),
        item,
        rule: None,
        trust: Trust::Trusted,
        repo: None,
        spec: job_spec(),
        state: JobState::Queued,
        attempt: 0,
        failures: 0,
        failure: None,
        taken: None,
        run: None,
        parked: None,
        not_before: None,
        by: None,
        created_at: Timestamp(EPOCH + i64::from(n)),
        end: None,
        unpublished: None,
        published: None,
        revision: 1,
    }
}

pub fn run_id(n: u8) -> RunId {
    RunId::mint([n; 16])
}

/// The `n`th run, with its own item, directory and time.
pub fn run(n: u8) -> Run {
    Run {
        timeout: None,
        id: run_id(n),
        agent: agent(),
        role: role(),
        item: key(&format!("issue:acme/web#{n}")),
        root: key(&format!("issue:acme/web#{n}")),
        host: HostId::new("host-one"),
        session: None,
        runner: None,
        before: None,
        intended: None,
        after: None,
        dir: format!("/work/{n}"),
        shares_dir: false,
        exclusive: false,
        trigger: Trigger::Call,
        skill: None,
        prompt_hash: None,
        log: None,
        goes_on: None,
        created_at: Timestamp(EPOCH + i64::from(n)),
        begun_at: None,
        fell_back: false,
        stop: None,
        usage: Usage::default(),
        end: None,
        revision: 0,
    }
}

/// A deadline in the tests' era.
pub fn lease(at: i64) -> Deadline {
    Deadline { era: era(), at }
}

pub fn closed(by: ClosedBy) -> Option<Closed> {
    Some(Closed {
        at: Timestamp(EPOCH + 500),
        by,
        why: "it was time".into(),
        kind: by.usual_kind(),
        dismissed_at: None,
    })
}

/// An open hold of the `n`th session.
pub fn hold(name: &str, epoch: u64, n: u32) -> Hold {
    Hold {
        key: key(name),
        epoch: Epoch(epoch),
        session: id(n),
        life: Life::FIRST,
        request: None,
        means: Means::Claim,
        note: None,
        home: None,
        granted_at: Timestamp(EPOCH),
        taken_from: None,
        ended: None,
    }
}

pub fn end(by: EndedBy) -> HoldEnd {
    HoldEnd {
        at: Timestamp(EPOCH + 700),
        by,
    }
}

/// A notice to the `n`th session.
pub fn notice(n: u32, message: &str) -> Notice {
    Notice {
        id: None,
        to: id(n),
        kind: NoticeKind::Told,
        message: message.into(),
        key: None,
        epoch: None,
        from: None,
        at: Timestamp(EPOCH),
        wakes: None,
        woke_at: None,
    }
}

/// An event about the `n`th session.
pub fn event(n: u32, evidence: &str) -> NewEvent {
    NewEvent {
        kind: EventKind::Registered,
        session: Some(id(n)),
        actor: None,
        key: None,
        epoch: None,
        mechanism: "register",
        evidence: evidence.into(),
        reason: None,
    }
}

/// Runs something in a transaction that is committed.
pub fn write<T>(store: &mut dyn Store, run: impl FnOnce(&mut dyn Tx) -> T) -> T {
    let mut tx = store.begin(TxMode::Write).unwrap();
    let answer = run(&mut *tx);
    tx.commit().unwrap();
    answer
}

/// Runs something in a transaction that is dropped.
pub fn read<T>(store: &mut dyn Store, run: impl FnOnce(&mut dyn Tx) -> T) -> T {
    let mut tx = store.begin(TxMode::Read).unwrap();
    run(&mut *tx)
}

/// Runs something that must fail with a conflict.
pub fn conflict<T: std::fmt::Debug>(
    store: &mut dyn Store,
    run: impl FnOnce(&mut dyn Tx) -> Result<T, StoreError>,
) {
    let mut tx = store.begin(TxMode::Write).unwrap();
    assert_eq!(run(&mut *tx).unwrap_err(), StoreError::Conflict);
}

/// Adds the sessions with these numbers.
pub fn with_sessions(store: &mut dyn Store, numbers: impl IntoIterator<Item = u32>) {
    write(store, |tx| {
        for n in numbers {
            tx.insert_session(&session(n)).unwrap();
        }
    });
}

/// Grants a free key.
pub fn grant(tx: &mut dyn Tx, hold: &Hold) {
    let before = tx.lock_claim(&hold.key).unwrap().epoch;
    tx.insert_hold(hold, before).unwrap();
}
