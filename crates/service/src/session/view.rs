//! The view of a session.

use crate::evidence::BranchSeen;
use schemars::JsonSchema;
use serde::Serialize;
use tenure_core::activity::{self, ShownActivity};
use tenure_core::liveness::Liveness;
use tenure_core::process::{Process, Survivor, Survivors};
use tenure_core::session::{Doing, Session, Standing, State, TitleBy};
use tenure_core::store::LineageEntry;
use tenure_core::time::{Now, Remaining, Timestamp};
use tenure_core::title;
use tenure_core::witness::{TerminalPlace, Testimony};

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SessionView {
    /// Its id, never reused.
    pub id: String,
    /// Its short name for people.
    pub handle: String,
    /// What kind of program it is.
    pub agent: String,
    /// The current conversation.
    pub native_id: Option<String>,
    /// Every conversation that it had, oldest first; omitted in the holder of a claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_ids: Option<Vec<NativeView>>,
    /// Whether its process hosts several conversations; for surfaces, not printed.
    #[serde(skip)]
    pub hosted: bool,
    /// `live`, `stalled`, `ended`, `dead` or `unknown`.
    pub state: &'static str,
    /// The evidence for that state.
    pub why: String,
    /// What it does, if that is known: `busy`, `waiting`, `idle`, `failed`, `limited`, `retrying`, `suspended` or
    /// `starting`.
    pub activity: Option<&'static str>,
    /// Since when.
    pub activity_since: Option<Timestamp>,
    /// Why it failed, is limited or retries, on one line.
    pub activity_why: Option<String>,
    /// Until when it is limited, or when it tries again.
    pub activity_until: Option<Timestamp>,
    /// The source of the activity, and its time.
    pub activity_by: Option<ActivityBy>,
    /// What it waits for a person to answer, on one line.
    pub asks: Option<String>,
    /// Whether a turn ended since a person was last there.
    pub finished: bool,
    /// Why it has its position in a list: `waiting`, `failed`, `limited`, `died_with_work`, `lost_claim`,
    /// `collides`, `stalled`, `retrying`, `suspended`, `finished`, `starting`, `busy`, `idle` or `ended`; only in
    /// lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<&'static str>,
    /// Handles of others that write the same files, work on the same focus or are in the same conversation;
    /// only in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collides_with: Option<Vec<String>>,
    /// Keys that others took from it, until it is told; only in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Vec<String>>,
    /// The session whose live conversation it resumed a second time.
    pub twin_of: Option<String>,
    /// Handles of others that are open in the same conversation; only in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twins: Option<Vec<String>>,
    /// The session in whose process tree it was registered.
    pub parent: Option<String>,
    /// A title for people.
    pub title: Option<String>,
    /// Who chose the title: `person`, `agent`, or `prompt` for its first prompt.
    pub title_by: Option<&'static str>,
    /// The machine that it runs on, if that is not this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The directory that it works in.
    pub dir: String,
    /// The repository of that directory.
    pub repo: Option<String>,
    /// The branch that is checked out there.
    pub branch: Option<String>,
    /// When that branch was last seen, if it could not be read now.
    pub branch_at: Option<Timestamp>,
    /// Where its window is, if that was checked: a tmux pane, a terminal, `no window`.
    pub place: Option<String>,
    pub process: ProcessView,
    /// The pid of its agent's daemon, if its window is gone and the daemon is finishing its turn.
    pub daemon: Option<u32>,
    /// How the registration was resolved; only in the answer to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registered: Option<&'static str>,
    /// When it first registered.
    pub started_at: Timestamp,
    /// When it last reported.
    pub last_seen_at: Timestamp,
    /// Until when it is presumed alive if its process can't be checked; none if the clocks can't be compared.
    pub lease_until: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// Why it ended.
    pub end_reason: Option<String>,
    /// `left` (a person ended it, or its only turn was over), `cut_off` or `moved`.
    pub end_kind: Option<&'static str>,
    /// How to resume it; only in lists, if it was cut off within a day and not dismissed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<CutOffView>,
    /// What it left running; only in `show`, and in lists if it ended or died within a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survivors: Option<Vec<Survivor>>,
    /// Why that list may be incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survivors_unsure: Option<String>,
    /// What it holds; omitted in the holder of a claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claims: Option<Vec<HeldView>>,
    /// What it waits for; omitted in the holder of a claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<Vec<WaitView>>,
    /// What was said last in its conversation; only in `show`, where the agent's own file can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_words: Option<LastWordsView>,
    /// Files that its tools wrote recently, newest first; only in a status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrote: Option<Vec<WroteView>>,
}

/// The source of a session's activity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ActivityBy {
    /// `events`, or the name of the agent's own file.
    pub source: &'static str,
    pub at: Timestamp,
    /// Whether no unreported change is possible since then.
    pub certain: bool,
}

/// What was said last in a conversation. It is read when somebody looks, and stored nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LastWordsView {
    /// What the agent was asked.
    pub prompt: Option<String>,
    /// What it said last.
    pub words: Option<String>,
}

/// How a session's worktree stands against the branch that others build on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangesView {
    /// Files that are changed, staged or untracked.
    pub uncommitted: u64,
    /// Files with a conflict that nobody resolved yet.
    pub conflicts: u64,
    /// The branch that it is compared with.
    pub base: Option<String>,
    /// Commits that the base does not have.
    pub ahead: u64,
    /// Commits that only the base has.
    pub behind: u64,
    /// Files that differ from where it left the base, with what is not committed; and lines of them.
    pub files: u64,
    pub added: u64,
    pub removed: u64,
    /// Whether a branch of a remote has its newest commit, as far as it was fetched; none without a remote.
    pub pushed: Option<bool>,
}

/// A file that a session wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WroteView {
    /// The absolute path of the file.
    pub path: String,
    /// When it was last written.
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
    /// The agent's own id for it.
    pub native_id: String,
    /// Whether the session owns it, or visits another's.
    pub owned: bool,
    /// Since when.
    pub at: Timestamp,
}

/// A session's process.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProcessView {
    pub host_id: Option<String>,
    pub boot_id: Option<String>,
    pub pid_ns: Option<u64>,
    pub pid: Option<u32>,
    /// Clock ticks from boot to its start.
    pub start_ticks: Option<u64>,
    /// Which life of the session it is.
    pub life: u32,
    /// Whether the process was identified; if not, the session depends on its lease alone.
    pub verified: bool,
}

/// A claim that a session holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeldView {
    pub key: String,
    /// The fencing number.
    pub epoch: u64,
}

/// What is left of a session that was cut off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CutOffView {
    /// The command to resume it; none if it cannot be resumed.
    pub command: Option<String>,
    /// Why it cannot be resumed, if so.
    pub problem: Option<String>,
    /// What it held and would be granted again.
    pub held: Vec<HeldView>,
}

/// How the caller was identified.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ResolvedView {
    /// `flag`, `ancestry`, `namespace` or `variable`.
    pub by: &'static str,
    /// The evidence for that.
    pub evidence: String,
    /// Variables that contradict it.
    pub disagreements: Vec<String>,
    /// The store that answered.
    pub store: String,
    /// The value for TENURE_SESSION that names this session in its current life.
    pub token: Option<String>,
}

/// A session, and how to resume it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ResumeView {
    pub session: SessionView,
    /// Where to run the command.
    pub dir: String,
    /// The command line, word by word; none if this agent has none.
    pub argv: Option<Vec<String>>,
    /// The same for a shell.
    pub command: Option<String>,
    /// What it held and would be granted again.
    pub held: Vec<HeldView>,
    /// Why it cannot be resumed, if so.
    pub problem: Option<String>,
    /// The agent's own command that opens it, if a service of the agent keeps it running.
    pub attach: Option<String>,
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

/// What a session's view is built from, besides its record.
#[derive(Debug, Clone)]
pub struct SessionObservation<'a> {
    pub liveness: &'a Liveness,
    /// Its liveness combined with its lease.
    pub standing: &'a Standing,
    /// The state for people.
    pub state: State,
    pub shown: Option<&'a ShownActivity>,
    /// Whether a turn ended since a person was last there.
    pub finished: bool,
    pub branch: BranchSeen,
    /// The process that decided its liveness.
    pub decides: Option<&'a Process>,
    /// What agents and terminals report, if they were asked.
    pub testimony: Option<&'a Testimony>,
    /// The machine that it runs on, if that is not this one.
    pub host: Option<String>,
    pub now: &'a Now,
}

impl SessionView {
    /// The process that was started on its conversation and has sent no event yet, if there is one.
    pub fn starting(&self) -> Option<u32> {
        let is_starting = self.activity == Some(Doing::Starting.as_str());
        self.process.pid.filter(|_| is_starting)
    }

    /// Whether it is alive and waits for a person's answer.
    pub fn waits_for_a_person(&self) -> bool {
        self.state == State::Live.as_str() && self.activity == Some(Doing::Waiting.as_str())
    }

    pub(crate) fn add_survivors(&mut self, left: &Survivors) {
        self.survivors = Some(left.shown());
        self.survivors_unsure.clone_from(&left.doubt);
    }

    pub fn new(
        session: &Session,
        seen: &SessionObservation<'_>,
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

    /// Builds the view of a session as the holder of a claim.
    pub fn brief(session: &Session, seen: &SessionObservation<'_>) -> Self {
        let own = seen
            .testimony
            .and_then(|testimony| testimony.own.as_ref()?.title.as_deref())
            .and_then(|text| title::titled(text, TitleBy::Agent));
        let title = title::shown(session.title.as_ref(), own.as_ref());
        let place = seen
            .testimony
            .and_then(|testimony| testimony.place.as_ref());
        let is_left = *seen.standing == Standing::Live && session.is_left_to(seen.decides);
        let daemon = seen.decides.filter(|_| is_left).map(|daemon| daemon.pid);
        Self {
            id: session.id.to_string(),
            handle: session.handle.to_string(),
            agent: session.agent.to_string(),
            native_id: session.native_id.as_ref().map(ToString::to_string),
            native_ids: None,
            hosted: session.hosted,
            state: seen.state.as_str(),
            why: state_reason(session, seen),
            activity: seen.shown.map(|shown| shown.doing.as_str()),
            activity_since: seen.shown.map(|shown| shown.since),
            activity_why: seen.shown.and_then(|shown| shown.why.clone()),
            activity_until: seen.shown.and_then(|shown| shown.until),
            activity_by: seen.shown.map(|shown| ActivityBy {
                source: shown.source,
                at: shown.since,
                certain: shown.certain,
            }),
            asks: seen.shown.and_then(|shown| shown.asks.clone()),
            finished: seen.finished && seen.state == State::Live,
            rank: None,
            collides_with: None,
            lost: None,
            twin_of: session.twin_of.map(|id| id.to_string()),
            twins: None,
            parent: session.parent.map(|token| token.id.to_string()),
            title: title.map(|title| title.text.clone()),
            title_by: title.map(|title| title.by.as_str()),
            host: seen.host.clone(),
            dir: session.workdir.dir.clone(),
            repo: session.workdir.repo.clone(),
            branch: seen.branch.name.clone(),
            branch_at: seen.branch.at.filter(|_| session.is_open()),
            place: match daemon {
                Some(_) => Some(TerminalPlace::NoWindow.to_string()),
                None => place.map(ToString::to_string),
            },
            process: ProcessView::of(session),
            daemon,
            registered: None,
            started_at: session.started_at,
            last_seen_at: session.seen_at,
            lease_until: lease_end(session, seen.now),
            ended_at: session.closed.as_ref().map(|closed| closed.at),
            end_reason: session.closed.as_ref().map(|closed| closed.why.clone()),
            end_kind: session.closed.as_ref().map(|closed| closed.kind.as_str()),
            resume: None,
            survivors: None,
            survivors_unsure: None,
            last_words: None,
            claims: None,
            waits_for: None,
            wrote: None,
        }
    }
}

/// The end of the lease in wall-clock time, for people: now plus the time left.
pub fn lease_end(session: &Session, now: &Now) -> Option<Timestamp> {
    let millis = |span: std::time::Duration| i64::try_from(span.as_millis()).ok();
    match session.lease.remaining(now) {
        Remaining::Open(left) => Some(Timestamp(now.wall.0.saturating_add(millis(left)?))),
        Remaining::Over(past) => Some(Timestamp(now.wall.0.saturating_sub(millis(past)?))),
        Remaining::CannotTell => None,
    }
}

fn state_reason(session: &Session, seen: &SessionObservation<'_>) -> String {
    use tenure_core::time::Span;
    if let Some(closed) = &session.closed {
        return closed.why.clone();
    }
    match seen.standing {
        Standing::Live => {
            let process = seen.decides.or(session.process.as_ref());
            let mut why = Vec::new();
            if seen.state == State::Stalled {
                let silent = Span(session.seen_at.age_at(seen.now.wall));
                why.push(format!("in a turn, silent for {silent}"));
            }
            why.extend(process.map(|process| lives(session, process)));
            why.extend(seen.shown.map(|shown| evidence(shown, seen.now)));
            why.join("; ")
        }
        Standing::Gone(proof) => proof.to_string(),
        Standing::Trusted {
            doubt,
            left: Some(left),
        } => format!("{doubt}; lease expires in {}", Span(*left)),
        Standing::Trusted { doubt, left: None } => {
            format!("{doubt}; its lease cannot be checked from here")
        }
        Standing::Suspect { doubt, left } => {
            format!("{doubt}; lease expired, free in {}", Span(*left))
        }
        Standing::Expired(doubt) => format!("{doubt}; lease expired"),
    }
}

/// The source of a session's activity, and its age.
fn evidence(shown: &ShownActivity, now: &Now) -> String {
    use tenure_core::time::Span;
    let source = match shown.source {
        activity::EVENTS => "its events",
        own => own,
    };
    let age = Span(shown.since.age_at(now.wall));
    let doing = shown.doing.as_str();
    if shown.certain {
        format!("{doing} according to {source}, {age} ago")
    } else {
        format!(
            "{doing} according to {source}, {age} ago (this agent does not report when that ends)"
        )
    }
}

/// The process that keeps a live session alive.
fn lives(session: &Session, process: &Process) -> String {
    let pid = process.pid;
    match (&session.process, &session.daemon) {
        _ if session.is_left_to(Some(process)) => {
            format!("no window; the daemon is finishing its turn (pid {pid})")
        }
        (_, Some(daemon)) if daemon == process => {
            format!("no window is known; the daemon keeps it alive (pid {pid})")
        }
        _ => format!("pid {pid} is running"),
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

/// A session's id and handle.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NameView {
    pub id: String,
    pub handle: String,
}
