//! One of each error of the service, for tests, and the page that shows them.

use std::time::Duration;

use tenure_core::conversation::Elsewhere;
use tenure_core::hint::{For, Hint};
use tenure_core::id::{AgentName, Epoch, JobId, Malformed, NativeId, RunId, SessionId};
use tenure_core::key::Key;
use tenure_core::liveness::Doubt;
use tenure_core::mission::StoredParticipant;
use tenure_core::mission::check::{Against, Fault, participant};
use tenure_core::mission::pointer::{Membership, Pointer, Scope, judge};
use tenure_core::process::Survivor;
use tenure_core::queue::JobState;
use tenure_core::store::StoreError;
use tenure_core::time::Timestamp;
use tenure_service::error::{Error, NoSessionWhy};
use tenure_service::view::{ClaimView, ConversationView};
use tenure_service::{QueueError, RunError};

use crate::output::{CliError, command_line};

/// Errors as people read them. Most are also on the pages that the binary makes; some it makes only if a disk is
/// full, a row is damaged or a container hides a process. With `UPDATE=1` in the environment the page is kept.
#[test]
fn every_error_of_the_service_is_on_its_page() {
    let mut text = String::new();
    for error in errors() {
        text.push_str(&shown(&CliError::from(error)));
    }
    crate::message_page::compare("99-errors", &text);
}

/// An error with every hint, those for people too.
pub(crate) fn shown(error: &CliError) -> String {
    let problem = &error.problem;
    let mut text = String::new();
    let mut lines = problem.lines.iter();
    let first = lines.next().unwrap_or(&problem.message);
    text.push_str(&format!("! error: {first}\n"));
    lines.for_each(|line| text.push_str(&format!("! {line}\n")));
    for hint in &problem.hints {
        let whom = match hint.audience {
            For::Anyone => "",
            For::Person => " (to a person)",
        };
        text.push_str(&format!("! hint{whom}: {}\n", command_line(hint)));
    }
    text.push_str(&format!("exit {} ({})\n\n", error.exit.0, problem.kind));
    text
}

fn faults() -> Vec<Fault> {
    let session = SessionId::mint(0, [1; 10]);
    let row = StoredParticipant {
        mission: "041-login".into(),
        session,
        participant: String::new(),
        role: "developer".into(),
        joined_at: Timestamp(0),
        active_at: Timestamp(0),
        drive: "active".into(),
        focus: None,
        revision: 1,
    };
    let against = Against {
        roles: &[],
        mission_is_known: true,
        handle: "claude-k7qd",
    };
    let mut found = participant(&row, against).expect_err("it has no participant");
    let scopes = [
        Scope::Session(session),
        Scope::Repo("acme/web".into()),
        Scope::User("1000".into()),
    ];
    for scope in scopes {
        let pointer = Pointer {
            scope,
            mission: "041-login".into(),
            at: Timestamp(0),
        };
        found.extend(judge(&pointer, Membership::NotJoined).err());
    }
    found
}

/// One of each.
pub fn errors() -> Vec<Error> {
    let key = || Key::parse("issue:acme/web#42").expect("a key");
    let handle = || "claude-k7qd".to_owned();
    let claim = || {
        Box::new(ClaimView::new(
            &tenure_core::claim::ClaimRecord::unknown(key()),
            None,
        ))
    };
    let store = || "/home/dev/.tenure/tenure.db".to_owned();
    let nobody = [
        NoSessionWhy::NotInside,
        NoSessionWhy::UnregisteredAgent {
            agent: "claude".into(),
            pid: 7,
        },
        NoSessionWhy::EndedHere {
            handle: handle(),
            agent: AgentName::known("claude"),
        },
        NoSessionWhy::BrokenWalk("pid 7 cannot be read".into()),
        NoSessionWhy::Variable("TENURE_SESSION names no session".into()),
    ];
    let stores = [
        StoreError::Conflict,
        StoreError::Busy { store: store() },
        StoreError::Full { store: store() },
        StoreError::Unavailable {
            store: store(),
            why: "permission denied".into(),
        },
        StoreError::over(&store()),
        StoreError::without_shared_memory(&store()),
        StoreError::Interrupted {
            store: "postgres://ann@db.example/work".into(),
            why: "the connection broke (connection reset by peer)".into(),
        },
        StoreError::NotOwner {
            whose: "claude-k7qd belongs to the database role ann".into(),
        },
        StoreError::Damaged {
            store: store(),
            why: "file is not a database".into(),
        },
        StoreError::LogLost {
            store: store(),
            log: "/home/dev/.tenure/tenure.db-wal".into(),
            how: "is gone".into(),
        },
        StoreError::Replaced { store: store() },
        StoreError::OutcomeUnknown {
            store: "postgres://ann@db.example/work".into(),
            request: "7c1fd2a90be44f21a7c8d1e05b3a6f42-1".into(),
        },
        StoreError::Moved {
            store: store(),
            to: "postgres://ann@db.example/work".into(),
        },
        StoreError::Unfinished {
            store: "postgres://ann@db.example/work".into(),
            from: store(),
        },
        StoreError::InUse {
            store: "postgres://ann@db.example/work".to_owned(),
            clients: "tenure 0.0.9 on laptop".to_owned(),
        },
        StoreError::Unmigrated {
            store: "postgres://ann@db.example/work".into(),
            found: 0,
            known: 1,
        },
        StoreError::TooNew {
            store: store(),
            found: 2,
            known: 1,
            needs: "2.0".into(),
        },
    ];
    let malformed = ["key", "drive", "participant id", "agent name"];
    let mut all: Vec<Error> = nobody.map(|why| Error::NoSession { why }).into();
    all.extend(stores.map(Error::Store));
    all.extend(
        malformed.map(|what| Error::Malformed(Malformed::new(what, "x", "it is too short"))),
    );
    all.extend([
        Error::Usage {
            what: "a session can announce at most 4h of silence".into(),
            hint: Hint::step("use a shorter --for"),
        },
        Error::NotFound {
            what: "mission 041-login does not exist".into(),
            hint: Hint::run("mission", ["list"], "to list all missions"),
        },
        Error::Invalid {
            what: "wp:1 cannot be linked to itself".into(),
            hint: Hint::run(
                "help",
                ["conversation", "link"],
                "for its options and examples",
            ),
        },
        Error::NoSuchSession { name: handle() },
        Error::Ambiguous {
            what: "\"claude\" matches several sessions".into(),
            by_name: true,
            candidates: vec![handle(), "claude-m3xa".to_owned()],
        },
        Error::Superseded {
            handle: handle(),
            life: 1,
        },
        Error::ReasonNeeded { handle: handle() },
        Error::OwnSessionOnly {
            handle: handle(),
            what: "renew its lease",
        },
        Error::PersonOnly {
            what: "kill a session's process",
        },
        Error::NotLive {
            handle: handle(),
            state: "has ended".into(),
        },
        Error::NothingToDismiss {
            handle: handle(),
            state: "has not ended".into(),
        },
        Error::StillRunning {
            handle: handle(),
            pid: 7,
            window_closed: false,
        },
        Error::StillRunning {
            handle: handle(),
            pid: 7,
            window_closed: true,
        },
        Error::CannotTell {
            handle: handle(),
            doubt: Doubt::Unverified,
            key: Some(key()),
        },
        Error::Held {
            key: key(),
            claim: claim(),
        },
        Error::ChangedHands {
            key: key(),
            claim: claim(),
        },
        Error::Overlaps {
            key: key(),
            claim: claim(),
        },
        Error::LeftRunning {
            key: key(),
            handle: handle(),
            survivors: vec![Survivor {
                pid: 7,
                command: "make".into(),
            }],
        },
        Error::MaybeLeftRunning {
            key: key(),
            handle: handle(),
            why: "/proc cannot be read".into(),
        },
        Error::NoneFree {
            count: 2,
            first: Box::new(Error::Held {
                key: key(),
                claim: claim(),
            }),
        },
        Error::TimedOut {
            waited: Duration::from_secs(600),
            why: Box::new(Error::Held {
                key: key(),
                claim: claim(),
            }),
        },
        Error::Suspect {
            key: key(),
            claim: claim(),
            left: Duration::from_secs(15),
        },
        Error::Done {
            key: key(),
            claim: claim(),
        },
        Error::AlreadyHeld {
            key: key(),
            epoch: Epoch(1),
        },
        Error::Free { key: key() },
        Error::Lost {
            key: key(),
            epoch: Epoch(1),
            claim: claim(),
        },
        Error::LostBefore {
            claims: vec![*claim()],
        },
        Error::NoSuchEpoch {
            key: key(),
            now: Epoch(1),
            named: Epoch(2),
        },
        Error::Faulty {
            what: "claude-k7qd".into(),
            faults: faults(),
        },
        Error::NoMission {
            what: "no mission was given and none is active".into(),
            passed_over: faults(),
        },
        Error::Collision {
            mission: "041-login".into(),
            focus: "wp:WP01".into(),
            drivers: vec![handle()],
        },
        Error::Linked {
            item: Key::parse("pr:acme/web#9").expect("a key"),
            root: key(),
        },
        Error::Revised {
            named: 3,
            now: Box::new(conversation()),
        },
    ]);
    all.extend(errors_of_runs().into_iter().map(Error::from));
    all.extend(errors_of_the_queue().into_iter().map(Error::from));
    all
}

fn errors_of_runs() -> Vec<RunError> {
    let run = || RunId::parse("r-k7qd2m4zw9").expect("an id");
    let (agent, item) = (AgentName::known("claude"), Key::parse("issue:acme/web#42"));
    let item = || item.clone().expect("a key");
    let native_id = || NativeId::parse("7f3c").expect("an id");
    let why = || "its environment cannot be read".to_owned();
    vec![
        RunError::InUse {
            agent: agent.clone(),
            item: item(),
            handle: "claude-k7qd".into(),
            state: "live",
            pid: 7,
            dir: "/home/dev/web".into(),
        },
        RunError::Survivors {
            run: run(),
            survivors: vec![Survivor {
                pid: 7,
                command: "make".into(),
            }],
        },
        RunError::SurvivorsUnknown {
            run: run(),
            why: why(),
        },
        RunError::Parked {
            agent: agent.clone(),
            until: Timestamp(0),
            why: "You hit your limit".into(),
        },
        RunError::Elsewhere {
            agent: agent.clone(),
            item: item(),
            place: Elsewhere::AgentHome,
            home: "/home/dev/.claude-work".into(),
        },
        RunError::Unusable {
            agent: agent.clone(),
            item: item(),
            native_id: native_id(),
        },
        RunError::NotFoundLastTime {
            agent,
            item: item(),
            native_id: native_id(),
        },
        RunError::OtherHost { run: run() },
        RunError::CannotTell {
            run: run(),
            why: why(),
        },
    ]
}

fn errors_of_the_queue() -> Vec<QueueError> {
    let job = || JobId::parse("j-k7qd2m4zw9").expect("an id");
    vec![
        QueueError::SeveralJobs {
            name: "j-k".into(),
            candidates: vec!["j-k7qd2m4zw9".into(), "j-k7qdwz4m9c".into()],
        },
        QueueError::WrongState {
            job: job(),
            state: JobState::Begun,
            run: None,
        },
        QueueError::Late { job: job() },
        QueueError::NotYet {
            job: job(),
            why: "claude is parked on this host".into(),
            until: None,
        },
        QueueError::NoSuchDelivery { id: 7 },
    ]
}

/// A conversation that can be resumed.
pub(crate) fn conversation() -> ConversationView {
    ConversationView {
        agent: "claude".into(),
        item: "issue:acme/web#42".into(),
        root: "issue:acme/web#42".into(),
        linked: Vec::new(),
        set_aside: false,
        native_id: Some("7f3c".into()),
        home: None,
        elsewhere: None,
        set_at: None,
        set_by: None,
        set_by_run: None,
        fitness: Some("resume"),
        existence: None,
        run: None,
        closed_at: None,
        revision: 5,
    }
}
