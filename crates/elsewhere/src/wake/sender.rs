//! What the sender of a message does once it is stored: it lets it start a turn, if it may.

use std::process::Child;
use std::thread;

use tenure_agents::{Adapter, Waking};
use tenure_app::open::Context;
use tenure_core::ignore::Ignore;
use tenure_core::process::Process;
use tenure_core::wake;
use tenure_core::world::World;
use tenure_host::pidfd::ProcessWatch;
use tenure_host::{system, terminal};
use tenure_service::answer::Problem;
use tenure_service::{SentMessage, Sleeper, WakeRequest, Woke};

use crate::wake::bell::Bell;
use crate::wake::program;

/// What was started so that a turn begins.
#[derive(Debug)]
#[must_use = "the agent's command is waited for, here or in a thread"]
pub struct WakeCommand(Option<Child>);

impl WakeCommand {
    /// Waits for the agent's command.
    pub fn finish(self) {
        if let Some(child) = self.0 {
            program::finish(child);
        }
    }

    /// The same in a thread, for a process that has other callers.
    pub fn finish_beside(self) {
        if let Some(child) = self.0 {
            let waits = thread::Builder::new().name("queue".to_owned());
            waits
                .spawn(move || program::finish(child))
                .ignore("the command is not waited for");
        }
    }
}

/// Takes the caller for a person only by the rule that answers have too: in the foreground of the terminal.
pub fn check_person(context: &mut Context) {
    let facts = &mut context.facts;
    facts.at_terminal = facts.at_terminal && terminal::of_person(&facts.chain).is_ok();
}

/// Lets a message that was stored start a turn in its receiver, if it may. Whether it did is seen by its receipt.
pub fn start_turn(context: &mut Context, sent: &SentMessage) -> WakeCommand {
    let Some(sleeper) = &sent.wakes else {
        return WakeCommand(None);
    };
    // What fails here leaves the message waiting for the next event, as every other one.
    WakeCommand(started(context, sent, sleeper).unwrap_or_default())
}

fn started(
    context: &mut Context,
    sent: &SentMessage,
    sleeper: &Sleeper,
) -> Result<Option<Child>, Problem> {
    let agent = sleeper.agent.as_str();
    let Some(adapter) = tenure_agents::adapter(agent) else {
        return Ok(None);
    };
    let is_on = context.settings.wake.is_on(agent);
    let Some(way) = adapter
        .wakes
        .filter(|_| is_on && is_here(context, &sleeper.process))
    else {
        return Ok(None);
    };
    match way {
        Waking::ByStderr | Waking::ByStdout => {
            Bell::of(&context.dir, agent, &sleeper.native_id)
                .announce(sent.id)
                .ignore("the message waits for the next event");
            Ok(None)
        }
        Waking::ByCommand { program, line } => {
            let request = WakeRequest {
                sleeper,
                announced: &[sent.id],
                from_agents: context.settings.wake.from_agents,
            };
            let Woke::Messages(messages) = context.service().take_to_wake(&request)?.value else {
                return Ok(None);
            };
            let line = line(&sleeper.native_id, &wake::prompt(&messages));
            let own = own_variable(adapter);
            Ok(program::start(&sleeper.process, program, own, line).ok())
        }
    }
}

/// Whether the process runs here, for the same user.
fn is_here(context: &Context, process: &Process) -> bool {
    let is_same_user = || {
        let user = rustix::process::geteuid().as_raw();
        system::owner(process.pid).is_ok_and(|owner| owner == user)
    };
    process.host == context.machine.observer().host
        && ProcessWatch::open(process).is_some()
        && is_same_user()
}

/// The variable that names the agent's own directory.
fn own_variable(adapter: &Adapter) -> Option<&'static str> {
    let settings = adapter.settings.as_ref()?;
    settings.variable.map(|(name, _)| name)
}
