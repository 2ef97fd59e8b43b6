//! Names for completing a command line. Read-only: no process is observed, nothing is recorded, and no notice
//! is delivered.

use tenure_core::session::Session;
use tenure_core::store::{ClaimFilter, ConversationFilter, SessionFilter, TxMode};
use tenure_core::time::Timestamp;

use crate::context::{Ctx, Stop};
use crate::transact::{Reply, Service};

/// How many names of each kind are offered.
const MAX_COUNT: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nameable {
    /// Sessions: open ones first, newest first.
    Session,
    /// Sessions that have not ended.
    OpenSession,
    /// Sessions that were cut off and not dismissed, newest first.
    CutOffSession,
    /// Keys that are held.
    Key,
    Mission,
    /// Items that have a conversation.
    Item,
}

/// A name, with a short description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub name: String,
    pub about: String,
}

impl Service<'_> {
    pub fn names(&mut self, of: Nameable) -> Reply<Vec<Name>> {
        self.transact(TxMode::Read, |ctx| match of {
            Nameable::Session => sessions(ctx),
            Nameable::OpenSession => named(ctx, SessionFilter::default()),
            Nameable::CutOffSession => named(
                ctx,
                SessionFilter {
                    cut_off_since: Some(Timestamp(0)),
                    ..SessionFilter::default()
                },
            ),
            Nameable::Key => keys(ctx),
            Nameable::Mission => missions(ctx),
            Nameable::Item => items(ctx),
        })
    }
}

fn sessions(ctx: &mut Ctx<'_>) -> Result<Vec<Name>, Stop> {
    let mut found = rows(ctx, SessionFilter::default())?;
    let all = SessionFilter {
        closed_too: true,
        ..SessionFilter::default()
    };
    let all = rows(ctx, all)?.into_iter();
    found.extend(all.filter(|one| one.closed.is_some()));
    Ok(names(found))
}

fn named(ctx: &mut Ctx<'_>, filter: SessionFilter) -> Result<Vec<Name>, Stop> {
    Ok(names(rows(ctx, filter)?))
}

fn rows(ctx: &mut Ctx<'_>, filter: SessionFilter) -> Result<Vec<Session>, Stop> {
    Ok(ctx.tx.list_sessions(&SessionFilter {
        readable_only: true,
        limit: MAX_COUNT,
        ..filter
    })?)
}

fn names(found: Vec<Session>) -> Vec<Name> {
    let name = |session: Session| {
        let place = session.workdir.repo.filter(|repo| !repo.starts_with('/'));
        let place = place.unwrap_or(session.workdir.dir);
        let ended = if session.closed.is_some() {
            ", ended"
        } else {
            ""
        };
        Name {
            name: session.handle.to_string(),
            about: format!("{} in {place}{ended}", session.agent),
        }
    };
    found.into_iter().map(name).collect()
}

fn keys(ctx: &mut Ctx<'_>) -> Result<Vec<Name>, Stop> {
    let held = ctx.tx.list_claims(&ClaimFilter {
        readable_only: true,
        limit: MAX_COUNT,
        ..ClaimFilter::default()
    })?;
    let name = |key: String| Name {
        name: key,
        about: "held".to_owned(),
    };
    Ok(held
        .into_iter()
        .map(|claim| name(claim.key.to_string()))
        .collect())
}

fn missions(ctx: &mut Ctx<'_>) -> Result<Vec<Name>, Stop> {
    let all = ctx.tx.list_missions()?;
    let name = |mission: tenure_core::mission::Mission| Name {
        name: mission.id,
        about: "mission".to_owned(),
    };
    Ok(all.into_iter().take(MAX_COUNT).map(name).collect())
}

fn items(ctx: &mut Ctx<'_>) -> Result<Vec<Name>, Stop> {
    let all = ctx.tx.list_conversations(&ConversationFilter {
        readable_only: true,
        limit: MAX_COUNT,
        ..ConversationFilter::default()
    })?;
    let mut names: Vec<Name> = Vec::new();
    for conversation in all {
        let name = conversation.item.to_string();
        let agent = conversation.agent.as_str();
        match names.last_mut().filter(|last| last.name == name) {
            Some(last) => last.about.push_str(&format!(", {agent}")),
            None => names.push(Name {
                name,
                about: format!("conversation of {agent}"),
            }),
        }
    }
    Ok(names)
}
