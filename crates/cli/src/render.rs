//! Text for people: tables and short paragraphs out of the same views that the JSON shows.

use tenure_app::hooked::Hooks;
use tenure_app::unmanaged::Unmanaged;
use tenure_core::text;
use tenure_core::time::{Span, Timestamp};
use tenure_host::clock;
use tenure_service::view::{ClaimView, ConversationView, EventView, SessionView};
use tenure_service::{Membership, Whoami, Why};

use crate::columns::{Cell, Column, column, cut, fitted, wrapped};
use crate::lines::Lines;
use crate::output::{Painted, ago, command_line, paint};
use crate::screen;
use crate::standing::{age, doing, end_kind, row_word, way_on, word, words_within};
use crate::survivors;
use crate::tree::Branch;

fn now() -> Timestamp {
    clock::wall()
}

/// Adds how many of a list are not shown, and the command that shows them.
pub fn rest(text: &mut Lines, more: usize, is_least: bool, command: &str) {
    let more = match (more, is_least) {
        (0, _) => return,
        (more, true) => format!("more than {more} others"),
        (more, false) => format!("{more} more"),
    };
    text.line(format!("{more}; run `{command}` to see them"));
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
    let now = now();
    let mut rows: Vec<Vec<Cell>> = sessions
        .iter()
        .map(|branch| session_row(branch, now, verbose, room))
        .collect();
    rows.extend(unmanaged.iter().map(unmanaged_row));
    let mut text = fitted(COLUMNS, &rows, room);
    for note in ways_on(sessions) {
        noted(&mut text, &note, room);
    }
    let mut said: Vec<(&str, &str)> = Vec::new();
    for agent in unmanaged {
        let same = (agent.agent, agent.why.as_str());
        if said.contains(&same) {
            continue;
        }
        said.push(same);
        let (name, why, pid) = (agent.agent, &agent.why, agent.pid);
        let note = match agent.hooks {
            Hooks::Installed if agent.speaks_later => format!("{name} (pid {pid}): {why}"),
            _ => {
                format!("{name} (pid {pid}): {why}. Run `tenure adopt {pid}` to register it")
            }
        };
        noted(&mut text, &note, room);
    }
    text
}

/// A note below a table, on as many lines as it takes.
pub fn noted(text: &mut Lines, note: &str, room: Option<usize>) {
    let lines = wrapped(&text::line(note), room);
    lines.iter().for_each(|line| text.line(line));
}

/// How many of those that were cut off are told about one by one.
const MOST_WAYS: usize = 5;

/// What to do about those that were cut off.
fn ways_on(sessions: &[Branch<'_>]) -> Vec<String> {
    let all = sessions.iter().filter_map(|branch| way_on(branch.session));
    let mut ways: Vec<String> = all.collect();
    if ways.len() > MOST_WAYS {
        let more = ways.len() - (MOST_WAYS - 1);
        ways.truncate(MOST_WAYS - 1);
        ways.push(format!(
            "{more} more were cut off; run `tenure resume` to see them"
        ));
    }
    ways
}

/// What time it is and how many rows show which state, above a table that is drawn again and again.
pub fn counts(sessions: &[Branch<'_>], unmanaged: &[Unmanaged], room: Option<usize>) -> String {
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
    let counts = match counts.as_slice() {
        [] => "no sessions".to_owned(),
        counts => counts.join(", "),
    };
    let time = clock::zone().short(now(), now());
    cut(
        &format!("{time}  {counts}  (q to quit)"),
        room.unwrap_or(usize::MAX),
    )
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
        ([], [wait, ..]) => format!("waits for {}", wait.key),
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

/// One fact about a session.
pub fn field(name: &str, value: &str) -> String {
    format!("  {name:<13} {value}")
}

pub fn session(who: &Whoami, evidence: bool) -> Lines {
    let session = &who.session;
    let now = now();
    let mut text = Lines::default();
    let handle = Painted::from(format!("{}  ", session.handle));
    text.line(handle.and(paint(session.state, session.state)));
    let mut row = |name: &str, value: &str| text.line(field(name, value));
    row("why", &session.why);
    row("id", &session.id);
    row("agent", &session.agent);
    if let Some(title) = &session.title {
        row("title", title);
    }
    if session.activity.is_some() && session.state == "live" {
        row("doing", &doing(session, now));
    }
    row("where", &whereabouts(session));
    row("dir", &session.dir);
    if let Some(place) = &session.place {
        row("place", place);
    }
    if let Some(native_id) = &session.native_id {
        row("conversation", native_id);
    }
    let lineage = session.native_ids.as_deref().unwrap_or_default();
    if lineage.len() > 1 {
        let all: Vec<String> = lineage
            .iter()
            .map(|entry| {
                if entry.owned {
                    entry.native_id.clone()
                } else {
                    format!("{} (visited)", entry.native_id)
                }
            })
            .collect();
        row("lineage", &all.join(", "));
    }
    if let Some(parent) = &who.parent {
        row("parent", parent);
    }
    if let Some(twin) = &session.twin_of {
        row("twin of", twin);
    }
    if let Some(pid) = session.process.pid {
        let daemon = session.daemon.map_or_else(String::new, |daemon| {
            format!(", gone; its turn goes on in the daemon, pid {daemon}")
        });
        let life = life(session.process.life);
        row("process", &format!("pid {pid}{life}{daemon}"));
    }
    row("started", &ago(session.started_at, now));
    if let Some(at) = session.ended_at {
        row("ended", &format!("{}{}", ago(at, now), end_kind(session)));
    }
    row("last seen", &ago(session.last_seen_at, now));
    for held in session.claims.iter().flatten() {
        row("holds", &format!("{} (epoch {})", held.key, held.epoch));
    }
    for (key, value) in &who.metadata {
        row("meta", &format!("{key}={value}"));
    }
    if evidence {
        row(
            "found by",
            &format!("{}: {}", who.resolved.by, who.resolved.evidence),
        );
        for other in &who.resolved.disagreements {
            row("but", other);
        }
        row("store", &who.resolved.store);
    }
    text
}

/// `, third process of this session`; nothing for the first.
fn life(life: u32) -> String {
    let ordinal = match life {
        0 | 1 => return String::new(),
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        n => match (n % 10, n % 100) {
            (_, 11..=13) => format!("{n}th"),
            (1, _) => format!("{n}st"),
            (2, _) => format!("{n}nd"),
            (3, _) => format!("{n}rd"),
            _ => format!("{n}th"),
        },
    };
    format!(", {ordinal} process of this session")
}

/// The conversation of an item that a session is in.
pub fn conversation(one: &ConversationView) -> Lines {
    let run = one.run.as_ref();
    let run = run.map_or_else(String::new, |run| format!(", run {run}"));
    let item = &one.item;
    format!(
        "  {:<13} {item} (revision {}{run})",
        "conversation", one.revision
    )
    .into()
}

/// The active mission of a session, and its part in it.
pub fn membership(mission: &Membership) -> Lines {
    let mut text = Lines::default();
    let mut row = |name: &str, value: &str| {
        text.line(format!("  {name:<13} {value}"));
    };
    if let Some(one) = &mission.participant {
        row(
            "mission",
            &format!("{} ({})", one.mission, mission.pointer.evidence),
        );
        row("role", &one.role);
        row("focus", one.focus.as_deref().unwrap_or("none"));
        row("drive", one.drive);
        if !one.collides_with.is_empty() {
            row("collides", &one.collides_with.join(", "));
        }
    }
    for fault in mission.pointer.passed_over.iter().chain(&mission.faults) {
        row("but", &fault.to_string());
    }
    text
}

pub fn grant(claim: &ClaimView) -> Lines {
    let already = claim.already_held == Some(true);
    let word = if already {
        "you already hold"
    } else {
        "claimed"
    };
    let mut text = Lines::from(format!("{word} {} (epoch {})", claim.key, claim.epoch));
    if let Some(previous) = &claim.taken_from {
        let (handle, proof) = (&previous.handle, &previous.proof);
        text.line(match previous.by.as_str() {
            "taken" => format!("  taken over from {handle}: {proof}"),
            _ => format!("  previous holder: {handle} ({proof})"),
        });
        let branch = previous
            .branch
            .as_ref()
            .map_or(String::new(), |branch| format!(" (branch {branch})"));
        text.line(format!(
            "  check {}{branch} for unfinished work",
            previous.dir
        ));
        for held in &previous.also_ended {
            let (key, epoch) = (&held.key, held.epoch);
            text.line(format!(
                "  also taken from it: {key} (epoch {epoch}), which overlaps"
            ));
        }
        survivors::tell(&mut text, previous);
    }
    text
}

/// On a narrow terminal NOTE goes first, then EPOCH, SINCE and STATE.
const CLAIM_COLUMNS: &[Column] = &[
    column("KEY", 20, 0),
    column("STATE", 7, 1),
    column("HOLDER", 14, 0),
    column("SINCE", 5, 2),
    column("EPOCH", 5, 3),
    column("NOTE", 16, 4),
];

pub fn claims(claims: &[ClaimView]) -> Lines {
    claims_within(claims, screen::columns())
}

fn claims_within(claims: &[ClaimView], room: Option<usize>) -> Lines {
    if claims.is_empty() {
        return "no claims".into();
    }
    let now = now();
    let rows: Vec<Vec<Cell>> = claims
        .iter()
        .map(|claim| {
            let holder = claim
                .holder
                .as_ref()
                .map_or("-".to_owned(), |session| session.handle.clone());
            let since = claim.acquired_at.map_or("-".to_owned(), |at| age(at, now));
            vec![
                Cell::ending(claim.key.clone(), claim.key.clone()),
                Cell::state(claim.state, claim.state),
                Cell::plain(holder),
                Cell::plain(since),
                Cell::plain(claim.epoch.to_string()),
                Cell::plain(claim.note.clone().unwrap_or_else(|| "-".into())),
            ]
        })
        .collect();
    fitted(CLAIM_COLUMNS, &rows, room)
}

/// The explanation of a key.
pub fn why(why: &Why) -> Lines {
    let claim = &why.claim;
    let state = paint(claim.state, claim.state);
    let but = match why.why.answer.as_str() {
        "refused: overlaps" => ", but another claim overlaps it",
        _ => "",
    };
    let key = Painted::from(format!("{} is ", claim.key));
    let mut text = Lines::from(key.and(state).and(but));
    text.line(match why.why.answer.as_str() {
        "yours" => "  you hold this".to_owned(),
        "granted" => "  you can claim it now".to_owned(),
        "refused: overlaps" => "  you cannot claim it now".to_owned(),
        "refused: held" => match &claim.holder {
            Some(holder) => format!("  you cannot claim it now: {} holds it", holder.handle),
            None => "  you cannot claim it now: another session holds it".to_owned(),
        },
        "refused: done" => "  you cannot claim it now: it is done".to_owned(),
        "refused: cannot tell" => {
            "  you cannot claim it now: its holder may be alive, and cannot be checked from here"
                .to_owned()
        }
        answer => {
            let why = answer.strip_prefix("refused: ").unwrap_or(answer);
            format!("  you cannot claim it now: {why}")
        }
    });
    for line in &why.why.because {
        text.line(format!("  {line}"));
    }
    for waiter in &why.why.waiters {
        let who = waiter.session.as_deref().unwrap_or("a command");
        text.line(format!(
            "  {who} (pid {}) has been waiting in the queue for {}",
            waiter.pid,
            Span(waiter.since.age_at(now()))
        ));
    }
    for hint in &why.why.hints {
        text.line(format!("  {}", command_line(hint)));
    }
    text
}

/// The log, one event a line.
pub fn events(events: &[EventView]) -> Lines {
    if events.is_empty() {
        return "no events".into();
    }
    let (zone, now) = (clock::zone(), now());
    let mut text = Lines::default();
    for event in events {
        let time = zone.short(event.at, now);
        let session = event
            .session
            .as_ref()
            .map_or("-", |name| name.handle.as_str());
        let mut line = format!(
            "{:>6}  {time:<12}  {:<18}  {session}",
            event.cursor, event.kind
        );
        if let Some(key) = &event.key {
            line.push_str(&format!("  {key}"));
        }
        if let Some(epoch) = event.epoch {
            line.push_str(&format!(" (epoch {epoch})"));
        }
        line.push_str(&format!("  {}: {}", event.mechanism, event.evidence));
        if let Some(actor) = &event.actor {
            line.push_str(&format!("; by {}", actor.handle));
        }
        if let Some(reason) = &event.reason {
            line.push_str(&format!("; reason: {}", text::quoted(reason)));
        }
        text.line(line);
    }
    text
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
    fn a_later_process_of_a_session_is_counted() {
        assert_eq!(life(1), "");
        assert_eq!(life(3), ", third process of this session");
        assert_eq!(life(12), ", 12th process of this session");
        assert_eq!(life(22), ", 22nd process of this session");
    }

    #[test]
    fn claims_fit_a_narrow_terminal() {
        let claim = |key: &str| ClaimView {
            key: key.to_owned(),
            epoch: 12,
            holder: None,
            state: "suspect",
            acquired_at: None,
            freed_by: None,
            lease_until: None,
            note: Some("until the release is out".to_owned()),
            already_held: None,
            may_write_until: None,
            taken_from: None,
            via: None,
            age: None,
        };
        let all = [claim("issue:acme/web-of-things#42"), claim("wp:1")];
        let text = claims_within(&all, Some(40));
        for line in text.as_str().lines() {
            assert!(line.width() <= 40, "{line}");
        }
        assert!(text.as_str().contains("things#42"), "{}", text.as_str());
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
