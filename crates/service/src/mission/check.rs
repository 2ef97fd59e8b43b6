//! Checking stored mission data: every fault at once.

use super::pick;
use super::request::MissionPlace;
use super::roster::viewer;
use crate::caller::ActFor;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::transact::{Reply, Service};
use tenure_core::hint::Hint;
use tenure_core::mission::MissionId;
use tenure_core::mission::check::MissionFault;
use tenure_core::mission::pointer::{self, PointerScope};
use tenure_core::session::Session;
use tenure_core::store::TxMode;

impl Service<'_> {
    /// Checks a mission's rows and the caller's pointers; with `all`, every mission and every pointer. Returns
    /// how many rows and pointers were checked.
    pub fn check_missions(
        &mut self,
        act_for: &ActFor,
        here: &MissionPlace,
        mission: Option<&MissionId>,
        all: bool,
    ) -> Reply<usize> {
        self.transact(TxMode::Read, |ctx| {
            let me = viewer(ctx, act_for)?;
            let mut checked = Checked::default();
            let what = if all {
                every_row(ctx, me.as_ref(), here, &mut checked)?;
                every_pointer(ctx, me.as_ref(), &mut checked)?;
                "stored mission data".to_owned()
            } else {
                active(ctx, me.as_ref(), here, mission, &mut checked)?
            };
            if checked.faults.is_empty() {
                Ok(checked.count)
            } else {
                Err(Error::Faulty {
                    what,
                    faults: checked.faults,
                }
                .into())
            }
        })
    }
}

#[derive(Default)]
struct Checked {
    count: usize,
    faults: Vec<MissionFault>,
}

/// The selected mission, and the pointers that were passed over to reach it.
fn active(
    ctx: &mut Ctx<'_>,
    me: Option<&Session>,
    here: &MissionPlace,
    named: Option<&MissionId>,
    checked: &mut Checked,
) -> Result<String, Stop> {
    let found = pick::resolve(ctx, me, here, named)?;
    checked.count += found.passed_over.len();
    checked.faults.extend(found.passed_over.iter().cloned());
    if let Some(mission) = &found.mission {
        must_exist(ctx, mission.as_str())?;
        rows(ctx, me, here, mission.as_str(), checked)?;
        return Ok(format!("stored data of mission {mission}"));
    }
    if checked.faults.is_empty() {
        pick::meant(&found)?;
    }
    Ok("the active mission".to_owned())
}

fn must_exist(ctx: &mut Ctx<'_>, mission: &str) -> Result<(), Stop> {
    let rows = ctx.tx.participants(mission)?;
    if rows.is_empty() && ctx.tx.mission(mission)?.is_none() {
        return Err(Error::NotFound {
            what: format!("mission {mission} does not exist"),
            hint: Hint::run("mission", ["list"], "to list all missions"),
        }
        .into());
    }
    Ok(())
}

fn every_row(
    ctx: &mut Ctx<'_>,
    me: Option<&Session>,
    here: &MissionPlace,
    checked: &mut Checked,
) -> Result<(), Stop> {
    for row in ctx.tx.all_participants()? {
        one_row(ctx, me, here, &row, checked)?;
    }
    for mission in ctx.tx.list_missions()? {
        checked.count += 1;
        if let Err(error) = MissionId::parse(&mission.id) {
            checked.faults.push(MissionFault {
                mission: Some(mission.id.clone()),
                subject: "a mission".into(),
                field: "id",
                value: mission.id,
                why: error.why,
                hints: vec![Hint::run(
                    "mission",
                    ["leave", "MISSION"],
                    "to remove its participants, then join under a valid id",
                )],
            });
        }
    }
    Ok(())
}

fn rows(
    ctx: &mut Ctx<'_>,
    me: Option<&Session>,
    here: &MissionPlace,
    mission: &str,
    checked: &mut Checked,
) -> Result<(), Stop> {
    for row in ctx.tx.participants(mission)? {
        one_row(ctx, me, here, &row, checked)?;
    }
    Ok(())
}

fn one_row(
    ctx: &mut Ctx<'_>,
    me: Option<&Session>,
    here: &MissionPlace,
    row: &tenure_core::mission::StoredParticipant,
    checked: &mut Checked,
) -> Result<(), Stop> {
    let owner = ctx.session(row.session)?;
    checked.count += 1;
    if let Err(mut faults) = pick::read(ctx, here, row, owner.handle.as_str())? {
        let faults_of_owner = faults.iter_mut();
        faults_of_owner.for_each(|fault| mended_for(me, &owner, fault));
        checked.faults.extend(faults);
    }
    Ok(())
}

/// A remedy for another session names it, and the reason that acting for it needs.
fn mended_for(me: Option<&Session>, owner: &Session, fault: &mut MissionFault) {
    if me.is_some_and(|me| me.id == owner.id) {
        return;
    }
    let handle = owner.handle.as_str();
    let whose = ["--session", handle, "--reason", "REASON"].map(str::to_owned);
    for hint in &mut fault.hints {
        hint.args.extend(whose.clone());
    }
}

/// A session's pointer must name a mission that the session joined; any other pointer must name one that
/// exists.
fn every_pointer(
    ctx: &mut Ctx<'_>,
    me: Option<&Session>,
    checked: &mut Checked,
) -> Result<(), Stop> {
    for found in ctx.tx.list_pointers()? {
        checked.count += 1;
        let owner = match &found.scope {
            PointerScope::Session(id) => Some(ctx.session(*id)?),
            PointerScope::Repo(_) | PointerScope::User(_) => None,
        };
        let membership = pick::membership(ctx, owner.as_ref(), &found.mission)?;
        if let Err(mut fault) = pointer::judge(&found, membership) {
            if let Some(owner) = owner {
                fault.subject = format!("the pointer of {}", owner.handle);
                mended_for(me, &owner, &mut fault);
            }
            checked.faults.push(fault);
        }
    }
    Ok(())
}
