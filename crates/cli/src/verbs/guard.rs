use tenure_app::{location, place};
use tenure_core::id::Epoch;
use tenure_core::reason::Reason;
use tenure_core::time::Span;
use tenure_host::clock;
use tenure_service::GuardRequest;

use crate::app::App;
use crate::output::{CliError, Outcome, Output};
use crate::render::spooled::{PermittedView, away};

/// Check whether this session may write: exit 0 yes, 1 free, 3 held by another, 4 no session, 5 lost
///
/// Exit 5 also means that the epoch was never granted to this session. A claim of a parent session covers its
/// children. --lost takes no key: it fails (5) if another session has a claim that this session lost, and this
/// session has claimed nothing since. Outside a session it passes. While the store is unavailable and guard.on_error
/// is closed, it fails (9) if this session may have lost a claim of this repository.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure guard issue:acme/web#42 && git push
  tenure guard '#42' --epoch 7           only while epoch 7 is current
  tenure guard --lost                    only if this session lost no claim")]
pub struct Args {
    /// Item to check
    #[arg(value_name = "KEY", required_unless_present = "lost")]
    key: Option<String>,

    /// Only if this is the current epoch
    #[arg(long, value_name = "N")]
    epoch: Option<u64>,

    /// Check that this session lost no claim
    #[arg(long, conflicts_with_all = ["key", "epoch"])]
    lost: bool,

    /// Reason, logged (required when --session names another session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let act_for = app.act_for(args.reason.as_ref());
    let Some(key) = &args.key else {
        let guarded = app.open_until_exit().and_then(|mut context| {
            let guarded = context.service().guard_lost(&act_for);
            guarded.map_err(CliError::from)
        });
        let answer = match guarded {
            Ok(answer) => answer,
            Err(failure) if act_for.session.is_none() => return Err(closed(failure)),
            Err(failure) => return Err(failure),
        };
        let text = "yes: this session has lost no claim";
        return Ok(Output::new("lost", &[(); 0], text).told(&answer));
    };
    let request = GuardRequest {
        key: app.key(key)?,
        epoch: args.epoch.map(Epoch),
    };
    let guarded = app.open_until_exit().and_then(|mut context| {
        let guarded = context.service().guard(&act_for, &request);
        guarded.map_err(CliError::from)
    });
    let answer = match guarded {
        Ok(answer) => answer,
        Err(failure) if act_for.session.is_none() => return from_memory(&request, failure),
        Err(failure) => return Err(failure),
    };
    let claim = &answer.value;
    let text = match &claim.via {
        Some(parent) => format!(
            "yes: {parent}, a parent of this session, holds {} (epoch {})",
            claim.key, claim.epoch
        ),
        None => format!(
            "yes: this session holds {} (epoch {})",
            claim.key, claim.epoch
        ),
    };
    Ok(Output::new("claim", claim, text).told(&answer))
}

/// The failure while the store is away. If writes are to be blocked then, so is publishing by a session that may have
/// lost its claim; the hooks of git let every other failure pass.
fn closed(failure: CliError) -> CliError {
    let closes =
        || location::settings_and_store().is_ok_and(|(settings, _)| settings.closes_on_error);
    let away = match away(&failure.problem) {
        Ok(Some(away)) if closes() => away,
        _ => return failure,
    };
    let here = place::worktree_here().map(|found| found.repository());
    match away.may_not_publish(here) {
        Some(problem) => problem.into(),
        None => failure,
    }
}

/// The answer while the store is away: what it said last, as long as that is good.
fn from_memory(request: &GuardRequest, failure: CliError) -> Outcome {
    let Some(away) = away(&failure.problem)? else {
        return Err(failure);
    };
    let permitted = away.guard(&request.key, request.epoch)?;
    let view = PermittedView {
        key: request.key.to_string(),
        epoch: permitted.epoch.0,
        handle: permitted.handle.to_string(),
        via: permitted.via.as_ref().map(ToString::to_string),
        as_of: permitted.as_of,
        until: clock::wall().plus(permitted.left),
    };
    let text = format!(
        "yes, for {}: this session held {} (epoch {}) when the store last answered, {} ago",
        Span(permitted.left),
        view.key,
        view.epoch,
        Span(permitted.as_of.age_at(clock::wall())),
    );
    Ok(Output::new("permitted", &view, text))
}
