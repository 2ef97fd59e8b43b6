//! Following an agent from its start to its end.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure_core::conversation::fitness::Existence;
use tenure_core::id::NativeId;
use tenure_core::ignore::Ignore;
use tenure_core::process::Survivor;
use tenure_core::run::end::{Ending, Exit, Start, Stop, judge};
use tenure_core::run::failure::AgentFailure;
use tenure_core::run::fallback::may_fall_back;
use tenure_core::run::line::RunLine;
use tenure_core::run::progress::{RunProgress, Totals};
use tenure_core::time::Span;
use tenure_core::world::World;
use tenure_host::pidfd::ProcessWatch;
use tenure_host::watch::{WakeCause, Watch};
use tenure_host::{clock, pause, running, survivors};
use tenure_service::error::Error;
use tenure_service::view::RunView;
use tenure_service::{Begin, NextProcess};

use super::begin::{Attempt, Begun};
use super::log::OutputLine;
use super::provider::ReportedWait;
use super::runner::Runner;
use super::spool::{self, SpooledEnd};
use super::stop::{LeftRunning, end_survivors};
use super::wire::Message;
use super::{end, existence};

/// How often the store is checked for a request to stop.
const ASKED_EVERY: Duration = Duration::from_secs(5);
/// How many times a run looks for the agent behind a wrapper: the store may be busy, and a process
/// may just be starting.
const LOOKS: u8 = 3;
/// The time between two of these attempts.
const LOOKS_EVERY: Duration = Duration::from_millis(200);
/// How often the output is read if its growth cannot be watched.
const UNWATCHED_EVERY: Duration = Duration::from_millis(50);
/// How long to wait before trying again to record a conversation.
const NAMED_AGAIN: Duration = Duration::from_secs(1);
/// How many bytes of standard error are kept, for its last lines.
const LAST_WORDS: usize = 64 << 10;

pub(super) struct Following {
    pub runner: Runner,
    begun: Begun,
    seen: RunProgress,
    told: ReportedWait,
    last_words: String,
    began: Instant,
    stopping: Option<Stopping>,
    /// The conversation that is recorded in the store.
    recorded: Option<NativeId>,
    /// A conversation that was refused.
    refused: Option<NativeId>,
    tried: Option<Instant>,
    asked: Instant,
    fell_back: bool,
    /// The agent's own process, if a wrapper started it.
    program: Option<ProcessWatch>,
    /// How many more times to look for it.
    looks: u8,
    looked_at: Option<Instant>,
    notes: Vec<String>,
}

/// Why the agent was told to stop, and when it will be killed.
#[derive(Debug)]
struct Stopping {
    how: Option<Stop>,
    why: String,
    kill_at: Option<Instant>,
}

impl Following {
    pub fn new(mut runner: Runner, begun: Begun) -> Self {
        let seen = RunProgress::new(before(&mut runner, &begun));
        Self {
            recorded: begun.begin.resumed().cloned(),
            fell_back: matches!(begun.begin, Begin::InPlaceOf(_)),
            seen,
            told: ReportedWait::default(),
            last_words: String::new(),
            began: clock::instant(),
            stopping: None,
            refused: None,
            tried: None,
            asked: clock::instant(),
            program: None,
            looks: LOOKS,
            looked_at: None,
            notes: Vec::new(),
            runner,
            begun,
        }
    }

    /// Follows the agent, and its successor if the agent did not know its conversation.
    pub fn follow_to_end(&mut self, window: &mut io::Stdout) -> SpooledEnd {
        loop {
            let exit = self.wait_for_exit();
            if exit.failed() {
                self.read_file();
            }
            match self.next_process(exit) {
                Some(run) => {
                    let run = Box::new(run);
                    Message::FellBack { run }.send(window);
                }
                None => return self.end(exit),
            }
        }
    }

    /// Waits for the end of the agent's process.
    fn wait_for_exit(&mut self) -> Exit {
        let mut watch = Watch::on_nothing();
        watch
            .catch_signals()
            .ignore("a signal then ends the runner, and the agent continues");
        let watched = watch.turn_beside(&[self.runner.files.dir().to_owned()])
            && self.begun.output.is_in_file()
            && self.begun.errors.is_in_file();
        let own: Vec<_> = self.begun.agent.watch().into_iter().collect();
        let mut ended = None;
        loop {
            self.read();
            if ended.is_none() {
                ended = self.begun.agent.ended().unwrap_or(Some(Exit::Unknown));
                if ended.is_some() && self.program.is_none() {
                    self.ask_for_program();
                }
            }
            if let Some(exit) = ended.filter(|_| !self.program_runs()) {
                self.read();
                self.read_last_lines();
                self.told.tell(&self.runner.files, None);
                return exit;
            }
            self.told.tell(&self.runner.files, self.seen.waiting());
            self.name();
            self.look_for_program();
            self.stop_if_due();
            self.runner.context.look_after_keeper();
            let mut limit = self.wakes_within();
            let processes = match ended {
                None => own.as_slice(),
                Some(_) => self.program.as_slice(),
            };
            if !watched || processes.is_empty() {
                limit = limit.min(UNWATCHED_EVERY);
            }
            match watch.wait(processes, Some(limit)) {
                Ok(WakeCause::Signal(signal)) => self.signalled(signal),
                Ok(_) => {}
                Err(_) => pause::sleep(UNWATCHED_EVERY),
            }
        }
    }

    /// Whether the agent still runs although the wrapper that started it has exited.
    fn program_runs(&self) -> bool {
        let gone = |program: &ProcessWatch| program.wait(Duration::ZERO).unwrap_or(true);
        self.program.as_ref().is_some_and(|program| !gone(program))
    }

    /// A wrapper may exit before the agent behind it was looked for. The agent's hook has named it then.
    fn ask_for_program(&mut self) {
        let id = self.runner.id.clone();
        let named = self.runner.context.service().run_program(&id);
        let named = named.ok().and_then(|answer| answer.value);
        let own = &self.begun.agent.process;
        let other = named.filter(|program| !program.same_as(own));
        self.program = other.as_ref().and_then(ProcessWatch::open);
    }

    /// Once the agent works, its own process becomes the session's. If a wrapper started it, that
    /// is a different process.
    fn look_for_program(&mut self) {
        let is_early = |at: Instant| at.elapsed() < LOOKS_EVERY;
        if self.looks == 0 || !self.seen.turn_began() || self.looked_at.is_some_and(is_early) {
            return;
        }
        self.looks -= 1;
        self.looked_at = Some(clock::instant());
        let machine = self.runner.context.machine();
        let own = &self.begun.agent.process;
        let below = running::agents(machine.observer()).into_iter();
        let found = below
            .filter(|one| one.agent == self.runner.agent.as_str())
            .filter_map(|one| {
                let chain = machine.chain(one.process.process.pid);
                let mut above = chain.iter().skip(1);
                let depth = above.position(|above| above.process.same_as(own))?;
                Some((depth, chain))
            })
            // The agent's own children may look like it.
            .min_by_key(|(depth, _)| *depth);
        let Some((_, chain)) = found else { return };
        let id = self.runner.id.clone();
        if let Ok(answer) = self.runner.context.service().run_program_is(&id, &chain)
            && answer.value
        {
            let program = chain.first().map(|one| &one.process);
            self.program = program.and_then(ProcessWatch::open);
            self.looks = 0;
        }
    }

    fn read(&mut self) {
        let (runs, seen) = (self.runner.driver.runs(), &mut self.seen);
        let mut each = |line: OutputLine<'_>| {
            let lines = match line {
                OutputLine::Whole(line) => runs.read(line),
                OutputLine::Unread => vec![RunLine::Unreadable],
            };
            let at = clock::wall();
            lines.into_iter().for_each(|line| seen.feed(line, at));
        };
        self.begun.output.follow(&mut each).ignore(
            "it stays in the file, and is read with the next lines or by a later reader of the log",
        );
        let last_words = &mut self.last_words;
        let mut each = |line: OutputLine<'_>| {
            let OutputLine::Whole(line) = line else {
                return;
            };
            let line = String::from_utf8_lossy(line);
            if let Some(said) = runs.read_stderr(&line) {
                self.seen.feed(said, clock::wall());
            }
            keep_last(last_words, &line);
        };
        self.begun.errors.follow(&mut each).ignore("the same");
    }

    /// Reads the incomplete last lines of an agent that has ended.
    fn read_last_lines(&mut self) {
        let (runs, seen) = (self.runner.driver.runs(), &mut self.seen);
        self.begun.output.end_line(&mut |line| {
            if let OutputLine::Whole(line) = line {
                let at = clock::wall();
                runs.read(line)
                    .into_iter()
                    .for_each(|line| seen.feed(line, at));
            }
        });
        let last_words = &mut self.last_words;
        self.begun.errors.end_line(&mut |line| {
            if let OutputLine::Whole(line) = line {
                keep_last(last_words, &String::from_utf8_lossy(line));
            }
        });
    }

    /// Reads the conversation's own file, because some agents report only there why they failed.
    fn read_file(&mut self) {
        if !self.runner.driver.runs().spec().tells_in_file {
            return;
        }
        let id = self.seen.id().or(self.recorded.as_ref());
        let file =
            id.and_then(|id| existence::file(&self.runner.agent, id, &tenure_host::env::var));
        let Some(tail) = file.and_then(|file| tenure_host::read::tail(&file, 1 << 20).ok()) else {
            return;
        };
        let at = clock::wall();
        let lines = self
            .runner
            .driver
            .runs()
            .read_tail(&String::from_utf8_lossy(&tail));
        lines.into_iter().for_each(|line| self.seen.feed(line, at));
    }

    /// Records the conversation that the agent named.
    fn name(&mut self) {
        if let Some(named) = self.seen.id().cloned() {
            self.name_as(named);
        }
    }

    /// Records the conversation id that we chose, if the agent ended before its first line but may
    /// have created it.
    fn name_intended(&mut self) {
        if self.recorded.is_some() || self.seen.id().is_some() {
            return;
        }
        let record = self
            .runner
            .context
            .service()
            .run_record(self.runner.id.as_str());
        let intended = record.ok().and_then(|record| record.value.intended);
        let home = &self.begun.home;
        let is_there = |id: &NativeId| self.runner.looks_for(id, home) == Existence::Present;
        let intended = intended.filter(is_there);
        if let Some(intended) = intended {
            self.name_as(intended);
        }
    }

    fn name_as(&mut self, named: NativeId) {
        // A refused resume may name an id that does not exist.
        let is_certain = self.begun.begin.resumed().is_none() || self.seen.turn_began();
        let is_news =
            self.recorded.as_ref() != Some(&named) && self.refused.as_ref() != Some(&named);
        let is_soon = self
            .tried
            .is_some_and(|tried| tried.elapsed() < NAMED_AGAIN);
        if !is_certain || !is_news || is_soon {
            return;
        }
        let (id, chain) = (&self.runner.id, &self.begun.agent.chain);
        let home = &self.begun.home;
        match self
            .runner
            .context
            .service()
            .run_is_named(id, &named, chain, home)
        {
            Ok(_) => self.recorded = Some(named),
            Err(failure) => match failure.error {
                // Try again later.
                Error::Store(_) => self.tried = Some(clock::instant()),
                refused => {
                    self.notes
                        .push(format!("conversation {named} was not recorded: {refused}"));
                    self.refused = Some(named);
                }
            },
        }
    }

    /// The longest time until the next check.
    fn wakes_within(&self) -> Duration {
        let mut limit = ASKED_EVERY;
        if let Some(Stopping {
            kill_at: Some(at), ..
        }) = &self.stopping
        {
            limit = limit.min(at.saturating_duration_since(clock::instant()));
        }
        if let (Some(timeout), None) = (self.runner.order.timeout(), &self.stopping) {
            limit = limit.min(timeout.saturating_sub(self.began.elapsed()));
        }
        if self.tried.is_some() {
            limit = limit.min(NAMED_AGAIN);
        }
        if self.looks > 0 && self.looked_at.is_some() {
            limit = limit.min(LOOKS_EVERY);
        }
        limit.max(Duration::from_millis(1))
    }

    fn stop_if_due(&mut self) {
        if let Some(stopping) = &mut self.stopping {
            if stopping.kill_at.is_some_and(|at| clock::instant() >= at) {
                stopping.kill_at = None;
                self.signal(Signal::KILL);
            }
            return;
        }
        if self.seen.loops() {
            let why = "the agent kept asking the model without a result".to_owned();
            return self.stop(None, why);
        }
        if let Some(most) = self.runner.order.budget_usd
            && let Some(cost) = self.seen.usage().cost.filter(|cost| *cost >= most)
            && self.seen.final_event().is_none()
        {
            let why = format!("it cost ${cost:.2} of a budget of ${most:.2}");
            return self.stop(Some(Stop::Asked), why);
        }
        if let Some(timeout) = self.runner.order.timeout()
            && self.began.elapsed() >= timeout
        {
            let why = format!("it did not end within {}", Span(timeout));
            return self.stop(Some(Stop::TimedOut), why);
        }
        if self.asked.elapsed() >= ASKED_EVERY {
            self.look_for_request();
        }
    }

    /// Stops if someone asked for it.
    fn look_for_request(&mut self) {
        self.asked = clock::instant();
        let id = &self.runner.id;
        if let Ok(answer) = self.runner.context.service().run_stop_asked(id)
            && let Some(why) = answer.value
            && self.stopping.is_none()
        {
            self.stop(Some(Stop::Asked), why);
        }
    }

    /// A signal to the runner is a request to stop. A request in the store is followed by a signal
    /// too.
    fn signalled(&mut self, signal: i32) {
        self.look_for_request();
        if self.stopping.is_none() {
            let name = signal_name(signal);
            self.stop(Some(Stop::Asked), format!("the runner got {name}"));
        }
    }

    /// Records the request, then signals the agent.
    fn stop(&mut self, how: Option<Stop>, why: String) {
        let id = self.runner.id.clone();
        let mut service = self.runner.context.service();
        let recorded = match how {
            Some(Stop::Asked) => service.ask_run_to_stop(id.as_str(), &why).map(drop),
            Some(Stop::TimedOut) => service.run_timed_out(&id, &why).map(drop),
            None => Ok(()),
        };
        recorded.ignore("the end records the same");
        self.signal(self.runner.driver.stop_signal());
        let grace = self.runner.context.settings.stop_grace;
        self.stopping = Some(Stopping {
            how,
            why,
            kill_at: Some(clock::instant() + grace),
        });
    }

    fn signal(&mut self, signal: Signal) {
        match self.begun.agent.ended() {
            Ok(None) => self.begun.agent.signal(signal),
            _ => {
                if let Some(program) = &self.program {
                    program.signal(signal).ignore("it is gone");
                }
            }
        }
    }

    fn ending<'a>(&'a self, exit: Exit, stderr: Option<&'a AgentFailure>) -> Ending<'a> {
        let resumed = self.begun.begin.resumed().is_some() && !self.fell_back;
        let start = if resumed {
            Start::Resumed {
                compacts: self.runner.driver.runs().spec().compacts,
                before: self.begun.left,
            }
        } else {
            Start::Fresh
        };
        Ending {
            seen: &self.seen,
            exit,
            stop: self.stopping.as_ref().and_then(|stopping| stopping.how),
            stderr,
            start,
            parked_before: self.begun.parked,
            now: clock::wall(),
        }
    }

    fn own_error(&self, exit: Exit) -> Option<AgentFailure> {
        match exit {
            Exit::Code(code) if code != 0 => {
                Some(self.runner.driver.runs().own_error(code, &self.last_words))
            }
            _ => None,
        }
    }

    /// Starts the process that continues in a new conversation, if the agent did not know the one
    /// it was given.
    fn next_process(&mut self, exit: Exit) -> Option<RunView> {
        let unknown = self.begun.begin.resumed().cloned()?;
        let own_error = self.own_error(exit);
        let ending = self.ending(exit, own_error.as_ref());
        // The check may take seconds, and most failures are of another kind.
        may_fall_back(&ending, self.fell_back, Existence::Absent).ok()?;
        let existence = self.runner.looks_again(&unknown, &self.begun.home);
        may_fall_back(&ending, self.fell_back, existence).ok()?;
        let begin = Begin::InPlaceOf(unknown.clone());
        let intended = self.runner.intended(&begin);
        let prompt = self.runner.prompt(false).to_owned();
        let attempt = Attempt {
            resume: None,
            intended: intended.as_ref(),
            dir: &self.begun.home.dir,
            prompt: &prompt,
            output: &self.begun.output,
            errors: &self.begun.errors,
        };
        let mut agent = self.runner.start(&attempt).ok()?;
        let next = NextProcess {
            run: self.runner.id.clone(),
            unknown,
            chain: agent.chain.clone(),
            intended,
            prompt_hash: tenure_host::digest::sha256(prompt.as_bytes()),
        };
        let (_, token) = self
            .runner
            .context
            .service()
            .run_falls_back(&next)
            .ok()?
            .value?;
        self.fell_back = true;
        let run = self.runner.release(&mut agent, token).ok()?;
        self.begun.agent = agent;
        self.begun.begin = begin;
        self.program = None;
        self.looks = LOOKS;
        self.looked_at = None;
        self.recorded = None;
        self.seen = RunProgress::new(Totals::NOTHING);
        self.last_words.clear();
        Some(run)
    }

    /// Looks in the agent's own list for a conversation that it did not name before it ended.
    fn find_by_title(&mut self) {
        let began_one = self.begun.begin.resumed().is_none();
        if !began_one || self.recorded.is_some() || self.seen.id().is_some() {
            return;
        }
        let Some(found) = self.runner.titled(&self.begun.home.dir) else {
            return;
        };
        let (id, home) = (&self.runner.id, &self.begun.home);
        let mut service = self.runner.context.service();
        match service.run_was_in(id, &found, home) {
            Ok(_) => self.recorded = Some(found),
            Err(failure) => self.notes.push(format!(
                "conversation {found} was not recorded: {}",
                failure.error
            )),
        }
    }

    fn end(&mut self, exit: Exit) -> SpooledEnd {
        self.name();
        self.name_intended();
        self.find_by_title();
        let own_error = self.own_error(exit);
        let judged = judge(&self.ending(exit, own_error.as_ref()));
        let LeftRunning { ended, left } = self.survivors();
        let doubt = self.runner.doubt_survivors();
        self.name_neighbours();
        let why = self.stopping.as_ref().map(|stopping| stopping.why.as_str());
        let mut spooled = end::spooled(&self.runner.id, &judged, &self.seen, exit, why);
        let resumed = self.begun.begin.resumed().filter(|_| !self.fell_back);
        let after = self.recorded.as_ref().or(resumed);
        spooled.after = after.map(ToString::to_string);
        spooled.survivors = left;
        if !ended.is_empty() {
            let which = |one: &Survivor| format!("pid {} ({})", one.pid, one.command);
            let which: Vec<String> = ended.iter().map(which).collect();
            spooled.adds_why(&format!("ended what it left running: {}", which.join(", ")));
        }
        if let Some(doubt) = doubt {
            spooled.adds_why(&format!(
                "it is unknown whether it left processes running: {doubt}"
            ));
        }
        spooled.notes = std::mem::take(&mut self.notes);
        spooled
    }

    /// Ends what only the run can have started and what still runs, unless the order says to leave it.
    fn survivors(&mut self) -> LeftRunning {
        let id = self.runner.id.clone();
        if self.stopping.is_some() || !self.runner.order.leave {
            return end_survivors(&mut self.runner.context, &id);
        }
        let found = self.runner.context.service().run_processes(&id);
        let found = found.map(|found| found.value).unwrap_or_default();
        let ours = found.ours.into_iter().map(|(_, survivor)| survivor);
        LeftRunning {
            ended: Vec::new(),
            left: ours.chain(found.others).collect(),
        }
    }

    /// Names what came into the directory during the run and works there without its variable: perhaps a process that
    /// the run started and that hid its environment. Nothing depends on it.
    fn name_neighbours(&mut self) {
        let id = self.runner.id.as_str();
        let Ok(run) = self.runner.context.service().run_record(id) else {
            return;
        };
        let Some(runner) = run.value.runner else {
            return;
        };
        let observer = self.runner.context.machine().observer();
        let found = survivors::working_in(Path::new(&run.value.dir), runner.start, observer);
        for Survivor { pid, command, .. } in found {
            self.notes.push(format!(
                "pid {pid} ({command}) began during the run and works in its directory"
            ));
        }
    }

    /// Leaves the log as it stays. What goes on may have the agent's streams.
    pub fn finish_log(self, goes_on: bool) -> (Runner, u64) {
        let kept = self.begun.output.finish(goes_on, &mut |_| {});
        let kept = kept.unwrap_or_default();
        if self.begun.errors.finish(goes_on, &mut |_| {}).is_err() {
            // The log stays as it is.
        }
        (self.runner, kept.dropped)
    }
}

fn keep_last(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
    if text.len() > 2 * LAST_WORDS {
        let mut from = text.len() - LAST_WORDS;
        while !text.is_char_boundary(from) {
            from += 1;
        }
        text.drain(..from);
    }
}

/// What the conversation had used before, at the end of its last run.
fn before(runner: &mut Runner, begun: &Begun) -> Totals {
    match begun.begin.resumed() {
        None => Totals::NOTHING,
        Some(native_id) => spool::totals_before(&mut runner.context, &runner.agent, native_id),
    }
}

fn signal_name(signal: i32) -> String {
    match Signal::from_named_raw(signal) {
        Some(Signal::TERM) => "SIGTERM".to_owned(),
        Some(Signal::INT) => "SIGINT".to_owned(),
        Some(Signal::HUP) => "SIGHUP".to_owned(),
        Some(Signal::QUIT) => "SIGQUIT".to_owned(),
        _ => format!("signal {signal}"),
    }
}
