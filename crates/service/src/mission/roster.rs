//! Who takes part: the rows of a mission and their sessions.

use super::pick;
use super::request::MissionPlace;
use crate::caller::{self, ActFor, Purpose};
use crate::context::{Ctx, Stop};
use crate::mission::view::{MissionView, ParticipantView, PointerView};
use crate::session::view::NameView;
use crate::transact::{Reply, Service};
use crate::unseen::Unseen;
use tenure_core::hint::Hint;
use tenure_core::mission::check::MissionFault;
use tenure_core::mission::collision::ParticipantState;
use tenure_core::mission::{Drive, Mission, MissionId, Participant, StoredParticipant};
use tenure_core::process::Process;
use tenure_core::session::Session;
use tenure_core::store::TxMode;

/// A mission with all its participants.
#[derive(Debug, Clone)]
pub struct Roster {
    pub mission: MissionView,
    /// The participants, in order of joining.
    pub participants: Vec<ParticipantView>,
    /// Which mission was selected, and what decided it.
    pub pointer: PointerView,
    /// Faults in the stored data.
    pub faults: Vec<MissionFault>,
    /// The processes of participants that are not gone. The roster changes when one of them exits.
    pub processes: Vec<Process>,
}

/// A participant that was checked, with its session.
#[derive(Debug, Clone)]
pub struct Present {
    pub participant: Participant,
    pub session: Session,
    pub gone: bool,
}

impl Present {
    pub fn seen(&self) -> ParticipantState<'_> {
        ParticipantState {
            participant: &self.participant,
            gone: self.gone,
        }
    }
}

impl Service<'_> {
    pub fn roster(
        &mut self,
        act_for: &ActFor,
        here: &MissionPlace,
        mission: Option<&MissionId>,
    ) -> Reply<Roster> {
        self.transact(TxMode::Read, |ctx| {
            let me = viewer(ctx, act_for)?;
            let found = pick::resolve(ctx, me.as_ref(), here, mission)?;
            let mission = pick::meant(&found)?;
            roster(ctx, me.as_ref(), here, &mission, found.into())
        })
    }

    /// The selected mission if none is given; an error if there is none.
    pub fn active_mission(&mut self, act_for: &ActFor, here: &MissionPlace) -> Reply<PointerView> {
        self.transact(TxMode::Read, |ctx| {
            let me = viewer(ctx, act_for)?;
            let found = pick::resolve(ctx, me.as_ref(), here, None)?;
            pick::meant(&found)?;
            Ok(found.into())
        })
    }

    /// Every mission; those without participants only on request.
    pub fn missions(
        &mut self,
        act_for: &ActFor,
        here: &MissionPlace,
        all: bool,
    ) -> Reply<Vec<MissionView>> {
        self.transact(TxMode::Read, |ctx| {
            let me = viewer(ctx, act_for)?;
            let mut found = Vec::new();
            let mut unseen = Unseen::default();
            for mission in ctx.tx.list_missions()? {
                let present = present(ctx, here, &mission.id);
                found.extend(unseen.gather(present)?.map(|present| (mission, present)));
            }
            unseen.look()?;
            let mut views = Vec::new();
            for (mission, (present, faults)) in &found {
                if all || !present.is_empty() || !faults.is_empty() {
                    views.push(summary(ctx, me.as_ref(), mission, present)?);
                }
            }
            Ok(views)
        })
    }
}

/// The caller, if it is a session. Others may read too.
pub fn viewer(ctx: &mut Ctx<'_>, act_for: &ActFor) -> Result<Option<Session>, Stop> {
    if act_for.session.is_some() {
        return Ok(Some(caller::require(ctx, act_for, Purpose::Read)?.session));
    }
    Ok(caller::identify(ctx)?.map(|caller| caller.session))
}

fn roster(
    ctx: &mut Ctx<'_>,
    me: Option<&Session>,
    here: &MissionPlace,
    mission: &MissionId,
    pointer: PointerView,
) -> Result<Roster, Stop> {
    let Some(stored) = ctx.tx.mission(mission.as_str())? else {
        return Err(crate::error::Error::NotFound {
            what: format!("mission {mission} does not exist"),
            hint: Hint::run("mission", ["list"], "to list all missions"),
        }
        .into());
    };
    let (present, faults) = present(ctx, here, &stored.id)?;
    let mut participants = Vec::new();
    for one in &present {
        let mut view = view(ctx, one, &present)?;
        if me.is_some_and(|me| me.id == one.session.id) {
            // Looking counts as activity of the viewer.
            view.last_activity_at = view.last_activity_at.max(ctx.now.wall);
        }
        participants.push(view);
    }
    let mut processes = Vec::new();
    for one in present.iter().filter(|one| !one.gone) {
        processes.extend(ctx.watched(&one.session)?);
    }
    Ok(Roster {
        mission: summary(ctx, me, &stored, &present)?,
        participants,
        pointer,
        faults,
        processes,
    })
}

/// The participants with valid rows, and the faults of the others.
pub fn present(
    ctx: &mut Ctx<'_>,
    here: &MissionPlace,
    mission: &str,
) -> Result<(Vec<Present>, Vec<MissionFault>), Stop> {
    let rows = ctx.tx.participants(mission)?;
    let mut sessions = Vec::with_capacity(rows.len());
    for row in &rows {
        sessions.push(ctx.session(row.session)?);
    }
    ctx.look_at_all(&sessions)?;
    let (mut present, mut faults) = (Vec::new(), Vec::new());
    for (row, session) in rows.iter().zip(sessions) {
        match one_present(ctx, here, row, session)? {
            Ok(one) => present.push(one),
            Err(found) => faults.extend(found),
        }
    }
    Ok((present, faults))
}

fn one_present(
    ctx: &mut Ctx<'_>,
    here: &MissionPlace,
    row: &StoredParticipant,
    session: Session,
) -> Result<Result<Present, Vec<MissionFault>>, Stop> {
    let session = ctx.record_death_later(session)?;
    let gone = ctx.standing(&session)?.is_gone();
    let read = pick::read(ctx, here, row, session.handle.as_str())?;
    Ok(read.map(|participant| Present {
        participant,
        session,
        gone,
    }))
}

/// The view of a participant.
pub fn view(ctx: &mut Ctx<'_>, one: &Present, all: &[Present]) -> Result<ParticipantView, Stop> {
    let (brief, _) = ctx.brief(&one.session)?;
    let rivals = all
        .iter()
        .filter(|other| one.seen().collides_with(&other.seen()));
    let participant = &one.participant;
    let drive = if one.gone {
        Drive::Inactive
    } else {
        participant.drive
    };
    Ok(ParticipantView {
        mission: participant.mission.to_string(),
        participant_id: participant.participant.to_string(),
        session: NameView {
            id: one.session.id.to_string(),
            handle: one.session.handle.to_string(),
        },
        role: participant.role.to_string(),
        focus: participant.focus.as_ref().map(ToString::to_string),
        run_id: participant.run_id.as_ref().map(ToString::to_string),
        api_url: participant.api_url.as_ref().map(ToString::to_string),
        drive: drive.as_str(),
        state: brief.state,
        why: brief.why,
        dir: brief.dir,
        joined_at: participant.joined_at,
        last_activity_at: participant.active_at.max(one.session.seen_at),
        collides_with: rivals
            .map(|other| other.session.handle.to_string())
            .collect(),
        revision: participant.revision,
    })
}

fn summary(
    ctx: &mut Ctx<'_>,
    me: Option<&Session>,
    mission: &Mission,
    present: &[Present],
) -> Result<MissionView, Stop> {
    let joined = match me {
        Some(me) => ctx.tx.participant(&mission.id, me.id)?.is_some(),
        None => false,
    };
    let last = present
        .iter()
        .map(|one| one.participant.active_at.max(one.session.seen_at));
    Ok(MissionView {
        id: mission.id.clone(),
        created_at: mission.created_at,
        participants: present.len(),
        live: present.iter().filter(|one| !one.gone).count(),
        driving: present
            .iter()
            .filter(|one| one.seen().drives().is_some())
            .count(),
        last_activity_at: last.max(),
        joined,
    })
}
