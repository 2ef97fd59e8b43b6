//! The title that a session had before a person named it, stored so that it can be restored.
//!
//! It is stored in the session's metadata, under names that tenure reserves: no list shows them and no caller
//! can set them. The agent's title, or the first prompt, is still updated there while a person's title is
//! shown. *Crash*: it commits with the title that replaces it. *Older version*: shows the reserved value like
//! any other, and does not restore it.

use std::collections::BTreeMap;

use crate::context::{Ctx, Stop};
use tenure_core::id::SessionId;
use tenure_core::session::{MetaKey, Session, Title, TitleBy};
use tenure_core::store::Lock;
use tenure_core::title;

impl Ctx<'_> {
    /// A session's metadata values, without the reserved ones.
    pub fn metadata(&mut self, id: SessionId) -> Result<BTreeMap<MetaKey, String>, Stop> {
        let mut kept = self.tx.metadata(id)?;
        kept.retain(|key, _| !key.is_reserved());
        Ok(kept)
    }
}

/// The title of the work without a person's title.
pub(crate) fn beneath(ctx: &mut Ctx<'_>, id: SessionId) -> Result<Option<Title>, Stop> {
    let kept = ctx.tx.metadata(id)?;
    let by = |by: TitleBy| {
        let text = kept.get(&MetaKey::title_by(by))?.clone();
        Some(Title { text, by })
    };
    Ok(by(TitleBy::Agent).or_else(|| by(TitleBy::Prompt)))
}

/// Stores the title to show without a person's title; removes it if there is none.
pub(crate) fn keep_beneath(
    ctx: &mut Ctx<'_>,
    id: SessionId,
    title: Option<&Title>,
) -> Result<(), Stop> {
    let kept = ctx.tx.metadata(id)?;
    for by in [TitleBy::Agent, TitleBy::Prompt] {
        let key = MetaKey::title_by(by);
        let text = title.filter(|title| title.by == by);
        let text = text.map(|title| title.text.as_str());
        if kept.get(&key).map(String::as_str) != text {
            ctx.lock([Lock::Session(id)])?;
            ctx.tx.set_metadata(id, &key, text)?;
        }
    }
    Ok(())
}

/// Stores the current title of a session under the one that a person gives it.
pub(crate) fn keep_present(ctx: &mut Ctx<'_>, session: &Session) -> Result<(), Stop> {
    match &session.title {
        Some(present) if present.by != TitleBy::Person => {
            keep_beneath(ctx, session.id, Some(present))
        }
        _ => Ok(()),
    }
}

/// Stores a title from the agent or a prompt: as the title, or under a person's.
pub(crate) fn note(ctx: &mut Ctx<'_>, session: &mut Session, title: Title) -> Result<(), Stop> {
    let present = session.title.as_ref();
    if title::replaces(&title, present) {
        ctx.lock([Lock::Session(session.id)])?;
        session.title = Some(title);
        ctx.tx.update_session(session)?;
        session.revision += 1;
        return Ok(());
    }
    let is_persons = present.is_some_and(|present| present.by == TitleBy::Person);
    if is_persons && title::replaces(&title, beneath(ctx, session.id)?.as_ref()) {
        keep_beneath(ctx, session.id, Some(&title))?;
    }
    Ok(())
}
