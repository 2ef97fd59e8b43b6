//! What a model is told: who it is when it starts, and what happened to it since.
//!
//! Plain and short: at most fifteen lines at a start, a line for each notice.

use tenure_core::meanwhile::{Fate, Meanwhile};
use tenure_core::notice::Notice;
use tenure_core::service::{Advice, Brief};
use tenure_core::view::{HeldView, SessionView};

use crate::render::whereabouts;

/// How many claims or others are named before the rest is counted.
const NAMED: usize = 4;

/// The text for the model, if there is anything to say.
pub fn context(brief: Option<&Brief>, notices: &[Notice], advice: &Advice) -> Option<String> {
    let mut lines = brief.map(lines_of).unwrap_or_default();
    lines.extend(notices.iter().map(|notice| {
        let message = notice.message.replace('\n', " ");
        format!("tenure notice ({}): {message}", notice.kind.as_str())
    }));
    lines.extend(
        advice
            .warnings
            .iter()
            .map(|warning| format!("tenure warning: {warning}")),
    );
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn lines_of(brief: &Brief) -> Vec<String> {
    let me = &brief.me;
    let mut lines = vec![format!(
        "You are {} to tenure, in {}.",
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
        lines.push(format!("Given back to you: {}.", claims(&brief.regranted)));
    }
    lines.extend(
        brief
            .taken
            .iter()
            .take(2)
            .map(|taken| format!("You lost {taken}.")),
    );
    lines.extend(became_of_tree(&brief.meanwhile));
    lines.extend(became_of_files(&brief.meanwhile));
    if brief.others.is_empty() {
        lines.push("Nobody else works here now.".to_owned());
    } else {
        lines.push("Others who work here now:".to_owned());
        lines.extend(brief.others.iter().take(NAMED).map(other));
        if brief.others.len() > NAMED {
            let more = brief.others.len() - NAMED;
            lines.push(format!("  and {more} more: tenure ps"));
        }
    }
    lines.push(
        "Before you work on an item: `tenure claim KEY` (such as #42, wp:041/WP03 or 'path:src/db/**'); \
         exit 3 means that another has it."
            .to_owned(),
    );
    lines.push(
        "When it is finished: `tenure release KEY --done`. `tenure status` shows all of this again."
            .to_owned(),
    );
    lines
}

fn became_of_tree(meanwhile: &Meanwhile) -> Option<String> {
    if let Some(root) = &meanwhile.gone {
        return Some(format!("The worktree {root} that you worked in is gone."));
    }
    let named = |name: &Option<String>, none: &str| name.clone().unwrap_or_else(|| none.to_owned());
    let branch = meanwhile.branch.as_ref().map(|(was, is)| {
        let none = "a detached HEAD";
        format!("{} was switched to {}", named(was, none), named(is, none))
    });
    let head = meanwhile.head.as_ref().map(|(was, is)| {
        let short = |name: &Option<String>| -> String {
            named(name, "no commit").chars().take(9).collect()
        };
        format!("HEAD moved from {} to {}", short(was), short(is))
    });
    let changes: Vec<String> = branch.into_iter().chain(head).collect();
    (!changes.is_empty()).then(|| format!("Since you last worked here {}.", changes.join(" and ")))
}

fn became_of_files(meanwhile: &Meanwhile) -> Option<String> {
    let files = &meanwhile.files;
    let mut named: Vec<String> = files
        .iter()
        .take(NAMED)
        .map(|(file, fate)| match fate {
            Fate::WrittenBy(handle) => format!("{file} (written by {handle})"),
            Fate::Changed => format!("{file} (changed on disk)"),
            Fate::Gone => format!("{file} (gone)"),
        })
        .collect();
    if files.len() > NAMED {
        named.push(format!("{} more", files.len() - NAMED));
    }
    let list = named.join(", ");
    (!files.is_empty())
        .then(|| format!("Files of yours that are not as you left them: {list}. Read them again."))
}

fn claims(held: &[HeldView]) -> String {
    let mut named: Vec<String> = held
        .iter()
        .take(NAMED)
        .map(|claim| format!("{} (epoch {})", claim.key, claim.epoch))
        .collect();
    if held.len() > NAMED {
        named.push(format!("{} more", held.len() - NAMED));
    }
    named.join(", ")
}

fn other(session: &SessionView) -> String {
    let state = session.activity.unwrap_or(session.state);
    let branch = match &session.branch {
        Some(branch) => format!(" on {branch}"),
        None => String::new(),
    };
    let held = session.claims.as_deref().unwrap_or_default();
    let holds = match held.is_empty() {
        true => String::new(),
        false => format!(", holds {}", claims(held)),
    };
    let handle = &session.handle;
    format!("  {handle} ({state}{branch} in {}){holds}", session.dir)
}
