//! Joining, leaving, changing and pointing.

use super::pick;
use super::request::{
    ChangeRequest, JoinRequest, JoinResult, LeaveResult, MissionChangeResult, MissionPlace,
    PointRequest, PointResult, PointerOwner,
};
use super::roster::{Present, present, view, viewer};
use crate::caller::{self, ActFor, Caller, Purpose};
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::mission::view::ParticipantView;
use crate::transact::{Reply, Service};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::hint::Hint;
use tenure_core::id::SessionId;
use tenure_core::mission::change::MissionChange;
use tenure_core::mission::check::{self, MissionFault};
use tenure_core::mission::pointer::{self, Membership, PointerScope};
use tenure_core::mission::{
    ApiUrl, Drive, MissionId, MissionRunId, Participant, ParticipantId, StoredParticipant,
};
use tenure_core::session::Session;
use tenure_core::store::{Lock, TxMode};

impl Service<'_> {
    /// Makes the calling session a participant. Joining again changes only its role.
    pub fn join_mission(
        &mut self,
        act_for: &ActFor,
        here: &MissionPlace,
        request: &JoinRequest,
    ) -> Reply<JoinResult> {
        self.transact(TxMode::Write, |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::Act)?;
            join(ctx, &caller, here, request)
        })
    }

    /// Changes the caller's own row.
    pub fn change_participant(
        &mut self,
        act_for: &ActFor,
        here: &MissionPlace,
        request: &ChangeRequest,
    ) -> Reply<MissionChangeResult> {
        self.transact(TxMode::Write, |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::Act)?;
            let found = pick::resolve(ctx, Some(&caller.session), here, request.mission.as_ref())?;
            let mission = pick::meant(&found)?;
            ctx.lock([Lock::Mission(mission.to_string())])?;
            let row = pick::own(ctx, &caller.session, here, &mission)?;
            let (participant, warnings) = change(ctx, &caller, here, row, request)?;
            Ok(MissionChangeResult {
                participant,
                pointer: found.into(),
                warnings,
            })
        })
    }

    /// Removes the calling session from a mission, even if its row is invalid.
    pub fn leave_mission(
        &mut self,
        act_for: &ActFor,
        here: &MissionPlace,
        mission: Option<&str>,
    ) -> Reply<LeaveResult> {
        self.transact(TxMode::Write, |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::Act)?;
            let mission = match mission {
                Some(named) => named.to_owned(),
                None => {
                    let found = pick::resolve(ctx, Some(&caller.session), here, None)?;
                    pick::meant(&found)?.to_string()
                }
            };
            leave(ctx, &caller, mission)
        })
    }

    pub fn point_to_mission(
        &mut self,
        act_for: &ActFor,
        here: &MissionPlace,
        request: &PointRequest,
    ) -> Reply<PointResult> {
        self.transact(TxMode::Write, |ctx| {
            let (me, by) = match request.whose {
                PointerOwner::Session => {
                    let caller = caller::require(ctx, act_for, Purpose::Act)?;
                    (Some(caller.session.clone()), Some(caller))
                }
                PointerOwner::Repo | PointerOwner::User => (viewer(ctx, act_for)?, None),
            };
            point(ctx, (me.as_ref(), by.as_ref()), here, request)
        })
    }
}

fn join(
    ctx: &mut Ctx<'_>,
    caller: &Caller,
    here: &MissionPlace,
    request: &JoinRequest,
) -> Result<JoinResult, Stop> {
    let (session, mission) = (&caller.session, &request.mission);
    if !request.role.is_listed(&here.roles) {
        return Err(Error::Invalid {
            what: format!(
                "role {:?} is not among the roles in the settings",
                request.role.as_str()
            ),
            hint: Hint::step(format!(
                "use one of the roles in missions.roles: {}",
                here.roles.join(", ")
            )),
        }
        .into());
    }
    let own = Lock::Session(session.id);
    ctx.lock([Lock::Mission(mission.to_string()), own])?;
    let is_there = ctx.tx.participant(mission.as_str(), session.id)?.is_some();
    let mut continues = None;
    if is_there {
        let mut row = pick::own(ctx, session, here, mission)?;
        if let Some(named) = request
            .participant
            .as_ref()
            .filter(|id| **id != row.participant)
        {
            return Err(Error::Invalid {
                what: format!(
                    "{} is participant {} of {mission}, not {named}",
                    session.handle, row.participant
                ),
                hint: Hint::run("mission", ["leave", mission.as_str()], "to leave it first"),
            }
            .into());
        }
        let said = MissionChange::Role(request.role.clone()).apply(&mut row);
        keep(ctx, caller, &mut row, said)?;
    } else {
        let (participant, before) = match &request.participant {
            Some(named) => {
                let before = taken_over(ctx, caller, mission, named)?;
                (named.clone(), before)
            }
            None => (mint(ctx), None),
        };
        ctx.tx.make_mission(mission, ctx.now.wall)?;
        // Somebody who continues has joined already; what the other system gave them is still theirs.
        let kept = before.as_ref();
        let run_id = kept.and_then(|row| MissionRunId::parse(row.run_id.as_deref()?).ok());
        let api_url = kept.and_then(|row| ApiUrl::parse(row.api_url.as_deref()?).ok());
        let now = ctx.now.wall;
        ctx.tx.insert_participant(&Participant {
            mission: mission.clone(),
            session: session.id,
            participant: participant.clone(),
            role: request.role.clone(),
            joined_at: kept.map_or(now, |row| row.joined_at.min(now)),
            active_at: now,
            drive: Drive::Inactive,
            focus: None,
            run_id,
            api_url,
            revision: 0,
        })?;
        continues = before.map(|row| row.session.to_string());
        let evidence = format!(
            "{mission}: joined as {}, participant {participant}",
            request.role
        );
        log(ctx, caller, EventKind::MissionJoined, "join", evidence)?;
    }
    ctx.tx.set_pointer(
        &PointerScope::Session(session.id),
        Some(mission),
        ctx.now.wall,
    )?;
    let (all, faults) = present(ctx, here, mission.as_str())?;
    let participant = own_view(ctx, session, &all)?;
    Ok(JoinResult {
        warnings: warnings(&participant, &faults),
        participant,
        new: !is_there,
        continues,
    })
}

fn mint(ctx: &Ctx<'_>) -> ParticipantId {
    let mut random = [0; 10];
    random.copy_from_slice(&ctx.world.random()[..10]);
    ParticipantId::mint(ctx.now.wall.0, random)
}

/// Takes over the participant id that the caller chose, and returns the row that had it; refused while a session that is
/// not gone has it.
fn taken_over(
    ctx: &mut Ctx<'_>,
    caller: &Caller,
    mission: &MissionId,
    named: &ParticipantId,
) -> Result<Option<StoredParticipant>, Stop> {
    let rows = ctx.tx.participants(mission.as_str())?;
    let found = rows
        .into_iter()
        .find(|row| row.participant == named.as_str());
    let Some(row) = found else {
        return Ok(None);
    };
    let other = ctx.session(row.session)?;
    let other = ctx.record_death_if_proved(other)?;
    if !ctx.standing(&other)?.is_gone() {
        return Err(Error::Invalid {
            what: format!(
                "participant {named} of {mission} belongs to {}",
                other.handle
            ),
            hint: Hint::step("omit --participant; each session needs its own"),
        }
        .into());
    }
    // It may have reported, or come back, since it was judged.
    ctx.lock([Lock::Session(other.id)])?;
    ctx.tx.remove_participant(mission.as_str(), other.id)?;
    clear_pointer(ctx, other.id, mission.as_str())?;
    let evidence = format!(
        "{mission}: {} continues as {}",
        other.handle, caller.session.handle
    );
    ctx.log(&NewEvent {
        actor: Some(caller.session.id),
        ..ctx.event(EventKind::MissionLeft, Some(other.id), "join", evidence)
    })?;
    Ok(Some(row))
}

fn change(
    ctx: &mut Ctx<'_>,
    caller: &Caller,
    here: &MissionPlace,
    mut row: Participant,
    request: &ChangeRequest,
) -> Result<(ParticipantView, Vec<String>), Stop> {
    let said = request.change.apply(&mut row);
    let mission = row.mission.clone();
    let (mut all, faults) = present(ctx, here, mission.as_str())?;
    if request.strict {
        // A session that does not count because it was silent may have reported since.
        let silent = all.iter().filter(|one| one.gone && one.session.is_open());
        ctx.lock(
            silent
                .map(|one| Lock::Session(one.session.id))
                .collect::<Vec<_>>(),
        )?;
    }
    if let Some(own) = all.iter_mut().find(|one| one.session.id == row.session) {
        own.participant = row.clone();
    }
    let participant = own_view(ctx, &caller.session, &all)?;
    if request.strict && !participant.collides_with.is_empty() {
        return Err(Error::Collision {
            mission: mission.to_string(),
            focus: participant.focus.unwrap_or_default(),
            drivers: participant.collides_with,
        }
        .into());
    }
    keep(ctx, caller, &mut row, said)?;
    let participant = ParticipantView {
        last_activity_at: participant.last_activity_at.max(row.active_at),
        revision: row.revision,
        ..participant
    };
    let warnings = warnings(&participant, &faults);
    Ok((participant, warnings))
}

/// Writes a row with its activity, and logs the change.
fn keep(
    ctx: &mut Ctx<'_>,
    caller: &Caller,
    row: &mut Participant,
    said: Option<String>,
) -> Result<(), Stop> {
    row.is_active_at(ctx.now.wall);
    ctx.tx.update_participant(row)?;
    row.revision += 1;
    match said {
        Some(said) => {
            let evidence = format!("{}: {said}", row.mission);
            log(ctx, caller, EventKind::MissionChanged, "mission", evidence)
        }
        None => Ok(()),
    }
}

fn own_view(
    ctx: &mut Ctx<'_>,
    session: &Session,
    all: &[Present],
) -> Result<ParticipantView, Stop> {
    match all.iter().find(|one| one.session.id == session.id) {
        Some(own) => view(ctx, own, all),
        None => Err(Stop::Store(tenure_core::store::StoreError::Conflict)),
    }
}

/// Warnings besides the answer.
fn warnings(participant: &ParticipantView, faults: &[MissionFault]) -> Vec<String> {
    let mut warnings = Vec::new();
    if let (Some(focus), false) = (&participant.focus, participant.collides_with.is_empty()) {
        let drivers = participant.collides_with.join(", ");
        warnings.push(format!("{focus} is also being worked on by {drivers}"));
    }
    warnings.extend(faults.iter().map(ToString::to_string));
    warnings
}

fn leave(ctx: &mut Ctx<'_>, caller: &Caller, mission: String) -> Result<LeaveResult, Stop> {
    let session = &caller.session;
    let own = Lock::Session(session.id);
    ctx.lock([Lock::Mission(mission.clone()), own])?;
    if !ctx.tx.remove_participant(&mission, session.id)? {
        return Err(pick::not_joined(session.handle.as_str(), &mission).into());
    }
    let cleared = clear_pointer(ctx, session.id, &mission)?;
    let evidence = format!("{mission}: left");
    log(ctx, caller, EventKind::MissionLeft, "leave", evidence)?;
    Ok(LeaveResult {
        mission,
        session: session.id.to_string(),
        cleared,
    })
}

/// Clears the pointer of a session that leaves a mission, if it names that mission.
fn clear_pointer(ctx: &mut Ctx<'_>, session: SessionId, mission: &str) -> Result<bool, Stop> {
    let scope = PointerScope::Session(session);
    let pointer = ctx.tx.pointer(&scope)?;
    let names_it = pointer.is_some_and(|pointer| pointer.mission == mission);
    if names_it {
        ctx.tx.set_pointer(&scope, None, ctx.now.wall)?;
    }
    Ok(names_it)
}

fn point(
    ctx: &mut Ctx<'_>,
    (me, by): (Option<&Session>, Option<&Caller>),
    here: &MissionPlace,
    request: &PointRequest,
) -> Result<PointResult, Stop> {
    let scope = scope(ctx, me, here, request.whose)?;
    let before = ctx.tx.pointer(&scope)?;
    let mut faults = Vec::new();
    if let Some(mission) = &request.mission {
        let membership = pick::membership(ctx, me, mission.as_str())?;
        match (membership, request.whose, me) {
            (Membership::Missing, ..) => {
                return Err(Error::NotFound {
                    what: format!("mission {mission} does not exist"),
                    hint: check::join(mission.as_str()),
                }
                .into());
            }
            (Membership::NotJoined, PointerOwner::Session, Some(me)) => {
                return Err(pick::not_joined(me.handle.as_str(), mission.as_str()).into());
            }
            _ => {}
        }
        if let (Some(me), Membership::Joined) = (me, membership) {
            ctx.lock([Lock::Mission(mission.to_string())])?;
            let mut row = pick::own(ctx, me, here, mission)?;
            row.is_active_at(ctx.now.wall);
            ctx.tx.update_participant(&row)?;
        }
        let pointer = pointer::Pointer {
            scope: scope.clone(),
            mission: mission.to_string(),
            at: ctx.now.wall,
        };
        faults.extend(pointer::judge(&pointer, membership).err());
    }
    ctx.tx
        .set_pointer(&scope, request.mission.as_ref(), ctx.now.wall)?;
    let name = |mission: Option<&str>| mission.unwrap_or("none").to_owned();
    let was = before.as_ref().map(|pointer| pointer.mission.as_str());
    let is = request.mission.as_ref().map(MissionId::as_str);
    if was != is {
        let evidence = format!(
            "{} {}: {} -> {}",
            scope.kind(),
            scope.name(),
            name(was),
            name(is)
        );
        let whose = me.map(|me| me.id);
        ctx.log(&NewEvent {
            actor: by
                .and_then(|by| by.actor)
                .filter(|actor| Some(*actor) != whose),
            reason: by.and_then(Caller::reason_text),
            ..ctx.event(EventKind::MissionUsed, whose, "use", evidence)
        })?;
    }
    Ok(PointResult {
        whose: scope.kind(),
        name: scope.name(),
        mission: is.map(str::to_owned),
        before: was.map(str::to_owned),
        pointer: pick::resolve(ctx, me, here, None)?.into(),
        faults,
    })
}

fn scope(
    ctx: &Ctx<'_>,
    me: Option<&Session>,
    here: &MissionPlace,
    whose: PointerOwner,
) -> Result<PointerScope, Error> {
    let found = pick::scopes(ctx, me, here).into_iter().find(|scope| {
        matches!(
            (whose, scope),
            (PointerOwner::Session, PointerScope::Session(_))
                | (PointerOwner::Repo, PointerScope::Repo(_))
                | (PointerOwner::User, PointerScope::User(_))
        )
    });
    found.ok_or_else(|| Error::NotFound {
        what: "this directory is not in a git repository".into(),
        hint: Hint::step("run it in a repository, or use --for session or --for user"),
    })
}

fn log(
    ctx: &mut Ctx<'_>,
    caller: &Caller,
    kind: EventKind,
    means: &'static str,
    evidence: String,
) -> Result<(), Stop> {
    let id = caller.session.id;
    ctx.log(&NewEvent {
        actor: caller.actor.filter(|actor| *actor != id),
        reason: caller.reason_text(),
        ..ctx.event(kind, Some(id), means, evidence)
    })
}
