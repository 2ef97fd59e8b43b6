use tenure_core::id::AgentName;
use tenure_core::process::Ancestor;
use tenure_core::reason::Reason;
use tenure_core::registration::Source;
use tenure_core::world::World;
use tenure_core::{agent, text};
use tenure_host::running;
use tenure_service::{RegisterRequest, Subject};

use super::register::named_process;
use crate::app::{App, place};
use crate::exit::Exit;
use crate::output::{Outcome, Shown, Trouble};
use crate::unmanaged;

/// Make a session of an agent that runs without hooks
///
/// tenure ps shows such agents as unmanaged, with their pids. What it held or said before is not known.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure adopt 4711
  tenure adopt 4711 --title 'the migration'")]
pub struct Args {
    /// The agent's process
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=4_194_304), allow_hyphen_values = true)]
    pid: u32,

    /// What people may call its work
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Reason, logged (required to change a process that is a session already)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut opened = app.open()?;
    let hint = "tenure ps shows the pids of agents that run without hooks";
    named_process(&opened, args.pid, hint)?;
    let pid = running::behind(args.pid, opened.machine().observer());
    let subject = named_process(&opened, pid, hint)?;
    let Subject::Named(chain) = &subject else {
        return Err(not_an_agent(pid));
    };
    let Some((process, spec)) = chain.first().and_then(recognised) else {
        return Err(not_an_agent(pid));
    };
    let dir = fs_err::read_link(format!("/proc/{pid}/cwd")).map_err(|error| {
        let message = format!("cannot see where pid {pid} works: {error}");
        Trouble::new(
            Exit::CANNOT_TELL,
            "cannot_tell",
            message,
            "tenure needs /proc",
        )
    })?;
    let entry = tenure_agents::adapter(spec.name)
        .and_then(|adapter| unmanaged::registered(adapter, &process.process));
    let request = RegisterRequest {
        agent: AgentName::parse(spec.name).ok(),
        native_id: entry.and_then(|entry| entry.native_id),
        source: Source::Event,
        hosted: false,
        place: place(&dir)?,
        place_named: false,
        title: args.title.clone(),
        parent: None,
        reason: args.reason.clone(),
        transcript: None,
        metadata: std::collections::BTreeMap::new(),
        subject,
    };
    let answer = opened.service().register(&request)?;
    let session = &answer.value.session;
    let word = match session.registered {
        Some("same") => "was a session before",
        _ => "is a session now",
    };
    let text = format!(
        "{} {word}: pid {pid} in {}",
        session.handle,
        text::name(&session.dir)
    );
    Ok(Shown::new("session", session, text)
        .with("token", &answer.value.token)
        .told(&answer))
}

fn recognised(first: &Ancestor) -> Option<(&Ancestor, &'static agent::AgentSpec)> {
    agent::recognise(&first.looks).map(|spec| (first, spec))
}

fn not_an_agent(pid: u32) -> Trouble {
    let message = format!("pid {pid} is not an agent that tenure knows");
    let hint = format!("tenure register --agent NAME --pid {pid} makes a session of any process");
    Trouble::new(Exit::INVALID, "invalid", message, hint)
}
