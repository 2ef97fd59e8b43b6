//! The hook of an agent that asks: it opens a question, waits, and ends itself when nobody needs it any more.
//!
//! Nothing is held open meanwhile but two descriptors. It ends when the question is closed: by an answer, by a later event
//! of its session or another question, when the agent's own files show that it no longer waits, when the agent is gone, and
//! when the time is over. Only an answer makes it print anything.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use tenure_agents::{Adapter, Asked, PersonsAnswer, Report};
use tenure_app::hook_store::HookStore;
use tenure_app::witness::registry;
use tenure_core::id::{NativeId, QuestionId, SessionId};
use tenure_core::ignore::Ignore;
use tenure_core::process::Process;
use tenure_core::session::Doing;
use tenure_core::world::World;
use tenure_host::pidfd::{self, ProcessWatch};
use tenure_host::watch::{WakeCause, Watch};
use tenure_host::{clock, process};

use crate::answers::files::{Closing, QuestionFile, QuestionFiles, Step};

/// How long the log may take to get an answer.
const RECORDING: Duration = Duration::from_secs(5);
/// How often to look if files cannot be watched.
const WITHOUT_INOTIFY: Duration = Duration::from_millis(250);

/// Closes what a session asked before, if this event shows that it goes on. It costs nothing unless the user switched
/// answers on.
pub fn end_questions(store: &HookStore, adapter: &Adapter, report: &Report, process: &Process) {
    if store.offers_answers(adapter.name) && adapter.ends_question(report) {
        let native_id = report.native_id.as_ref().map(NativeId::as_str);
        let files = QuestionFiles::below(store.dir());
        let why = format!("the session went on ({})", report.name);
        close_all(&files, process, native_id, &why);
    }
}

fn close_all(files: &QuestionFiles, agent: &Process, native_id: Option<&str>, why: &str) {
    for (id, question) in files.unclosed() {
        if question.agent.same_as(agent) && question.native_id.as_deref() == native_id {
            files
                .close(&id, &Closing::over(why))
                .ignore("its hook ends by itself");
        }
    }
}

/// An open question, and what its hook needs to wait for the answer.
pub struct Offer {
    files: QuestionFiles,
    id: QuestionId,
    adapter: &'static Adapter,
    event: String,
    asked: Asked,
    agent: Process,
    until: Instant,
}

/// An answer that was recorded, in the agent's own terms.
pub struct Decision {
    files: QuestionFiles,
    id: QuestionId,
    pub said: Value,
}

impl Decision {
    /// Records that the agent has it.
    pub fn sent(&self) {
        self.files
            .mark(&self.id, Step::Sent)
            .ignore("who answered is told that it is not certain");
    }
}

impl Offer {
    /// Opens a question, if the user lets this agent's be answered from elsewhere and this one can be. Another of the same
    /// session is closed by it. A question that cannot be opened is one for the agent's own window.
    pub fn open(
        store: &HookStore,
        adapter: &'static Adapter,
        report: &Report,
        event: &[u8],
        agent: &Process,
        session: SessionId,
    ) -> Option<Self> {
        if !store.offers_answers(adapter.name) {
            return None;
        }
        let asked = adapter.asked(report, event)?;
        let files = QuestionFiles::below(store.dir());
        let machine = store.machine();
        let waiter = process::identify(std::process::id(), machine.observer()).ok()?;
        let id = QuestionId::mint(machine.random());
        let (wait, now) = (store.answer_wait(), clock::wall());
        let native_id = report.native_id.as_ref().map(ToString::to_string);
        let why = "it asks something else now";
        close_all(&files, agent, native_id.as_deref(), why);
        let question = QuestionFile {
            id: id.to_string(),
            session: session.to_string(),
            native_id,
            agent: agent.clone(),
            waiter,
            tool: asked.tool.clone(),
            kind: asked.kind.clone(),
            shown: asked.shown.clone(),
            dir: report.dir.clone().unwrap_or_default(),
            opened_at: now,
            until: now.plus(wait),
        };
        files.open(&id, &question).ok()?;
        Some(Self {
            files,
            id,
            adapter,
            event: report.name.clone(),
            asked,
            agent: agent.clone(),
            until: clock::instant() + wait,
        })
    }

    /// Waits for an answer; none if the agent's own dialog decides.
    pub fn wait(self) -> Option<Decision> {
        let answer = self.answer()?;
        // The file may have been written by another program of this user.
        answer.check(&self.asked.kind).ok()?;
        Some(Decision {
            said: self.adapter.decision(&self.event, &self.asked, &answer),
            files: self.files,
            id: self.id,
        })
    }

    fn answer(&self) -> Option<PersonsAnswer> {
        let agent = ProcessWatch::open(&self.agent);
        let agent: Vec<ProcessWatch> = agent.into_iter().collect();
        let (watch, at_most) = self.watch();
        let (mut has_waited, mut is_gone) = (false, agent.is_empty());
        loop {
            match self.files.closing(&self.id) {
                Some(Closing::Answered { answer, .. }) => {
                    return self.is_recorded(&watch, at_most).then_some(answer);
                }
                Some(Closing::Over { .. }) => return None,
                None => {}
            }
            let left = self.until.saturating_duration_since(clock::instant());
            let doing = registry::entry_of(self.adapter, &self.agent).and_then(|entry| entry.doing);
            let waits = doing.map(|doing| doing == Doing::Waiting);
            has_waited |= waits == Some(true);
            let why = if is_gone || pidfd::is_gone(&self.agent) {
                "its agent is gone"
            } else if left.is_zero() {
                "nobody answered in time"
            } else if has_waited && waits == Some(false) {
                "its agent no longer waits"
            } else {
                let limit = at_most.map_or(left, |most| left.min(most));
                match watch.wait(&agent, Some(limit)) {
                    Ok(WakeCause::Exit) => is_gone = true,
                    Ok(_) => {}
                    Err(_) => return None,
                }
                continue;
            };
            match self.files.close(&self.id, &Closing::over(why)) {
                Ok(true) | Err(_) => return None,
                // An answer came first.
                Ok(false) if is_gone => return None,
                Ok(false) => {}
            }
        }
    }

    /// What wakes it besides its agent's end, and how often it looks without being woken.
    fn watch(&self) -> (Watch, Option<Duration>) {
        let mut watch = Watch::on_nothing();
        let own: PathBuf = self.files.dir().to_owned();
        let theirs = registry::folder_of(self.adapter.name, &self.agent);
        let both: Vec<PathBuf> = std::iter::once(own.clone()).chain(theirs).collect();
        let watches = watch.turn_beside(&both) || watch.turn_beside(&[own]);
        (watch, (!watches).then_some(WITHOUT_INOTIFY))
    }

    /// Whether the log has the answer, which is written before the answer is sent.
    fn is_recorded(&self, watch: &Watch, at_most: Option<Duration>) -> bool {
        let until = clock::instant() + RECORDING;
        loop {
            // First the time: a hook that stood still sends nothing that was given up meanwhile.
            let left = until.saturating_duration_since(clock::instant());
            if left.is_zero() {
                return false;
            }
            if self.files.is_marked(&self.id, Step::Recorded) {
                return true;
            }
            let limit = at_most.map_or(left, |most| left.min(most));
            if watch.wait(&[], Some(limit)).is_err() {
                return false;
            }
        }
    }
}
