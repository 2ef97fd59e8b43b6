//! How an agent is run: by its built-in row, or by the user's settings.

use rustix::process::Signal;
use tenure_agents::run::{Configured, Launch, PromptBy, Runs, StopSignal, check_arguments};
use tenure_core::id::AgentName;
use tenure_service::answer::{Class, Hint, Problem};

use tenure_app::settings::Settings;

#[derive(Debug, Clone)]
pub(super) enum Driver {
    Known(&'static tenure_agents::run::AgentRun),
    Configured(Box<Configured>),
}

impl Driver {
    pub fn of(settings: &Settings, agent: &AgentName) -> Result<Self, Problem> {
        let known = tenure_agents::adapter(agent.as_str()).and_then(|row| row.runs.as_ref());
        if let Some(row) = known {
            return Ok(Driver::Known(row));
        }
        let configured = settings.agents.get(agent.as_str());
        configured
            .map(|one| Driver::Configured(Box::new(one.clone())))
            .ok_or_else(|| unknown(settings, agent))
    }

    pub fn runs(&self) -> &dyn Runs {
        match self {
            Driver::Known(row) => *row,
            Driver::Configured(one) => one.as_ref(),
        }
    }

    /// Whether it reads its prompt from a file that its command line names.
    pub fn wants_file(&self) -> bool {
        match self {
            Driver::Known(_) => false,
            Driver::Configured(one) => one.prompt() == PromptBy::File,
        }
    }

    pub fn stop_signal(&self) -> Signal {
        match self.runs().spec().stop {
            StopSignal::Terminate => Signal::TERM,
            StopSignal::Interrupt => Signal::INT,
        }
    }
}

/// Whether an agent with this name can be run; the error lists those that can.
pub fn can_run(settings: &Settings, agent: &AgentName) -> Result<(), Problem> {
    Driver::of(settings, agent).map(|_| ())
}

/// Whether a run of this agent accepts these arguments; the error lists those that it does not.
pub fn takes_arguments(
    settings: &Settings,
    agent: &AgentName,
    arguments: &[String],
    trusted: bool,
) -> Result<(), String> {
    let Ok(driver) = Driver::of(settings, agent) else {
        return Ok(());
    };
    let launch = Launch {
        resume: None,
        intended: None,
        title: "",
        dir: "",
        trusted,
        budget_usd: None,
        arguments,
        prompt_file: None,
    };
    check_arguments(driver.runs().spec(), &launch).map_err(|error| error.to_string())
}

fn unknown(settings: &Settings, agent: &AgentName) -> Problem {
    let mut names = tenure_agents::names(|row| row.runs.is_some());
    names.extend(settings.agents.keys().map(String::as_str));
    let message = format!(
        "tenure does not know how to run {agent}; it can run {}",
        names.join(", ")
    );
    let hint = Hint::step(format!(
        "describe it in the settings: [agents.{agent}] with command = [...] and done = \"/result\""
    ));
    Problem::new(Class::NotFound, "unknown_agent", message, hint)
}
