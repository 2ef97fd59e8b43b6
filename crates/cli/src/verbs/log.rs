use std::time::Duration;

use serde_json::{Map, Value, json};
use tenure_app::location;
use tenure_app::open::Context;
use tenure_app::outage::{self, LateHook};
use tenure_app::watch::{Next, on_change};
use tenure_core::event::{EventFilter, EventKind};
use tenure_core::id::Cursor;
use tenure_core::key::Key;
use tenure_core::text;
use tenure_core::time::Timestamp;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::view::EventView;
use tenure_service::{Answer, LogStart, PAGE};

use crate::app::App;
use crate::child::exit_of_watching;
use crate::lines::Lines;
use crate::long_list::LongList;
use crate::output::{CliError, Outcome, Output, put};
use crate::render;
use crate::since::since;

/// Show the event log: every change with who made it, how, and on what evidence
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure log
  tenure log issue:acme/web#42
  tenure log claude-k7qd
  tenure log --since 2h -f
  tenure log --kind claim.replaced --since 7d --count    how often a dead holder was replaced
  tenure log --kind session.twin --count                 how often a twin was seen
  tenure log --kind hook.late --since 24h --count        how often a hook was late
  tenure log claude-k7qd --json | jq '.events[].kind'")]
pub struct Args {
    /// Only events of this item, or of this session (handle, id, or a unique part of either)
    #[arg(value_name = "KEY|SESSION")]
    of: Option<String>,

    /// Keep printing new events until interrupted
    #[arg(long, short)]
    follow: bool,

    /// Only events of this kind, such as claim.granted; hook.late for hooks that timed out
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,

    /// Print only how many there are
    #[arg(long, conflicts_with_all = ["follow", "limit"])]
    count: bool,

    /// Only events since then: a duration (2h) or a time (2026-11-15T08:00:00Z)
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    /// Only events after this cursor
    #[arg(long, value_name = "CURSOR")]
    after: Option<u64>,

    /// Show at most N events, the newest; 0 for all [default: 100, or all with --json unless -f]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// How many events are shown by default.
const MAX_SHOWN: usize = 100;
/// How long a follower rests between two looks while much happens.
const REST: Duration = Duration::from_millis(100);
/// How often it looks again whatever happens.
const AT_LEAST_EVERY: Duration = Duration::from_secs(30);

/// Hooks that timed out are counted outside the store, which they waited for.
const LATE_HOOK: &str = "hook.late";

pub fn run(args: &Args, app: &App) -> Outcome {
    let (key, session) = subject(args, app)?;
    let since = args
        .since
        .as_deref()
        .map(|text| since(text, "log"))
        .transpose()?;
    if args.kind.as_deref() == Some(LATE_HOOK) {
        return late_hooks(args, since, app);
    }
    let kind = args.kind.as_deref().map(kind).transpose()?;
    let mut context = app.open()?;
    let filter = EventFilter {
        key,
        kind,
        session: None,
        after: args.after.map(Cursor),
        since,
        limit: if args.follow {
            args.limit.unwrap_or(MAX_SHOWN)
        } else {
            app.limit(args.limit, MAX_SHOWN)
        },
        ..EventFilter::default()
    };
    let missed = |problem: Problem| not_found(problem, args);
    if args.count {
        let answer = context.service().count_log(&filter, session);
        let answer = answer.map_err(Problem::from).map_err(missed)?;
        return Ok(counted(answer.value).told(&answer));
    }
    let start = context.service().log_start(&filter, session);
    let start = start.map_err(Problem::from).map_err(missed)?;
    if args.follow {
        return follow(&mut context, &start, app);
    }
    let mut list = LongList::begin(app, "events", &start)?;
    let mut cursor = args.after.map_or(Cursor(0), Cursor);
    let ended = show_all(&mut context, &start.value, &mut list, &mut cursor);
    if ended.is_ok() {
        list.say(&rest(args, &start.value))?;
    }
    let mut parts = Map::new();
    parts.insert("more".into(), json!(start.value.more));
    parts.insert("more_is_least".into(), json!(start.value.more_is_least));
    parts.insert("cursor".into(), json!(cursor));
    if let Some(oldest) = start.value.oldest {
        parts.insert("oldest".into(), json!(oldest));
    }
    list.end(ended, parts)
}

fn counted(count: usize) -> Output {
    Output::new("count", &count, count.to_string())
}

fn kind(text: &str) -> Result<EventKind, CliError> {
    EventKind::parse(text).map_err(|_| {
        let known = EventKind::NAMES.join(", ");
        let message =
            format!("unknown kind of event {text:?}; expected one of {known}, {LATE_HOOK}");
        let hint = Hint::run(
            "log",
            ["--limit", "20"],
            "to see the kinds of the newest events",
        );
        CliError::new(Class::Usage, "usage", message, hint)
    })
}

/// The hooks that timed out: which agent's event, when, and what they waited for.
fn late_hooks(args: &Args, since: Option<Timestamp>, app: &App) -> Outcome {
    if args.of.is_some() || app.session.is_some() || args.follow || args.after.is_some() {
        let message = format!("{LATE_HOOK} is counted for all agents of this machine together");
        let hint = Hint::run("log", ["--kind", LATE_HOOK, "--count"], "to count them");
        return Err(CliError::new(Class::Usage, "usage", message, hint));
    }
    let dir = location::state_path();
    let mut late = dir.map_or_else(Vec::new, |dir| outage::late_hooks(&dir, since));
    if args.count {
        return Ok(counted(late.len()));
    }
    let limit = app.limit(args.limit, MAX_SHOWN);
    let more = match limit {
        0 => 0,
        limit => late.len().saturating_sub(limit),
    };
    late.drain(..more);
    let events: Vec<EventView> = late.iter().map(event_of).collect();
    let mut text = render::events(&events);
    let all = format!("tenure log --kind {LATE_HOOK} --limit 0");
    render::rest(&mut text, more, false, &all);
    Ok(Output::new("events", &events, text).with("more", &more))
}

fn event_of(hook: &LateHook) -> EventView {
    EventView {
        cursor: 0,
        at: hook.at,
        kind: LATE_HOOK.to_owned(),
        session: None,
        actor: None,
        key: None,
        epoch: None,
        mechanism: format!("hook {}", hook.agent),
        evidence: format!("{}: {}", hook.event, hook.why),
        reason: None,
    }
}

/// Shows the log page by page, and moves the cursor to the last event that was shown.
fn show_all(
    context: &mut Context,
    start: &LogStart,
    list: &mut LongList<'_>,
    cursor: &mut Cursor,
) -> Result<(), CliError> {
    if let Some(oldest) = start.oldest {
        list.say(&told_of_missed(oldest).into())?;
    }
    let mut filter = start.filter.clone();
    let mut shown = 0;
    loop {
        let answer = context.service().log_page(&filter)?;
        let events = &answer.value.items;
        if let Some(last) = events.last() {
            *cursor = Cursor(last.cursor);
        }
        let is_first = shown == 0;
        shown += events.len();
        let is_read = list.page(events, &answer, |events| match events {
            [] if !is_first => Lines::default(),
            events => render::events(events),
        })?;
        filter.after = answer.value.next;
        if start.filter.limit > 0 {
            filter.limit = start.filter.limit.saturating_sub(shown);
        }
        let is_done = start.filter.limit > 0 && filter.limit == 0;
        if !is_read || is_done || filter.after.is_none() {
            return Ok(());
        }
    }
}

/// How many older ones there are.
fn rest(args: &Args, start: &LogStart) -> Lines {
    let of = args.of.as_deref();
    let of = of.map_or(String::new(), |of| format!(" {}", text::shell(of)));
    let mut text = Lines::default();
    let command = format!("tenure log{of} --limit 0");
    render::rest(&mut text, start.more, start.more_is_least, &command);
    text
}

fn told_of_missed(oldest: Cursor) -> String {
    format!("events before cursor {} are no longer stored", oldest.0)
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
            let message = format!("two sessions were given: {word:?} and --session {flag:?}");
            let hint = Hint::run("log", [word], "to see the events of the first");
            Err(CliError::new(Class::Usage, "usage", message, hint))
        }
    }
}

/// A word that is not a session may have been meant as a key.
fn not_found(mut problem: Problem, args: &Args) -> CliError {
    if let Some(word) = args
        .of
        .as_deref()
        .filter(|_| problem.kind == "no_such_session")
    {
        problem.message = format!(
            "no session is named {word:?}, and it is not a key; keys have a scheme, such as wp:{word}"
        );
        problem.lines.clear();
    }
    let candidates = problem.data.get("candidates").and_then(Value::as_array);
    let first = candidates.and_then(|all| all.first()?.as_str());
    if let Some(first) = first.filter(|_| args.of.is_some()) {
        problem.hints = vec![Hint::run("log", [first], "to see the events of the first")];
    }
    problem.into()
}

/// Shows past events and then new ones, until a signal comes or the reader leaves.
fn follow(context: &mut Context, start: &Answer<LogStart>, app: &App) -> Outcome {
    let channel = app.style.tell(&start.notices);
    app.delivered(&start.notices, channel);
    // From the first look on it goes forward, and reads at once what one look did not hold.
    let mut filter = EventFilter {
        after: start.value.filter.after.or(Some(Cursor(0))),
        limit: PAGE,
        ..start.value.filter.clone()
    };
    if let Some(oldest) = start.value.oldest {
        let goes_on = if app.style.json {
            put(&json!({"v": 1, "oldest": oldest}).to_string())
        } else {
            put(&told_of_missed(oldest))
        };
        goes_on?;
    }
    let ended = on_change::<(), CliError>(context, REST, |context| {
        let answer = context.service().log(&filter, None)?;
        let events = &answer.value.items;
        if !show_each(events, app)? {
            return Ok(Next::Done(()));
        }
        let channel = app.style.tell(&answer.notices);
        app.delivered(&answer.notices, channel);
        let is_full = events.len() == filter.limit;
        if let Some(last) = events.last() {
            filter.after = Some(Cursor(last.cursor));
        }
        Ok(Next::Again {
            processes: Vec::new(),
            limit: if is_full {
                Duration::ZERO
            } else {
                AT_LEAST_EVERY
            },
        })
    })?;
    Ok(Output::silent(exit_of_watching(&ended)))
}

/// Prints one event per line; false if the reader has left.
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
