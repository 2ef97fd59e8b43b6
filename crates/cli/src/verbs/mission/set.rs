use std::io::Read;
use std::path::PathBuf;

use tenure_app::mission_token;
use tenure_app::open::Context;
use tenure_core::mission::MissionId;
use tenure_core::mission::change::MissionChange;
use tenure_core::reason::Reason;
use tenure_service::ChangeRequest;
use tenure_service::answer::{Class, Hint};
use tenure_service::view::ParticipantView;

use super::shown::{decision, warn};
use crate::app::App;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output};

/// Set what another system calls this mission: run_id, api_url or token
///
/// A token is read from stdin or from a file, never from the command line, where other users could see it. It is kept in a
/// file of the state directory that only you can read; it is never stored in the database and never printed. A
/// spec-kitty mirror of this session shows all three.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission set run_id 2026-11-18-a
  tenure mission set api_url https://api.example.com/v1
  tenure mission set token - < token.txt
  tenure mission set token --file ~/.config/token
  tenure mission set token none                clear it")]
pub struct Args {
    /// run_id, api_url or token
    #[arg(value_name = "FIELD")]
    field: MissionField,

    /// Value; none clears it, - reads a token from stdin
    #[arg(
        value_name = "VALUE",
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    value: Option<String>,

    /// File to read the token from
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Mission [default: the active one]
    #[arg(long, value_name = "MISSION")]
    mission: Option<String>,

    /// Reason, logged (required when --session names another session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
enum MissionField {
    RunId,
    ApiUrl,
    Token,
}

/// The token to keep, empty to clear it.
struct Token(String);

pub fn run(args: &Args, app: &App) -> Outcome {
    let (change, token) = change(args)?;
    let request = ChangeRequest {
        mission: args.mission.as_deref().map(MissionId::parse).transpose()?,
        change,
        strict: false,
    };
    let mut context = app.open()?;
    let here = context.here();
    let act_for = app.act_for(args.reason.as_ref());
    let answer = context
        .service()
        .change_participant(&act_for, &here, &request)?;
    let changed = &answer.value;
    warn(app, &changed.warnings);
    let one = &changed.participant;
    let kept = token.map(|token| keep(&context, one, &token)).transpose()?;
    let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    let mut text = Lines::from(match &kept {
        Some(file) => format!("{} in {}: token in {file}", one.session.handle, one.mission),
        None => format!(
            "{} in {}: run_id {}, api_url {}",
            one.session.handle,
            one.mission,
            or_none(&one.run_id),
            or_none(&one.api_url)
        ),
    });
    text.extend(&decision(app, &changed.pointer));
    let shown = Output::new("participant", one, text)
        .with("pointer", &changed.pointer)
        .with("warnings", &changed.warnings);
    let shown = match &kept {
        Some(file) => shown.with("token_file", file),
        None => shown,
    };
    Ok(shown.told(&answer))
}

fn change(args: &Args) -> Result<(MissionChange, Option<Token>), CliError> {
    let named = |field| {
        if args.file.is_some() {
            return Err(usage("--file is only for a token", "pass the value itself"));
        }
        let value = args.value.as_deref().unwrap_or_default();
        Ok((MissionChange::named(field, value)?, None))
    };
    match args.field {
        MissionField::RunId => named("run_id"),
        MissionField::ApiUrl => named("api_url"),
        MissionField::Token => {
            let token = token(args)?;
            let is_set = !token.0.is_empty();
            Ok((MissionChange::Token { is_set }, Some(token)))
        }
    }
}

fn token(args: &Args) -> Result<Token, CliError> {
    let limit = mission_token::MAX_LENGTH as u64 + 2;
    let read = match (args.value.as_deref(), &args.file) {
        (Some("none"), _) => return Ok(Token(String::new())),
        (Some("-"), _) => {
            let mut text = String::new();
            let read = std::io::stdin().take(limit).read_to_string(&mut text);
            read.map(|_| text)
        }
        (None, Some(file)) => tenure_host::read::text(file, limit),
        _ => {
            return Err(usage(
                "a token on the command line can be seen by other users",
                "pass it on stdin: `tenure mission set token - < FILE`",
            ));
        }
    };
    let text = read.map_err(|error| {
        usage(
            &format!("cannot read the token: {error}"),
            "pass a file of one line, or - for stdin",
        )
    })?;
    let token = mission_token::checked(&text);
    token
        .map(|token| Token(token.to_owned()))
        .map_err(|why| usage(why, "pass one line of text on stdin or with --file"))
}

fn usage(message: &str, step: &str) -> CliError {
    CliError::new(Class::Usage, "usage", message.to_owned(), Hint::step(step))
}

/// Keeps the token; says in which file.
fn keep(context: &Context, one: &ParticipantView, token: &Token) -> Result<String, CliError> {
    let kept = mission_token::set(context.dir(), &one.session.id, &one.mission, &token.0);
    let kept = kept.map_err(|error| {
        let message = format!("cannot keep the token: {error}");
        let hint = Hint::step("make room in the state directory, then set the token again");
        CliError::new(Class::Store, "store_unavailable", message, hint)
    })?;
    Ok(kept.display().to_string())
}
