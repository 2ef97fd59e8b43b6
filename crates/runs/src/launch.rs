//! Starting a runner.

use std::io::{self, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use fs_err::os::unix::fs::OpenOptionsExt;
use tenure_core::id::RunId;
use tenure_core::ignore::Ignore;
use tenure_core::world::World;
use tenure_host::pidfd::ProcessWatch;
use tenure_host::{env, process};
use tenure_service::RunError;
use tenure_service::answer::Problem;
use tenure_service::error::Error;
use tenure_service::view::RunView;

use super::files::RunFiles;
use super::job_order::JobOrder;
use super::order::RunOrder;
use super::runner::cannot;
use super::wire::Message;
use tenure_app::open::Context;
use tenure_app::supervise::failure;
use tenure_app::unfinished::Unfinished;

/// A started runner, and the pipe on which it reports.
pub struct Launched {
    pub run: RunId,
    pub files: RunFiles,
    pub(super) runner: Child,
    pub(super) messages: BufReader<ChildStdout>,
    pub(super) watch: Option<ProcessWatch>,
}

/// A run that began.
#[derive(Debug, Clone)]
pub struct Began {
    pub run: RunView,
    /// Notes for the person.
    pub notes: Vec<String>,
}

/// A new id for a run.
pub fn new_id(context: &Context) -> RunId {
    RunId::mint(context.machine().random())
}

/// Starts a runner for an order. Afterwards it does not depend on this process.
pub fn launch(context: &Context, order: &RunOrder) -> Result<Launched, Problem> {
    start(context, order.run()?, |files| order.write(files))
}

/// Starts a runner that takes a job.
pub fn launch_job(context: &Context, order: &JobOrder) -> Result<Launched, Problem> {
    let run = RunId::parse(&order.run)?;
    start(context, run, |files| order.write(files))
}

fn start(
    context: &Context,
    run: RunId,
    write: impl FnOnce(&RunFiles) -> io::Result<()>,
) -> Result<Launched, Problem> {
    let files = RunFiles::of(context.dir(), &run);
    let failed = |error: io::Error| cannot("start a run", &error);
    files.make().map_err(failed)?;
    let started = write(&files).and_then(|()| spawn(&files));
    let runner = started.map_err(|error| {
        files.remove();
        failed(error)
    })?;
    let (runner, messages) = runner;
    let process = process::identify(runner.id(), context.machine().observer()).ok();
    Ok(Launched {
        run,
        files,
        runner,
        messages: BufReader::new(messages),
        watch: process.as_ref().and_then(ProcessWatch::open),
    })
}

fn spawn(files: &RunFiles) -> io::Result<(Child, ChildStdout)> {
    let errors = fs_err::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(files.runner_errors())?;
    let mut runner = Command::new(env::program()?)
        .args(["__runner", "--dir"])
        .arg(files.dir())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::from(errors))
        .spawn()?;
    let messages = runner.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    Ok((runner, messages))
}

impl Launched {
    /// Waits until the run has begun or is refused. A runner that died may have let its agent go.
    pub fn begin(&mut self, context: &mut Context) -> Result<Began, Unfinished> {
        match self.first_message() {
            Some(said) => said,
            None => match self.recorded(context)? {
                Some(run) => {
                    let notes = Vec::new();
                    Ok(Began { run, notes })
                }
                None => Err(self.died()),
            },
        }
    }

    /// The same for the queue, which checks the store itself: a runner that died has not begun.
    pub fn wait_for_start(&mut self) -> Result<Began, Unfinished> {
        self.first_message().unwrap_or_else(|| Err(self.died()))
    }

    /// Waits for the runner's end.
    pub fn wait(mut self) {
        self.runner
            .wait()
            .ignore("another caller has waited for it");
    }

    /// The first message of the runner; none if it ended without one.
    fn first_message(&mut self) -> Option<Result<Began, Unfinished>> {
        match Message::receive(&mut self.messages) {
            Some(Message::Started { run, notes }) => Some(Ok(Began { run: *run, notes })),
            Some(Message::Refused(refusal)) => {
                self.runner.wait().ignore("only its refusal was needed");
                Some(Err(refusal.into()))
            }
            Some(Message::FellBack { .. } | Message::Ended { .. }) | None => None,
        }
    }

    fn died(&self) -> Unfinished {
        let errors = tenure_host::read::tail(&self.files.runner_errors(), 4096);
        let errors = errors.unwrap_or_default();
        let told = String::from_utf8_lossy(&errors);
        let message = match told.trim() {
            "" => "the runner ended before it started the agent".to_owned(),
            told => format!("the runner ended before it started the agent: {told}"),
        };
        failure(message).into()
    }

    /// The run, if its runner got as far as recording it.
    fn recorded(&self, context: &mut Context) -> Result<Option<RunView>, Unfinished> {
        match context.service().show_run(self.run.as_str()) {
            Ok(answer) => Ok(Some(answer.value)),
            Err(failure) => match &failure.error {
                Error::Run(error) if matches!(**error, RunError::NoSuchRun { .. }) => Ok(None),
                _ => Err(Problem::from(failure).into()),
            },
        }
    }
}
