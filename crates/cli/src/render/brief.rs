//! What a model is told: who it is when it starts, and what happened to it since. And what the person beside it
//! is told: one line about what the model is warned of.
//!
//! Plain and short: at most fifteen lines at a start, a line for each notice, and never more than
//! `MAX_BYTES` in one answer; what does not fit is counted and comes with the next. Text from outside
//! stays inside its line, quoted where it could be taken for more than a name.

use tenure_app::keeper::EventReply;
use tenure_core::notice::{Notice, NoticeKind, Pending};
use tenure_core::text;
use tenure_core::worktree_changes::{Fate, WorktreeChanges};
use tenure_service::view::{HeldView, SessionView};
use tenure_service::{Advice, Brief, HandledEvent};

use crate::render::whereabouts;

/// How many claims or others are named before the rest is counted.
const NAMED: usize = 4;
/// How long an answer may be.
const MAX_BYTES: usize = 8 * 1024;
/// How long a line may be: it must fit beside others.
const MAX_LINE: usize = 1536;
/// How long a notice may be: a message of a thousand characters fits, whatever its alphabet.
const MAX_NOTICE: usize = 4608;
/// How much of an answer the brief and the warnings may take, so that a notice always fits.
const MAX_BRIEF: usize = 3 * 1024;
const MAX_WARNINGS: usize = 2 * 1024;
/// How long the line for the person may be.
const MAX_HEADLINE: usize = 240;
/// What the line takes that counts the rest.
const COUNT_LINE: usize = 64;

/// An answer for the model.
#[derive(Debug, Default)]
pub struct ModelPage {
    /// The text, line by line.
    pub lines: Vec<String>,
    pub notices: Vec<Notice>,
}

/// What the model is told.
pub fn context(brief: Option<&Brief>, notices: &Pending, advice: &Advice) -> ModelPage {
    let mut page = BriefLines::default();
    for line in brief.map(lines_of).unwrap_or_default() {
        page.add(&line, MAX_BRIEF);
    }
    let mut warnings = BriefLines::default();
    let mut unsaid = 0;
    for warning in &advice.warnings {
        let line = format!("tenure warning: {warning}");
        unsaid += usize::from(!warnings.add(&line, MAX_WARNINGS));
    }
    if unsaid > 0 {
        warnings.add(&format!("tenure: {unsaid} more warnings"), MAX_BYTES);
    }
    let room = MAX_BYTES - warnings.bytes - COUNT_LINE;
    let mut told = Vec::new();
    for notice in notices.iter() {
        let line = format!(
            "tenure notice ({}): {}",
            notice.kind.as_str(),
            notice.message
        );
        if page.add_notice(&line, room) {
            told.push(notice.clone());
        }
    }
    let left = notices.len() - told.len() + notices.more;
    if left > 0 {
        page.add(
            &format!("tenure: {left} more; run `tenure status` to see them"),
            MAX_BYTES,
        );
    }
    page.lines.append(&mut warnings.lines);
    ModelPage {
        lines: page.lines,
        notices: told,
    }
}

/// What the person is told: the first of what the model is warned of with this answer, and how much more there is.
/// What others tell or hand to the session is for the model alone.
pub fn message(told: &[Notice], advice: &Advice) -> Option<String> {
    let is_warning = |notice: &&Notice| {
        let kind = notice.kind;
        matches!(
            kind,
            NoticeKind::Lost | NoticeKind::Twin | NoticeKind::Warned
        )
    };
    let warnings = told.iter().filter(is_warning);
    let mut all = warnings
        .map(|notice| notice.message.as_str())
        .chain(advice.headlines.iter().map(String::as_str));
    let first = all.next()?;
    let blocked = if advice.block.is_some() && !advice.headlines.is_empty() {
        "tenure blocked this"
    } else {
        "tenure"
    };
    let line = format!("{blocked}: {}", text::line(first));
    let line = clipped(line, MAX_HEADLINE);
    Some(match all.count() {
        0 => line,
        more => format!("{line} ({more} more: run `tenure status`)"),
    })
}

/// Lines that fit into so many bytes.
#[derive(Debug, Default)]
struct BriefLines {
    lines: Vec<String>,
    bytes: usize,
}

impl BriefLines {
    /// Adds a line if it fits.
    fn add(&mut self, line: &str, most: usize) -> bool {
        self.put(sentence(line), most)
    }

    /// Adds a notice if it fits; one that does not comes with a later answer, which has room for it.
    fn add_notice(&mut self, line: &str, most: usize) -> bool {
        let line = text::line(line).into_owned();
        self.put(clipped(line, MAX_NOTICE), most)
    }

    fn put(&mut self, line: String, most: usize) -> bool {
        let fits = self.bytes + line.len() < most;
        if fits {
            self.bytes += line.len() + 1;
            self.lines.push(line);
        }
        fits
    }
}

/// One sentence for the model by itself, such as why a tool must not run.
pub fn sentence(text: &str) -> String {
    clipped(text::line(text).into_owned(), MAX_LINE)
}

fn clipped(mut line: String, longest: usize) -> String {
    if line.len() > longest {
        let end = (0..=longest).rev().find(|end| line.is_char_boundary(*end));
        line.truncate(end.unwrap_or(0));
        line.push('…');
    }
    line
}

fn lines_of(brief: &Brief) -> Vec<String> {
    let me = &brief.me;
    let mut lines = vec![format!(
        "tenure knows this session as {}, in {}.",
        me.handle,
        whereabouts(me)
    )];
    let held = me.claims.as_deref().unwrap_or_default();
    if held.is_empty() {
        lines.push("You hold no claims.".to_owned());
    } else {
        lines.push(format!("You hold {}.", claims(held)));
    }
    if !brief.regranted.is_empty() {
        lines.push(format!(
            "Claims given back to you: {}.",
            claims(&brief.regranted)
        ));
    }
    lines.extend(became_of_tree(&brief.worktree_changes));
    lines.extend(became_of_files(&brief.worktree_changes));
    if brief.others.is_empty() {
        lines.push("tenure knows of no other session here.".to_owned());
    } else {
        lines.push("Other sessions that work here now:".to_owned());
        lines.extend(brief.others.iter().take(NAMED).map(other));
        if brief.others.len() > NAMED {
            let more = brief.others.len() - NAMED + brief.more_others;
            lines.push(format!("  and {more} more; run `tenure ps` to see them"));
        }
    }
    lines.push(
        "Before you work on an item, run `tenure claim KEY` (KEY is #42, wp:041/WP03 or 'path:src/db/**', for \
         example). Exit 3 means that another session holds it."
            .to_owned(),
    );
    lines.push(
        "When it is finished, run `tenure release KEY --done`. Run `tenure status` to see all of this again."
            .to_owned(),
    );
    lines
}

fn became_of_tree(changes: &WorktreeChanges) -> Option<String> {
    if let Some(root) = &changes.gone {
        let root = text::name(root);
        return Some(format!("Your worktree {root} no longer exists."));
    }
    let named = |name: &Option<String>, none: &str| {
        let name = name.as_deref().map(|name| text::name(name).into_owned());
        name.unwrap_or_else(|| none.to_owned())
    };
    let branch = changes.branch.as_ref().map(|(was, is)| {
        let none = "a detached HEAD";
        format!(
            "the branch changed from {} to {}",
            named(was, none),
            named(is, none)
        )
    });
    let head = changes.head.as_ref().map(|(was, is)| {
        let short = |name: &Option<String>| -> String {
            named(name, "no commit").chars().take(9).collect()
        };
        format!("HEAD moved from {} to {}", short(was), short(is))
    });
    let changes: Vec<String> = branch.into_iter().chain(head).collect();
    (!changes.is_empty()).then(|| format!("Since you last worked here, {}.", changes.join(" and ")))
}

fn became_of_files(changes: &WorktreeChanges) -> Option<String> {
    let files = &changes.files;
    let mut named: Vec<String> = files
        .iter()
        .take(NAMED)
        .map(|(file, fate)| (text::name(file), fate))
        .map(|(file, fate)| match fate {
            Fate::WrittenBy(handle) => format!("{file} (written by {handle})"),
            Fate::Changed => format!("{file} (changed on disk)"),
            Fate::Gone => format!("{file} (deleted)"),
        })
        .collect();
    if files.len() > NAMED {
        named.push(format!("{} more", files.len() - NAMED));
    }
    let list = named.join(", ");
    (!files.is_empty())
        .then(|| format!("Files that you wrote have changed since: {list}. Read them again."))
}

fn claims(held: &[HeldView]) -> String {
    let mut named: Vec<String> = held
        .iter()
        .take(NAMED)
        .map(|claim| format!("{} (epoch {})", text::name(&claim.key), claim.epoch))
        .collect();
    if held.len() > NAMED {
        named.push(format!("{} more", held.len() - NAMED));
    }
    named.join(", ")
}

fn other(session: &SessionView) -> String {
    let state = session.activity.unwrap_or(session.state);
    let branch = match &session.branch {
        Some(branch) => format!(" on {}", text::name(branch)),
        None => String::new(),
    };
    let held = session.claims.as_deref().unwrap_or_default();
    let holds = if held.is_empty() {
        String::new()
    } else {
        format!(", holds {}", claims(held))
    };
    let (handle, dir) = (&session.handle, text::name(&session.dir));
    format!("  {handle} ({state}{branch} in {dir}){holds}")
}
/// What is said to an event that was recorded, and the notices among it.
pub(crate) fn render(
    hook: &str,
    handled: &HandledEvent,
    notices: &Pending,
) -> (EventReply, Vec<Notice>) {
    let told = context(handled.brief.as_ref(), notices, &handled.advice);
    let block = handled.advice.block.as_deref().map(sentence);
    // Beside a denial an agent may drop the rest of the answer.
    let delivers = if block.is_none() {
        told.notices
    } else {
        Vec::new()
    };
    let reply = EventReply {
        lines: told.lines,
        message: message(&delivers, &handled.advice),
        block,
        token: handled.token.clone(),
        foreign_to: handled.foreign_to.as_ref().map(ToString::to_string),
        notes: unclear(hook, handled).into_iter().collect(),
        notifies: !delivers.is_empty(),
        ..EventReply::default()
    };
    (reply, delivers)
}

/// Says that a program's process is unknown, if it registers that way or nothing is recorded.
fn unclear(name: &str, handled: &HandledEvent) -> Option<String> {
    let why = handled.unclear.as_ref()?;
    match (&handled.session, handled.registered) {
        (None, _) => Some(format!(
            "tenure: hook {name}: {why}; nothing was recorded. Set \"pid\" or \"session_id\" in the event"
        )),
        (Some(handle), Some(_)) => Some(format!(
            "tenure: hook {name}: {why}; only its lease keeps {handle} alive. Set \"pid\" in the event to the process that does the work"
        )),
        (Some(_), None) => None,
    }
}
