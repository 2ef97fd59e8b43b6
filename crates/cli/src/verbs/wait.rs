use tenure_app::awaited;
use tenure_core::time::{Span, Timestamp};
use tenure_service::WaitGoal;
use tenure_service::view::SessionView;

use crate::app::App;
use crate::child::unfinished;
use crate::output::{Outcome, Output};

/// Wait until a session ends or becomes idle
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure wait claude-k7qd
  tenure wait claude-k7qd --for idle --timeout 10m")]
pub struct Args {
    /// Handle, id, or a unique part of either
    #[arg(value_name = "SESSION")]
    name: String,

    /// What to wait for
    #[arg(long = "for", value_name = "WHAT", default_value = "end")]
    what: What,

    /// Give up after this long
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    timeout: Option<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// The session ended or died
    End,
    /// The session finished its turn, asks a person, or ended
    Idle,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let until = match args.what {
        What::End => WaitGoal::Ends,
        What::Idle => WaitGoal::Rests,
    };
    let timeout = args.timeout.map(|Span(length)| length);
    let mut context = app.open()?;
    let answer = awaited::session(&mut context, &args.name, until, timeout).map_err(unfinished)?;
    let session = &answer.value;
    let saw = Saw::of(session);
    Ok(Output::new("session", session, saw.text(session))
        .with("saw", &saw)
        .told(&answer))
}

/// What ended the wait.
#[derive(Debug, serde::Serialize)]
struct Saw {
    /// `idle`, `waiting`, `ended` or `dead`.
    state: &'static str,
    since: Option<Timestamp>,
    /// What it waits for, if it reports that.
    asks: Option<String>,
    /// Why it ended.
    why: Option<String>,
}

impl Saw {
    fn of(session: &SessionView) -> Self {
        match session.ended_at {
            Some(at) => Self {
                state: session.state,
                since: Some(at),
                asks: None,
                why: Some(session.why.clone()),
            },
            None => Self {
                state: session.activity.unwrap_or(session.state),
                since: session.activity_since,
                asks: session.asks.clone(),
                why: None,
            },
        }
    }

    fn text(&self, session: &SessionView) -> String {
        let handle = &session.handle;
        if let Some(why) = &self.why {
            let what = match self.state {
                "ended" => "ended".to_owned(),
                state => format!("is {state}"),
            };
            return format!("{handle} {what}: {why}");
        }
        let age = self.since.map(|at| at.age_at(tenure_host::clock::wall()));
        let since = age.map_or(String::new(), |age| format!(" for {}", Span(age)));
        match (self.state, &self.asks) {
            ("waiting", Some(asks)) => format!("{handle} is waiting{since}: {asks}"),
            ("waiting", None) => format!("{handle} is waiting{since} for a person to answer"),
            (state, _) => format!("{handle} is {state}{since}"),
        }
    }
}
