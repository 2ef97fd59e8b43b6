//! Text for people: tables and short paragraphs out of the same views that the JSON shows.

use std::fmt::Write as _;

use tenure_app::unmanaged::Unmanaged;
use tenure_core::text;
use tenure_core::time::{Span, Timestamp};
use tenure_service::view::{ClaimView, EventView, SessionView};
use tenure_service::{Membership, Whoami, Why};

use crate::lines::Lines;
use crate::output::{Cell, ago, command_line, paint, table};
use crate::tree::Branch;

fn now() -> Timestamp {
    tenure_host::clock::wall()
}

/// Says how many of a list are not shown, and what shows them.
pub fn rest(text: &mut Lines, more: usize, command: &str) {
    if more > 0 {
        text.line(format!("{more} more: {command}"));
    }
}

/// Sessions as they come, none below another.
pub fn flat(sessions: &[SessionView]) -> Vec<Branch<'_>> {
    let top = |session| Branch { depth: 0, session };
    sessions.iter().map(top).collect()
}

/// Sessions, and agents that run without being one.
pub fn people(sessions: &[Branch<'_>], unmanaged: &[Unmanaged], verbose: bool) -> Lines {
    if sessions.is_empty() && unmanaged.is_empty() {
        return "no sessions".into();
    }
    let now = now();
    let mut rows: Vec<Vec<Cell>> = sessions
        .iter()
        .map(|branch| session_row(branch, sessions, now, verbose))
        .collect();
    rows.extend(unmanaged.iter().map(unmanaged_row));
    let heads = ["SESSION", "AGENT", "WHERE", "STATE", "AGE", "HOLDS"];
    let mut text = table(&heads, &rows);
    if let Some(first) = unmanaged.first() {
        text.line(format!("unmanaged: no hooks told tenure of it; tenure adopt {} makes it a session, tenure install all later ones",
            first.pid));
    }
    text
}

fn unmanaged_row(agent: &Unmanaged) -> Vec<Cell> {
    let dash = || Cell::plain("-");
    let state = match &agent.activity {
        Some(doing) => format!("unmanaged, {doing}"),
        None => "unmanaged".to_owned(),
    };
    vec![
        Cell::plain(format!("pid {}", agent.pid)),
        Cell::plain(agent.agent),
        Cell::plain(agent.dir.as_deref().unwrap_or("-")),
        Cell::state(state, "unknown"),
        dash(),
        dash(),
    ]
}

fn session_row(
    branch: &Branch<'_>,
    all: &[Branch<'_>],
    now: Timestamp,
    verbose: bool,
) -> Vec<Cell> {
    let session = branch.session;
    let shows_reason = verbose || !matches!(session.state, "live");
    let word = session
        .activity
        .filter(|_| session.state == "live")
        .unwrap_or(session.state);
    let since = session
        .activity_since
        .filter(|_| session.waits_for_a_person());
    let mut state = word.to_owned();
    if let Some(since) = since {
        let _infallible = write!(state, " for you, {}", age(since, now));
    }
    if shows_reason {
        let _infallible = write!(state, ": {}", session.why);
    }
    if let Some(twin) = &session.twin_of {
        let named = all.iter().find(|other| other.session.id == *twin);
        let named = named.map_or("another session", |other| other.session.handle.as_str());
        let _infallible = write!(state, ", twin of {named}");
    }
    let below = match branch.depth {
        0 => String::new(),
        depth => format!("{}└ ", "  ".repeat(depth - 1)),
    };
    vec![
        Cell::plain(format!("{below}{}", session.handle)),
        Cell::plain(session.agent.clone()),
        Cell::plain(whereabouts(session)),
        Cell::state(state, word),
        Cell::plain(age(session.started_at, now)),
        Cell::plain(holds(session, verbose)),
    ]
}

/// How old something is, in a column.
fn age(at: Timestamp, now: Timestamp) -> String {
    match at.age_at(now) {
        young if young.as_secs() == 0 => "now".into(),
        age => Span(age).to_string(),
    }
}

/// `acme/web (main)`, or the directory where there is no repository.
pub fn whereabouts(session: &SessionView) -> String {
    let dir = text::name(&session.dir);
    let branch = session.branch.as_deref().map(text::name);
    match (&session.repo, branch) {
        (Some(repo), branch) if !repo.starts_with('/') => {
            let branch = branch.unwrap_or("no branch".into());
            format!("{} ({branch})", text::name(repo))
        }
        (_, Some(branch)) => format!("{dir} ({branch})"),
        _ => dir.into_owned(),
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

fn held(session: &SessionView, verbose: bool) -> String {
    let keys: Vec<&str> = session
        .claims
        .iter()
        .flatten()
        .map(|held| held.key.as_str())
        .collect();
    match keys.len() {
        0 => "-".into(),
        n if n > 2 && !verbose => format!("{}, {} and {} more", keys[0], keys[1], n - 2),
        _ => keys.join(", "),
    }
}

pub fn session(who: &Whoami, evidence: bool) -> Lines {
    let session = &who.session;
    let now = now();
    let mut text = Lines::default();
    text.line(format!(
        "{}  {}",
        session.handle,
        paint(session.state, session.state)
    ));
    let mut row = |name: &str, value: &str| {
        text.line(format!("  {name:<13} {value}"));
    };
    row("why", &session.why);
    row("id", &session.id);
    row("agent", &session.agent);
    if let Some(title) = &session.title {
        row("title", title);
    }
    row("where", &whereabouts(session));
    row("dir", &session.dir);
    if let Some(native_id) = &session.native_id {
        row("conversation", native_id);
    }
    let lineage = session.native_ids.as_deref().unwrap_or_default();
    if lineage.len() > 1 {
        let all: Vec<String> = lineage
            .iter()
            .map(|entry| match entry.owned {
                true => entry.native_id.clone(),
                false => format!("{} (visits)", entry.native_id),
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
        row(
            "process",
            &format!("pid {pid}, life {}", session.process.life),
        );
    }
    row("started", &ago(session.started_at, now));
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

/// The active mission of a session, and its part in it.
pub fn membership(mission: &Membership) -> Lines {
    let mut text = Lines::default();
    let mut row = |name: &str, value: &str| {
        text.line(format!("  {name:<13} {value}"));
    };
    if let Some(one) = &mission.participant {
        row(
            "mission",
            &format!(
                "{} (by {}: {})",
                one.mission, mission.pointer.by, mission.pointer.evidence
            ),
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
    let word = if already { "already yours" } else { "yours" };
    let mut text = Lines::from(format!("{} is {word} (epoch {})", claim.key, claim.epoch));
    if let Some(former) = &claim.taken_from {
        text.line(format!("  {} had it: {}", former.handle, former.proof));
        let branch = former
            .branch
            .as_ref()
            .map_or(String::new(), |branch| format!(", branch {branch}"));
        text.line(format!(
            "  look for unfinished work in {}{branch}",
            former.dir
        ));
        for held in &former.also_ended {
            let (key, epoch) = (&held.key, held.epoch);
            text.line(format!(
                "  it lost {key} (epoch {epoch}) as well, which overlaps it"
            ));
        }
        for survivor in &former.survivors {
            let (pid, command) = (survivor.pid, &survivor.command);
            text.line(format!(
                "  it left pid {pid} running, which may still write: {command}"
            ));
        }
        if let Some(why) = &former.survivors_unsure {
            text.line(format!("  it may have left processes running: {why}"));
        }
    }
    text
}

pub fn claims(claims: &[ClaimView]) -> Lines {
    if claims.is_empty() {
        return "nothing is held".into();
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
                Cell::plain(claim.key.clone()),
                Cell::state(claim.state, claim.state),
                Cell::plain(holder),
                Cell::plain(since),
                Cell::plain(claim.epoch.to_string()),
                Cell::plain(claim.note.clone().unwrap_or_else(|| "-".into())),
            ]
        })
        .collect();
    table(&["KEY", "STATE", "HOLDER", "SINCE", "EPOCH", "NOTE"], &rows)
}

/// The explanation of a key.
pub fn why(why: &Why) -> Lines {
    let claim = &why.claim;
    let state = paint(claim.state, claim.state);
    let mut text = Lines::from(format!("{} is {state}", claim.key));
    text.line(match why.why.answer.as_str() {
        "yours" => "  you hold this".to_owned(),
        answer => format!("  a claim now would be {answer}"),
    });
    for line in &why.why.because {
        text.line(format!("  {line}"));
    }
    for waiter in &why.why.waiters {
        let who = waiter.session.as_deref().unwrap_or("a command");
        text.line(format!(
            "  {who} (pid {}) waits in line, since {}",
            waiter.pid,
            ago(waiter.since, now())
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
    let mut text = Lines::default();
    for event in events {
        let time = event.at.to_string();
        let session = event
            .session
            .as_ref()
            .map_or("-", |name| name.handle.as_str());
        let mut line = format!("{:>6}  {time}  {:<18}  {session}", event.cursor, event.kind);
        if let Some(key) = &event.key {
            let _infallible = write!(line, "  {key}");
        }
        if let Some(epoch) = event.epoch {
            let _infallible = write!(line, " (epoch {epoch})");
        }
        let _infallible = write!(line, "  by {}: {}", event.mechanism, event.evidence);
        if let Some(actor) = &event.actor {
            let _infallible = write!(line, ", by {}", actor.handle);
        }
        if let Some(reason) = &event.reason {
            let _infallible = write!(line, ", because {}", text::quoted(reason));
        }
        text.line(line);
    }
    text
}
