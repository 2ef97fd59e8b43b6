//! The claim and the conversation of a run.

use tenure_core::conversation::{Author, WhyEnded};
use tenure_core::id::NativeId;
use tenure_core::key::Key;
use tenure_core::run::Run;
use tenure_core::session::Session;

use crate::caller::Caller;
use crate::claim::{
    ClaimOutcome, ClaimRequest, GrantableKeys, Pick, WaitingCaller, ask, grant, pass_over,
};
use crate::context::{Ctx, Stop};
use crate::conversation;

/// A run never takes its item while processes of a dead holder still run.
fn request(item: &Key) -> ClaimRequest {
    ClaimRequest {
        keys: vec![item.clone()],
        pick: Pick::All,
        request: None,
        once: false,
        reopen: false,
        note: None,
        require_quiet: true,
    }
}

pub(super) fn ask_for(
    ctx: &mut Ctx<'_>,
    caller: Option<&Caller>,
    owner: Option<&Session>,
    item: &Key,
    waiting: Option<&WaitingCaller>,
) -> Result<ClaimOutcome, Stop> {
    let owner = owner.map(|owner| owner.id);
    ask(ctx, caller, owner, &request(item), waiting)
}

/// If a run waits in line for its item and lacks something else, it lets the others go first.
pub(super) fn let_others_go_first(
    ctx: &mut Ctx<'_>,
    caller: Option<&Caller>,
    item: &Key,
    waiting: Option<&WaitingCaller>,
) -> Result<(), Stop> {
    match waiting.filter(|waiting| waiting.ticket.is_some()) {
        Some(waiting) => pass_over(ctx, caller, None, &request(item), waiting),
        None => Ok(()),
    }
}

pub(super) fn grant_to(
    ctx: &mut Ctx<'_>,
    session: &Session,
    caller: Option<&Caller>,
    ready: GrantableKeys,
    item: &Key,
    waiting: Option<&WaitingCaller>,
) -> Result<(), Stop> {
    grant(ctx, session, caller, ready, &request(item), waiting).map(drop)
}

/// The author of changes that a run makes to its conversation.
pub(super) fn author(run: &Run) -> Author {
    Author {
        session: run.session.map(|token| token.id),
        run: Some(run.id.clone()),
    }
}

/// Ends a native id that the agent no longer has.
pub(super) fn forget(ctx: &mut Ctx<'_>, run: &Run, native_id: &NativeId) -> Result<(), Stop> {
    conversation::end_native(ctx, run, native_id, WhyEnded::Unknown, author(run))
}
