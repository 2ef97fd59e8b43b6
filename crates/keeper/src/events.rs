//! Agents' events, as the keeper records them.
//!
//! A hook sends the whole event with the process of its agent. The keeper checks that process itself, runs the use case
//! and answers. A hook that no longer waits has given its agent an empty answer: then warnings become pending notices in
//! the store, and notices that were not delivered stay pending, so the next event of the session says both. What could
//! not be recorded is counted, and the next event of the same agent is told why. An end has no next event: it goes into
//! the spool.
//!
//! Events of one agent are recorded in the order in which they arrive, each after what was said to the one before it. An
//! event that only says that the agent is still at work, and that the store had nothing to say to, is answered from memory
//! for a beat. The answer says for how long, so that the next hook need not ask. After a failure the store is not asked for
//! a moment, so that a store that hangs holds up no queue of events.
//!
//! *Crash*: an event without an answer is sent again to the next keeper; notices that were not marked are told again.
//! *Clock jump*: a hook's limit is on the boot clock, the rest on the monotonic one. *Other version*: a keeper that does
//! not understand an event refuses it, and makes way if it is the older one.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use tenure_core::agent_event::Happening;
use tenure_core::id::SessionId;
use tenure_core::ignore::Ignore;
use tenure_core::keeper::BootTime;
use tenure_core::notice::{Channel, Notice, Pending};
use tenure_core::policy::Policy;
use tenure_core::process::{Ancestor, CallerFacts, Observer, Process};
use tenure_core::store::{Store, StoreError};
use tenure_core::world::World;
use tenure_host::git::{self, Worktree};
use tenure_host::machine::Machine;
use tenure_host::{caller, clock, process};
use tenure_service::answer::{Class, Problem};
use tenure_service::{AgentEvent, HandledEvent, Repeat, Service};

use super::renewal::{RenewalCommand, SharedState};
use tenure_app::keeper::copied::settle_host;
use tenure_app::keeper::drain::told_first;
use tenure_app::keeper::ended::spool_end;
use tenure_app::keeper::files::KeeperFiles;
use tenure_app::keeper::generation::Generations;
use tenure_app::keeper::through::through_itself;
use tenure_app::keeper::wire::{EventReply, EventRequest, Response, write_line};
use tenure_app::keeper::{is_away, whose_event};
use tenure_app::location::{machine_of, open_store, peeked_state_dir_of};
use tenure_app::mirror::{self, Check};
use tenure_app::open::Context;
use tenure_app::outage;
use tenure_app::settings::Settings;
use tenure_app::store_place::StorePlace;
use tenure_app::witness::Witnesses;

/// How many events are recorded at the same time.
const LANES: usize = 4;
/// How long recording one may take, whether or not its hook still waits.
const RECORDS_WITHIN: Duration = Duration::from_millis(1_400);
/// How long the store is left alone after it did not answer.
const RESTS: Duration = Duration::from_secs(1);
/// How many agents are known at once; those that were silent for longest are forgotten first.
const MAX_AGENTS: usize = 1024;
/// How many different events of one agent are known at once.
const MAX_EVENTS: usize = 16;

/// Turns what came of an event into words; returns the notices among them. The first argument is the hook's agent.
pub type Render = fn(&str, &HandledEvent, &Pending) -> (EventReply, Vec<Notice>);

/// What a lane does next.
enum LaneJob {
    Record(Box<EventRequest>, UnixStream),
    /// The answer to the last event of this agent was printed.
    Printed(String, Channel),
}

/// Passes events on to the threads that record them.
pub struct Events {
    lanes: Vec<Sender<LaneJob>>,
}

/// What every lane needs.
#[derive(Clone)]
pub struct Recording {
    pub place: StorePlace,
    pub machine: Machine,
    pub policy: Policy,
    pub beat: Duration,
    pub shared: SharedState,
    pub commands: Sender<RenewalCommand>,
    pub render: Render,
    pub generations: Generations,
}

impl Events {
    pub fn start(recording: &Recording) -> std::io::Result<Self> {
        let mut lanes = Vec::new();
        for number in 0..LANES {
            let (jobs, received) = mpsc::channel();
            let with = recording.clone();
            let thread = std::thread::Builder::new().name(format!("events {number}"));
            thread.spawn(move || Lane::new(with).run(&received))?;
            lanes.push(jobs);
        }
        Ok(Self { lanes })
    }

    /// Records an event, and answers over its connection.
    pub fn record(&self, request: Box<EventRequest>, stream: UnixStream) {
        self.pass_on(
            &whose_event(&request.event),
            LaneJob::Record(request, stream),
        );
    }

    /// The answer to an agent's last event was printed.
    pub fn printed(&self, whose: String, channel: Channel) {
        self.pass_on(&whose.clone(), LaneJob::Printed(whose, channel));
    }

    fn pass_on(&self, whose: &str, job: LaneJob) {
        let mut hasher = DefaultHasher::new();
        whose.hash(&mut hasher);
        let lanes = u64::try_from(self.lanes.len()).unwrap_or(1);
        let at = usize::try_from(hasher.finish() % lanes).unwrap_or(0);
        self.lanes[at]
            .send(job)
            .ignore("its thread failed. The hook sees that its connection ends");
    }
}

/// What is known of an agent between its events.
#[derive(Debug)]
struct KnownAgent {
    repeats: Repeats,
    /// What the last answer told, if it is not yet certain that it was printed.
    told: Vec<Notice>,
    /// Warnings that came too late and are not in the store yet.
    late: Option<(SessionId, Vec<String>)>,
    /// Why an event was not recorded, if its hook was not told.
    unsaid: bool,
    at: Instant,
}

/// The events of an agent that the store had nothing to say to.
#[derive(Debug, Default)]
struct Repeats {
    doing: Option<String>,
    settled: Vec<(Repeat, Instant)>,
}

impl Repeats {
    /// Whether the event says something new; none stands for one that always does.
    fn is_news(&self, event: Option<&Repeat>) -> bool {
        event.is_none_or(|event| event.doing.is_some() && event.doing != self.doing)
    }

    /// When the store had the event and had nothing to say to it, if that is not too long ago.
    fn settled_at(&mut self, event: Option<&Repeat>, fresh_since: Instant) -> Option<Instant> {
        let Some(event) = event.filter(|event| !self.is_news(Some(event))) else {
            self.doing = event.and_then(|event| event.doing.clone());
            self.settled.clear();
            return None;
        };
        self.settled.retain(|(_, at)| *at >= fresh_since);
        let mut settled = self.settled.iter();
        settled.find(|(known, _)| known == event).map(|(_, at)| *at)
    }

    fn settle(&mut self, event: Repeat, now: Instant) {
        self.settled.retain(|(known, _)| *known != event);
        if self.settled.len() < MAX_EVENTS {
            self.settled.push((event, now));
        }
    }
}

/// A store that did not answer.
struct Silence {
    problem: Problem,
    since: Instant,
    /// How many renewals it had answered.
    answered: u64,
}

/// A thread that records events.
struct Lane {
    with: Recording,
    facts: CallerFacts,
    store: Option<Box<dyn Store>>,
    agents: HashMap<String, KnownAgent>,
    silence: Option<Silence>,
}

impl Lane {
    fn new(with: Recording) -> Self {
        Self {
            facts: caller::variables(with.machine.observer().clone()),
            with,
            store: None,
            agents: HashMap::new(),
            silence: None,
        }
    }

    fn run(mut self, jobs: &Receiver<LaneJob>) {
        for job in jobs {
            match job {
                LaneJob::Record(request, stream) => self.answer(&request, &stream),
                LaneJob::Printed(whose, channel) => self.deliver(&whose, channel),
            }
        }
    }

    fn agent(&mut self, whose: &str) -> &mut KnownAgent {
        let now = clock::instant();
        if self.agents.len() >= MAX_AGENTS && !self.agents.contains_key(whose) {
            let oldest = self.agents.iter().min_by_key(|(_, known)| known.at);
            if let Some(oldest) = oldest.map(|(whose, _)| whose.clone()) {
                self.agents.remove(&oldest);
            }
        }
        let known = self.agents.entry(whose.to_owned());
        let known = known.or_insert_with(|| KnownAgent {
            repeats: Repeats::default(),
            told: Vec::new(),
            late: None,
            unsaid: false,
            at: now,
        });
        known.at = now;
        known
    }

    fn answer(&mut self, request: &EventRequest, stream: &UnixStream) {
        let whose = whose_event(&request.event);
        let repeat = request.event.repeat();
        let now = clock::instant();
        let fresh_since = now.checked_sub(self.with.beat).unwrap_or(now);
        let agent = self.agent(&whose);
        agent.told.clear();
        let unsaid = agent.unsaid;
        let is_news = agent.repeats.is_news(repeat.as_ref());
        let settled = agent.repeats.settled_at(repeat.as_ref(), fresh_since);
        let settled = settled.filter(|_| agent.late.is_none());
        if let Some(problem) = self.silence(unsaid) {
            if self.is_spooled(request, &problem) {
                say(stream, request, &Response::Event(Box::default()));
                return;
            }
            let response = Response::Missed {
                kind: problem.kind,
                message: problem.message,
            };
            let is_said = say(stream, request, &response);
            self.agent(&whose).unsaid = !is_said;
            return;
        }
        if let Some(at) = settled {
            let reply = EventReply {
                quiet: self.quiet(request, at),
                ..EventReply::default()
            };
            say(stream, request, &Response::Event(Box::new(reply)));
            return;
        }
        self.store_late(request);
        match self.record(request) {
            Ok((handled, notices)) => {
                self.silence = None;
                self.agent(&whose).unsaid = false;
                self.reply(request, stream, (repeat, is_news), &handled, &notices);
                if handled.registered.is_some() || handled.changed {
                    self.command();
                }
                self.mirror(request, &handled);
            }
            Err(problem) => self.fail(request, stream, problem),
        }
    }

    /// Says what came of an event. What comes too late is said with the next one.
    fn reply(
        &mut self,
        request: &EventRequest,
        stream: &UnixStream,
        (repeat, is_news): (Option<Repeat>, bool),
        handled: &HandledEvent,
        notices: &Pending,
    ) {
        let (mut reply, told) = (self.with.render)(&request.hook, handled, notices);
        reply.notifies = !told.is_empty();
        let nothing = handled.session.is_some()
            && handled.registered.is_none()
            && !handled.changed
            && reply == EventReply::default();
        reply.session = handled.id;
        let now = clock::instant();
        if is_news || !nothing {
            self.with.generations.raise();
        } else {
            reply.quiet = self.quiet(request, now);
        }
        let is_said = say(stream, request, &Response::Event(Box::new(reply)));
        if !is_said {
            return self.say_later(request, handled);
        }
        let agent = self.agent(&whose_event(&request.event));
        agent.told = told;
        if let Some(repeat) = repeat.filter(|_| nothing) {
            agent.repeats.settle(repeat, now);
        }
    }

    /// How many milliseconds an event that was settled then need not be sent again.
    fn quiet(&self, request: &EventRequest, settled_at: Instant) -> u64 {
        let left = self.with.beat.saturating_sub(settled_at.elapsed());
        let left = left.min(request.policy.beat_every());
        u64::try_from(left.as_millis()).unwrap_or(0)
    }

    fn say_later(&mut self, request: &EventRequest, handled: &HandledEvent) {
        let warnings = handled.advice.warnings.clone();
        if let Some(session) = handled.id.filter(|_| !warnings.is_empty()) {
            self.agent(&whose_event(&request.event)).late = Some((session, warnings));
            self.store_late(request);
        }
    }

    /// Stores the warnings that an agent was not told in time. If the store does not answer, the next event does it.
    fn store_late(&mut self, request: &EventRequest) {
        let whose = whose_event(&request.event);
        let Some((session, warnings)) = self.agent(&whose).late.take() else {
            return;
        };
        let until = clock::instant() + RECORDS_WITHIN;
        let stored = self.service(request.policy).and_then(|service| {
            let stored = service.until(until).warn_later(session, &warnings);
            stored.map_err(Problem::from)
        });
        if stored.is_err() {
            self.agent(&whose).late = Some((session, warnings));
        }
    }

    /// Whether an event that the store did not take is an end, which waits in the spool from now on.
    fn is_spooled(&self, request: &EventRequest, problem: &Problem) -> bool {
        let with = &self.with;
        let files = KeeperFiles::of(
            with.place.dir(),
            &with.place.shown(),
            with.machine.observer(),
        );
        let event = || checked(&request.event, with.machine.observer());
        problem.class == Class::Store && spool_end(&files, &with.machine, &event()).unwrap_or(false)
    }

    /// Spools an end. Any other event that was not recorded is counted, if its hook does not.
    fn fail(&mut self, request: &EventRequest, stream: &UnixStream, problem: Problem) {
        self.with.generations.raise();
        if self.is_spooled(request, &problem) {
            say(stream, request, &Response::Event(Box::default()));
        } else {
            let response = Response::Missed {
                kind: problem.kind.clone(),
                message: problem.message.clone(),
            };
            let is_said = say(stream, request, &response);
            if !is_said {
                outage::count(self.with.place.dir(), request, &problem);
            }
            self.agent(&whose_event(&request.event)).unsaid = !is_said;
        }
        if problem.class == Class::Store {
            self.store = None;
        }
        if is_away(&problem) {
            self.silence = Some(Silence {
                problem,
                since: clock::instant(),
                answered: self.with.shared.lock().answered,
            });
            self.command();
        }
    }

    /// Why the store is not asked now, if so: it did not answer a moment ago, or that was not said yet to an agent.
    fn silence(&self, unsaid: bool) -> Option<Problem> {
        let silence = self.silence.as_ref()?;
        let lasts = self.with.shared.lock().answered == silence.answered;
        let rests = unsaid || silence.since.elapsed() < RESTS;
        (lasts && rests).then(|| silence.problem.clone())
    }

    /// Asks for a renewal, which shows whether the store answers and who is to be watched.
    fn command(&self) {
        self.with
            .commands
            .send(RenewalCommand::Look)
            .ignore("the keeper ends");
    }

    fn record(&mut self, request: &EventRequest) -> Result<(HandledEvent, Pending), Problem> {
        let until = clock::instant() + RECORDS_WITHIN;
        // This machine may get another host id here.
        self.open(until)?;
        let event = checked(&request.event, self.with.machine.observer());
        let handled = self
            .service(request.policy)?
            .until(until)
            .handle_event(&event);
        let answer = handled.map_err(Problem::from)?;
        Ok((answer.value, answer.notices))
    }

    fn open(&mut self, until: Instant) -> Result<(), Problem> {
        if self.store.is_some() {
            return Ok(());
        }
        let with = &mut self.with;
        settle_host(&with.place, with.policy, Some(until))?;
        with.machine = machine_of(&peeked_state_dir_of(&with.place)?)?;
        self.facts = caller::variables(with.machine.observer().clone());
        let through = through_itself(&with.place, &with.machine);
        let store = open_store(&with.place, &with.machine, through, None)?.0;
        let store = told_first(store, &with.place, &with.machine, with.policy, &self.facts)?;
        self.store = Some(store);
        Ok(())
    }

    fn service(&mut self, policy: Policy) -> Result<Service<'_>, Problem> {
        self.open(clock::instant() + RECORDS_WITHIN)?;
        let Some(store) = self.store.as_deref_mut() else {
            return Err(Problem::from(StoreError::Conflict));
        };
        let machine = &self.with.machine;
        Ok(Service::new(store, machine, &self.facts, policy))
    }

    fn deliver(&mut self, whose: &str, channel: Channel) {
        let told = std::mem::take(&mut self.agent(whose).told);
        if told.is_empty() {
            return;
        }
        let policy = self.with.policy;
        let until = clock::instant() + RECORDS_WITHIN;
        let delivered = self.service(policy).and_then(|service| {
            let delivered = service.until(until).delivered(&told, channel);
            delivered.map_err(Problem::from)
        });
        if delivered.is_err() {
            // The next answer tells them again.
            self.store = None;
        }
    }

    /// Brings the files up to date that show sessions to other tools. An event may have changed others than its own
    /// session: it records the deaths that it finds.
    fn mirror(&mut self, request: &EventRequest, handled: &HandledEvent) {
        if !request.mirrors {
            return;
        }
        let worktree = git::worktree(Path::new(&request.event.dir));
        let root = worktree.as_ref().map(|found| found.root.as_path());
        let (Ok(settings), Some(store)) = (Settings::of_project(root), self.store.take()) else {
            return;
        };
        let mut context = Context {
            store,
            machine: self.with.machine.clone(),
            facts: self.facts.clone(),
            settings,
            witnesses: Witnesses::default(),
            dir: self.with.place.dir().to_owned(),
            repo: worktree.as_ref().map(Worktree::repo),
            news: None,
            made: None,
            absent: None,
            keeper: None,
            looks_only: false,
        };
        let until = clock::instant() + RECORDS_WITHIN;
        // What fails is stored, and shown by `tenure ps`.
        mirror::catch_up_until(&mut context, Check::Own(handled.id), until);
        self.store = Some(context.store);
    }
}

/// The event with the processes that run here now. One that does not is unknown, except to an end: the agent may have
/// exited since.
fn checked(event: &AgentEvent, observer: &Observer) -> AgentEvent {
    let ends = matches!(event.what, Happening::End { .. } | Happening::Leaves);
    let mut event = event.clone();
    event.process = event.process.and_then(|found| seen(found, observer, ends));
    if let Some(program) = &mut event.program {
        let above = std::mem::take(&mut program.above).into_iter();
        program.above = above.filter_map(|one| seen(one, observer, ends)).collect();
    }
    event
}

fn seen(found: Ancestor, observer: &Observer, ends: bool) -> Option<Ancestor> {
    let process = Process {
        host: observer.host.clone(),
        boot: observer.boot.clone(),
        pid_ns: observer.pid_ns,
        ..found.process
    };
    let is_here = process::identify(process.pid, observer).is_ok_and(|own| own.same_as(&process));
    (is_here || ends || !observer.proc_is_own).then_some(Ancestor { process, ..found })
}

/// Answers a hook; returns whether it still waits. One whose time is over may be there nevertheless: it learns that its
/// event needs no other keeper.
fn say(mut stream: &UnixStream, request: &EventRequest, response: &Response) -> bool {
    let until = BootTime(Duration::from_millis(request.until));
    let waits = clock::since_boot() < until;
    let response = if waits { response } else { &Response::Accepted };
    write_line(&mut stream, response).is_ok() && waits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(doing: &str, says: &str) -> Repeat {
        Repeat {
            doing: Some(doing.to_owned()),
            says: says.to_owned(),
        }
    }

    #[test]
    fn a_settled_event_is_known_until_the_agent_says_something_else() {
        let now = clock::instant();
        let mut repeats = Repeats::default();
        let (busy, other) = (event("busy", "a"), event("busy", "b"));
        assert!(repeats.is_news(Some(&busy)));
        assert_eq!(repeats.settled_at(Some(&busy), now), None);
        let again = repeats.settled_at(Some(&busy), now);
        assert_eq!(again, None, "it is not settled yet");
        repeats.settle(busy.clone(), now);
        assert_eq!(repeats.settled_at(Some(&busy), now), Some(now));
        assert!(!repeats.is_news(Some(&other)));
        assert_eq!(repeats.settled_at(Some(&other), now), None);
        let again = repeats.settled_at(Some(&busy), now);
        assert_eq!(again, Some(now), "another one changes nothing");
        // Something new, or another activity, ends it.
        for news in [None, Some(event("waiting", "c"))] {
            repeats.settled_at(Some(&busy), now);
            repeats.settle(busy.clone(), now);
            assert!(repeats.is_news(news.as_ref()));
            assert_eq!(repeats.settled_at(news.as_ref(), now), None);
            assert_eq!(repeats.settled_at(Some(&busy), now), None);
        }
    }

    #[test]
    fn a_settled_event_is_good_for_a_beat() {
        let now = clock::instant();
        let mut repeats = Repeats::default();
        let busy = event("busy", "a");
        repeats.settled_at(Some(&busy), now);
        repeats.settle(busy.clone(), now);
        let later = now + Duration::from_secs(1);
        assert_eq!(repeats.settled_at(Some(&busy), later), None);
    }

    #[test]
    fn a_process_counts_only_while_it_runs_here() {
        let observer = Observer {
            host: tenure_core::id::HostId::new("here"),
            boot: tenure_host::boot::boot_id().unwrap(),
            pid_ns: tenure_host::boot::pid_namespace().unwrap(),
            proc_is_own: tenure_host::boot::proc_is_own(),
            shared_store: true,
        };
        if !observer.proc_is_own {
            return;
        }
        let own = process::identify(std::process::id(), &observer).unwrap();
        let found = |ticks: u64| Ancestor {
            process: Process {
                // A hook may not know that its machine is a copy.
                host: tenure_core::id::HostId::new("original"),
                start: tenure_core::process::StartTicks { ticks, ..own.start },
                ..own.clone()
            },
            looks: tenure_core::process::ProcessAppearance::default(),
            leads_terminal: false,
            forked: false,
        };
        let real = seen(found(own.start.ticks), &observer, false);
        assert!(real.is_some_and(|real| real.process.same_as(&own)));
        let another = found(own.start.ticks + 100);
        assert_eq!(seen(another.clone(), &observer, false), None);
        assert!(seen(another, &observer, true).is_some(), "an end");
    }
}
