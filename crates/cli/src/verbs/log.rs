use std::time::Duration;

use serde_json::{Value, json};
use tenure_app::open::Context;
use tenure_app::watch::{Next, on_change};
use tenure_core::event::EventFilter;
use tenure_core::id::Cursor;
use tenure_core::key::Key;
use tenure_core::time::{Span, Timestamp};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::view::EventView;

use crate::app::App;
use crate::child::exit_of_watching;
use crate::output::{CliError, Outcome, Output, put};
use crate::render;

/// Show what happened: every change with who, by what means, on what evidence
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure log
  tenure log issue:acme/web#42
  tenure log claude-k7qd
  tenure log --since 2h -f
  tenure log claude-k7qd --json | jq '.events[].kind'")]
pub struct Args {
    /// Only what happened to this item, or to this session: its handle, its id, or any unique part of either
    #[arg(value_name = "KEY|SESSION")]
    of: Option<String>,

    /// Go on showing what happens, until interrupted
    #[arg(long, short)]
    follow: bool,

    /// Only since then: a time ago (2h) or a moment (2026-11-15T08:00:00Z)
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    /// Only after this place in the log
    #[arg(long, value_name = "CURSOR")]
    after: Option<u64>,

    /// At most this many, the newest; 0 shows all [default: 100, with --json all unless -f]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// How many entries are shown unless the caller says otherwise.
const MOST_SHOWN: usize = 100;
/// How long a follower rests between two looks while much happens.
const REST: Duration = Duration::from_millis(100);
/// How often it looks again whatever happens.
const AT_LEAST_EVERY: Duration = Duration::from_secs(30);

pub fn run(args: &Args, app: &App) -> Outcome {
    let (key, session) = subject(args, app)?;
    let mut context = app.open()?;
    let mut filter = EventFilter {
        key,
        session: None,
        after: args.after.map(Cursor),
        since: args.since.as_deref().map(since).transpose()?,
        limit: if args.follow {
            args.limit.unwrap_or(MOST_SHOWN)
        } else {
            app.limit(args.limit, MOST_SHOWN)
        },
        ..EventFilter::default()
    };
    let missed = |problem: Problem| not_found(problem, args);
    if args.follow {
        // Once: a part of a name that fits one session now may fit two later.
        let found = session.map(|name| context.service().log_session(name));
        let found = found.transpose().map_err(Problem::from);
        filter.session = found.map_err(missed)?.map(|answer| answer.value);
        return follow(&mut context, &mut filter, app);
    }
    let answer = context.service().log(&filter, session);
    let answer = answer.map_err(Problem::from).map_err(missed)?;
    let events = &answer.value.items;
    let mut text = render::events(events);
    let which = if args.after.is_some() {
        "later"
    } else {
        "earlier"
    };
    render::rest(
        &mut text,
        answer.value.more,
        &format!("tenure log --limit 0 shows {which} ones"),
    );
    Ok(Output::new("events", events, text)
        .with("more", &answer.value.more)
        .with("cursor", &last_cursor(events, &filter))
        .told(&answer))
}

/// What was named: an item, or a session. A key has a scheme or is a number with its mark, and no session's name
/// looks like that.
fn subject<'a>(args: &'a Args, app: &'a App) -> Result<(Option<Key>, Option<&'a str>), CliError> {
    let flag = app.session.as_deref();
    let Some(word) = args.of.as_deref() else {
        return Ok((None, flag));
    };
    if word.contains([':', '#', '!']) {
        return Ok((Some(app.key(word)?), flag));
    }
    match flag {
        None => Ok((None, Some(word))),
        Some(flag) => {
            let message = format!("two sessions were named, {word:?} and --session {flag:?}");
            let hint = Hint::run("log", [word], "to see what happened to that one");
            Err(CliError::new(Class::Usage, "usage", message, hint))
        }
    }
}

/// A word that was not called a session may have been meant as a key.
fn not_found(mut problem: Problem, args: &Args) -> CliError {
    if let Some(word) = args
        .of
        .as_deref()
        .filter(|_| problem.kind == "no_such_session")
    {
        problem.message = format!(
            "there is no session {word:?}, and it is not a key: a key has a scheme, such as wp:{word}"
        );
        problem.lines.clear();
    }
    let candidates = problem.data.get("candidates").and_then(Value::as_array);
    let first = candidates.and_then(|all| all.first()?.as_str());
    if let Some(first) = first.filter(|_| args.of.is_some()) {
        problem.hints = vec![Hint::run("log", [first], "for one of them")];
    }
    problem.into()
}

/// A span before now, or a moment.
fn since(text: &str) -> Result<Timestamp, CliError> {
    if let Ok(Span(span)) = text.parse::<Span>() {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        return Ok(Timestamp(
            tenure_host::clock::wall().0.saturating_sub(millis),
        ));
    }
    text.parse::<Timestamp>().map_err(|_| {
        let message = format!("--since {text:?} is neither a span nor a time");
        CliError::new(
            Class::Usage,
            "usage",
            message,
            Hint::run(
                "log",
                ["--since", "2h"],
                "for example; a moment is written 2026-11-15T08:00:00Z",
            ),
        )
    })
}

fn last_cursor(events: &[EventView], filter: &EventFilter) -> Cursor {
    let before = filter.after.unwrap_or(Cursor(0));
    events.last().map_or(before, |event| Cursor(event.cursor))
}

/// Shows what happened and then what happens; ends with a signal, or when nobody reads it any more.
fn follow(context: &mut Context, filter: &mut EventFilter, app: &App) -> Outcome {
    let ended = on_change::<(), CliError>(context, REST, |context| {
        let answer = context.service().log(filter, None)?;
        let events = &answer.value.items;
        if !show_each(events, app)? {
            return Ok(Next::Done(()));
        }
        let channel = app.style.tell(&answer.notices);
        app.delivered(&answer.notices, channel);
        // From the first look on it goes forward, and reads at once what one look did not hold.
        let full = filter.limit > 0 && events.len() == filter.limit;
        let more = full && filter.after.is_some();
        filter.after = Some(last_cursor(events, filter));
        Ok(Next::Again {
            processes: Vec::new(),
            limit: if more { Duration::ZERO } else { AT_LEAST_EVERY },
        })
    })?;
    Ok(Output::silent(exit_of_watching(&ended)))
}

/// A stream has one object on each line; false where nobody reads it any more.
fn show_each(events: &[EventView], app: &App) -> Result<bool, CliError> {
    for event in events {
        let goes_on = if app.style.json {
            put(&json!({"v": 1, "event": event}).to_string())
        } else {
            put(render::events(std::slice::from_ref(event)).as_str())
        };
        if !goes_on? {
            return Ok(false);
        }
    }
    Ok(true)
}
