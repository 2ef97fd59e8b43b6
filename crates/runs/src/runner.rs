//! A runner's state, from its order to the store that it writes to.

use std::io;

use tenure_core::id::{AgentName, Malformed, RunId};
use tenure_core::key::Key;
use tenure_core::process::Process;
use tenure_core::world::World;
use tenure_host::process;
use tenure_service::answer::{Class, Hint, Problem};

use super::driver::Driver;
use super::files::RunFiles;
use super::order::RunOrder;
use tenure_app::open::{self, Context, Purpose};
use tenure_app::unfinished::Unfinished;

pub(super) struct Runner {
    pub order: RunOrder,
    pub id: RunId,
    pub agent: AgentName,
    pub item: Key,
    pub files: RunFiles,
    pub driver: Driver,
    pub context: Context,
    pub own: Process,
}

impl Runner {
    pub(super) fn prepare(files: &RunFiles) -> Result<Self, Unfinished> {
        let unreadable = |error: io::Error| cannot("read the run's instructions", &error);
        let order = RunOrder::read(files).map_err(unreadable)?;
        let context = open::open(Purpose::Write)?;
        Self::with(files, order, context)
    }

    /// A runner with the parts that were already found.
    pub(super) fn with(
        files: &RunFiles,
        order: RunOrder,
        context: Context,
    ) -> Result<Self, Unfinished> {
        let malformed = |error: Malformed| Problem::from(error);
        let agent = order.agent().map_err(malformed)?;
        let driver = Driver::of(&context.settings, &agent)?;
        let own = own_process(&context)?;
        Ok(Self {
            id: order.run().map_err(malformed)?,
            item: order.item().map_err(malformed)?,
            agent,
            driver,
            context,
            own,
            files: files.clone(),
            order,
        })
    }
}

/// This process, as the runner of a run.
pub(super) fn own_process(context: &Context) -> Result<Process, Problem> {
    let own = process::identify(std::process::id(), context.machine().observer());
    own.map_err(|error| cannot("start a run", &io::Error::other(error)))
}

/// An error of tenure itself before an agent runs.
pub(super) fn cannot(what: &str, error: &io::Error) -> Problem {
    let message = format!("cannot {what}: {error}");
    let hint = Hint::step("fix that, then run it again; nothing was started");
    Problem::new(Class::Internal, "internal", message, hint)
}
