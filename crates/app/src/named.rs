//! A process that was named by its pid, and its agent.
//!
//! A wrong pid is worse than none: the named process must be alive, and must be ours.

use std::collections::BTreeMap;

use tenure_core::agent;
use tenure_core::id::AgentName;
use tenure_core::process::Ancestor;
use tenure_core::registration::RegistrationSource;
use tenure_core::world::World;
use tenure_host::process::{self, IdentifyError};
use tenure_host::{running, system};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::{RegisterRequest, Subject};

use crate::open::Context;
use crate::place::place;
use crate::unmanaged;

/// The process with this pid, and its ancestors.
pub fn process(context: &Context, pid: u32, hint: Hint) -> Result<Vec<Ancestor>, Problem> {
    let observer = context.machine().observer();
    if let Err(error) = process::identify(pid, observer) {
        return Err(unidentified(&error, hint));
    }
    let (chain, _) = process::chain_from(pid, observer);
    if chain.is_empty() {
        // It exited meanwhile.
        return Err(unidentified(&IdentifyError::NoSuchProcess { pid }, hint));
    }
    Ok(chain)
}

fn unidentified(error: &IdentifyError, hint: Hint) -> Problem {
    let (class, kind) = match error {
        IdentifyError::NoSuchProcess { .. }
        | IdentifyError::Exited { .. }
        | IdentifyError::Thread { .. } => (Class::NotFound, "not_found"),
        IdentifyError::OtherUser { .. } => (Class::Invalid, "invalid"),
        IdentifyError::Unreadable { .. } => (Class::CannotTell, "cannot_tell"),
    };
    Problem::new(class, kind, error.to_string(), hint)
}

/// The request that registers a running agent without hooks, and the pid of the agent itself.
pub fn adoption(context: &Context, pid: u32) -> Result<(u32, RegisterRequest), Problem> {
    let hint = || {
        let why = "to list agents that run without hooks";
        Hint::run("ps", [""; 0], why)
    };
    process(context, pid, hint())?;
    let pid = running::behind(pid, context.machine().observer());
    let chain = process(context, pid, hint())?;
    let Some(spec) = agent::recognise(&chain[0].looks) else {
        let pid = pid.to_string();
        let message = format!("pid {pid} is not a known agent");
        let args = ["--agent", "NAME", "--pid", &pid];
        let hint = Hint::run("register", args, "to register any process");
        return Err(Problem::new(Class::Invalid, "invalid", message, hint));
    };
    let dir = system::working_dir(pid).map_err(|error| {
        let why = error.to_string();
        unidentified(&IdentifyError::Unreadable { pid, why }, hint())
    })?;
    let adapter = tenure_agents::adapter(spec.name);
    let entry = adapter.and_then(|adapter| unmanaged::registered(adapter, &chain[0].process));
    let request = RegisterRequest {
        agent: AgentName::parse(spec.name).ok(),
        native_id: entry.and_then(|entry| entry.native_id),
        source: RegistrationSource::Event,
        hosted: false,
        workdir: place(&dir)?,
        place_named: false,
        title: None,
        parent: None,
        reason: None,
        transcript: None,
        metadata: BTreeMap::new(),
        subject: Subject::Named(chain),
    };
    Ok((pid, request))
}
