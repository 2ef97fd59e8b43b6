//! The shapes in which answers leave tenure: the same for `--json`, HTTP and MCP.
//!
//! Views are derived from records and what was observed; nothing reads them back. Fields are added, never
//! renamed or removed, within one major version of the envelope (`"v": 1`).

use schemars::JsonSchema;
use serde::Serialize;

use tenure_core::claim::{ClaimRecord, TakenFrom};
use tenure_core::event::Event;
use tenure_core::hint::Hint;
use tenure_core::liveness::Liveness;
use tenure_core::mission::check::Fault;
use tenure_core::mission::pointer::Resolution;
use tenure_core::notice::{Notice, NoticeKind};
use tenure_core::process::Process;
use tenure_core::session::{Doing, Session, Standing, State};
use tenure_core::store::LineageEntry;
use tenure_core::time::{Now, Remaining, Timestamp};

/// A session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SessionView {
    /// Its id, for ever its own.
    pub id: String,
    /// What people call it.
    pub handle: String,
    /// What kind of program it is.
    pub agent: String,
    /// The conversation that it is in now.
    pub native_id: Option<String>,
    /// Every conversation that it had, the oldest first; not in the holder of a claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_ids: Option<Vec<NativeView>>,
    /// `live`, `stalled`, `ended`, `dead` or `unknown`.
    pub state: &'static str,
    /// What that state rests on.
    pub why: String,
    /// `busy`, `waiting` or `idle`, where the agent says so.
    pub activity: Option<&'static str>,
    /// Since when it does that.
    pub activity_since: Option<Timestamp>,
    /// The session whose live conversation it resumed a second time.
    pub twin_of: Option<String>,
    /// The session in whose process tree it was registered.
    pub parent: Option<String>,
    /// What people may call its work.
    pub title: Option<String>,
    /// The directory that it works in.
    pub dir: String,
    /// The repository of that directory.
    pub repo: Option<String>,
    /// The branch that is checked out there.
    pub branch: Option<String>,
    pub process: ProcessView,
    /// How the registration was resolved, in the answer to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registered: Option<&'static str>,
    /// When it first registered.
    pub started_at: Timestamp,
    /// When it was last heard of.
    pub last_seen_at: Timestamp,
    /// Until when it counts as living where nobody can tell; none where clocks cannot be compared.
    pub lease_until: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// Why it ended.
    pub end_reason: Option<String>,
    /// What it holds; not in the holder of a claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claims: Option<Vec<HeldView>>,
    /// What it waits for; not in the holder of a claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<Vec<WaitView>>,
    /// Files that its tools wrote lately, the newest first; in a status only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrote: Option<Vec<WroteView>>,
}

/// A file that a session wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WroteView {
    /// The file, by its whole path.
    pub path: String,
    /// When last.
    pub at: Timestamp,
}

/// A key that a session waits for, or a session that waits for a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WaitView {
    pub key: String,
    /// The waiting session's handle; none for a command that becomes a session with the grant.
    pub session: Option<String>,
    /// The waiting process.
    pub pid: u32,
    pub since: Timestamp,
}

/// One conversation of a session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NativeView {
    /// The agent's own id of it.
    pub native_id: String,
    /// Whether the session owns it, or visits another's.
    pub owned: bool,
    /// Since when.
    pub at: Timestamp,
}

/// A session's process.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProcessView {
    /// The machine.
    pub host_id: Option<String>,
    pub boot_id: Option<String>,
    /// The pid namespace.
    pub pid_ns: Option<u64>,
    pub pid: Option<u32>,
    /// Clock ticks from boot to its start.
    pub start_ticks: Option<u64>,
    /// Which life of the session it is.
    pub life: u32,
    /// Whether the process was established; without, the session lives by its lease alone.
    pub verified: bool,
}

/// A claim that a session holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeldView {
    pub key: String,
    /// The fencing number.
    pub epoch: u64,
}

/// A claim key.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ClaimView {
    pub key: String,
    /// The fencing number of the newest grant.
    pub epoch: u64,
    /// Who holds it.
    pub holder: Option<Box<SessionView>>,
    /// `held`, `suspect`, `free` or `done`.
    pub state: &'static str,
    /// Since when it is held.
    pub acquired_at: Option<Timestamp>,
    /// What freed it without an act of its holder: `exit` or `lease`.
    pub freed_by: Option<&'static str>,
    /// Until when its holder counts as living where nobody can tell.
    pub lease_until: Option<Timestamp>,
    /// What the holder says that it does with it.
    pub note: Option<String>,
    /// In a grant: whether the caller had it before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub already_held: Option<bool>,
    /// In a grant: from whom it was taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_from: Option<TakenFrom>,
    /// In a guard's yes: the ancestor that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// For how long it is held, for sentences.
    #[serde(skip)]
    pub age: Option<std::time::Duration>,
}

/// Something that the caller is told, at least once.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NoticeView {
    /// Its number: one that was told before is the same notice again.
    pub id: Option<u64>,
    /// What it is about.
    pub kind: NoticeKind,
    /// The sentence.
    pub message: String,
    /// The claim key that it is about.
    pub key: Option<String>,
    /// The epoch that the key has now.
    pub epoch: Option<u64>,
    /// The session that caused it.
    pub from: Option<String>,
    /// When it was recorded.
    pub at: Timestamp,
}

/// One entry of the log.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EventView {
    /// Its place, for `--after`.
    pub cursor: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// What kind of change.
    pub kind: String,
    /// The session that changed.
    pub session: Option<NameView>,
    /// The session that did it, where that is another.
    pub actor: Option<NameView>,
    /// The claim key.
    pub key: Option<String>,
    /// The epoch after the change.
    pub epoch: Option<u64>,
    /// By what means.
    pub mechanism: String,
    pub evidence: String,
    /// The reason that somebody gave.
    pub reason: Option<String>,
}

/// A session's id and handle.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NameView {
    pub id: String,
    pub handle: String,
}

/// How the caller was found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ResolvedView {
    /// `flag`, `ancestry`, `namespace` or `variable`.
    pub by: &'static str,
    /// What that rests on.
    pub evidence: String,
    /// Variables that say otherwise.
    pub disagreements: Vec<String>,
    /// The store that answered.
    pub store: String,
    /// What TENURE_SESSION must be to name this session in its present life.
    pub token: Option<String>,
}

/// A session, and how it is taken up again.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ResumeView {
    pub session: SessionView,
    /// Where to run it.
    pub dir: String,
    /// The command line, word by word; none where this agent has none.
    pub argv: Option<Vec<String>>,
    /// The same for a shell.
    pub command: Option<String>,
    /// Why it cannot be resumed, if it cannot.
    pub problem: Option<String>,
}

/// A session in a mission.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ParticipantView {
    pub mission: String,
    /// Its id in the mission: a ULID.
    pub participant_id: String,
    pub session: NameView,
    /// What it is in the mission.
    pub role: String,
    /// What it works on: `wp:<id>`, `step:<id>` or none.
    pub focus: Option<String>,
    /// `active` or `inactive`; a session that is gone never drives.
    pub drive: &'static str,
    /// `live`, `stalled`, `ended`, `dead` or `unknown`.
    pub state: &'static str,
    /// What that state rests on.
    pub why: String,
    /// The directory that it works in.
    pub dir: String,
    pub joined_at: Timestamp,
    /// When it was last active, in the mission or otherwise.
    pub last_activity_at: Timestamp,
    /// Others that drive the same focus.
    pub collides_with: Vec<String>,
    /// Counts the changes of its row.
    pub revision: u64,
}

/// A mission in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MissionView {
    pub id: String,
    /// When somebody first joined it.
    pub created_at: Timestamp,
    /// How many take part.
    pub participants: usize,
    /// How many of them are not gone.
    pub live: usize,
    /// How many of those drive something.
    pub driving: usize,
    /// When one of them was last active.
    pub last_activity_at: Option<Timestamp>,
    /// Whether the caller takes part.
    pub joined: bool,
}

/// Which mission is meant, and what decided that.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PointerView {
    /// The mission, if one is meant.
    pub mission: Option<String>,
    /// `flag`, `session`, `repo`, `user` or `none`.
    pub by: &'static str,
    /// What that rests on.
    pub evidence: String,
    /// Pointers that are not followed, and why.
    pub passed_over: Vec<Fault>,
}

impl From<Resolution> for PointerView {
    fn from(found: Resolution) -> Self {
        Self {
            mission: found.mission.map(|id| id.to_string()),
            by: found.by,
            evidence: found.evidence,
            passed_over: found.passed_over,
        }
    }
}

/// Why a key is as it is, and what would change that.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WhyView {
    /// What a claim by the caller would be answered.
    pub answer: String,
    /// The reasons, one a line.
    pub because: Vec<String>,
    /// What would change it, as far as the caller may be told.
    pub hints: Vec<Hint>,
    /// Who waits for it, in order.
    pub waiters: Vec<WaitView>,
}

impl ProcessView {
    fn of(session: &Session) -> Self {
        let process: Option<&Process> = session.process.as_ref();
        Self {
            host_id: process.map(|p| p.host.to_string()),
            boot_id: process.map(|p| p.boot.id.clone()),
            pid_ns: process.map(|p| p.pid_ns),
            pid: process.map(|p| p.pid),
            start_ticks: process.map(|p| p.start.ticks),
            life: session.life.0,
            verified: process.is_some(),
        }
    }
}

/// What a view of a session is made from besides its record.
#[derive(Debug, Clone)]
pub struct Seen<'a> {
    /// Whether its process lives.
    pub liveness: &'a Liveness,
    /// How it stands with its lease.
    pub standing: &'a Standing,
    /// The state that people are shown.
    pub state: State,
    /// What time it is.
    pub now: &'a Now,
}

impl SessionView {
    /// Whether it ended or died, recorded or not.
    pub fn is_over(&self) -> bool {
        self.ended_at.is_some() || self.state == State::Dead.as_str()
    }

    /// Whether it lives and goes on only when a person answers it.
    pub fn waits_for_a_person(&self) -> bool {
        self.state == State::Live.as_str() && self.activity == Some(Doing::Waiting.as_str())
    }

    /// Makes the view of a session.
    pub fn new(
        session: &Session,
        seen: &Seen<'_>,
        lineage: &[LineageEntry],
        claims: Vec<HeldView>,
        waits_for: Vec<WaitView>,
    ) -> Self {
        Self {
            native_ids: Some(lineage.iter().map(NativeView::from).collect()),
            claims: Some(claims),
            waits_for: Some(waits_for),
            ..Self::brief(session, seen)
        }
    }

    /// Makes the view of a session as the holder of a claim.
    pub fn brief(session: &Session, seen: &Seen<'_>) -> Self {
        Self {
            id: session.id.to_string(),
            handle: session.handle.to_string(),
            agent: session.agent.to_string(),
            native_id: session.native_id.as_ref().map(ToString::to_string),
            native_ids: None,
            state: seen.state.as_str(),
            why: state_reason(session, seen),
            activity: session.activity.map(|a| a.doing.as_str()),
            activity_since: session.activity.map(|a| a.since),
            twin_of: session.twin_of.map(|id| id.to_string()),
            parent: session.parent.map(|token| token.id.to_string()),
            title: session.title.clone(),
            dir: session.place.dir.clone(),
            repo: session.place.repo.clone(),
            branch: session.place.branch.clone(),
            process: ProcessView::of(session),
            registered: None,
            started_at: session.started_at,
            last_seen_at: session.seen_at,
            lease_until: lease_end(session, seen.now),
            ended_at: session.closed.as_ref().map(|closed| closed.at),
            end_reason: session.closed.as_ref().map(|closed| closed.why.clone()),
            claims: None,
            waits_for: None,
            wrote: None,
        }
    }
}

/// The lease's end in wall-clock time, for people: as far as now is from the deadline.
pub fn lease_end(session: &Session, now: &Now) -> Option<Timestamp> {
    let millis = |span: std::time::Duration| i64::try_from(span.as_millis()).ok();
    match session.lease.remaining(now) {
        Remaining::Open(left) => Some(Timestamp(now.wall.0.saturating_add(millis(left)?))),
        Remaining::Over(past) => Some(Timestamp(now.wall.0.saturating_sub(millis(past)?))),
        Remaining::CannotTell => None,
    }
}

fn state_reason(session: &Session, seen: &Seen<'_>) -> String {
    use tenure_core::time::Span;
    if let Some(closed) = &session.closed {
        return closed.why.clone();
    }
    match seen.standing {
        Standing::Live => {
            let lives = match &session.process {
                Some(process) => format!("pid {} lives", process.pid),
                None => "it is the caller".into(),
            };
            match seen.state {
                State::Stalled => {
                    let silent = Span(session.seen_at.age_at(seen.now.wall));
                    format!("in one turn and silent for {silent}; {lives}")
                }
                _ => lives,
            }
        }
        Standing::Gone(proof) => proof.to_string(),
        Standing::Trusted {
            doubt,
            left: Some(left),
        } => format!("{doubt}; lease open for {}", Span(*left)),
        Standing::Trusted { doubt, left: None } => format!("{doubt}; its lease cannot be compared"),
        Standing::Suspect { doubt, left } => {
            format!("{doubt}; lease over, free in {}", Span(*left))
        }
        Standing::Expired(doubt) => format!("{doubt}; lease over"),
    }
}

impl From<&LineageEntry> for NativeView {
    fn from(entry: &LineageEntry) -> Self {
        Self {
            native_id: entry.native_id.to_string(),
            owned: entry.owned,
            at: entry.at,
        }
    }
}

impl From<&Notice> for NoticeView {
    fn from(notice: &Notice) -> Self {
        Self {
            id: notice.id.map(|id| id.0),
            kind: notice.kind,
            message: notice.message.clone(),
            key: notice.key.clone(),
            epoch: notice.epoch.map(|epoch| epoch.0),
            from: notice.from.map(|id| id.to_string()),
            at: notice.at,
        }
    }
}

impl ClaimView {
    /// Makes the view of a key; `holder` is the session of its open hold, with how it stands.
    pub fn new(record: &ClaimRecord, holder: Option<(SessionView, &Standing)>) -> Self {
        use tenure_core::claim::EndedBy;
        let suspect = matches!(
            holder,
            Some((_, Standing::Suspect { .. } | Standing::Expired(_)))
        );
        let state = match (&holder, record.is_done()) {
            (Some(_), _) if suspect => "suspect",
            (Some(_), _) => "held",
            (None, true) => "done",
            (None, false) => "free",
        };
        let freed_by = match record.ended_by() {
            Some(EndedBy::Death | EndedBy::End) => Some("exit"),
            Some(EndedBy::Lease) => Some("lease"),
            _ => None,
        };
        let current = record.current();
        Self {
            key: record.key.to_string(),
            epoch: record.epoch.0,
            state,
            acquired_at: current.map(|hold| hold.granted_at),
            freed_by,
            lease_until: holder.as_ref().and_then(|(view, _)| view.lease_until),
            note: current.and_then(|hold| hold.note.clone()),
            holder: holder.map(|(view, _)| Box::new(view)),
            already_held: None,
            taken_from: None,
            via: None,
            age: None,
        }
    }
}

impl EventView {
    /// Makes the view of an event with its sessions' names.
    pub fn new(event: Event, session: Option<NameView>, actor: Option<NameView>) -> Self {
        Self {
            cursor: event.cursor.0,
            at: event.at,
            kind: event.kind,
            session,
            actor,
            key: event.key,
            epoch: event.epoch.map(|epoch| epoch.0),
            mechanism: event.mechanism,
            evidence: event.evidence,
            reason: event.reason,
        }
    }
}
