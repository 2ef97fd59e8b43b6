//! What a caller may name, for completing a command line. Reads only: no process is looked at, nothing is
//! recorded, and no notice is told.

use tenure_core::store::{ClaimFilter, Mode, SessionFilter};

use crate::context::{Ctx, Stop};
use crate::transact::{Reply, Service};

/// How many of each are worth offering.
const MOST: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nameable {
    /// Sessions: open ones first, each the newest first.
    Session,
    /// Keys that somebody holds.
    Key,
    Mission,
}

/// Something that can be named, with a few words about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub name: String,
    pub about: String,
}

impl Service<'_> {
    /// What can be named.
    pub fn names(&mut self, of: Nameable) -> Reply<Vec<Name>> {
        self.transact(Mode::Read, |ctx| match of {
            Nameable::Session => sessions(ctx),
            Nameable::Key => keys(ctx),
            Nameable::Mission => missions(ctx),
        })
    }
}

fn sessions(ctx: &mut Ctx<'_>) -> Result<Vec<Name>, Stop> {
    let mut rows = |closed_too| {
        ctx.tx.list_sessions(&SessionFilter {
            closed_too,
            readable_only: true,
            limit: MOST,
            ..SessionFilter::default()
        })
    };
    let mut found = rows(false)?;
    found.extend(rows(true)?.into_iter().filter(|one| one.closed.is_some()));
    let name = |session: tenure_core::session::Session| {
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
    Ok(found.into_iter().map(name).collect())
}

fn keys(ctx: &mut Ctx<'_>) -> Result<Vec<Name>, Stop> {
    let held = ctx.tx.list_claims(&ClaimFilter {
        readable_only: true,
        limit: MOST,
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
    Ok(all.into_iter().take(MOST).map(name).collect())
}
