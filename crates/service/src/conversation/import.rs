//! Taking over a conversation that another system kept.

use tenure_core::conversation::{Author, Home};
use tenure_core::id::{NativeId, worker_name};
use tenure_core::import::{NotTaken, PastConversation};
use tenure_core::key::Key;
use tenure_core::store::Lock;

use super::change::{is_there, put};
use super::contamination::{take_from_closed, wrong};
use super::record::record;
use super::request::{NewNative, root_of};
use crate::context::{Ctx, Stop};

/// Takes a conversation over, or says why not. Without `apply` nothing is written.
pub fn import_conversation(
    ctx: &mut Ctx<'_>,
    one: &PastConversation,
    home: &Home,
    apply: bool,
) -> Result<Result<(), NotTaken>, Stop> {
    let root = root_of(ctx, &one.item)?;
    if apply {
        let locks = [one.item.clone(), root.clone()].map(Lock::Conversation);
        ctx.lock(locks)?;
        ctx.lock([Lock::Native(one.agent.clone(), one.native_id.clone())])?;
    }
    let before = record(ctx, &one.agent, &one.role, &root)?;
    let new = NewNative {
        agent: &one.agent,
        role: &one.role,
        root: &root,
        native_id: &one.native_id,
        home,
        author: Author {
            session: None,
            run: None,
        },
        writer: None,
    };
    if is_there(&before, &new) {
        return Ok(NotTaken::left("it is here already"));
    }
    if let Some(current) = before.open() {
        let worker = worker_name(one.agent.as_str(), one.role.label());
        return Ok(is_another(&worker, &one.item, &current.native_id));
    }
    if let Some((_, is)) = wrong(ctx, &new)? {
        return Ok(NotTaken::refused(format!("{} is {is}", one.native_id)));
    }
    if apply {
        take_from_closed(ctx, &new)?;
        put(ctx, &new, before)?;
    }
    Ok(Ok(()))
}

/// The refusal of a conversation whose item has another one.
pub fn is_another<T>(worker: &str, item: &Key, now: &NativeId) -> Result<T, NotTaken> {
    NotTaken::refused(format!(
        "the conversation of {worker} on {item} is already {now}"
    ))
}
