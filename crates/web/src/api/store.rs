//! The thread that owns the store: it runs one job after the other. What takes long has a thread of its own.
//!
//! A caller over HTTP is not a process of this machine that could be a session, wherever the server was started: a job
//! sees no ancestors, no variables and no terminal.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use tenure_app::open::{Context, Purpose, open};
use tenure_core::process::CallerFacts;
use tenure_core::token::ByToken;
use tenure_service::answer::{Class, Hint, Problem};
use tokio::sync::{Semaphore, oneshot};

/// How many jobs may wait. Beyond that, callers are told to try again.
const WAITING: usize = 64;
/// How many long jobs run beside the others.
const BESIDE: usize = 4;

type Job = Box<dyn FnOnce(&mut Context) -> bool + Send>;

/// Where jobs are sent.
#[derive(Clone)]
pub struct StoreHandle {
    jobs: SyncSender<Job>,
    beside: Arc<Semaphore>,
}

/// Opens the store for somebody who calls over HTTP.
pub fn open_for_callers() -> Result<Context, Problem> {
    let mut context = open(Purpose::Write)?;
    act_as(&mut context, None);
    Ok(context)
}

/// From now on the caller is this token, or somebody who only looks.
pub fn act_as(context: &mut Context, token: Option<ByToken>) {
    let facts = &mut context.facts;
    *facts = CallerFacts {
        observer: facts.observer.clone(),
        chain: Vec::new(),
        chain_broken: None,
        has_terminal: false,
        at_terminal: false,
        session_variable: None,
        native_variables: Vec::new(),
        dir: String::new(),
        repository: None,
        token,
    };
}

/// Opens the store in its own thread.
pub fn start() -> Result<StoreHandle, Problem> {
    let (send, jobs) = sync_channel::<Job>(WAITING);
    let (tell, opened) = std::sync::mpsc::channel();
    let started = std::thread::Builder::new()
        .name("store".to_owned())
        .spawn(move || {
            let mut context = match open_for_callers() {
                Ok(context) => context,
                Err(problem) => {
                    drop(tell.send(Err(problem)));
                    return;
                }
            };
            drop(tell.send(Ok(())));
            let mut is_broken = false;
            for job in jobs {
                if is_broken && let Ok(fresh) = open_for_callers() {
                    context = fresh;
                }
                act_as(&mut context, None);
                is_broken = job(&mut context);
                if context.has_mirrors() {
                    // What failed is recorded, and shown by `tenure status`.
                    tenure_app::mirror::catch_up(&mut context);
                }
            }
        });
    started.map_err(|error| failed(&error.to_string()))?;
    opened.recv().map_err(|_| ended())??;
    Ok(StoreHandle {
        jobs: send,
        beside: Arc::new(Semaphore::new(BESIDE)),
    })
}

impl StoreHandle {
    /// Runs a job on the store's thread.
    pub async fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Context) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let (reply, answered) = oneshot::channel();
        let job: Job = Box::new(move |context| {
            let answer = job(context);
            let is_broken = is_of_store(&answer);
            drop(reply.send(answer));
            is_broken
        });
        self.jobs.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(_) => busy(),
            TrySendError::Disconnected(_) => ended(),
        })?;
        answered.await.map_err(|_| ended())?
    }

    /// The same for a thread that may wait.
    pub fn ask_blocking<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Context) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let (reply, answered) = std::sync::mpsc::channel();
        let job: Job = Box::new(move |context| {
            let answer = job(context);
            let is_broken = is_of_store(&answer);
            drop(reply.send(answer));
            is_broken
        });
        self.jobs.send(job).map_err(|_| ended())?;
        answered.recv().map_err(|_| ended())?
    }

    /// Runs a job that may take long on a thread of its own.
    pub async fn ask_beside<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Context) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let _place = self.beside.try_acquire().map_err(|_| busy())?;
        let (reply, answered) = oneshot::channel();
        let run = move || {
            let answer = open_for_callers().and_then(|mut context| job(&mut context));
            drop(reply.send(answer));
        };
        let started = std::thread::Builder::new()
            .name("act".to_owned())
            .spawn(run);
        started.map_err(|error| failed(&error.to_string()))?;
        answered
            .await
            .map_err(|_| failed("the act ended without an answer"))?
    }
}

fn is_of_store<T>(answer: &Result<T, Problem>) -> bool {
    answer
        .as_ref()
        .is_err_and(|problem| problem.class == Class::Store)
}

/// Too much is asked at once.
pub fn busy() -> Problem {
    let hint = Hint::step("try again in a moment");
    Problem::new(Class::Store, "busy", "the server has too much to do", hint)
}

/// The thread that owns the store panicked: to say "try again" would be no help.
fn ended() -> Problem {
    failed("the thread that reads the store ended")
}

fn failed(why: &str) -> Problem {
    let message = format!("cannot serve: {why}");
    Problem::new(
        Class::Internal,
        "internal",
        message,
        Hint::step("start it again"),
    )
}
