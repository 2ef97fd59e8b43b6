//! What a run has of its item: the claim, and the conversation.

use tenure_core::conversation::{Author, WhyEnded};
use tenure_core::id::NativeId;
use tenure_core::key::Key;
use tenure_core::run::Run;
use tenure_core::session::Session;

use crate::caller::Caller;
use crate::claim::{Asked, ClaimRequest, Pick, Ready, ask, grant};
use crate::context::{Ctx, Stop};
use crate::conversation;

/// A run takes its item at once or not at all, and never beside processes of a dead holder.
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
) -> Result<Asked, Stop> {
    ask(ctx, caller, owner.map(|owner| owner.id), &request(item))
}

pub(super) fn grant_to(
    ctx: &mut Ctx<'_>,
    session: &Session,
    caller: Option<&Caller>,
    ready: Ready,
    item: &Key,
) -> Result<(), Stop> {
    grant(ctx, session, caller, ready, &request(item)).map(drop)
}

/// Who changes a conversation when a run does.
pub(super) fn author(run: &Run) -> Author {
    Author {
        session: run.session.map(|token| token.id),
        run: Some(run.id.clone()),
    }
}

/// The agent does not have a conversation any more.
pub(super) fn forget(ctx: &mut Ctx<'_>, run: &Run, native_id: &NativeId) -> Result<(), Stop> {
    conversation::end_native(
        ctx,
        &run.agent,
        &run.root,
        native_id,
        WhyEnded::Unknown,
        author(run),
    )
}
