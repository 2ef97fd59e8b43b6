use tenure_core::reason::Reason;
use tenure_core::session::MetaKey;
use tenure_service::MetaChange;

use crate::app::{App, Changes};
use crate::lines::Lines;
use crate::output::{Outcome, Output};

/// Store key-value metadata on a session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure meta set team blue
  tenure meta get team
  tenure meta unset team")]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

impl Args {
    pub fn changes(&self) -> Changes {
        match self.act {
            Act::Get { .. } => Changes::Nothing,
            _ => Changes::Known,
        }
    }
}

#[derive(Debug, clap::Subcommand)]
enum Act {
    /// Print one value, or all
    Get {
        /// Key
        #[arg(value_name = "NAME")]
        key: Option<String>,
    },
    /// Store a value
    Set {
        /// Key
        #[arg(value_name = "NAME")]
        key: String,
        /// Value, as text
        value: String,
        /// Reason, logged (required for a session other than your own)
        #[arg(long, value_name = "TEXT")]
        reason: Option<Reason>,
    },
    /// Remove a value
    Unset {
        /// Key
        #[arg(value_name = "NAME")]
        key: String,
        /// Reason, logged (required for a session other than your own)
        #[arg(long, value_name = "TEXT")]
        reason: Option<Reason>,
    },
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let (change, reason) = match &args.act {
        Act::Get { key } => return get(key.as_deref(), app),
        Act::Set { key, value, reason } => {
            (MetaChange::Set(MetaKey::parse(key)?, value.clone()), reason)
        }
        Act::Unset { key, reason } => (MetaChange::Unset(MetaKey::parse(key)?), reason),
    };
    let mut context = app.open()?;
    let answer = context
        .service()
        .change_metadata(&app.act_for(reason.as_ref()), &change)?;
    let text = match &change {
        MetaChange::Set(key, _) => format!("set {}", key.as_str()),
        MetaChange::Unset(key) => format!("removed {}", key.as_str()),
    };
    Ok(Output::new("session", &answer.value, text).told(&answer))
}

fn get(key: Option<&str>, app: &App) -> Outcome {
    let key = key.map(MetaKey::parse).transpose()?;
    let mut context = app.open()?;
    let answer = context
        .service()
        .metadata(&app.act_for(None), key.as_ref())?;
    let mut text = Lines::default();
    for (name, value) in &answer.value {
        match key {
            Some(_) => text.line(value),
            None => text.line(format!("{name}={value}")),
        }
    }
    Ok(Output::new("meta", &answer.value, text).told(&answer))
}
