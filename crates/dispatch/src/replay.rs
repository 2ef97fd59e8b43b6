//! A delivery again, at a person's request.
//!
//! It is handled like one from a forge: stored, the forge is asked for permissions if possible, and the rules decide.
//! Only the comparison with earlier deliveries is skipped, because the person wants to repeat it; the outcome of the
//! first one is reported instead. A running dispatcher takes the job, and decides the delivery once its forge answers;
//! no listener is needed.

use std::sync::Arc;

use tenure_core::dispatch::Decision;
use tenure_forges::Headers;
use tenure_service::Accepted;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::view::{DeliveryView, JobView};

use super::config::Config;
use super::given::ReadDelivery;
use super::receive::{DeliveryIntake, VerifiedDelivery, delivery};
use tenure_app::dispatchers;
use tenure_app::open::Context;

/// The result of a replay.
#[derive(Debug, Clone)]
pub struct Replayed {
    pub accepted: Accepted,
    /// The earlier delivery of the same event that led to something, and its job.
    pub before: Option<(DeliveryView, Option<JobView>)>,
    /// Whether a dispatcher is running that takes its jobs.
    pub is_worked: bool,
}

/// Repeats a delivery.
pub fn replay(
    context: Context,
    config: Arc<Config>,
    given: ReadDelivery,
) -> Result<Replayed, Problem> {
    let Some(event) = given.event else {
        let message = "this event starts nothing";
        let hint = Hint::step("choose a delivery about an issue, a pull request or a branch");
        return Err(Problem::new(Class::Refused, "no_event", message, hint));
    };
    let mut verified = VerifiedDelivery {
        endpoint: given.forge,
        delivery_id: given.delivery_id,
        headers: Headers::default(),
        event,
        body: given.body,
        is_replay: false,
    };
    let mut intake = DeliveryIntake::new(context, config);
    let known = delivery(&verified, &Decision::default());
    let found = intake.context.service().earlier_delivery(&known)?.value;
    let is_final =
        |one: &DeliveryView| ["queued", "joined", "acted"].contains(&one.verdict.as_str());
    let found = found.or(given.stored.filter(is_final));
    let before = found.map(|one| {
        let job = one.job.as_deref();
        let job = job.and_then(|job| intake.context.service().show_job(job).ok());
        (one, job.map(|answer| answer.value))
    });
    verified.is_replay = true;
    let accepted = intake.decide_now(verified)?;
    let is_worked = !dispatchers::find(&intake.context).is_empty();
    Ok(Replayed {
        accepted,
        before,
        is_worked,
    })
}
