//! A delivery once more, because a person asks for it.
//!
//! It goes the way of one that a forge sends: the forge is asked for permissions where it can be, the rules decide,
//! and the delivery is stored with its jobs in one transaction. Only the comparison with earlier deliveries is left
//! out, since the wish is to do it again; what came of the first one is told instead. A dispatcher that runs takes the
//! job; no listener is needed.

use std::sync::Arc;

use tenure_core::dispatch::Decision;
use tenure_service::Accepted;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::view::{DeliveryView, JobView};

use super::asking::Asked;
use super::config::Config;
use super::given::Given;
use super::receive::{Desk, Genuine, delivery};
use super::running;
use crate::open::Context;

/// What a replay came to.
#[derive(Debug, Clone)]
pub struct Replayed {
    pub accepted: Accepted,
    /// The delivery of the same that led to something before, and its job.
    pub before: Option<(DeliveryView, Option<JobView>)>,
    /// Whether a dispatcher runs that takes its jobs.
    pub is_worked: bool,
}

/// Does again what a delivery asks for.
pub fn replay(context: Context, config: Arc<Config>, given: Given) -> Result<Replayed, Problem> {
    let Some(event) = given.event else {
        let message = "this event starts nothing";
        let hint = Hint::step("choose a delivery about an issue, a pull request or a branch");
        return Err(Problem::new(Class::Refused, "no_event", message, hint));
    };
    let mut genuine = Genuine {
        endpoint: given.forge,
        delivery_id: given.delivery_id,
        event,
        body: given.body,
        is_replay: false,
    };
    let mut desk = Desk::new(context, config);
    let known = delivery(&genuine, &Decision::default());
    let found = desk.context.service().earlier_delivery(&known)?.value;
    let is_final =
        |one: &DeliveryView| ["queued", "joined", "acted"].contains(&one.verdict.as_str());
    let found = found.or(given.stored.filter(is_final));
    let before = found.map(|one| {
        let job = one.job.as_deref();
        let job = job.and_then(|job| desk.context.service().show_job(job).ok());
        (one, job.map(|answer| answer.value))
    });
    genuine.is_replay = true;
    let asked = genuine.ask(&desk.config);
    if let Asked::Unanswered(why) = &asked {
        // Stored for later, it would be compared with the deliveries before it.
        let message = format!("its forge did not answer: {why}");
        let hint = Hint::step("replay it when the forge answers");
        return Err(Problem::new(Class::Internal, "forge_away", message, hint));
    }
    let accepted = desk.accept(&genuine, &asked)?;
    let is_worked = !running::find(&desk.context).is_empty();
    Ok(Replayed {
        accepted,
        before,
        is_worked,
    })
}
