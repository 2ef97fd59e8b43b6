use std::time::Duration;

use tenure_app::open::Opened;
use tenure_app::watch::{Ended, Next, on_change};
use tenure_core::notice::Pending;
use tenure_core::time::Span;
use tenure_service::answer::{Class, Hint};
use tenure_service::error::Error;
use tenure_service::view::SessionView;

use crate::app::App;
use crate::child::signal_exit;
use crate::exit::Exit;
use crate::output::{Outcome, Shown, Trouble};

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

/// How often a session is asked for whatever happens.
const AT_LEAST_EVERY: Duration = Duration::from_secs(30);

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut opened = app.open()?;
    let mut told = Pending::default();
    let outcome = wait(args, &mut opened, &mut told);
    match outcome {
        Ok(mut shown) => {
            shown.notices = told;
            Ok(shown)
        }
        Err(mut trouble) => {
            if trouble.problem.notices.is_empty() {
                trouble.problem.notices = told;
            }
            Err(trouble)
        }
    }
}

fn wait(args: &Args, opened: &mut Opened, told: &mut Pending) -> Outcome {
    let began = tenure_host::clock::instant();
    let ended = on_change(opened, Duration::ZERO, |opened| {
        let answer = opened.service().show(&args.name)?;
        // They wait until they are told, so the last look has them all.
        *told = answer.notices;
        let session = &answer.value.session;
        let idle = args.what == What::Idle && matches!(session.activity, Some("idle" | "waiting"));
        if session.ended_at.is_some() || idle {
            let text = format!("{} is {}: {}", session.handle, session.state, session.why);
            return Ok(Next::Done(Shown::new("session", session, text)));
        }
        let left = match args.timeout {
            Some(Span(timeout)) => timeout.saturating_sub(began.elapsed()),
            None => AT_LEAST_EVERY,
        };
        if left.is_zero() {
            return Err(timed_out(session, began.elapsed()));
        }
        let processes = process_of(opened, &args.name)?;
        let most = match processes.is_empty() {
            true => UNSEEN_EVERY,
            false => AT_LEAST_EVERY,
        };
        Ok(Next::Again {
            processes,
            limit: left.min(most),
        })
    })?;
    match ended {
        Ended::Done(shown) => Ok(shown),
        Ended::Signal(signal) => Err(Trouble::new(
            Class::TimedOut,
            "interrupted",
            format!("interrupted while waiting for {}", args.name),
            Hint::step("run it again to go on waiting"),
        )
        .exits(signal_exit(signal))),
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
