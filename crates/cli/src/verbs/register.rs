use std::path::PathBuf;

use tenure_app::named;
use tenure_app::open::Context;
use tenure_app::place::{place, place_here};
use tenure_core::id::{AgentName, NativeId};
use tenure_core::reason::Reason;
use tenure_core::registration::RegistrationSource;
use tenure_core::session::{MetaKey, check_meta_value};
use tenure_host::kernel_lock::one_spelling;
use tenure_service::answer::{Class, Hint};
use tenure_service::{RegisterRequest, Subject};

use crate::app::App;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output};

/// Register a process as a session, or find its session
///
/// Without --pid, uses the session this command runs in, else the agent it runs under, else the interactive shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure register                                  from an agent's tool call, or at a prompt
  tenure register --agent nightly --pid $$         from a script
  tenure register --native-id 7f3c --title 'fix login'")]
pub struct Args {
    /// Kind of program, if the process does not show it
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// The agent's own conversation id
    #[arg(long, value_name = "ID")]
    native_id: Option<String>,

    /// Process to register
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=4_194_304), allow_hyphen_values = true)]
    pid: Option<u32>,

    /// Register without a process: the lease alone keeps the session alive
    #[arg(long, conflicts_with = "pid")]
    unverified: bool,

    /// The process hosts several conversations; each is a session of its own
    #[arg(long)]
    hosted: bool,

    /// What caused the registration: a start, a fork of a conversation, or a later event
    #[arg(long, value_name = "WHAT", default_value = "start")]
    source: SourceArg,

    /// Working directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Title shown in lists
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Parent session, if not the one this command runs in (requires --reason)
    #[arg(long, value_name = "SESSION")]
    parent: Option<String>,

    /// Reason, logged (required for --pid of another session, and with --parent)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,

    /// File in which the agent stores the conversation
    #[arg(long, value_name = "FILE", requires = "native_id")]
    transcript: Option<String>,

    /// Metadata to store on the session
    #[arg(long, value_name = "KEY=VALUE")]
    meta: Vec<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum SourceArg {
    Start,
    Fork,
    Event,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut request = request(args)?;
    let named = |context: &Context, pid: u32| {
        let hint = Hint::step(
            "pass the pid of the process that does the work, such as --pid $$ in a script",
        );
        named::process(context, pid, hint)
    };
    if let Some(pid) = args.pid {
        app.check_before_making(|context| named(context, pid).map(drop))?;
    }
    let mut context = app.open()?;
    if let Some(pid) = args.pid {
        request.subject = Subject::Named(named(&context, pid)?);
    }
    let answer = context.service().register(&request)?;
    let done = &answer.value;
    let session = &done.session;
    let word = session.registered.unwrap_or_default();
    let handle = &session.handle;
    let mut text = Lines::from(match word {
        "new" => format!("registered {handle}"),
        "same" => format!("{handle} is already registered"),
        "resumed" => format!("resumed {handle}"),
        "twin" => format!("registered {handle}, a second process in the same conversation"),
        "rotated" => format!("{handle} is now in another conversation"),
        _ => format!("registered {handle}"),
    });
    for held in &done.regranted {
        text.line(format!("  holds {} again (epoch {})", held.key, held.epoch));
    }
    for taken in &done.taken {
        text.line(format!("  lost {taken}"));
    }
    if let Some(token) = done.token.as_ref().filter(|_| app.verbose) {
        text.line(format!("  TENURE_SESSION={token}"));
    }
    Ok(Output::new("session", session, text)
        .with("token", &done.token)
        .with("regranted", &done.regranted)
        .with("taken", &done.taken)
        .told(&answer))
}

fn request(args: &Args) -> Result<RegisterRequest, CliError> {
    let mut metadata = std::collections::BTreeMap::new();
    for pair in &args.meta {
        let Some((key, value)) = pair.split_once('=') else {
            let message = format!("--meta {pair:?} must be KEY=VALUE");
            let hint = Hint::step("pass a key and a value, such as --meta team=blue");
            return Err(CliError::new(Class::Usage, "usage", message, hint));
        };
        check_meta_value(value)?;
        metadata.insert(MetaKey::parse(key)?, value.to_owned());
    }
    Ok(RegisterRequest {
        subject: if args.unverified {
            Subject::Unverified
        } else {
            Subject::Nearest
        },
        agent: args.agent.as_deref().map(AgentName::parse).transpose()?,
        native_id: args.native_id.as_deref().map(NativeId::parse).transpose()?,
        source: match args.source {
            SourceArg::Start => RegistrationSource::Start,
            SourceArg::Fork => RegistrationSource::Fork,
            SourceArg::Event => RegistrationSource::Event,
        },
        hosted: args.hosted,
        workdir: match &args.dir {
            Some(dir) => place(dir)?,
            None => place_here(),
        },
        place_named: args.dir.is_some(),
        title: args.title.clone(),
        parent: args.parent.clone(),
        reason: args.reason.clone(),
        transcript: args.transcript.as_deref().map(one_spelling),
        metadata,
    })
}
