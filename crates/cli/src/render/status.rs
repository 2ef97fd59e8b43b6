//! The state of a session: for people on at most twenty lines, for a status line on one.

use tenure_core::text;
use tenure_core::time::Span;
use tenure_host::clock;
use tenure_service::view::SessionView;
use tenure_service::{Glance, Status};

use crate::columns::wrapped;
use crate::lines::Lines;
use crate::output::{Painted, paint, paint_for_agent};
use crate::render::{holds, whereabouts};
use crate::screen;
use crate::standing::{collides, doing, window};

/// How many of each are named before the rest is counted. With a line for the caller, one for those that
/// wait and one for each rest, these make twenty.
const CLAIMS: usize = 4;
const OTHERS: usize = 6;
const WARNINGS: usize = 5;
/// How many that were cut off are named. They and their rest take a line from each of the others.
const CUT_OFF: usize = 2;
/// The message of the service for a caller that is simply outside.
const OUTSIDE: &str = "not running inside a tenure session";
/// How many names fit on a line.
const NAMES: usize = 3;
/// How many of each fit on an agent's own line.
const FEW: usize = 2;

/// `own_hooks` are the agents that register by themselves because their hooks are installed.
pub fn status(status: &Status, own_hooks: &[String]) -> Lines {
    within(&whole(status, own_hooks), screen::columns())
}

/// Broken between words, so that no line is wider than the terminal.
fn within(text: &Lines, room: Option<usize>) -> Lines {
    let mut broken = Lines::default();
    for line in text.as_str().lines().flat_map(|line| wrapped(line, room)) {
        broken.line(line);
    }
    broken
}

fn whole(status: &Status, own_hooks: &[String]) -> Lines {
    let mut text = Lines::default();
    let fewer = usize::from(!status.cut_off.is_empty() || status.cut_off_elsewhere > 0);
    match (&status.me, &status.no_session) {
        (Some(me), _) => {
            let title = titled(me);
            text.line(format!(
                "you are {}{title} in {}",
                me.handle,
                whereabouts(me)
            ));
        }
        (None, why) => {
            text.line(no_session(why.as_deref()));
            text.line(match own_hooks {
                [] => "run `tenure register` to register this shell or agent, \
                       or `tenure install` to register agents automatically"
                    .to_owned(),
                some => format!(
                    "run `tenure register` to register this shell; {} will register by itself when you start it",
                    some.join(" or ")
                ),
            });
        }
    }
    list(
        &mut text,
        &status.claims,
        CLAIMS - fewer,
        "tenure claims --mine",
        |claim| format!("you hold {} (epoch {})", claim.key, claim.epoch),
    );
    if !status.waiting.is_empty() {
        let names = some(&status.waiting);
        text.line(paint("waiting for", "waiting").and(format!(" a person: {names}")));
    }
    for one in status.cut_off.iter().take(CUT_OFF) {
        text.line(cut_off(one));
    }
    let rest = status.cut_off.len().saturating_sub(CUT_OFF);
    match (rest, status.cut_off_elsewhere) {
        (0, 0) => {}
        (0, elsewhere) => text.line(format!(
            "{elsewhere} cut off elsewhere; run `tenure ps` to see them"
        )),
        (rest, elsewhere) => text.line(format!(
            "and {} more; run `tenure ps` to see them",
            rest + elsewhere
        )),
    }
    list(
        &mut text,
        &status.others,
        OTHERS - fewer,
        "tenure who",
        |session| other(session, &status.others),
    );
    if status.others.is_empty() {
        text.line("no other sessions here");
    }
    list(
        &mut text,
        &status.warnings,
        WARNINGS - fewer,
        "tenure status --json",
        |warning| format!("warning: {warning}"),
    );
    text
}

/// The line for a caller outside any session, with the reason if it is unusual.
fn no_session(why: Option<&str>) -> String {
    let why = why.unwrap_or(OUTSIDE);
    match why.strip_prefix(OUTSIDE) {
        Some(rest) => format!("no session here{rest}"),
        None => format!("no session here: {why}"),
    }
}

fn list<T>(text: &mut Lines, all: &[T], most: usize, more: &str, line: impl Fn(&T) -> String) {
    for one in all.iter().take(most) {
        text.line(line(one));
    }
    if all.len() > most {
        text.line(format!(
            "and {} more; run `{more}` to see them",
            all.len() - most
        ));
    }
}

/// ` "Fix the login"`, if the work has a name.
fn titled(session: &SessionView) -> String {
    let title = session.title.as_deref();
    title.map_or(String::new(), |title| format!(" {}", text::quoted(title)))
}

fn other(session: &SessionView, all: &[SessionView]) -> String {
    let collision = collides(session);
    let now = clock::wall();
    let doing = doing(session, now);
    let doing = doing.replacen(&collision, "", 1);
    let both = if collision.is_empty() {
        String::new()
    } else {
        format!("; {}", both_wrote(session, all))
    };
    let title = titled(session);
    let doing = match doing.strip_prefix("unknown") {
        Some(more) => format!("may be alive{more}"),
        None if doing.starts_with("asks") || doing.starts_with("failed") => doing,
        None if session.finished => doing.replacen("finished", "finished its turn", 1),
        None => {
            let since = session.activity_since.map(|since| since.age_at(now));
            let lasts =
                since.filter(|age| age.as_secs() > 0 && (doing == "idle" || doing == "busy"));
            match lasts {
                Some(age) => format!("has been {doing} for {}", Span(age)),
                None => format!("is {doing}"),
            }
        }
    };
    let held = holds(session, false);
    let held = match held.strip_prefix('-') {
        Some(waits) => waits.replacen("; ", ", ", 1),
        None => format!(", holds {held}"),
    };
    let place = whereabouts(session);
    let wrote = session.wrote.as_deref().unwrap_or_default();
    let below = |path: &str| {
        let inside = path.strip_prefix(session.dir.as_str());
        let inside = inside.and_then(|rest| rest.strip_prefix('/'));
        inside.unwrap_or(path).to_owned()
    };
    let files: Vec<String> = wrote.iter().map(|file| below(&file.path)).collect();
    let files = if files.is_empty() {
        String::new()
    } else {
        format!(", wrote {}", some(&files))
    };
    let window = window(session).map_or(String::new(), |window| format!(", at {window}"));
    format!(
        "{}{title} {doing} in {place}{window}{held}{files}{both}",
        session.handle
    )
}

/// The sessions that wrote the same file, and which.
fn both_wrote(session: &SessionView, all: &[SessionView]) -> String {
    let handle = &session.handle;
    let rivals = session.collides_with.as_deref().unwrap_or_default();
    let files = |one: &SessionView| -> Vec<String> {
        let wrote = one.wrote.iter().flatten();
        wrote.map(|file| file.path.clone()).collect()
    };
    let own = files(session);
    let shared = all.iter().filter(|one| rivals.contains(&one.handle));
    let shared = shared.filter_map(|rival| {
        let file = files(rival).into_iter().find(|file| own.contains(file))?;
        Some((&rival.handle, file))
    });
    match shared.into_iter().next() {
        Some((rival, file)) => {
            let name = file.rsplit('/').next().unwrap_or(&file);
            format!("{handle} and {rival} both wrote {name}")
        }
        None => format!("{handle} collides with {}", some(rivals)),
    }
}

/// A session that was cut off, and what to do about it.
fn cut_off(session: &SessionView) -> Painted {
    let left = session.resume.as_ref();
    let way = match left.and_then(|left| left.command.as_deref()) {
        Some(command) => format!("; run `{command}` to continue it"),
        None => {
            let problem = left.and_then(|left| left.problem.as_deref());
            let problem = problem.map_or(String::new(), |problem| format!(": {problem}"));
            format!(
                ", and cannot be resumed{problem}; run `tenure dismiss {}` to drop it",
                session.handle
            )
        }
    };
    let held: Vec<String> = left.map_or_else(Vec::new, |left| {
        left.held.iter().map(|held| held.key.clone()).collect()
    });
    let held = if held.is_empty() {
        String::new()
    } else {
        format!(", held {}", some(&held))
    };
    let place = whereabouts(session);
    Painted::from(format!("{} was ", session.handle))
        .and(paint("cut off", "dead"))
        .and(format!(" in {place}{held}{way}"))
}

fn some(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMES)].join(", ");
    match names.len() {
        n if n > NAMES => format!("{shown} and {} more", n - NAMES),
        _ => shown,
    }
}

/// A glance on one line, for an agent.
pub fn glance(glance: &Glance) -> Painted {
    let short = |key: &String| short(key, glance.repo.as_deref()).to_owned();
    let mut line = Painted::from(&glance.handle);
    let mut add = |part: Painted| {
        line.push(" | ");
        line.push(part);
    };
    if !glance.holds.is_empty() {
        let keys: Vec<String> = glance.holds.iter().map(short).collect();
        add(few(&keys).into());
    }
    let warn = |text: String| paint_for_agent(&text, "dead");
    let lost: Vec<String> = glance
        .lost
        .iter()
        .map(|(key, handle)| format!("{} to {handle}", short(key)))
        .collect();
    if !lost.is_empty() {
        add(warn(format!("lost {}", few(&lost))));
    }
    if !glance.twins.is_empty() {
        add(warn(format!("also open in {}", few(&glance.twins))));
    }
    if !glance.waiting.is_empty() {
        let text = format!("waiting for you: {}", few(&glance.waiting));
        add(paint_for_agent(&text, "waiting"));
    }
    if !glance.cut_off.is_empty() {
        let text = match glance.cut_off.as_slice() {
            [one] => format!("cut off: tenure resume {one}"),
            several => format!("{} cut off: tenure resume", several.len()),
        };
        add(warn(text));
    }
    line
}

fn few(names: &[String]) -> String {
    let shown = names[..names.len().min(FEW)].join(", ");
    match names.len() {
        n if n > FEW => format!("{shown} +{}", n - FEW),
        _ => shown,
    }
}

/// `issue:acme/web#42` as `#42` in that repository, and a path without it: the line is narrow.
fn short<'a>(key: &'a str, repo: Option<&str>) -> &'a str {
    let Some(repo) = repo else {
        return key;
    };
    let of_issue = key
        .strip_prefix("issue:")
        .and_then(|key| key.strip_prefix(repo));
    let of_path = key
        .strip_prefix("path:")
        .and_then(|key| key.strip_prefix(repo));
    of_issue
        .filter(|rest| rest.starts_with('#'))
        .or_else(|| of_path.and_then(|rest| rest.strip_prefix(':')))
        .unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_status_is_wider_than_the_terminal() {
        let status = Status {
            me: None,
            no_session: None,
            claims: Vec::new(),
            others: Vec::new(),
            waiting: vec!["claude-k7qd".to_owned(), "gemini-p4wz".to_owned()],
            cut_off: Vec::new(),
            cut_off_elsewhere: 2,
            warnings: vec!["could not write the mirror /home/ann/.cache/tenure/session".to_owned()],
        };
        let whole = whole(&status, &[]);
        assert_eq!(within(&whole, None), whole);
        for line in within(&whole, Some(40)).as_str().lines() {
            assert!(line.chars().count() <= 40, "{line}");
        }
    }
}
