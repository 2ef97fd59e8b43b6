use std::time::{Duration, Instant};

use tenure_core::error::Error;
use tenure_core::time::Span;
use tenure_core::view::SessionView;

use crate::app::{App, Opened};
use crate::child::signal_exit;
use crate::exit::Exit;
use crate::output::{Outcome, Shown, Trouble};
use crate::waiting::{Until, watch_signals};

/// Wait until a session ends, or is idle
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure wait claude-k7qd
  tenure wait claude-k7qd --for idle --timeout 10m")]
pub struct Args {
    /// Its handle, its id, or any unique part of either
    #[arg(value_name = "SESSION")]
    name: String,

    /// What to wait for
    #[arg(long = "for", value_name = "WHAT", default_value = "end")]
    what: What,

    /// Wait at most this long
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    timeout: Option<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Its end or its death
    End,
    /// The end of its turn, or its end
    Idle,
}

/// How often a session that nobody can see is asked for.
const UNSEEN_EVERY: Duration = Duration::from_secs(1);

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut opened = app.open()?;
    let began = Instant::now();
    let mut watch = watch_signals(&opened)?;
    loop {
        let seen = opened.service().changes()?;
        let answer = opened.service().show(&args.name)?;
        let session = &answer.value.session;
        let idle = args.what == What::Idle && matches!(session.activity, Some("idle" | "waiting"));
        if session.ended_at.is_some() || idle {
            let text = format!("{} is {}: {}", session.handle, session.state, session.why);
            let mut shown = Shown::new("session", session, text);
            shown.notices = answer.notices;
            return Ok(shown);
        }
        let left = match args.timeout {
            Some(Span(timeout)) => timeout.saturating_sub(began.elapsed()),
            None => Duration::from_secs(30),
        };
        if left.is_zero() {
            let mut trouble = timed_out(session, began.elapsed());
            trouble.notices = answer.notices;
            return Err(trouble);
        }
        let processes: Vec<_> = process_of(&mut opened, &args.name)?;
        let limit = if processes.is_empty() {
            left.min(UNSEEN_EVERY)
        } else {
            left.min(Duration::from_secs(30))
        };
        let mut until = Until {
            watch: &mut watch,
            processes: &processes,
            seen,
            limit,
        };
        if let Some(signal) = until.something_happens(&mut opened)? {
            let message = format!("interrupted while waiting for {}", args.name);
            return Err(Trouble::new(
                signal_exit(signal),
                "interrupted",
                message,
                "run it again to go on waiting",
            ));
        }
    }
}

fn process_of(
    opened: &mut Opened,
    name: &str,
) -> Result<Vec<tenure_core::process::Process>, Trouble> {
    Ok(opened
        .service()
        .process_of(name)?
        .value
        .into_iter()
        .collect())
}

fn timed_out(session: &SessionView, waited: Duration) -> Trouble {
    let why = Box::new(Error::NotLive {
        handle: session.handle.clone(),
        state: format!("is still {}: {}", session.state, session.why),
    });
    let mut trouble = Trouble::from(Error::TimedOut { waited, why });
    trouble.exit = Exit::TIMED_OUT;
    trouble
}
