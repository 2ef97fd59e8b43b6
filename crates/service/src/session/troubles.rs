//! Problems of many sessions: lost claims, collisions, deaths that lost work.
//!
//! Each kind of problem takes one query for all sessions, so a list of hundreds stays one pass. Collisions are
//! found among the sessions of the list.

use std::collections::{BTreeMap, BTreeSet};

use crate::context::{Ctx, Stop};
use tenure_core::claim::{EndedBy, Hold};
use tenure_core::id::{HostId, SessionId};
use tenure_core::mission::collision;
use tenure_core::order::{DEATH_IS_NEWS_FOR, died_with_work};
use tenure_core::session::Session;
use tenure_core::write_conflict::FileWrite;

/// Sessions that share something, each with the others that share it.
pub type Partners = BTreeMap<SessionId, BTreeSet<SessionId>>;

/// Sessions by problem.
#[derive(Debug, Default)]
pub struct Troubles {
    pub died_with_work: BTreeSet<SessionId>,
    /// The keys that another session took from it and holds, until it is told.
    pub lost: BTreeMap<SessionId, Vec<String>>,
    /// It shares a focus, a file or a conversation with another live session.
    pub collides: Partners,
}

/// The problems of these sessions, each given with whether it is over.
pub(crate) fn of(ctx: &mut Ctx<'_>, sessions: &[(&Session, bool)]) -> Result<Troubles, Stop> {
    let mut found = Troubles::default();
    if sessions.is_empty() {
        return Ok(found);
    }
    let known: BTreeMap<SessionId, &Session> =
        sessions.iter().map(|(one, _)| (one.id, *one)).collect();
    let all: Vec<SessionId> = known.keys().copied().collect();
    let since = ctx.now.wall.minus(DEATH_IS_NEWS_FOR);
    for hold in ctx.tx.lost_holds_of(&all, since)? {
        let Some(session) = known.get(&hold.session) else {
            continue;
        };
        match &session.closed {
            Some(closed) => {
                let held = held_at_death(session, &hold);
                if died_with_work(closed, held, ctx.now.wall) {
                    found.died_with_work.insert(session.id);
                }
            }
            None if another_has(ctx, &hold)? && is_untold(ctx, &hold)? => {
                let lost = found.lost.entry(session.id).or_default();
                lost.push(hold.key.to_string());
            }
            None => {}
        }
    }
    for (session, is_over) in sessions {
        // Its death was found by this query and is recorded after it.
        let just_died = session.closed.is_none() || ctx.effects.dead.contains(&session.id);
        if *is_over && just_died && !ctx.open_holds(session.id)?.is_empty() {
            found.died_with_work.insert(session.id);
        }
    }
    let open: Vec<&Session> = sessions
        .iter()
        .filter(|(_, is_over)| !is_over)
        .map(|(one, _)| *one)
        .collect();
    found.collides = collisions(ctx, &open)?;
    Ok(found)
}

fn held_at_death(session: &Session, hold: &Hold) -> bool {
    let by = hold.ended.map(|end| end.by);
    by == Some(EndedBy::Death) && hold.life == session.life
}

fn another_has(ctx: &mut Ctx<'_>, hold: &Hold) -> Result<bool, Stop> {
    let record = ctx.tx.claim(&hold.key)?;
    let lost = record.filter(|record| record.was_lost(hold));
    Ok(lost.is_some_and(|record| record.current().is_some()))
}

/// Whether the notice of a loss waits to be delivered.
fn is_untold(ctx: &mut Ctx<'_>, hold: &Hold) -> Result<bool, Stop> {
    let key = std::slice::from_ref(&hold.key);
    Ok(!ctx.tx.losses_told(hold.session, key)?.is_empty())
}

/// Sessions that share something with another of them.
fn collisions(ctx: &mut Ctx<'_>, open: &[&Session]) -> Result<Partners, Stop> {
    let ids: Vec<SessionId> = open.iter().map(|one| one.id).collect();
    let rows = ctx.tx.participations_of(&ids)?;
    let mut found = Partners::new();
    for (_, drivers) in collision::drivers(&rows, |_| false) {
        add(&mut found, &drivers);
    }
    let lately = ctx.now.wall.minus(ctx.policy.recent_writes);
    let mut writes = ctx.tx.writes_since(&ids, lately)?;
    // The same path on two machines is two files.
    let here = ctx.observer.host.clone();
    let machines: BTreeMap<SessionId, &HostId> = open
        .iter()
        .filter(|_| ctx.observer.shared_store)
        .filter_map(|one| Some((one.id, &one.process.as_ref()?.host)))
        .collect();
    let machine = |write: &FileWrite| machines.get(&write.session).copied().unwrap_or(&here);
    leave_out_refused(ctx, &mut writes, |write| *machine(write) == here)?;
    let files = writes
        .iter()
        .map(|write| ((machine(write), &write.path), write.session));
    share(&mut found, files);
    let conversations = open.iter().filter_map(|one| {
        let native_id = one.native_id.as_ref()?;
        Some(((&one.agent, native_id), one.id))
    });
    share(&mut found, conversations);
    Ok(found)
}

/// Takes out writes that were announced and refused: their file is as it was, or as another session left it. Only files
/// of this machine that several sessions wrote are looked at.
fn leave_out_refused(
    ctx: &mut Ctx<'_>,
    writes: &mut Vec<FileWrite>,
    is_here: impl Fn(&FileWrite) -> bool,
) -> Result<(), Stop> {
    let local: Vec<FileWrite> = writes.iter().filter(|one| is_here(one)).cloned().collect();
    let shared: Vec<&[FileWrite]> = local
        .chunk_by(|one, next| one.path == next.path)
        .filter(|of_one_file| of_one_file.len() > 1)
        .collect();
    let paths: Vec<String> = shared
        .iter()
        .map(|of_one_file| of_one_file[0].path.clone())
        .collect();
    ctx.look_at_files(&paths)?;
    for of_one_file in shared {
        // Outside a repository, what became of it is not known.
        let Some(file) = ctx.file(&of_one_file[0].path)? else {
            continue;
        };
        let left = |one: &FileWrite| !one.is_open() && one.stamp == file.stamp;
        let is_left_by_one = of_one_file.iter().any(left);
        let was_refused =
            |one: &FileWrite| one.is_open() && (is_left_by_one || one.never_happened(file.stamp));
        writes.retain(|one| one.path != of_one_file[0].path || !is_here(one) || !was_refused(one));
    }
    Ok(())
}

/// Adds the sessions that have the same thing as another.
fn share<T: Ord>(found: &mut Partners, owned: impl Iterator<Item = (T, SessionId)>) {
    let mut owners: BTreeMap<T, BTreeSet<SessionId>> = BTreeMap::new();
    for (thing, owner) in owned {
        owners.entry(thing).or_default().insert(owner);
    }
    owners.values().for_each(|all| add(found, all));
}

/// Adds the owners of one thing, if there are several.
fn add(found: &mut Partners, owners: &BTreeSet<SessionId>) {
    for one in owners.iter().filter(|_| owners.len() > 1) {
        let others = owners.iter().filter(|other| *other != one);
        found.entry(*one).or_default().extend(others);
    }
}
