use tenure_app::named;
use tenure_core::reason::Reason;
use tenure_core::text;
use tenure_service::RegisterRequest;

use crate::app::App;
use crate::output::{Outcome, Output};

/// Register an agent that runs without hooks as a session
///
/// `tenure ps` lists such agents as unmanaged, with their pids. What the agent did before is not known.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure adopt 4711
  tenure adopt 4711 --title 'the migration'")]
pub struct Args {
    /// The agent's pid
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=4_194_304), allow_hyphen_values = true)]
    pid: u32,

    /// Title shown in lists
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Reason, logged (required to change an existing session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    app.check_before_making(|context| named::adoption(context, args.pid).map(drop))?;
    let mut context = app.open()?;
    let (pid, found) = named::adoption(&context, args.pid)?;
    let request = RegisterRequest {
        title: args.title.clone(),
        reason: args.reason.clone(),
        ..found
    };
    let answer = context.service().register(&request)?;
    let session = &answer.value.session;
    let handle = &session.handle;
    let what = match session.registered {
        Some("same") => format!("{handle} is already registered"),
        _ => format!("registered {handle}"),
    };
    let dir = text::name(&session.dir);
    let text = format!("{what}: pid {pid} in {dir}");
    Ok(Output::new("session", session, text)
        .with("token", &answer.value.token)
        .told(&answer))
}
