//! The threads that talk to forges, apart from the listener and the queue: one per forge with an API.
//!
//! Each has its own connection to the store and handles what waits for its forge: replies, and the sweep. A forge that does not answer delays only its own
//! thread. Of several dispatchers on one store, one has the duty for a forge. *Crash*: only the
//! time of the next sweep is kept in memory; if a thread is killed in the middle of a call, the
//! next one checks the outcome.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenure_core::ignore::Ignore;
use tenure_core::process::Process;
use tenure_core::world::World;
use tenure_host::clock;
use tenure_service::answer::{Class, Hint, Problem};

use super::forge_config::ForgeConfig;
use super::live::LiveConfig;
use super::reply::write_due;
use super::sweep::{Swept, sweep};
use super::wrong::Wrong;
use tenure_app::open::{Context, Purpose, open};

/// How often a thread checks for work, at least.
const AT_LEAST_EVERY: Duration = Duration::from_secs(5);
/// The same while its forge does not answer: pending work is retried when it is due.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// How long after a failure that applies.
const LATELY: Duration = Duration::from_secs(60);
/// How often a failure of a forge is reported.
const TOLD_EVERY: Duration = Duration::from_secs(600);
/// The same for a failure that does not change, such as a missing permission of the token.
const SAME_TOLD_EVERY: Duration = Duration::from_secs(24 * 3600);
/// The first sweeps of several forges start within this time.
const SPREAD: Duration = Duration::from_secs(2);

/// What a thread reports.
#[derive(Debug, Clone)]
pub enum News {
    /// A sweep found something.
    Swept { forge: String, found: Swept },
    /// A forge does not answer as it should; reported at most every ten minutes.
    Failed { forge: String, why: String },
    /// After that, it answers again.
    Answers { forge: String },
}

/// Wakes a thread.
#[derive(Clone, Default)]
struct WakeSignal(Arc<(Mutex<bool>, Condvar)>);

impl WakeSignal {
    fn notify(&self) {
        let mut rung = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        *rung = true;
        self.0.1.notify_one();
    }

    fn wait(&self, limit: Duration) {
        let (lock, condition) = &*self.0;
        let rung = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = condition.wait_timeout_while(rung, limit, |rung| !*rung);
        let (mut rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *rung = false;
    }
}

/// The threads of all forges. They end with the process; their work is resumed after a restart.
pub struct ForgeWorkers {
    /// By the name of the forge.
    signals: BTreeMap<String, WakeSignal>,
    live: LiveConfig,
    news: Receiver<News>,
    tell: Sender<News>,
}

impl ForgeWorkers {
    /// Starts a thread for each forge with an API.
    pub fn start(live: &LiveConfig) -> Result<Self, Problem> {
        let (tell, news) = channel();
        let mut forge_workers = Self {
            signals: BTreeMap::new(),
            live: live.clone(),
            news,
            tell,
        };
        forge_workers.start_new()?;
        Ok(forge_workers)
    }

    /// Starts a thread for each forge that has none. The others notice that the settings were reloaded.
    pub fn start_new(&mut self) -> Result<(), Problem> {
        let config = self.live.now();
        for forge in config.forges.iter().filter(|forge| forge.has_api()) {
            if self.signals.contains_key(&forge.name) {
                continue;
            }
            let signal = WakeSignal::default();
            self.signals.insert(forge.name.clone(), signal.clone());
            let (live, forge, tell) = (self.live.clone(), forge.clone(), self.tell.clone());
            std::thread::Builder::new()
                .name(format!("forge {}", forge.name))
                .spawn(move || work(live, forge, signal, &tell))
                .map_err(|error| NoThread(error.to_string()))?;
        }
        self.wake();
        Ok(())
    }

    /// Wakes all threads, because something changed that they may have to write.
    pub fn wake(&self) {
        self.signals.values().for_each(WakeSignal::notify);
    }

    /// What they reported since the last call.
    pub fn news(&self) -> Vec<News> {
        self.news.try_iter().collect()
    }
}

/// Opens the store here, because it must stay in its thread.
fn work(live: LiveConfig, forge: ForgeConfig, signal: WakeSignal, tell: &Sender<News>) {
    let name = forge.name.clone();
    match ForgeWorker::new(live, forge, signal, tell.clone()) {
        Ok(forge_worker) => forge_worker.work(),
        Err(problem) => {
            let (forge, why) = (name, problem.message);
            tell.send(News::Failed { forge, why })
                .ignore("the dispatcher is ending");
        }
    }
}

struct ForgeWorker {
    context: Context,
    live: LiveConfig,
    forge: ForgeConfig,
    process: Process,
    signal: WakeSignal,
    tell: Sender<News>,
    sweep_at: Instant,
    /// When something last went wrong.
    failed_at: Option<Instant>,
    /// What was last reported about it, and when.
    told: Option<(Instant, String)>,
}

impl ForgeWorker {
    fn new(
        live: LiveConfig,
        forge: ForgeConfig,
        signal: WakeSignal,
        tell: Sender<News>,
    ) -> Result<Self, Problem> {
        let context = open(Purpose::Write)?;
        let observer = context.machine().observer();
        let process = tenure_host::process::identify(std::process::id(), observer)
            .map_err(|error| NoThread(error.to_string()))?;
        // From its name, so that the delays differ and tests do not depend on chance.
        let sum: u32 = forge.name.bytes().map(u32::from).sum();
        let share = f64::from(sum % 16) / 16.0;
        Ok(Self {
            context,
            live,
            forge,
            process,
            signal,
            tell,
            sweep_at: clock::instant() + SPREAD.mul_f64(share),
            failed_at: None,
            told: None,
        })
    }

    fn work(mut self) {
        loop {
            let wrong = self.round().unwrap_or_else(|problem| Wrong {
                failed: Some(problem.message),
                damaged: None,
            });
            let now = clock::instant();
            if wrong.failed.is_some() {
                self.failed_at = Some(now);
            } else if self.told.take_if(|_| wrong.damaged.is_none()).is_some() {
                let forge = self.forge.name.clone();
                self.say(News::Answers { forge });
            }
            // Damage stays until somebody mends it, so it must not hide what else fails.
            if let Some(why) = wrong.failed.or(wrong.damaged) {
                self.complain(why, now);
            }
            let is_lately = |at: Instant| now.duration_since(at) < LATELY;
            let limit = if self.failed_at.is_some_and(is_lately) {
                AFTER_FAILURE
            } else {
                AT_LEAST_EVERY
            };
            let until_sweep = self.sweep_at.saturating_duration_since(now);
            self.signal.wait(limit.min(until_sweep));
        }
    }

    fn complain(&mut self, why: String, now: Instant) {
        let is_told = self.told.as_ref().is_some_and(|(at, last)| {
            let age = now.duration_since(*at);
            age < TOLD_EVERY || *last == why && age < SAME_TOLD_EVERY
        });
        if !is_told {
            self.told = Some((now, why.clone()));
            let forge = self.forge.name.clone();
            self.say(News::Failed { forge, why });
        }
    }

    fn say(&self, news: News) {
        self.tell.send(news).ignore("the dispatcher is ending");
    }

    /// Handles once what waits for the forge.
    fn round(&mut self) -> Result<Wrong, Problem> {
        let config = self.live.now();
        let Some(forge) = config.forge(&self.forge.name) else {
            // It was removed from the settings.
            return Ok(Wrong::default());
        };
        self.forge.clone_from(forge);
        let name = format!("forge {}", self.forge.name);
        let mut service = self.context.service();
        let Some(duty) = service.take_duty(&name, &self.process)?.value else {
            // Another dispatcher has the duty.
            self.sweep_at = self.sweep_at.max(clock::instant() + AT_LEAST_EVERY);
            return Ok(Wrong::default());
        };
        let Some(connection) = self.forge.connection.clone() else {
            return Ok(Wrong::default());
        };
        let api = match connection.api() {
            Ok(api) => api,
            Err(error) => return Ok(Wrong::with(Some(&error), None)),
        };
        let wrong = write_due(&mut self.context, &self.forge, api.as_ref())?;
        if clock::instant() < self.sweep_at {
            return Ok(wrong);
        }
        self.sweep_at = clock::instant() + config.sweep;
        let began = clock::wall();
        let (found, error) = sweep(
            &mut self.context,
            &config,
            &self.forge,
            api.as_ref(),
            duty.swept_at,
        )?;
        if error.is_none() && found.missed.is_empty() {
            let mut service = self.context.service();
            service.note_sweep(&name, &self.process, began)?;
        }
        let missed = found.missed.first().cloned();
        if !found.closed.is_empty() || !found.again.is_empty() {
            self.say(News::Swept {
                forge: self.forge.name.clone(),
                found,
            });
        }
        let swept = Wrong {
            failed: error.map(|error| error.to_string()).or(missed),
            damaged: None,
        };
        Ok(wrong.or(swept))
    }
}

/// No thread can speak with a forge.
#[derive(Debug, thiserror::Error)]
#[error("cannot start a thread for a forge: {0}")]
pub struct NoThread(pub String);

impl From<NoThread> for Problem {
    fn from(error: NoThread) -> Self {
        let hint = Hint::step("end processes that are not needed, then start it again");
        Problem::new(Class::Internal, "internal", error.to_string(), hint)
    }
}
