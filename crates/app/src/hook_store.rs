//! The store for a hook: opened late, bounded in time, and without what only other verbs need.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tenure_core::ignore::Ignore;
use tenure_core::process::CallerFacts;
use tenure_core::settled::{Generation, PlainEvent};
use tenure_core::store::Store;
use tenure_core::world::World;
use tenure_core::write_conflict::GuardMode;
use tenure_host::git::{self, Worktree};
use tenure_host::machine::Machine;
use tenure_host::{caller, clock};
use tenure_service::answer::{Class, Problem};
use tenure_service::{AgentEvent, GuardPolicy, Service};
use tenure_store::sqlite::settled;

use crate::keeper::{self, EventLine, EventRequest, SentEvent, Tells};
use crate::location::{StorePlace, is_absent, machine_of, open_store, state_dir_of, store_place};
use crate::open::Context;
use crate::settings::Settings;
use crate::settings::notify::NotifyChannel;

/// The store of a hook. Until its first use, only its location is known.
pub struct HookStore {
    settings: Settings,
    place: StorePlace,
    machine: Machine,
    facts: CallerFacts,
    until: Instant,
    /// Why the store could not say whether this machine is a copy.
    unsettled: Option<Problem>,
    store: Option<LastStore>,
    /// Whether the process goes on after this event.
    goes_on: bool,
    /// Tells the keeper of this machine to look around when this process ends.
    tells: Option<Tells>,
    /// The event if it is a plain one.
    plain: Option<Plain>,
}

/// A plain event, and what was known before the store was asked.
struct Plain {
    event: PlainEvent,
    /// The generation of the store, or of the keeper that was asked for it.
    generation: Generation,
    /// The file that notes lie beside.
    beside: PathBuf,
}

/// A store that is not closed if the process exits next: the kernel releases locks and memory at once. The store is left
/// as after a kill, which is safe.
struct LastStore {
    store: Option<Box<dyn Store>>,
    goes_on: bool,
}

impl Drop for LastStore {
    fn drop(&mut self) {
        if !self.goes_on {
            std::mem::forget(self.store.take());
        }
    }
}

impl HookStore {
    /// Finds out where the store is and what is visible from here.
    pub fn prepare(settings: Settings, until: Instant) -> Result<Self, Problem> {
        let place = store_place(&settings)?;
        Self::at(settings, place, until)
    }

    /// The same for callers that only read; none if there is no store yet.
    pub fn prepare_existing(until: Instant) -> Result<Option<Self>, Problem> {
        let settings = Settings::of_user()?;
        let place = store_place(&settings)?;
        if is_absent(&place) {
            Ok(None)
        } else {
            Self::at(settings, place, until).map(Some)
        }
    }

    fn at(settings: Settings, place: StorePlace, until: Instant) -> Result<Self, Problem> {
        let unsettled = keeper::settle_host(&place, settings.policy, Some(until)).err();
        let machine = machine_of(&state_dir_of(&place)?)?;
        let facts = caller::variables(machine.observer().clone());
        Ok(Self {
            settings,
            place,
            machine,
            facts,
            until,
            unsettled,
            store: None,
            goes_on: false,
            tells: None,
            plain: None,
        })
    }

    /// The same for a process that handles other events afterwards.
    pub fn going_on(self) -> Self {
        Self {
            goes_on: true,
            ..self
        }
    }

    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Reads the project settings of a directory. Only a start needs them, and they cost time.
    pub fn read_project(&mut self, dir: &str) {
        let Some(worktree) = git::worktree(Path::new(dir)) else {
            return;
        };
        // The user's settings were just read without faults, and a project's faults are ignored.
        if let Ok(settings) = Settings::of_project(Some(&worktree.root)) {
            self.settings = settings;
        }
    }

    /// Whether messages start turns in sessions of this agent.
    pub fn wakes(&self, agent: &str) -> bool {
        self.settings.wake.is_on(agent)
    }

    /// The state directory.
    pub fn dir(&self) -> &Path {
        self.place.dir()
    }

    /// The user's channels for notifications.
    pub fn channels(&self) -> &[NotifyChannel] {
        &self.settings.notify
    }

    /// Whether what this agent asks may be answered from elsewhere.
    pub fn offers_answers(&self, agent: &str) -> bool {
        self.settings.answers.iter().any(|name| name == agent)
    }

    /// How long a question can be answered so.
    pub fn answer_wait(&self) -> Duration {
        self.settings.answer_wait()
    }

    /// Whether a start is answered with a brief.
    pub fn wants_brief(&self) -> bool {
        self.settings.brief
    }

    /// Whether a session's title may be stored.
    pub fn keeps_titles(&self, dir: &str) -> bool {
        self.settings.keeps_titles(Path::new(dir))
    }

    /// The same with everything that a verb has, if there are mirrors to update.
    pub fn with_mirrors(self, dir: &str) -> Option<Context> {
        if self.settings.mirrors.is_empty() {
            return None;
        }
        let worktree = git::worktree(Path::new(dir));
        let root = worktree.as_ref().map(|found| found.root.as_path());
        Some(Context {
            store: self.store?.store.take()?,
            machine: self.machine,
            facts: self.facts,
            settings: Settings::of_project(root).unwrap_or(self.settings),
            witnesses: crate::witness::Witnesses::default(),
            dir: self.place.dir().to_owned(),
            repo: worktree.as_ref().map(Worktree::repo),
            news: None,
            made: None,
            absent: None,
            keeper: None,
            looks_only: false,
        })
    }

    /// The user's policy for tools that write; the settings override the hook's own argument.
    pub fn guard(&self, line: Option<GuardMode>) -> GuardPolicy {
        GuardPolicy {
            mode: self.settings.guard_mode.or(line).unwrap_or_default(),
            require_claim: self.settings.require_claim.clone(),
        }
    }

    /// Whether the store is on a server.
    pub fn is_on_server(&self) -> bool {
        self.place.server().is_some()
    }

    /// Whether the store would have nothing to do for an event, as an earlier hook found. Mirrors are brought up to date
    /// with every event.
    pub fn is_settled(&mut self, event: &AgentEvent) -> bool {
        let (Some(process), Some(repeat)) = (&event.process, event.repeat()) else {
            return false;
        };
        if !self.settings.mirrors.is_empty() {
            return false;
        }
        let boot = &self.machine.observer().boot;
        let (beside, generation) = match &self.place {
            StorePlace::File(file) => (file.clone(), settled::generation(file, &boot.id)),
            StorePlace::Server { .. } => self.line(false).generation(),
        };
        let Some(generation) = generation else {
            return false;
        };
        let says = [repeat.doing.as_deref(), Some(repeat.says.as_str())];
        let event = PlainEvent::new(&process.process, &says);
        let (now, every) = (clock::now(boot), self.settings.policy.beat_every());
        let is_settled = settled::read_note(&beside, &event)
            .is_some_and(|note| event.is_settled(&note, &generation, &now, every));
        self.plain = Some(Plain {
            event,
            generation,
            beside,
        });
        is_settled
    }

    /// The store had nothing to do for the event, and a heartbeat is due only then.
    pub fn settle(&mut self, quiet: Duration) {
        let Some(plain) = self.plain.take() else {
            return;
        };
        let now = clock::now(&self.machine.observer().boot);
        let note = plain.event.note(&plain.generation, &now, quiet);
        settled::write_note(&plain.beside, &plain.event, &note)
            .ignore("the next hook asks the store again");
    }

    /// Lets the keeper of this machine record an event. `waits` is for one whose answer the agent needs.
    pub fn send_event(&self, hook: &str, name: &str, event: &AgentEvent, waits: bool) -> SentEvent {
        let request = EventRequest {
            hook: hook.to_owned(),
            name: name.to_owned(),
            event: event.clone(),
            policy: self.settings.policy,
            until: 0,
            mirrors: !self.settings.mirrors.is_empty(),
        };
        let line = self.line(waits).for_event(event);
        let sent = line.send(request);
        if !matches!(sent, SentEvent::Answered(_)) && event.repeat().is_none() {
            line.unsettle();
        }
        match sent {
            // The keeper may never have seen it, or may be killed before it records it. Twice changes nothing.
            SentEvent::Late | SentEvent::Missed(_) if line.keep_end(event) => {
                SentEvent::Answered(Box::default())
            }
            sent => sent,
        }
    }

    /// Keeps an event that a store on a server did not take, if it is an end; returns whether it is kept.
    pub fn keep_end(&self, event: &AgentEvent, problem: &Problem) -> bool {
        self.is_on_server() && problem.class == Class::Store && self.line(false).keep_end(event)
    }

    /// Tells the keeper that the answer to an event was printed, so that its notices count as delivered.
    pub fn printed(&self, event: &AgentEvent, for_model: bool) -> io::Result<()> {
        let whose = keeper::whose_event(event);
        self.line(false).printed(whose, for_model)
    }

    fn line(&self, waits: bool) -> EventLine<'_> {
        EventLine {
            settings: &self.settings,
            place: &self.place,
            machine: &self.machine,
            until: self.until,
            wait: if waits {
                Duration::MAX
            } else {
                self.settings.hook_wait
            },
        }
    }

    /// Whether writes are blocked while the store is unavailable.
    pub fn closes_on_error(&self) -> bool {
        self.settings.closes_on_error
    }

    /// Waits no longer for a store on a server than the agent should be held up by this event. An end leaves time to keep
    /// it.
    pub fn hurry(&mut self, event: &AgentEvent, waits: bool) {
        self.until = self.line(waits).for_event(event).until;
        if !waits {
            self.until = self.until.min(clock::instant() + self.settings.hook_wait);
        }
    }

    /// The use cases for the agent; the first call opens the store.
    pub fn open(&mut self) -> Result<Service<'_>, Problem> {
        let store = match self.store.take().and_then(|mut last| last.store.take()) {
            Some(store) => store,
            None => {
                if let Some(problem) = self.unsettled.take() {
                    return Err(problem);
                }
                let until = Some(self.until);
                let through = keeper::through(&self.place, &self.machine);
                let mut store = open_store(&self.place, &self.machine, through, until)?.0;
                let policy = self.settings.policy;
                keeper::drain(store.as_mut(), &self.place, &self.machine, policy)?;
                self.tells = keeper::ensure(&self.settings, &self.place, &self.machine);
                store
            }
        };
        let last = self.store.insert(LastStore {
            store: None,
            goes_on: self.goes_on,
        });
        let policy = self.settings.policy;
        let store = last.store.insert(store).as_mut();
        Ok(Service::new(store, &self.machine, &self.facts, policy).until(self.until))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenure_core::agent_event::Happening;
    use tenure_core::end::Terminal;
    use tenure_core::id::HostId;
    use tenure_store::server::PostgresUrl;

    use super::*;

    fn event(what: &Happening) -> AgentEvent {
        let event = json!({
            "what": what, "terminal": Terminal::Open, "dir": "/", "asks_model": false, "attended": false,
            "reaches_model": false, "speaks": false, "wants_brief": false, "briefs_late": false, "wants_recap": false,
        });
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn an_end_leaves_time_to_be_kept_without_a_keeper_too() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::new(HostId::new("host-one")).unwrap();
        let until = clock::instant() + Duration::from_millis(600);
        let mut store = HookStore {
            settings: Settings::default(),
            place: StorePlace::Server {
                url: Box::new(PostgresUrl::parse("postgres://127.0.0.1/work").unwrap()),
                dir: dir.path().to_owned(),
            },
            facts: caller::variables(machine.observer().clone()),
            machine,
            until,
            unsettled: None,
            store: None,
            goes_on: false,
            tells: None,
            plain: None,
        };
        store.hurry(&event(&Happening::Start), true);
        assert_eq!(store.until, until);
        let end = Happening::End {
            ends_worker: true,
            reason: String::new(),
        };
        store.hurry(&event(&end), true);
        assert_eq!(until - store.until, Duration::from_millis(200));
    }
}
