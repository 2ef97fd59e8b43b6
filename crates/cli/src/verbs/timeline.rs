use std::path::{Path, PathBuf};

use serde_json::{Map, json};
use tenure_app::open::Context;
use tenure_core::text;
use tenure_core::timeline::TimelineCursor;
use tenure_host::file::write_atomic;
use tenure_service::answer::{Class, Hint};
use tenure_service::view::TimelineView;
use tenure_service::{Answer, TimelineRequest};

use crate::app::App;
use crate::lines::Lines;
use crate::long_list::LongList;
use crate::output::{CliError, Outcome, Output};
use crate::screen;
use crate::since::since;
use crate::timeline::{holds, page, trace};

/// Show who held which item from when to when, and how each claim ended
///
/// What is still held comes first, then what ended, the latest end first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure timeline
  tenure timeline --key '#42' --since 7d
  tenure timeline --session claude-k7qd
  tenure timeline --since 7d --html week.html      a page for a browser
  tenure timeline --json --limit 100 | jq -r .next      the value of --after for the next 100")]
pub struct Args {
    /// What ended before is left out: a duration (7d) or a time (2026-11-15T08:00:00Z)
    #[arg(long, value_name = "WHEN", default_value = "24h")]
    since: String,

    /// Only this item
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Show at most N claims; 0 for all [default: 200, or all with --json, --html or --trace]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Go on where an earlier answer ended: its `next`
    #[arg(long, value_name = "CURSOR")]
    after: Option<TimelineCursor>,

    /// Write a page for a browser; it needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write a trace for Perfetto (ui.perfetto.dev) or chrome://tracing
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// How many claims are shown to people by default.
const MAX_SHOWN: usize = 200;

pub fn run(args: &Args, app: &App) -> Outcome {
    let is_written = args.html.is_some() || args.trace.is_some();
    let request = TimelineRequest {
        since: Some(since(&args.since, "timeline")?),
        key: args.key.as_deref().map(|key| app.key(key)).transpose()?,
        session: app.session.clone(),
        after: args.after.clone(),
        limit: if is_written {
            args.limit.unwrap_or(0)
        } else {
            app.limit(args.limit, MAX_SHOWN)
        },
    };
    let mut context = app.open()?;
    let first = context.service().timeline(&request)?;
    if is_written {
        return write(args, &mut context, request, first);
    }
    let mut list = LongList::begin(app, "holds", &first)?;
    let mut parts = Map::new();
    parts.insert("now".into(), json!(first.value.now));
    parts.insert("since".into(), json!(request.since));
    parts.insert("next".into(), json!(null));
    let mut next = None;
    let mut is_first = true;
    let ended = each_page(&mut context, request, first, |answer| {
        let page = &answer.value;
        next.clone_from(&page.next);
        let is_begin = std::mem::take(&mut is_first);
        list.page(&page.holds, answer, |all| match all {
            [] if !is_begin => Lines::default(),
            all => holds(all, page.now, screen::columns()),
        })
    });
    if let Some(next) = next {
        parts.insert("next".into(), json!(next));
        if ended.is_ok() {
            list.say(&more(args, app).into())?;
        }
    }
    list.end(ended, parts)
}

/// Shows one page after the other, as many as are wanted, until the reader has left.
fn each_page(
    context: &mut Context,
    mut request: TimelineRequest,
    mut answer: Answer<TimelineView>,
    mut show: impl FnMut(&Answer<TimelineView>) -> Result<bool, CliError>,
) -> Result<(), CliError> {
    let is_limited = request.limit > 0;
    loop {
        let is_read = show(&answer)?;
        request.limit = request.limit.saturating_sub(answer.value.holds.len());
        let is_done = is_limited && request.limit == 0;
        let next = answer.value.next.as_ref().filter(|_| is_read && !is_done);
        let Some(next) = next.and_then(|next| next.parse().ok()) else {
            return Ok(());
        };
        request.after = Some(next);
        answer = context.service().timeline(&request)?;
    }
}

/// Writes what was asked for into files.
fn write(
    args: &Args,
    context: &mut Context,
    request: TimelineRequest,
    first: Answer<TimelineView>,
) -> Outcome {
    let mut told = first.clone();
    told.value.holds.clear();
    each_page(context, request, first, |answer| {
        let whole = &mut told.value;
        whole.holds.extend(answer.value.holds.iter().cloned());
        whole.next.clone_from(&answer.value.next);
        Ok(true)
    })?;
    let view = &told.value;
    let mut text = Lines::default();
    let mut put = |path: &Path, content: String| {
        write_atomic(path, content.as_bytes()).map_err(|error| {
            let message = format!("cannot write {}: {error}", path.display());
            let hint = Hint::verb("timeline", "to print it instead");
            CliError::new(Class::Refused, "not_written", message, hint)
        })?;
        text.line(format!("wrote {}", path.display()));
        Ok::<(), CliError>(())
    };
    if let Some(path) = &args.html {
        put(path, page::page(view))?;
    }
    if let Some(path) = &args.trace {
        put(path, trace::trace(view).to_string())?;
    }
    let written = json!({"html": args.html, "trace": args.trace, "claims": view.holds.len()});
    Ok(Output::new("written", &written, text).told(&told))
}

/// That there are more, and the command that shows them.
fn more(args: &Args, app: &App) -> String {
    let mut command = "tenure timeline".to_owned();
    let since = Some(args.since.as_str()).filter(|since| *since != "24h");
    for (name, value) in [
        ("since", since),
        ("key", args.key.as_deref()),
        ("session", app.session.as_deref()),
    ] {
        let value = value.map(|value| format!(" --{name} {}", text::shell(value)));
        command.push_str(&value.unwrap_or_default());
    }
    format!("there are more; run `{command} --limit 0` to see them")
}
