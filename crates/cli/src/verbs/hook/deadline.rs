//! The time that a hook has, and what is answered when it is over.
//!
//! All waits of a hook share one deadline. The watchdog stands behind it for waits that know no deadline:
//! it answers as for a store that cannot be used, and counts it.
//!
//! Its thread costs as much as the rest of an event with nothing to do. So it starts with the first thing that must not
//! be lost: an event that says more than that the agent is at work, a prepared answer, or the store. Until then a timer
//! ends the process.

use std::cell::{Cell, OnceCell};
use std::panic::RefUnwindSafe;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tenure_agents::{Adapter, EventAnswer, Report};
use tenure_app::outage::TIMED_OUT;
use tenure_core::agent_event::Happening;
use tenure_core::ignore::Ignore;
use tenure_core::process::Ancestor;
use tenure_core::session::Doing;
use tenure_core::write_conflict::GuardMode;
use tenure_host::exit_timer::ExitTimer;
use tenure_host::watchdog::{Deadlines, Late, Watchdog};
use tenure_service::answer::{Class, Hint};

use crate::output::CliError;
use crate::sink;

/// How long an event may take: first what is waited for by itself, then the watchdog's limits. 2 s are promised, 1 s for
/// an end: the rest is for starting the process on a busy machine. The time between `answer` and `end` is for writing the
/// answer and the count.
struct Allowed {
    wait: Duration,
    limits: Deadlines,
}

const ANY: Allowed = Allowed {
    wait: Duration::from_millis(1_400),
    limits: Deadlines {
        answer: Duration::from_millis(1_480),
        end: Duration::from_millis(1_800),
    },
};
/// Agents wait less for an end.
const END: Allowed = Allowed {
    wait: Duration::from_millis(600),
    limits: Deadlines {
        answer: Duration::from_millis(650),
        end: Duration::from_millis(850),
    },
};

/// How long an event may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(1);

/// What a hook is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookStep {
    /// Its settings and the state directory.
    Settings,
    Processes,
    /// The store, and the repository.
    Store,
}

impl HookStep {
    fn words(self) -> &'static str {
        match self {
            HookStep::Settings => "the settings and the state directory",
            HookStep::Processes => "the agent's process",
            HookStep::Store => "the store and the repository",
        }
    }
}

/// What both threads know of the event.
#[derive(Default)]
struct HookProgress {
    report: OnceLock<Report>,
    process: OnceLock<Ancestor>,
    step: AtomicU8,
}

pub struct Deadline {
    began: Instant,
    adapter: &'static Adapter,
    mode: Option<GuardMode>,
    /// Until the watchdog is there; none in a stream, which has the watchdog from the start.
    timer: Option<ExitTimer>,
    dog: OnceCell<Watchdog>,
    limits: Cell<Deadlines>,
    known: Arc<HookProgress>,
}

impl RefUnwindSafe for Deadline {}

impl Deadline {
    pub fn start(adapter: &'static Adapter, mode: Option<GuardMode>) -> Self {
        let timer = ExitTimer::start(ANY.limits.end);
        Self::with(adapter, mode, Some(timer))
    }

    /// The time for one event of a stream, which begins when the event was read.
    pub fn in_stream(adapter: &'static Adapter, mode: Option<GuardMode>) -> Self {
        Self::with(adapter, mode, None)
    }

    fn with(adapter: &'static Adapter, mode: Option<GuardMode>, timer: Option<ExitTimer>) -> Self {
        Self {
            began: tenure_host::clock::instant(),
            adapter,
            mode,
            timer,
            dog: OnceCell::new(),
            limits: Cell::new(ANY.limits),
            known: Arc::new(HookProgress::default()),
        }
    }

    /// Lets the watchdog answer when the time is over.
    pub fn watch(&self) -> &Watchdog {
        self.dog.get_or_init(|| {
            let (adapter, mode) = (self.adapter, self.mode);
            let known = Arc::clone(&self.known);
            let late = move || late(adapter, mode, &known);
            let dog = Watchdog::start(self.began, self.limits.get(), late);
            if let Some(timer) = &self.timer {
                timer.stop();
            }
            dog
        })
    }

    /// Whether other events follow in this process.
    pub fn is_in_stream(&self) -> bool {
        self.timer.is_none()
    }

    /// The event of a stream is over. Does not return if it was late: the process ends.
    pub fn finish(&self) {
        if let Some(dog) = self.dog.get()
            && !dog.stop()
        {
            dog.await_end();
        }
    }

    /// When the event must have arrived.
    pub fn event_until(&self) -> Instant {
        self.began + ARRIVAL
    }

    /// Keeps the event, and when its own waits must be over.
    pub fn received(&self, report: Report) -> (&Report, Instant) {
        let allowed = match report.what {
            Happening::End { .. } | Happening::Leaves => END,
            _ => ANY,
        };
        // Before the limits: who is late then is reported with its event.
        let report = self.known.report.get_or_init(|| report);
        self.limits.set(allowed.limits);
        if says_more(report) || self.is_in_stream() {
            self.watch();
        }
        (report, self.began + allowed.wait)
    }

    /// Keeps whose event it is.
    pub fn found(&self, process: &Ancestor) {
        drop(self.known.process.set(process.clone()));
    }

    pub fn process(&self) -> Option<&Ancestor> {
        self.known.process.get()
    }

    pub fn at(&self, step: HookStep) {
        self.known.step.store(step as u8, Ordering::Relaxed);
    }

    /// Keeps the answer for when nothing better can be said in time.
    pub fn prepare(&self, adapter: &Adapter, report: &Report, answer: &EventAnswer) {
        if let Some(said) = adapter.answer(&report.name, answer) {
            self.watch().prepare(format!("{said}\n").into_bytes());
        }
    }

    /// Answers as prepared, if the hook itself failed.
    pub fn answer_as_prepared(&self) {
        let dog = self.watch();
        if !dog.take_first() {
            // What failed came after the answer, or the time is over.
            return self.answer();
        }
        if let Some(prepared) = dog.prepared() {
            let text = String::from_utf8_lossy(prepared);
            sink::out(text.trim_end()).ignore("there is no other way to answer");
        }
    }

    /// Takes the right to answer. If it is gone, so is the time, and this never returns.
    pub fn answer(&self) {
        let dog = self.watch();
        if !dog.take_answer() {
            dog.await_end();
        }
    }
}

/// Whether an event says more than that the agent is at work, as far as that is known before its tool is looked at.
fn says_more(report: &Report) -> bool {
    report.what != Happening::Other
        || report.doing.is_some_and(|doing| doing != Doing::Busy)
        || report.attended
}

/// Why an event was not recorded in time.
pub fn timed_out(step: HookStep) -> CliError {
    let waited = step.words();
    let message = format!("the hook timed out while waiting for {waited}");
    let hint = Hint::verb("ps", "for details");
    CliError::new(Class::Store, TIMED_OUT, message, hint)
}

/// What is said on stderr if nothing can be answered, because no event came.
const NO_EVENT: &[u8] = b"tenure: the event did not arrive in time\n";

/// The answer when the time is over, on a thread of its own.
fn late(adapter: &Adapter, mode: Option<GuardMode>, known: &HookProgress) -> Late {
    let Some(report) = known.report.get() else {
        return Late {
            stdout: Vec::new(),
            stderr: NO_EVENT.to_vec(),
        };
    };
    let steps = [HookStep::Settings, HookStep::Processes, HookStep::Store];
    let at = usize::from(known.step.load(Ordering::Relaxed));
    let failure = timed_out(steps.get(at).copied().unwrap_or(HookStep::Store));
    let answer = super::missed(adapter, mode, report, known.process.get(), &failure.problem);
    let said = adapter.answer(&report.name, &answer);
    Late {
        stdout: said
            .map(|said| format!("{said}\n").into_bytes())
            .unwrap_or_default(),
        stderr: format!("tenure: {}\n", failure.problem.message).into_bytes(),
    }
}
