use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::time::Duration;

use tenure_app::keys::MAX_KEYS;
use tenure_app::place::place_here;
use tenure_app::supervise::Options;
use tenure_app::watch::{CheckResult, repeatable, wait_for_turn, watch_signals};
use tenure_core::id::RequestId;
use tenure_core::reason::Reason;
use tenure_core::registration::RegistrationSource;
use tenure_core::time::Span;
use tenure_service::answer::{Class, Hint};
use tenure_service::{ActFor, CheckOutcome, ClaimRequest, Pick, RegisterRequest, Subject};

use crate::app::{App, Changes};
use crate::child::unfinished;
use crate::command;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output, warn};
use crate::render;

/// Claim an item. Fails while a live session holds it; succeeds at once if the holder died
///
/// At a prompt, the shell is registered first if it is in no session.
///
/// With a command, the command runs as a session of its own, which holds the item until the command ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure claim issue:acme/web#42
  tenure claim '#42' --note 'fix login'          expanded using the git remote
  tenure claim '#42' --wait 5m                   wait for it in the queue
  tenure claim --any '#41' '#42' '#43'           the first that is free
  tenure claim --all path:src/** path:docs/**    all of them or none
  tenure claim wp:041/WP03 -- make deploy        held while the command runs")]
pub struct Args {
    /// Item to claim, such as issue:acme/web#42, #42, wp:041/WP03 or path:src/db/**
    #[arg(value_name = "KEY")]
    keys: Vec<String>,

    /// Claim the first free item of several; - reads them from stdin, one per line
    #[arg(long, conflicts_with = "all")]
    any: bool,

    /// Claim all of the items, or none
    #[arg(long)]
    all: bool,

    /// Wait in the queue for at most this long
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    wait: Option<Span>,

    /// Note shown to other sessions
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Fail if this session already holds the item (subagents of a session share its claims)
    #[arg(long)]
    once: bool,

    /// Claim an item that is done
    #[arg(long)]
    reopen: bool,

    /// Fail while processes of the dead holder still run (the default with --any)
    #[arg(long)]
    require_quiet: bool,

    /// With --any: claim an item even if processes of its dead holder still run
    #[arg(long, conflicts_with = "require_quiet")]
    allow_survivors: bool,

    /// Id of this request: a retry with the same id gets the same answer
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,

    /// Reason, logged (required when --session names another session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,

    /// With CMD: what to do if the item is taken over while it runs
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "term",
        requires = "command"
    )]
    on_lost: command::OnLost,

    /// With CMD: exit code if the item can't be claimed
    #[arg(long, value_name = "N", default_value_t = 125, requires = "command")]
    conflict_exit: u8,

    /// Command to run while holding the item
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Args {
    /// A command is a session of its own; every other caller must be one already.
    pub fn changes(&self) -> Changes {
        if self.command.is_empty() {
            Changes::Known
        } else {
            Changes::Anything
        }
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let request = request(args, app);
    let act_for = app.act_for(args.reason.as_ref());
    if !args.command.is_empty() {
        let options = Options {
            command: &args.command,
            ends_when_lost: args.on_lost == command::OnLost::Term,
            patience: patience(args),
            act_for: &act_for,
        };
        return command::run(&options, Exit(args.conflict_exit), request, app);
    }
    let request = request?;
    let claimed = claim(args, app, &act_for, &request);
    match claimed {
        Err(failure) if failure.problem.kind == "no_session" && app.session.is_none() => {
            register_person(app, failure)?;
            claim(args, app, &act_for, &request)
        }
        claimed => claimed,
    }
}

/// Registers the shell of a person who types the command; anyone else gets the failure.
fn register_person(app: &App, failure: CliError) -> Result<(), CliError> {
    let is_newcomer = app.open()?.service().is_newcomer();
    if !is_newcomer.is_ok_and(|answer| answer.value) {
        return Err(failure);
    }
    let mut context = app.open_to_write()?;
    let registered = context.service().register(&RegisterRequest {
        subject: Subject::Nearest,
        agent: None,
        native_id: None,
        source: RegistrationSource::Start,
        hosted: false,
        workdir: place_here(),
        place_named: false,
        title: None,
        parent: None,
        reason: None,
        transcript: None,
        metadata: BTreeMap::new(),
    })?;
    if !app.style.json && !app.style.quiet {
        let handle = &registered.value.session.handle;
        warn(format!("note: registered this shell as {handle}"));
    }
    Ok(())
}

fn claim(args: &Args, app: &App, act_for: &ActFor, request: &ClaimRequest) -> Outcome {
    let mut context = app.open_until_exit()?;
    if patience(args).is_zero() {
        let answer = context.service().claim(act_for, request)?;
        return Ok(shown(args, &answer.value).told(&answer));
    }
    let mut watch = watch_signals(&mut context)?;
    let request = &repeatable(&context, request);
    let answer = wait_for_turn(
        &mut context,
        &mut watch,
        patience(args),
        |service, waiting| service.claim_turn(act_for, request, waiting),
        |turn| match turn {
            CheckOutcome::Granted(grants) => CheckResult::Done(grants),
            CheckOutcome::Wait(wait) => CheckResult::Wait(wait),
        },
    )
    .map_err(unfinished)?;
    Ok(shown(args, &answer.value).told(&answer))
}

fn patience(args: &Args) -> Duration {
    args.wait.map_or(Duration::ZERO, |Span(length)| length)
}

fn request(args: &Args, app: &App) -> Result<ClaimRequest, CliError> {
    let usage = |message: String, hint: Hint| CliError::new(Class::Usage, "usage", message, hint);
    let typed = typed_keys(args)?;
    if typed.is_empty() {
        return Err(usage(
            "no item was given: KEY is missing".into(),
            Hint::run(
                "claim",
                ["issue:acme/web#42"],
                "to claim an issue, for example",
            ),
        ));
    }
    if typed.len() > 1 && !args.any && !args.all {
        let message = format!("{} items were given, without --any or --all", typed.len());
        return Err(usage(
            message,
            Hint::step("add --any to claim the first that is free, or --all to claim all of them"),
        ));
    }
    Ok(ClaimRequest {
        keys: app.keys(&typed)?,
        pick: if args.any { Pick::Any } else { Pick::All },
        request: args
            .request_id
            .as_deref()
            .map(RequestId::parse)
            .transpose()?,
        once: args.once,
        reopen: args.reopen,
        note: args.note.clone(),
        require_quiet: args.require_quiet || (args.any && !args.allow_survivors),
    })
}

/// What was typed; with `--any -` what stands on stdin.
fn typed_keys(args: &Args) -> Result<Vec<String>, CliError> {
    if !args.any || args.keys != ["-"] {
        return Ok(args.keys.clone());
    }
    let mut text = String::new();
    let limit = MAX_KEYS as u64 * 1024;
    std::io::stdin()
        .take(limit)
        .read_to_string(&mut text)
        .map_err(|error| {
            let message = format!("cannot read the items from stdin: {error}");
            CliError::new(
                Class::Usage,
                "usage",
                message,
                Hint::step("write one key per line"),
            )
        })?;
    Ok(text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(str::to_owned)
        .collect())
}

fn shown(args: &Args, grants: &[tenure_service::Grant]) -> Output {
    let mut text = Lines::default();
    for grant in grants {
        text.extend(&render::grant(grant));
    }
    match grants {
        [one] if !args.all => Output::new("claim", one, text),
        several => Output::new("claims", &several, text),
    }
}
