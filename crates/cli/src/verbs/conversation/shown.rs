//! Conversations as people read them.

use tenure_core::id::worker_name;
use tenure_core::text;
use tenure_service::History;
use tenure_service::view::{ConversationView, PastIdView};

use crate::lines::Lines;
use crate::output::{Cell, ago, table};

/// `claude on issue:acme/web#6 (NATIVE ID)`.
pub fn name(one: &ConversationView) -> String {
    let native_id = one.native_id.as_deref().unwrap_or("none");
    format!("{} on {} ({native_id})", worker(one), one.root)
}

/// `claude`, or `claude as reviewer`.
fn worker(one: &ConversationView) -> String {
    worker_name(&one.agent, one.role.as_deref())
}

/// One conversation on one line.
pub fn line(one: &ConversationView) -> Lines {
    let dir = one.home.as_ref().map_or("", |home| home.dir.as_str());
    let via = if one.item == one.root {
        String::new()
    } else {
        format!(", continued by {}", one.item)
    };
    Lines::from(format!(
        "{} in {}, revision {}{via}",
        name(one),
        text::name(dir),
        one.revision
    ))
}

/// One conversation with all that is known.
pub fn one(one: &ConversationView) -> Lines {
    let now = tenure_host::clock::wall();
    let mut lines = line(one);
    lines.line(format!("  {}", fitness(one)));
    if let Some(run) = &one.run {
        lines.line(format!("  in use by run {run}"));
    }
    if let Some(at) = one.set_at {
        lines.line(format!("  set {} by {}", ago(at, now), by(one)));
    }
    if let Some(home) = &one.home {
        if one.elsewhere.is_some() {
            lines.line(format!("  host {}, user {}", home.host_id, home.user));
        }
        if let Some(own) = &home.agent_home {
            lines.line(format!("  kept in {}", text::name(own)));
        }
    }
    let others: Vec<&str> = one
        .linked
        .iter()
        .filter(|item| **item != one.item)
        .map(String::as_str)
        .collect();
    if !others.is_empty() {
        lines.line(format!("  also continued by {}", others.join(", ")));
    }
    lines
}

fn by(one: &ConversationView) -> String {
    match (&one.set_by_run, &one.set_by) {
        (Some(run), _) => format!("run {run}"),
        (None, Some(session)) => session.handle.clone(),
        (None, None) => "a caller outside any session".to_owned(),
    }
}

fn fitness(one: &ConversationView) -> String {
    let place = match one.elsewhere {
        Some("host") => "it is on another host",
        Some("user") => "it is another user's",
        Some("repository") => "it is in a clone from another host",
        Some(_) => "the agent keeps it in another directory of its own",
        None => "",
    };
    if !place.is_empty() {
        return format!("cannot be resumed here: {place}");
    }
    match (one.fitness, one.existence) {
        (Some("unknown"), Some("absent")) => {
            format!("cannot be resumed: {} does not have it", one.agent)
        }
        (Some("unknown"), _) => {
            format!("cannot be resumed: {} did not find it last time", one.agent)
        }
        (Some("unusable"), _) => "cannot be resumed: its history was refused last time".to_owned(),
        (_, Some("cannot_tell")) => {
            format!("can be resumed, if {} still has it", one.agent)
        }
        _ => "can be resumed".to_owned(),
    }
}

/// A word for a list.
fn state(one: &ConversationView) -> String {
    if one.closed_at.is_some() {
        return "closed".to_owned();
    }
    if one.set_aside {
        return "set aside".to_owned();
    }
    match &one.run {
        Some(run) => format!("in {run}"),
        None if one.elsewhere.is_some() => "elsewhere".to_owned(),
        None => match one.fitness {
            Some("resume") => "resumable".to_owned(),
            Some("unknown") => "not found".to_owned(),
            other => other.unwrap_or("-").to_owned(),
        },
    }
}

pub fn list(all: &[ConversationView]) -> Lines {
    if all.is_empty() {
        return "no conversations".into();
    }
    let now = tenure_host::clock::wall();
    let rows: Vec<Vec<Cell>> = all
        .iter()
        .map(|one| {
            let item = match one.linked.as_slice() {
                [] => one.root.clone(),
                linked => format!("{} (and {})", one.root, linked.join(", ")),
            };
            let dir = one.home.as_ref().map_or("", |home| home.dir.as_str());
            [
                item,
                worker(one),
                one.native_id.clone().unwrap_or_else(|| "-".to_owned()),
                state(one),
                one.set_at.map_or("-".to_owned(), |at| ago(at, now)),
                text::name(dir).into_owned(),
            ]
            .map(Cell::plain)
            .to_vec()
        })
        .collect();
    table(
        &["ITEM", "AGENT", "NATIVE ID", "STATE", "SET", "DIRECTORY"],
        &rows,
    )
}

pub fn history(history: &History) -> Lines {
    let now = tenure_host::clock::wall();
    let who = |run: &Option<String>, session: Option<&str>| match (run, session) {
        (Some(run), _) => run.clone(),
        (None, Some(handle)) => handle.to_owned(),
        (None, None) => "-".to_owned(),
    };
    let row = |one: &PastIdView| {
        let set_by = one.set_by.as_ref().map(|session| session.handle.as_str());
        let ended_by = one.ended_by.as_ref().map(|session| session.handle.as_str());
        [
            one.native_id.clone(),
            ago(one.from, now),
            who(&one.set_by_run, set_by),
            one.until.map_or("-".to_owned(), |at| ago(at, now)),
            one.why.unwrap_or("current").to_owned(),
            who(&one.ended_by_run, ended_by),
        ]
        .map(Cell::plain)
        .to_vec()
    };
    let rows: Vec<Vec<Cell>> = history.ids.iter().map(row).collect();
    let mut lines = Lines::default();
    let one = &history.conversation;
    if one.item != one.root {
        lines.line(format!("{} continues {}", one.item, one.root));
    }
    lines.extend(&table(
        &["NATIVE ID", "SET", "BY", "ENDED", "WHY", "BY"],
        &rows,
    ));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_by_run(run: Option<&str>) -> ConversationView {
        ConversationView {
            agent: "mine".into(),
            role: None,
            item: "wp:1".into(),
            root: "wp:1".into(),
            linked: Vec::new(),
            set_aside: false,
            native_id: Some("7f3c".into()),
            home: None,
            elsewhere: None,
            set_at: None,
            set_by: None,
            set_by_run: run.map(str::to_owned),
            fitness: Some("resume"),
            existence: None,
            run: None,
            closed_at: None,
            revision: 5,
        }
    }

    #[test]
    fn who_set_a_conversation_is_named() {
        assert_eq!(by(&set_by_run(Some("r-2m4zw9"))), "run r-2m4zw9");
        assert_eq!(by(&set_by_run(None)), "a caller outside any session");
    }
}
