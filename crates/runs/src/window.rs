//! What a person sees who waits for a run: the agent's lines as they arrive, and the end.
//!
//! The window reads the log independently of the runner. Closing it changes nothing: the run
//! continues, and `runs tail` shows the same again. SIGINT asks the run to stop; the window then
//! waits for its end. If the runner dies, the window reports that and follows the agent to its end.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use tenure_core::id::{AgentName, RunId};
use tenure_core::ignore::Ignore;
use tenure_core::run::line::RunLine;
use tenure_core::run::progress::{RunProgress, Totals};
use tenure_host::clock;
use tenure_host::pidfd::ProcessWatch;
use tenure_host::watch::{WakeCause, Watch};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::view::{ProviderWait, RunView};

use super::driver::Driver;
use super::files::RunFiles;
use super::launch::Launched;
use super::log::{Follower, OutputLine};
use super::provider;
use super::settle;
use super::spool::SpooledEnd;
use super::wire::Message;
use tenure_app::open::Context;

/// How often the display is updated while nothing happens.
const SHOWN_EVERY: Duration = Duration::from_secs(1);
/// Why a run stopped that its person interrupted.
const STOPPED_HERE: &str = "stopped with Ctrl-C";
/// How much of the log is read at once.
const CHUNK: usize = 256 << 10;

/// Something to show.
pub enum Update<'a> {
    /// A line of the agent's output.
    Line {
        /// None if it is missing in the log.
        raw: Option<&'a [u8]>,
        /// What it says; none if that was not asked for.
        read: Option<&'a [RunLine]>,
    },
    /// What it is doing now.
    Doing(Doing<'a>),
    FellBack(&'a RunView),
    /// Ctrl-C was pressed: the run is asked to stop.
    Stopping,
    /// A message for a person that cannot wait.
    Note(&'a str),
}

/// What an agent is doing.
#[derive(Debug, Clone, Copy)]
pub struct Doing<'a> {
    /// The running tool, if the agent shows it.
    pub tool: Option<&'a str>,
    pub waiting: Option<&'a ProviderWait>,
    pub elapsed: Duration,
    pub cost: Option<f64>,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct EndedRun {
    pub run: RunView,
    pub answer: Option<String>,
    /// Whether it was stopped here, with Ctrl-C.
    pub was_interrupted: bool,
    /// Notes for a person.
    pub notes: Vec<String>,
}

/// How watching a run ended.
pub enum WindowEnd {
    Ended(Box<EndedRun>),
    /// By this signal; the run continues.
    Signal(i32),
    /// The output is not read any more; the run continues.
    Unread,
}

/// From now on, signals do not end this process; [`follow`] handles them. Called before a person is
/// told that the run began, because they may interrupt it at once.
pub fn signals() -> Result<Watch, Problem> {
    let mut watch = Watch::on_nothing();
    let failed = |error: io::Error| super::runner::cannot("wait", &error);
    watch.catch_signals().map_err(failed)?;
    Ok(watch)
}

/// Follows a run that this process launched. Its lines are read, and what the agent is doing is shown, only on request.
pub fn follow(
    context: &mut Context,
    launched: &mut Launched,
    signals: Watch,
    is_read: bool,
    show: &mut dyn FnMut(Update<'_>) -> bool,
) -> Result<WindowEnd, Problem> {
    let view = context.service().show_run(launched.run.as_str())?.value;
    let mut window = Window::open(context, &view, signals, is_read)?;
    let mut asked = false;
    let runner: Vec<_> = launched.watch.take().into_iter().collect();
    loop {
        if !window.show(show) {
            return Ok(WindowEnd::Unread);
        }
        let is_over = is_over(launched, &runner);
        while let Some(message) = window_message(launched) {
            match message {
                Message::FellBack { run } if !show(Update::FellBack(&run)) => {
                    return Ok(WindowEnd::Unread);
                }
                Message::Ended { end: Some(end) } => window.end = Some(*end),
                _ => {}
            }
        }
        if is_over {
            window.show(show);
            let closed = window.closed(context, launched, view, show)?;
            return Ok(match closed {
                WindowEnd::Ended(ended) => WindowEnd::Ended(Box::new(EndedRun {
                    was_interrupted: asked,
                    ..*ended
                })),
                other => other,
            });
        }
        match window.watch.wait(&runner, Some(window.limit())) {
            Ok(WakeCause::Signal(signal)) if signal == Signal::INT.as_raw() && !asked => {
                asked = true;
                ask_to_stop(context, &launched.run, show);
            }
            Ok(WakeCause::Signal(signal)) => return Ok(WindowEnd::Signal(signal)),
            Ok(_) => {}
            Err(error) => return Err(super::runner::cannot("wait", &error)),
        }
    }
}

/// Records the request and wakes the runner, which does the rest.
fn ask_to_stop(context: &mut Context, run: &RunId, show: &mut dyn FnMut(Update<'_>) -> bool) {
    let why = STOPPED_HERE;
    match context.service().ask_run_to_stop(run.as_str(), why) {
        Ok(asked) => {
            let runner = asked.value.runner.as_ref().and_then(ProcessWatch::open);
            if let Some(runner) = runner {
                runner.signal(Signal::TERM).ignore("it ended meanwhile");
            }
            show(Update::Stopping);
        }
        Err(failure) => {
            show(Update::Note(&failure.error.to_string()));
        }
    }
}

/// The next message, if one has arrived.
fn window_message(launched: &mut Launched) -> Option<Message> {
    if launched.messages.buffer().is_empty() {
        let output = launched.messages.get_ref();
        let mut fds = [PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let ready = poll(&mut fds, Some(&now)).unwrap_or(0);
        if ready == 0 || !fds[0].revents().contains(PollFlags::IN) {
            return None;
        }
    }
    Message::receive(&mut launched.messages)
}

/// Whether the runner has ended; without a descriptor of it, the kernel is asked. A runner that cannot be waited for has
/// been: a process that ignores the ends of its children is not told of them.
fn is_over(launched: &mut Launched, watch: &[ProcessWatch]) -> bool {
    let waits = watch
        .iter()
        .all(|one| one.wait(Duration::ZERO).unwrap_or(true));
    if !watch.is_empty() && !waits {
        return false;
    }
    !matches!(launched.runner.try_wait(), Ok(None))
}

/// Follows any run from the beginning of its log until it ends; its lines are read only on request.
pub fn tail(
    context: &mut Context,
    run: &RunView,
    is_read: bool,
    show: &mut dyn FnMut(Update<'_>) -> bool,
) -> Result<WindowEnd, Problem> {
    let mut window = Window::open(context, run, signals()?, is_read)?;
    let id = RunId::parse(&run.id)?;
    if window.follower.is_none() && run.state == "ended" {
        return Err(no_log(run));
    }
    loop {
        if !window.show(show) {
            return Ok(WindowEnd::Unread);
        }
        let now = settle::one(context, &id)?;
        if now.state == "ended" {
            window.show(show);
            window.follower_end(show);
            return Ok(WindowEnd::Ended(Box::new(ended(None, now))));
        }
        match window.watch.wait(&[], Some(window.limit())) {
            Ok(WakeCause::Signal(signal)) => return Ok(WindowEnd::Signal(signal)),
            Ok(_) => {}
            Err(error) => return Err(super::runner::cannot("wait", &error)),
        }
    }
}

fn no_log(run: &RunView) -> Problem {
    let message = format!("the log of run {} is gone", run.id);
    let hint = Hint::step("set run.keep_for and run.keep_last to keep logs longer");
    Problem::new(Class::NotFound, "not_found", message, hint)
}

struct Window {
    files: RunFiles,
    follower: Option<Follower>,
    /// Set if what the agent is doing is shown.
    driver: Option<Driver>,
    seen: RunProgress,
    watch: Watch,
    began: Instant,
    shown_at: Option<Instant>,
    /// Whether the runner still writes its state next to the log.
    has_runner: bool,
    /// The end, if the runner could not store it next to the log.
    end: Option<SpooledEnd>,
}

impl Window {
    fn open(
        context: &Context,
        run: &RunView,
        mut watch: Watch,
        is_read: bool,
    ) -> Result<Self, Problem> {
        let files = RunFiles::at(run.log.clone().unwrap_or_default());
        let agent = AgentName::parse(&run.agent)?;
        watch.turn_beside(&[files.dir().to_owned()]);
        watch.end_with_reader();
        Ok(Self {
            follower: Follower::open(&files.output()).ok(),
            driver: Driver::of(&context.settings, &agent)
                .ok()
                .filter(|_| is_read),
            files,
            seen: RunProgress::new(Totals::default()),
            watch,
            began: clock::instant(),
            shown_at: None,
            has_runner: true,
            end: None,
        })
    }

    fn limit(&self) -> Duration {
        SHOWN_EVERY
    }

    /// Shows what is new; false if the output is not read any more.
    fn show(&mut self, show: &mut dyn FnMut(Update<'_>) -> bool) -> bool {
        let mut is_read = true;
        let (driver, seen) = (&self.driver, &mut self.seen);
        let mut each = |line: OutputLine<'_>| {
            let line = match line {
                OutputLine::Whole(line) => Some(line),
                OutputLine::Unread => None,
            };
            let read = read_line(driver.as_ref(), line);
            is_read = is_read && show(update(line, read.as_deref()));
            let at = clock::wall();
            let read = read.into_iter().flatten();
            read.for_each(|line| seen.feed(line, at));
        };
        if let Some(follower) = &mut self.follower {
            while follower.follow(CHUNK, &mut each).unwrap_or(false) {}
        }
        is_read && self.show_doing(show)
    }

    fn show_doing(&mut self, show: &mut dyn FnMut(Update<'_>) -> bool) -> bool {
        if self
            .shown_at
            .is_some_and(|at| at.elapsed() < SHOWN_EVERY / 10)
        {
            return true;
        }
        self.shown_at = Some(clock::instant());
        // Some agents report it on standard error, which only the runner reads.
        let by_runner = self.has_runner && self.driver.is_some();
        let told = by_runner.then(|| provider::read(&self.files)).flatten();
        let own = self.seen.waiting().map(|waiting| ProviderWait {
            since: waiting.since,
            why: waiting.why.clone(),
        });
        let waiting = told.or(own);
        show(Update::Doing(Doing {
            tool: self.seen.doing(),
            waiting: waiting.as_ref(),
            elapsed: self.began.elapsed(),
            cost: self.seen.usage().cost,
        }))
    }

    /// Shows an unterminated last line.
    fn follower_end(&mut self, show: &mut dyn FnMut(Update<'_>) -> bool) {
        let driver = self.driver.as_ref();
        if let Some(follower) = &mut self.follower {
            follower.end(&mut |line| {
                if let OutputLine::Whole(line) = line {
                    let read = read_line(driver, Some(line));
                    show(update(Some(line), read.as_deref()));
                }
            });
        }
    }

    /// The runner has ended: returns the end that it stored, or what is known without it.
    fn closed(
        &mut self,
        context: &mut Context,
        launched: &Launched,
        began: RunView,
        show: &mut dyn FnMut(Update<'_>) -> bool,
    ) -> Result<WindowEnd, Problem> {
        self.has_runner = false;
        let mut run = match settle::one(context, &launched.run) {
            // The store does not answer, but the runner has left what there is to tell.
            Err(_) if self.has_end() => began,
            settled => settled?,
        };
        while run.state != "ended" {
            if self.has_end() {
                // The store does not have it yet, but will.
                break;
            }
            show(Update::Note(
                "the runner died; the agent goes on without it",
            ));
            if let Some(closed) = self.follow_agent(context, &launched.run, show)? {
                return Ok(closed);
            }
            run = settle::one(context, &launched.run)?;
        }
        self.follower_end(show);
        let end = self.end.take();
        let end = end.or_else(|| SpooledEnd::read(&self.files).ok().flatten());
        Ok(WindowEnd::Ended(Box::new(ended(end, run))))
    }

    /// Whether the runner has told how the run ended.
    fn has_end(&self) -> bool {
        self.end.is_some() || SpooledEnd::read(&self.files).is_ok_and(|end| end.is_some())
    }

    /// Follows an agent without a runner until it ends.
    fn follow_agent(
        &mut self,
        context: &mut Context,
        id: &RunId,
        show: &mut dyn FnMut(Update<'_>) -> bool,
    ) -> Result<Option<WindowEnd>, Problem> {
        let agent = context.service().run_agent(id)?.value;
        let processes: Vec<_> = agent
            .as_ref()
            .and_then(ProcessWatch::open)
            .into_iter()
            .collect();
        while !processes.is_empty() {
            if !self.show(show) {
                return Ok(Some(WindowEnd::Unread));
            }
            match self.watch.wait(&processes, Some(SHOWN_EVERY)) {
                Ok(WakeCause::Exit) => break,
                Ok(WakeCause::Signal(signal)) => return Ok(Some(WindowEnd::Signal(signal))),
                Ok(_) => {}
                Err(error) => return Err(super::runner::cannot("wait", &error)),
            }
        }
        self.show(show);
        Ok(None)
    }
}

/// What a line says, if that was asked for.
fn read_line(driver: Option<&Driver>, raw: Option<&[u8]>) -> Option<Vec<RunLine>> {
    let driver = driver?;
    Some(raw.map_or_else(Vec::new, |raw| driver.runs().read(raw)))
}

fn update<'a>(raw: Option<&'a [u8]>, read: Option<&'a [RunLine]>) -> Update<'a> {
    Update::Line { raw, read }
}

/// An ended run, with what its runner stored about it.
fn ended(end: Option<SpooledEnd>, run: RunView) -> EndedRun {
    let Some(end) = end else {
        return EndedRun {
            run,
            answer: None,
            was_interrupted: false,
            notes: Vec::new(),
        };
    };
    let mut notes = end.notes;
    if end.dropped > 0 {
        let mebibytes = end.dropped.div_ceil(1 << 20);
        notes.push(format!(
            "{mebibytes} MiB in the middle of the log were dropped"
        ));
    }
    if !end.survivors.is_empty() {
        let pids: Vec<String> = end
            .survivors
            .iter()
            .map(|one| one.pid.to_string())
            .collect();
        notes.push(format!("still running: pid {}", pids.join(", ")));
    }
    let mut run = run;
    if run.state != "ended" {
        // The store is unavailable: show what is known.
        run.state = "ended".to_owned();
        run.outcome = Some(end.outcome);
        run.why = Some(end.why);
        run.exit_code = end.exit_code;
        run.usage = end.usage;
        notes.push("the end is not in the store yet; tenure records it later".to_owned());
    }
    EndedRun {
        run,
        answer: end.answer,
        was_interrupted: false,
        notes,
    }
}
