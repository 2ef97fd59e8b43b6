//! The end of an item, reported by a webhook or found by a sweep.

use tenure_core::key::Key;
use tenure_service::answer::Problem;

use tenure_app::open::Context;

/// Cancels the waiting jobs of an item, closes its conversations, stops its live runs of these
/// rules, and notifies the others.
pub(super) fn close(
    context: &mut Context,
    item: &Key,
    is_merged: bool,
    stops: &[String],
) -> Result<(), Problem> {
    let how = if is_merged { "merged" } else { "closed" };
    let why = format!("{item} was {how}");
    let mut service = context.service();
    service.cancel_jobs_of(item, &why)?;
    let closing = service.close_item(item)?.value;
    for run in &closing.running {
        let job = context.service().job_of_run(run)?.value;
        // A run of another item in the same conversation continues, because that item is open.
        let own = job.filter(|job| job.item == item.as_str());
        let rule = own.and_then(|job| job.rule);
        if rule.is_some_and(|rule| stops.contains(&rule)) {
            context.service().ask_run_to_stop(run.as_str(), &why)?;
        } else {
            context.service().tell_run(run, &why)?;
        }
    }
    Ok(())
}
