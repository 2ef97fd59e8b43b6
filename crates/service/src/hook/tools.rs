//! Checks a tool call before it runs: does it conflict with another session?
//!
//! Only tools that write a file, or run a command that moves the files of a worktree, are checked. A finding is
//! always logged. Mode `warn` reports it to the model, mode `block` stops the tool; a claim that the user
//! requires stops it in any mode. A write that goes ahead is stored, so the next writer can be warned. Only
//! live sessions count.

use std::time::Duration;

use crate::claim::covering_hold;
use crate::context::{Ctx, Stop};
use serde::{Deserialize, Serialize};
use tenure_core::event::{Event, EventFilter, EventKind};
use tenure_core::git_move::GitMove;
use tenure_core::glob::{self, Glob};
use tenure_core::key::Key;
use tenure_core::notice::NoticeKind;
use tenure_core::repository::Space;
use tenure_core::session::{Doing, Session, Standing};
use tenure_core::store::{ClaimFilter, SessionFilter};
use tenure_core::write_conflict::{
    FileStamp, FileWrite, Finding, GuardMode, Neighbour, RepoFile, TOLD_AGAIN_AFTER, Tree,
    WriteRemedy, fits, is_news,
};
use tenure_core::{spelling, text};

/// How long writes are kept. Older ones are of no use at a resume either.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// How many of a session's newest log entries are searched for what the person has already seen. Every finding
/// is logged, so few are enough, and all writers wait while they are read.
const MAX_CONFLICTS: usize = 64;

/// The user's settings for tools that write.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GuardPolicy {
    pub mode: GuardMode,
    /// The pattern that a claim must match before a file may be written.
    pub require_claim: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolUse {
    /// The files that it writes, as absolute paths. One that ends with a slash is a directory with all that is below it.
    pub writes: Vec<String>,
    /// The command in it that moves the files of a worktree, and where: an absolute path.
    pub moves: Option<GitMove>,
    pub ran: bool,
    /// Whether the model reads the answer before the tool runs; if not, it is warned afterwards.
    pub answer_is_read: bool,
    pub policy: GuardPolicy,
}

/// The answer to a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Advice {
    /// For the model.
    pub warnings: Vec<String>,
    /// For the person: each one once an hour, although the model gets it every time.
    pub headlines: Vec<String>,
    /// Why the tool must not run.
    pub block: Option<String>,
}

/// Checks a tool call, and stores it if it goes ahead.
pub fn advise(
    ctx: &mut Ctx<'_>,
    session: &Session,
    tool: &ToolUse,
    dir: &str,
) -> Result<Advice, Stop> {
    let mut findings = Vec::new();
    if !tool.writes.is_empty()
        && let Some(pattern) = &tool.policy.require_claim
        && !holds_fitting(ctx, session, pattern)?
    {
        let pattern = pattern.clone();
        findings.push(Finding::Unclaimed { pattern });
    }
    let reserved = !tool.writes.is_empty() && paths_are_reserved(ctx)?;
    let targets = targets(ctx, tool)?;
    if reserved {
        let paths: Vec<String> = targets.iter().map(|target| target.path.clone()).collect();
        ctx.look_at_files(&paths)?;
    }
    for target in &targets {
        let path = &target.path;
        let claimed = if reserved {
            claimed(ctx, session, target)?
        } else {
            Claimed::ByNobody
        };
        let is_own = matches!(claimed, Claimed::Own);
        findings.extend(second_writer(ctx, session, path, is_own)?);
        if let Claimed::ByAnother(finding) = claimed {
            findings.push(finding);
        }
    }
    if let Some(moves) = &tool.moves {
        findings.extend(tree_moved(ctx, session, moves, dir)?);
    }
    let mode = tool.policy.mode;
    let blocked = findings.iter().any(|finding| finding.blocks(mode));
    let mut advice = advice(&findings, mode);
    if !findings.is_empty() {
        ctx.write()?;
        if mode != GuardMode::Observe {
            advice.headlines = headlines(ctx, session, &findings)?;
        }
    }
    for finding in &findings {
        let kind = EventKind::WriteConflict;
        ctx.log(&ctx.event(
            kind,
            Some(session.id),
            finding.mechanism(),
            finding.evidence(),
        ))?;
    }
    if !blocked {
        keep(ctx, session, tool)?;
    }
    if !tool.answer_is_read {
        for warning in std::mem::take(&mut advice.warnings) {
            ctx.notify(session.id, NoticeKind::Warned, warning, None, None)?;
        }
    }
    Ok(advice)
}

/// Something that a tool writes.
struct WrittenPath {
    path: String,
    /// Whether it means everything below the path.
    is_dir: bool,
}

/// What a tool writes: its files, its directories, and the files below these that sessions wrote.
fn targets(ctx: &mut Ctx<'_>, tool: &ToolUse) -> Result<Vec<WrittenPath>, Stop> {
    let mut targets = Vec::new();
    for path in &tool.writes {
        let Some(dir) = path.strip_suffix('/') else {
            let (path, is_dir) = (path.clone(), false);
            targets.push(WrittenPath { path, is_dir });
            continue;
        };
        let mut below = ctx.tx.written_below(dir)?;
        below.dedup();
        let file = |path| WrittenPath {
            path,
            is_dir: false,
        };
        targets.extend(below.into_iter().map(file));
        let path = if dir.is_empty() { "/" } else { dir }.to_owned();
        targets.push(WrittenPath { path, is_dir: true });
    }
    Ok(targets)
}

fn advice(findings: &[Finding], mode: GuardMode) -> Advice {
    let told: Vec<&Finding> = said(findings).collect();
    let (stops, warns): (Vec<&Finding>, Vec<&Finding>) =
        told.iter().partition(|finding| finding.blocks(mode));
    let sentences = |found: &[&Finding], blocked: bool| -> Vec<String> {
        found
            .iter()
            .map(|finding| finding.sentence(blocked))
            .collect()
    };
    Advice {
        warnings: match mode {
            GuardMode::Observe => Vec::new(),
            GuardMode::Warn | GuardMode::Block => sentences(&warns, false),
        },
        headlines: Vec::new(),
        block: (!stops.is_empty()).then(|| sentences(&stops, true).join(" ")),
    }
}

/// The findings to report. A reservation comes before a second writer, because the claim that a second writer
/// is advised to take would be refused.
fn said(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    let is_reserved = |file: &String| {
        let reserved = |finding: &Finding| match finding {
            Finding::Reserved { path, .. } => path == file,
            _ => false,
        };
        findings.iter().any(reserved)
    };
    findings.iter().filter(move |finding| match finding {
        Finding::SecondWriter { path, .. } => !is_reserved(path),
        _ => true,
    })
}

/// What the person is shown, without findings that this session logged within the hour.
fn headlines(
    ctx: &mut Ctx<'_>,
    session: &Session,
    findings: &[Finding],
) -> Result<Vec<String>, Stop> {
    let met = met_lately(ctx, session)?;
    let is_news = |finding: &&Finding| {
        let is_it = |event: &Event| finding.is_in(&event.mechanism, &event.evidence);
        !met.iter().any(is_it)
    };
    let news = said(findings).filter(is_news);
    Ok(news
        .map(|finding| finding.headline(&session.workdir.dir))
        .collect())
}

/// What the person reads at the end of a turn, each thing once an hour: the findings in the log.
pub fn recap(ctx: &mut Ctx<'_>, session: &Session) -> Result<Advice, Stop> {
    let Some(began) = session.attended_at else {
        return Ok(Advice::default());
    };
    let about = |event: &Event| {
        let about = event.evidence.split_once(": ").map(|(about, _)| about);
        (event.mechanism.clone(), about.map(str::to_owned))
    };
    let met = met_lately(ctx, session)?;
    let (turn, earlier): (Vec<&Event>, Vec<&Event>) =
        met.iter().partition(|event| event.at >= began);
    let mut told: Vec<_> = earlier.into_iter().map(about).collect();
    let mut advice = Advice::default();
    for event in turn {
        let about = about(event);
        if !told.contains(&about) {
            told.push(about);
            advice.headlines.push(event.evidence.clone());
        }
    }
    Ok(advice)
}

/// The write conflicts that a session logged within the hour.
fn met_lately(ctx: &mut Ctx<'_>, session: &Session) -> Result<Vec<Event>, Stop> {
    // The query has no time limit: with one, it would read everything that the session ever did.
    let mut met = ctx.tx.events(&EventFilter {
        session: Some(session.id),
        readable_only: true,
        limit: MAX_CONFLICTS,
        ..EventFilter::default()
    })?;
    let since = ctx.now.wall.minus(TOLD_AGAIN_AFTER);
    met.retain(|event| {
        event.at >= since
            && event.kind == EventKind::WriteConflict.as_str()
            && event.session == Some(session.id)
    });
    Ok(met)
}

/// Stores that the session writes these files now, and the state of its worktree.
fn keep(ctx: &mut Ctx<'_>, session: &Session, tool: &ToolUse) -> Result<(), Stop> {
    let Some(first) = tool.writes.first() else {
        return Ok(());
    };
    let paths: Vec<String> = tool
        .writes
        .iter()
        .map(|path| path.trim_end_matches('/').to_owned())
        .collect();
    ctx.look_at_files(&paths)?;
    let file = ctx.file(first.trim_end_matches('/'))?;
    ctx.write_beat()?;
    let at = ctx.now.wall;
    for path in paths {
        let is_new = !tool.ran && ctx.file(&path)?.is_some_and(|file| file.stamp.is_none());
        ctx.tx.note_write(&FileWrite {
            path,
            session: session.id,
            at,
            stamp: is_new.then_some(FileStamp::ABSENT),
        })?;
    }
    let old = at.minus(KEPT.max(ctx.policy.recent_writes));
    ctx.tx.forget_writes(session.id, old)?;
    if let Some(file) = file {
        let tree = Tree {
            root: file.root,
            head: file.head,
            branch: file.branch,
            at,
        };
        ctx.tx.set_tree(session.id, &tree)?;
    }
    Ok(())
}

fn lives(ctx: &mut Ctx<'_>, session: &Session) -> Result<bool, Stop> {
    if !session.is_open() {
        return Ok(false);
    }
    Ok(match ctx.standing(session)? {
        Standing::Live | Standing::Trusted { .. } | Standing::Suspect { .. } => true,
        Standing::Gone(_) | Standing::Expired(_) => false,
    })
}

fn second_writer(
    ctx: &mut Ctx<'_>,
    session: &Session,
    path: &str,
    reserved: bool,
) -> Result<Option<Finding>, Stop> {
    let writers = ctx.tx.writers(path)?;
    let own = writers.iter().find(|write| write.session == session.id);
    let own = own.map(|write| write.at);
    let mut news: Vec<&FileWrite> = writers
        .iter()
        .filter(|write| {
            write.session != session.id
                && is_news(write.at, own, ctx.now.wall, ctx.policy.recent_writes)
        })
        .collect();
    news.sort_by_key(|write| std::cmp::Reverse(write.at));
    for write in news {
        let other = ctx.session(write.session)?;
        if !ctx.is_elsewhere(&other) && lives(ctx, &other)? {
            let way = if reserved {
                WriteRemedy::Reserved
            } else {
                way(ctx, path)?
            };
            return Ok(Some(Finding::SecondWriter {
                path: path.to_owned(),
                handle: other.handle.to_string(),
                doing: doing(&other),
                dir: other.workdir.dir,
                ago: write.at.age_at(ctx.now.wall),
                way,
            }));
        }
    }
    Ok(None)
}

fn doing(session: &Session) -> Option<Doing> {
    session.activity.as_ref().map(|activity| activity.doing)
}

/// How a session may write a file that another wrote.
fn way(ctx: &mut Ctx<'_>, path: &str) -> Result<WriteRemedy, Stop> {
    let Some(file) = ctx.file(path)? else {
        return Ok(WriteRemedy::Wait("it is outside any repository"));
    };
    let Some(key) = key_of(&file) else {
        return Ok(WriteRemedy::Wait("its name cannot be used in a key"));
    };
    let is_done = ctx.tx.claim(&key)?.is_some_and(|record| record.is_done());
    Ok(if is_done {
        WriteRemedy::Wait("its claim was released as done")
    } else {
        WriteRemedy::Claim(key.to_string())
    })
}

/// The key that reserves only this file; none if its name cannot be part of a key.
fn key_of(file: &RepoFile) -> Option<Key> {
    let relative = text::nfc(&file.relative);
    let glob = glob::literal(&relative);
    let key = Key::parse(&format!("path:{}:{glob}", file.repository.name())).ok()?;
    let (_, glob) = key.path()?;
    glob.matches(&relative).then_some(key)
}

/// Who holds a claim that contains a file.
enum Claimed {
    /// This session, or an ancestor that covers it.
    Own,
    ByAnother(Finding),
    ByNobody,
}

/// Whether any path is held at all.
fn paths_are_reserved(ctx: &mut Ctx<'_>) -> Result<bool, Stop> {
    let any = ClaimFilter {
        prefix: Some("path:".into()),
        limit: 1,
        ..ClaimFilter::default()
    };
    Ok(!ctx.tx.list_claims(&any)?.is_empty())
}

/// The pattern of everything in a directory.
fn all_below(relative: &str) -> Option<Glob> {
    let pattern = match relative {
        "" => "**".to_owned(),
        dir => format!("{}/**", glob::literal(dir)),
    };
    Glob::parse(&pattern).ok()
}

/// Finds the claims that contain a file, or something in a directory.
fn claimed(ctx: &mut Ctx<'_>, session: &Session, target: &WrittenPath) -> Result<Claimed, Stop> {
    let path = &target.path;
    let Some(file) = ctx.file(path)? else {
        return Ok(Claimed::ByNobody);
    };
    let space = Space::of(file.repository.name(), Some(&file.repository));
    // Keys and their globs are in NFC; file names may not be.
    let relative = text::nfc(&file.relative);
    let below = target.is_dir.then(|| all_below(&relative)).flatten();
    let mut records = ctx.held_paths(&space)?;
    records.retain(|record| {
        let Some((_, glob)) = record.key.path() else {
            return false;
        };
        glob.matches(&relative) || below.as_ref().is_some_and(|below| glob.overlaps(below))
    });
    let mut answer = Claimed::ByNobody;
    for record in records {
        let Some(hold) = record.current() else {
            continue;
        };
        if covering_hold(ctx, session, &record)?.is_some() {
            answer = match answer {
                Claimed::ByNobody => Claimed::Own,
                other => other,
            };
            continue;
        }
        let holder = ctx.session(hold.session)?;
        if lives(ctx, &holder)? {
            let own_key = key_of(&file).unwrap_or_else(|| record.key.clone());
            answer = Claimed::ByAnother(Finding::Reserved {
                path: path.to_owned(),
                key: record.key.to_string(),
                handle: holder.handle.to_string(),
                own_key: own_key.to_string(),
            });
        }
    }
    Ok(answer)
}

fn tree_moved(
    ctx: &mut Ctx<'_>,
    session: &Session,
    moves: &GitMove,
    dir: &str,
) -> Result<Option<Finding>, Stop> {
    let Some(here) = ctx.file(moves.dir.as_deref().unwrap_or(dir))? else {
        return Ok(None);
    };
    let filter = SessionFilter {
        under: Some(here.root.clone()),
        ..SessionFilter::default()
    };
    let mut others = ctx.tx.list_sessions(&filter)?;
    others.retain(|other| {
        let is_own = other.id == session.id || other.parent == Some(session.token());
        !is_own && !ctx.is_elsewhere(other)
    });
    // All at once, because each observation restarts the use case.
    ctx.look_at_all(&others)?;
    let mut dirs: Vec<String> = others
        .iter()
        .map(|other| other.workdir.dir.clone())
        .collect();
    dirs.sort_unstable();
    dirs.dedup();
    ctx.look_at_files(&dirs)?;
    let mut neighbours = Vec::new();
    for other in others {
        let same_tree = ctx
            .file(&other.workdir.dir)?
            .is_some_and(|there| there.root == here.root);
        if same_tree && lives(ctx, &other)? {
            neighbours.push(Neighbour {
                handle: other.handle.to_string(),
                doing: doing(&other),
            });
        }
    }
    Ok((!neighbours.is_empty()).then(|| Finding::TreeMoved {
        command: moves.command.clone(),
        own_tree: format!("{}-{}", here.root, session.handle),
        root: here.root,
        others: neighbours,
    }))
}

/// Whether the session, or an ancestor whose hold covers it, holds a matching key.
fn holds_fitting(ctx: &mut Ctx<'_>, session: &Session, pattern: &str) -> Result<bool, Stop> {
    let pattern = &spelling::beginning(pattern);
    let prefix = pattern.split('*').next().unwrap_or_default();
    let filter = ClaimFilter {
        prefix: Some(prefix.to_owned()).filter(|prefix| !prefix.is_empty()),
        ..ClaimFilter::default()
    };
    let own = ctx.tx.open_holds(session.id)?;
    if own
        .iter()
        .any(|hold| fits(pattern, hold.key.canonical().as_str()))
    {
        return Ok(true);
    }
    if session.parent.is_none() {
        return Ok(false);
    }
    for record in ctx.tx.list_claims(&filter)? {
        if fits(pattern, record.key.as_str()) && covering_hold(ctx, session, &record)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
