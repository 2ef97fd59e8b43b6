//! A list of sessions as people read it: a row each, what waits for them first, and what to do about the dead.

use tenure_app::hooked::Hooks;
use tenure_app::unmanaged::Unmanaged;
use tenure_core::text;
use tenure_core::time::Timestamp;
use tenure_host::clock;
use tenure_service::view::SessionView;

use crate::columns::{Cell, Column, column, cut, fitted, wrapped};
use crate::lines::Lines;
use crate::screen;
use crate::standing::{age, ago, row_word, way_on, word, words_within};
use crate::tree::Branch;

fn now() -> Timestamp {
    clock::wall()
}

/// Sessions as they come, none below another.
pub fn flat(sessions: &[SessionView]) -> Vec<Branch<'_>> {
    let top = |session| Branch { depth: 0, session };
    sessions.iter().map(top).collect()
}

/// On a narrow terminal AGE goes first, then WHERE, TITLE, HOLDS and PLACE.
const COLUMNS: &[Column] = &[
    column("HANDLE", 24, 0),
    column("STATE", 26, 0),
    column("TITLE", 16, 3),
    column("WHERE", 14, 4),
    column("PLACE", 8, 1),
    column("AGE", 4, 5),
    column("HOLDS", 8, 2),
];

/// Sessions, and agents that run without being one.
pub fn people(sessions: &[Branch<'_>], unmanaged: &[Unmanaged], verbose: bool) -> Lines {
    people_within(sessions, unmanaged, verbose, screen::columns())
}

fn people_within(
    sessions: &[Branch<'_>],
    unmanaged: &[Unmanaged],
    verbose: bool,
    room: Option<usize>,
) -> Lines {
    if sessions.is_empty() && unmanaged.is_empty() {
        return "no sessions".into();
    }
    let rows = rows(sessions, unmanaged, now(), verbose, room);
    let mut text = fitted(COLUMNS, &rows, room);
    for note in notes(sessions, unmanaged) {
        noted(&mut text, &note, room);
    }
    text
}

/// The cells of their rows: handle, state, title, whereabouts, place, age and what it holds.
pub fn rows(
    sessions: &[Branch<'_>],
    unmanaged: &[Unmanaged],
    now: Timestamp,
    verbose: bool,
    room: Option<usize>,
) -> Vec<Vec<Cell>> {
    let mut rows: Vec<Vec<Cell>> = sessions
        .iter()
        .map(|branch| session_row(branch, now, verbose, room))
        .collect();
    rows.extend(unmanaged.iter().map(unmanaged_row));
    rows
}

/// What to do about the dead, and about agents that are not registered.
pub fn notes(sessions: &[Branch<'_>], unmanaged: &[Unmanaged]) -> Vec<String> {
    let mut notes = ways_on(sessions);
    let mut said: Vec<(&str, &str)> = Vec::new();
    for agent in unmanaged {
        let same = (agent.agent, agent.why.as_str());
        if said.contains(&same) {
            continue;
        }
        said.push(same);
        let (name, why, pid) = (agent.agent, &agent.why, agent.pid);
        notes.push(match agent.hooks {
            Hooks::Installed if agent.speaks_later => format!("{name} (pid {pid}): {why}"),
            _ => {
                format!("{name} (pid {pid}): {why}. Run `tenure adopt {pid}` to register it")
            }
        });
    }
    notes
}

/// A note below a table, on as many lines as it takes.
pub fn noted(text: &mut Lines, note: &str, room: Option<usize>) {
    let lines = wrapped(&text::line(note), room);
    lines.iter().for_each(|line| text.line(line));
}

/// How many of those that were cut off are told about one by one.
const MAX_WAYS: usize = 5;

/// What to do about those that were cut off.
fn ways_on(sessions: &[Branch<'_>]) -> Vec<String> {
    let all = sessions.iter().filter_map(|branch| way_on(branch.session));
    let mut ways: Vec<String> = all.collect();
    if ways.len() > MAX_WAYS {
        let more = ways.len() - (MAX_WAYS - 1);
        ways.truncate(MAX_WAYS - 1);
        ways.push(format!(
            "{more} more were cut off; run `tenure resume` to see them"
        ));
    }
    ways
}

/// What time it is and how many rows show which state, above a table that is drawn again and again.
pub fn counts(sessions: &[Branch<'_>], unmanaged: &[Unmanaged], room: Option<usize>) -> String {
    let time = clock::zone().short(now(), now());
    let counted = counted(sessions, unmanaged);
    cut(
        &format!("{time}  {counted}  (q to quit)"),
        room.unwrap_or(usize::MAX),
    )
}

/// How many rows show which state.
pub fn counted(sessions: &[Branch<'_>], unmanaged: &[Unmanaged]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    let words = sessions.iter().map(|branch| row_word(branch.session));
    for word in words.chain(unmanaged.iter().map(|_| "unmanaged")) {
        match counts.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => counts.push((word, 1)),
        }
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    match counts.as_slice() {
        [] => "no sessions".to_owned(),
        counts => counts.join(", "),
    }
}

fn unmanaged_row(agent: &Unmanaged) -> Vec<Cell> {
    let dash = || Cell::plain("-");
    let mut state = format!("unmanaged {}", agent.agent);
    let why = match agent.hooks {
        Hooks::Installed if agent.speaks_later => Some("no prompt yet"),
        Hooks::Untrusted => Some("hooks not trusted"),
        _ => None,
    };
    for word in agent.activity.as_deref().into_iter().chain(why) {
        state.push_str(&format!(", {word}"));
    }
    vec![
        Cell::plain(format!("pid {}", agent.pid)),
        Cell::state(state, "unknown"),
        dash(),
        Cell::plain(agent.dir.as_deref().unwrap_or("-")),
        dash(),
        dash(),
        dash(),
    ]
}

fn session_row(
    branch: &Branch<'_>,
    now: Timestamp,
    verbose: bool,
    room: Option<usize>,
) -> Vec<Cell> {
    let session = branch.session;
    let below = match branch.depth {
        0 => String::new(),
        depth => format!("{}└ ", "  ".repeat(depth - 1)),
    };
    let or_dash = |text: &Option<String>| Cell::plain(text.as_deref().unwrap_or("-"));
    vec![
        Cell::plain(format!("{below}{}", session.handle)),
        Cell::state(words_within(session, now, verbose, room), word(session)),
        or_dash(&session.title),
        Cell::plain(whereabouts(session)),
        or_dash(&session.place),
        Cell::plain(age(session.started_at, now)),
        Cell::ending(holds(session, verbose), holds_briefly(session)),
    ]
}

/// `acme/web (main)`, or the directory if there is no repository.
pub fn whereabouts(session: &SessionView) -> String {
    let host = session.host.as_deref();
    let host = host.map_or_else(String::new, |host| format!("{}:", text::name(host)));
    let dir = format!("{host}{}", text::name(&session.dir));
    let branch = session.branch.as_deref().map(text::name);
    let branch = match session.branch_at {
        Some(at) => branch.map(|name| format!("{name}, seen {}", ago(at, now())).into()),
        None => branch,
    };
    match (&session.repo, branch) {
        (Some(repo), branch) if !repo.starts_with('/') => {
            let branch = branch.unwrap_or("no branch".into());
            format!("{host}{} ({branch})", text::name(repo))
        }
        (_, Some(branch)) => format!("{dir} ({branch})"),
        _ => dir,
    }
}

/// What a session holds and waits for.
pub fn holds(session: &SessionView, verbose: bool) -> String {
    let held = held(session, verbose);
    let waits = session.waits_for.as_deref().unwrap_or_default();
    match waits.first() {
        None => held,
        Some(wait) => {
            let more = match waits.len() {
                1 => String::new(),
                n => format!(" and {} more", n - 1),
            };
            format!("{held}; waits for {}{more}", wait.key)
        }
    }
}

/// The same for a narrow column: one key, and how many more.
fn holds_briefly(session: &SessionView) -> String {
    let keys = held_keys(session);
    let waits = session.waits_for.as_deref().unwrap_or_default();
    match (keys.as_slice(), waits) {
        ([], []) => "-".to_owned(),
        // The end of the key alone would read as if it held that.
        ([], [_, ..]) => "waits".to_owned(),
        ([one], _) => format!("{}{one}", before(session)),
        ([one, rest @ ..], _) => format!("{}{one} +{}", before(session), rest.len()),
    }
}

/// What stands before the keys: the dead hold nothing.
fn before(session: &SessionView) -> &'static str {
    match session.resume {
        Some(_) => "held ",
        None => "",
    }
}

/// What it holds; of one that was cut off, what it would be granted again.
fn held_keys(session: &SessionView) -> Vec<&str> {
    let left = session.resume.as_ref().map(|left| &left.held);
    let all = session.claims.iter().chain(left).flatten();
    all.map(|held| held.key.as_str()).collect()
}

fn held(session: &SessionView, verbose: bool) -> String {
    let keys = held_keys(session);
    let before = before(session);
    match keys.len() {
        0 => "-".into(),
        n if n > 2 && !verbose => {
            format!("{before}{}, {} and {} more", keys[0], keys[1], n - 2)
        }
        _ => format!("{before}{}", keys.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    #[test]
    fn the_line_above_the_rows_counts_what_they_show() {
        let line = counts(&[], &[], None);
        assert!(line.contains("no sessions  (q to quit)"), "{line}");
    }

    fn sample() -> Vec<Vec<Cell>> {
        let rows = [
            [
                "claude-k7qd",
                "asks: `rm -rf build`, 3m",
                "Login fails on Safari after the update of the session cookie",
                "acme/web (fix/login-on-safari)",
                "main:1.0",
                "2h",
                "issue:acme/web#42",
            ],
            [
                "gemini-p4wz",
                "busy?, twin of gemini-x2mn",
                "日本語のドキュメントを書く",
                "acme/docs (main)",
                "pts/12",
                "4m",
                "issue:acme/docs#7, path:acme/docs:src/** and 3 more",
            ],
            [
                "codex-m3xa",
                "cut off 3m",
                "-",
                "/srv/tools",
                "-",
                "1d",
                "-",
            ],
        ];
        let row = |cells: [&str; 7]| {
            let mut row = cells.map(Cell::plain).to_vec();
            let first = cells[6].split(',').next().unwrap_or_default();
            row[6] = Cell::ending(cells[6], first);
            row
        };
        rows.map(row).to_vec()
    }

    fn heads(room: Option<usize>) -> String {
        let text = fitted(COLUMNS, &sample(), room);
        let head = text.as_str().lines().next().unwrap().to_owned();
        head.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn columns_drop_out_by_rank() {
        let whole = "HANDLE STATE TITLE WHERE PLACE AGE HOLDS";
        assert_eq!(heads(None), whole);
        assert_eq!(heads(Some(200)), whole);
        assert_eq!(heads(Some(120)), whole);
        assert_eq!(heads(Some(94)), "HANDLE STATE TITLE WHERE PLACE HOLDS");
        assert_eq!(heads(Some(80)), "HANDLE STATE TITLE PLACE HOLDS");
        assert_eq!(heads(Some(60)), "HANDLE STATE PLACE HOLDS");
        assert_eq!(heads(Some(50)), "HANDLE STATE PLACE");
        assert_eq!(heads(Some(40)), "HANDLE STATE");
    }

    #[test]
    fn nothing_wraps_at_any_width() {
        for room in 20..=240 {
            let text = fitted(COLUMNS, &sample(), Some(room));
            assert_eq!(text.as_str().lines().count(), 4);
            for line in text.as_str().lines() {
                assert!(line.width() <= room, "{room}: {line}");
            }
        }
    }

    #[test]
    fn tables_look_like_this() {
        let at = |room| fitted(COLUMNS, &sample(), Some(room)).as_str().to_owned();
        insta::assert_snapshot!(at(60), @r"
        HANDLE       STATE                       PLACE     HOLDS
        claude-k7qd  asks: `rm -rf build`, 3m    main:1.0  …e/web#42
        gemini-p4wz  busy?, twin of gemini-x2mn  pts/12    …e/docs#7
        codex-m3xa   cut off 3m                  -         -
        ");
        insta::assert_snapshot!(at(80), @r"
        HANDLE       STATE                       TITLE               PLACE     HOLDS
        claude-k7qd  asks: `rm -rf build`, 3m    Login fails on Sa…  main:1.0  …e/web#42
        gemini-p4wz  busy?, twin of gemini-x2mn  日本語のドキュメ…   pts/12    …e/docs#7
        codex-m3xa   cut off 3m                  -                   -         -
        ");
        insta::assert_snapshot!(at(120), @r"
        HANDLE       STATE                       TITLE                     WHERE                  PLACE     AGE  HOLDS
        claude-k7qd  asks: `rm -rf build`, 3m    Login fails on Safari a…  acme/web (fix/login-…  main:1.0  2h   …ue:acme/web#42
        gemini-p4wz  busy?, twin of gemini-x2mn  日本語のドキュメントを…   acme/docs (main)       pts/12    4m   …ue:acme/docs#7
        codex-m3xa   cut off 3m                  -                         /srv/tools             -         1d   -
        ");
        insta::assert_snapshot!(at(200), @r"
        HANDLE       STATE                       TITLE                                                        WHERE                           PLACE     AGE  HOLDS
        claude-k7qd  asks: `rm -rf build`, 3m    Login fails on Safari after the update of the session cook…  acme/web (fix/login-on-safari)  main:1.0  2h   issue:acme/web#42
        gemini-p4wz  busy?, twin of gemini-x2mn  日本語のドキュメントを書く                                   acme/docs (main)                pts/12    4m   issue:acme/docs#7, path:acme/docs:src/** and 3 more
        codex-m3xa   cut off 3m                  -                                                            /srv/tools                      -         1d   -
        ");
    }
}
