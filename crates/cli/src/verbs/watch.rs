use tenure_app::open::Context;
use tenure_core::notification::Reason;
use tenure_service::answer::{Class, Hint};
use tenure_views::notify::event::Notification;
use tenure_views::notify::handler::Handler;
use tenure_views::notify::watch::{WatchScope, stand, watch};
use tenure_views::notify::{notifier, sender};

use crate::app::App;
use crate::child::exit_of_watching;
use crate::output::{CliError, Outcome, Output, count, put, warn};

/// Report what happens to sessions and items, as it happens
///
/// Prints one event per line, or hands each to a command as JSON on stdin: one process at a time, in order. While 100
/// events wait for the command, the rest is counted and handed over as one digest. What is so already when the watch
/// begins is not reported. Ends with Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Events:
  asks       a session waits for a person
  failed     its turn failed
  limited    its provider accepts no requests for a while
  died       it died and left claims that nobody has taken since, or can be resumed
  lost       another session has a claim that it held
  collides   another live session writes the same files or works on the same item
  run        a run ended
  claimed, released, done    what became of an item

Examples:
  tenure watch
  tenure watch --on asks,failed,died --repo
  tenure watch --on died --exec 'jq -r .session.handle >>died.log'
  tenure watch --on claimed,done,died --exec ./follow-tracker.sh
  tenure watch --notify
  tenure watch --session claude-k7qd --json")]
pub struct Args {
    /// Only these events, with commas between them [default: all]
    #[arg(long, value_name = "EVENTS", value_delimiter = ',', value_parser = Reason::parse)]
    on: Vec<Reason>,

    /// Only sessions in this repository [default: the one of this directory]
    #[arg(long, value_name = "REPO", num_args = 0..=1, conflicts_with = "mine")]
    repo: Option<Option<String>>,

    /// Only this session and those it started; for a person, only sessions on this machine
    #[arg(long)]
    mine: bool,

    /// Run this shell command for each event
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,

    /// Notify on the channels of your config.toml, each of what it reports; goes on while the store is away
    #[arg(long, conflicts_with = "exec")]
    notify: bool,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let scope = scope(args, app, &mut context)?;
    if args.notify {
        return stand_by(args, app, &mut context, &scope);
    }
    let all: Vec<Reason> = Reason::ALL.to_vec();
    let on = if args.on.is_empty() { &all } else { &args.on };
    let handler = args
        .exec
        .as_ref()
        .map(|command| Handler::start(command.clone(), |text| warn(text)));
    let ended = watch(
        &mut context,
        on,
        &scope,
        || say_ready(app, on),
        |_, event| {
            let Some(handler) = &handler else {
                return show(&event, app);
            };
            handler.push(event);
            Ok::<bool, CliError>(true)
        },
    );
    let left = handler.map_or(0, Handler::end);
    if left > 0 {
        let left = count(left as u64, "event");
        warn(format!("warning: the command did not get {left}"));
    }
    Ok(Output::silent(exit_of_watching(&ended?)))
}

/// Lets a process of its own send each event, so that no channel holds up the watch.
fn stand_by(args: &Args, app: &App, context: &mut Context, scope: &WatchScope) -> Outcome {
    let mut on: Vec<Reason> = args.on.clone();
    if on.is_empty() {
        on = notifier::reasons(&context.settings.notify);
    }
    if !on
        .iter()
        .any(|reason| sender::wants(&context.settings.notify, *reason))
    {
        let message = "no channel in config.toml reports any of these events";
        let hint = Hint::run("notify", ["--help"], "for an example of a channel");
        return Err(CliError::new(
            Class::NotFound,
            "no_such_channel",
            message,
            hint,
        ));
    }
    let terminal = notifier::own_terminal(context);
    let ended = stand(
        context,
        (&on, scope),
        false,
        || say_ready(app, &on),
        |context, event| {
            let sent = notifier::send(event, &context.settings.notify, terminal.as_ref());
            if let Err(error) = sent {
                warn(format!("warning: cannot notify: {error}"));
            }
        },
    )?;
    Ok(Output::silent(exit_of_watching(&ended)))
}

fn say_ready(app: &App, on: &[Reason]) {
    if !app.style.quiet && !app.style.json {
        let names: Vec<&str> = on.iter().map(|reason| reason.as_str()).collect();
        warn(format!("watching for {}", names.join(", ")));
    }
}

/// Prints an event on one line; false if the reader has left.
fn show(event: &Notification, app: &App) -> Result<bool, CliError> {
    if app.style.json {
        return put(&event.json());
    }
    let time = tenure_host::clock::zone().short(event.at, event.at);
    let (what, details) = (event.headline(), event.details());
    put(format!("{time}  {:<9} {what}  {details}", event.event).trim_end())
}

fn scope(args: &Args, app: &App, context: &mut Context) -> Result<WatchScope, CliError> {
    if let Some(name) = &app.session {
        let found = context.service().show(name)?;
        return Ok(WatchScope::Session(found.value.session.id));
    }
    if args.mine {
        let own = context.service().own_session(&app.act_for(None));
        return Ok(match own {
            Ok(own) => WatchScope::Family(own.value.session.id),
            Err(_) => WatchScope::Machine,
        });
    }
    match &args.repo {
        None => Ok(WatchScope::All),
        Some(Some(repo)) => Ok(WatchScope::Repo(repo.clone())),
        Some(None) => {
            let repo = context.repo().map(str::to_owned);
            repo.map(WatchScope::Repo).ok_or_else(|| {
                let message = "--repo needs a name outside a repository";
                let hint = Hint::run(
                    "watch",
                    ["--repo", "REPO"],
                    "with the name that `tenure ps` shows",
                );
                CliError::new(Class::Usage, "usage", message, hint)
            })
        }
    }
}
