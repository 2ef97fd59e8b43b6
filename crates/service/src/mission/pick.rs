//! Which mission is selected, and the caller's own row in it.

use super::request::MissionPlace;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use tenure_core::id::HostId;
use tenure_core::mission::check::{self, Against, MissionFault};
use tenure_core::mission::pointer::{self, Membership, Pointer, PointerScope, Resolution};
use tenure_core::mission::{MissionId, Participant, StoredParticipant};
use tenure_core::repository;
use tenure_core::session::Session;
use tenure_core::spelling;

/// The pointers that apply to a caller, by precedence.
pub fn scopes(ctx: &Ctx<'_>, session: Option<&Session>, here: &MissionPlace) -> Vec<PointerScope> {
    let own = session.map(|session| PointerScope::Session(session.id));
    let named = |repo: &String, host: &HostId| {
        // A directory is one of its machine; a remote is the same for all.
        let is_local = ctx.observer.shared_store && spelling::is_directory(repo);
        PointerScope::Repo(if is_local {
            repository::on(host, repo)
        } else {
            repo.clone()
        })
    };
    let repo = match (&here.repo, session) {
        (Some(repo), _) => Some(named(repo, &ctx.observer.host)),
        (None, Some(session)) => session.workdir.repo.as_ref().map(|repo| {
            let process = session.process.as_ref();
            named(repo, process.map_or(&ctx.observer.host, |one| &one.host))
        }),
        (None, None) => None,
    };
    let user = PointerScope::User(here.user.clone());
    own.into_iter().chain(repo).chain([user]).collect()
}

/// How a session relates to the mission that a pointer names. A caller that is not a session has joined nothing
/// and may read everything.
pub fn membership(
    ctx: &mut Ctx<'_>,
    session: Option<&Session>,
    mission: &str,
) -> Result<Membership, Stop> {
    if ctx.tx.mission(mission)?.is_none() {
        return Ok(Membership::Missing);
    }
    let joined = match session {
        None => true,
        Some(session) => ctx.tx.participant(mission, session.id)?.is_some(),
    };
    Ok(if joined {
        Membership::Joined
    } else {
        Membership::NotJoined
    })
}

pub fn resolve(
    ctx: &mut Ctx<'_>,
    session: Option<&Session>,
    here: &MissionPlace,
    named: Option<&MissionId>,
) -> Result<Resolution, Stop> {
    let mut found: Vec<(Pointer, Membership)> = Vec::new();
    if named.is_none() {
        for scope in scopes(ctx, session, here) {
            if let Some(pointer) = ctx.tx.pointer(&scope)? {
                let membership = membership(ctx, session, &pointer.mission)?;
                found.push((pointer, membership));
            }
        }
    }
    Ok(pointer::resolve(named, &found))
}

/// The selected mission, or an error with both remedies.
pub fn meant(found: &Resolution) -> Result<MissionId, Error> {
    found.mission.clone().ok_or_else(|| Error::NoMission {
        what: match found.passed_over.first() {
            None => "no mission was given and none is active".to_owned(),
            Some(fault) => format!(
                "no mission was given, and {} {:?} cannot be used: {}",
                fault.subject, fault.value, fault.why
            ),
        },
        passed_over: found.passed_over.clone(),
    })
}

/// Parses a row, or returns all its faults.
pub fn read(
    ctx: &mut Ctx<'_>,
    here: &MissionPlace,
    row: &StoredParticipant,
    handle: &str,
) -> Result<Result<Participant, Vec<MissionFault>>, Stop> {
    let against = Against {
        roles: &here.roles,
        mission_is_known: ctx.tx.mission(&row.mission)?.is_some(),
        handle,
    };
    Ok(check::participant(row, against))
}

/// The caller's own row, which must exist and be valid.
pub fn own(
    ctx: &mut Ctx<'_>,
    session: &Session,
    here: &MissionPlace,
    mission: &MissionId,
) -> Result<Participant, Stop> {
    let handle = session.handle.as_str();
    let Some(row) = ctx.tx.participant(mission.as_str(), session.id)? else {
        return Err(not_joined(handle, mission.as_str()).into());
    };
    match read(ctx, here, &row, handle)? {
        Ok(participant) => Ok(participant),
        Err(faults) => Err(Error::Faulty {
            what: format!("stored data of {handle} in mission {mission}"),
            faults,
        }
        .into()),
    }
}

/// The error for a mission that a session has not joined.
pub fn not_joined(handle: &str, mission: &str) -> Error {
    Error::NotFound {
        what: format!("{handle} has not joined mission {mission}"),
        hint: check::join(mission),
    }
}
