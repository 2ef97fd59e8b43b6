//! What a run under another user may have left running.
//!
//! Bubblewrap ends what is in it: the first process of its namespace ends with the runner, or is ended like anything
//! else that carries the run's variable. Another user has no such end. A process that dropped the variable, or whose
//! variables this user cannot read, cannot be told from one that the other user started otherwise. So the end of a
//! run names such processes, and after a run that was cut off nothing is started in its place while there are any.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use tenure_core::process::{StartTicks, Survivor};
use tenure_core::run::{Outcome, Run};
use tenure_core::world::World;
use tenure_host::{clock, pause, survivors};
use tenure_service::RunError;
use tenure_service::answer::Problem;
use tenure_service::error::Error;

use super::runner::Runner;
use crate::places::record::PlaceRecord;
use tenure_app::open::Context;

/// How long processes may take to exit after the agent did.
const GONE_WITHIN: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);
/// How many are named.
const MAX_NAMED: usize = 5;

/// The user that owns the places of a wrap, if it is another one.
fn other_user(places: Option<&str>) -> Option<u32> {
    let owner = fs_err::metadata(places?).ok()?.uid();
    (owner != rustix::process::geteuid().as_raw()).then_some(owner)
}

/// Why it is unknown whether a run of another user is over with all that it started; none if it is known.
fn doubt(context: &Context, user: u32, run: &Run) -> Option<String> {
    let observer = context.machine().observer();
    let runner = run.runner.as_ref()?;
    if runner.boot != observer.boot || runner.host != observer.host {
        return None;
    }
    let found = |since: StartTicks| survivors::of_user(user, run.id.as_str(), since, observer);
    let until = clock::instant() + GONE_WITHIN;
    loop {
        match found(runner.start) {
            Ok(left) if left.is_empty() => return None,
            Ok(left) if clock::instant() >= until => return Some(named(user, &left)),
            Ok(_) => pause::sleep(PAUSE),
            Err(why) => return Some(why),
        }
    }
}

fn named(user: u32, left: &[Survivor]) -> String {
    let which = |one: &Survivor| format!("pid {} ({})", one.pid, one.command);
    let mut which: Vec<String> = left.iter().take(MAX_NAMED).map(which).collect();
    if left.len() > MAX_NAMED {
        which.push(format!("{} more", left.len() - MAX_NAMED));
    }
    format!("user {user} runs {}", which.join(", "))
}

impl Runner {
    /// Why it is unknown whether the run left something running, if it is.
    pub(super) fn doubt_survivors(&mut self) -> Option<String> {
        if !self.is_wrapped() {
            return None;
        }
        let found = self.context.service().run_processes(&self.id).ok()?.value;
        if found.doubt.is_some() {
            return found.doubt;
        }
        let places = self.order.place.as_ref()?.code.places.as_deref();
        let user = other_user(places)?;
        let run = self.context.service().run_record(self.id.as_str()).ok()?;
        doubt(&self.context, user, &run.value)
    }
}

/// Refuses a place whose last run was cut off while it is unknown whether something of that run still works there.
pub(super) fn refuse_doubt(
    context: &mut Context,
    place: &PlaceRecord,
    places: Option<&str>,
) -> Result<(), Problem> {
    let (Some(user), Some(run)) = (other_user(places), &place.run) else {
        return Ok(());
    };
    let Ok(run) = context.service().run_record(run) else {
        // A run that was never recorded did not begin.
        return Ok(());
    };
    let run = run.value;
    let outcome = run.end.as_ref().map(|end| end.outcome);
    if outcome != Some(Outcome::Interrupted) {
        return Ok(());
    }
    match doubt(context, user, &run) {
        Some(why) => Err(Error::from(RunError::SurvivorsUnknown { run: run.id, why }).into()),
        None => Ok(()),
    }
}
