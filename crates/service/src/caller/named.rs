//! Finding sessions by name, and which session descends from which.

use crate::context::{Ctx, Stop};
use crate::error::Error;
use tenure_core::hint::Hint;
use tenure_core::id::{SessionId, SessionToken};
use tenure_core::session::Session;

/// How many sessions an ambiguous name lists.
const MAX_CANDIDATES: usize = 8;

/// Finds a session by handle, id, token, or any unique part of its handle or id.
pub fn find(ctx: &mut Ctx<'_>, name: &str) -> Result<Session, Stop> {
    if name.trim().is_empty() {
        return Err(Error::Usage {
            what: "the session name is empty".into(),
            hint: Hint::verb("ps", "to list session handles"),
        }
        .into());
    }
    if let Some(session) = ctx.tx.session_by_handle(name)? {
        return Ok(session);
    }
    let id = SessionToken::parse(name).map(|token| token.id);
    if let Ok(id) = id.or_else(|_| SessionId::parse(name)) {
        let no_such = || Error::NoSuchSession {
            name: name.to_owned(),
        };
        return ctx.tx.session(id)?.ok_or_else(|| no_such().into());
    }
    let mut fitting = ctx.tx.match_sessions(name, MAX_CANDIDATES + 1)?;
    let several = if fitting.len() > MAX_CANDIDATES {
        format!("more than {MAX_CANDIDATES}")
    } else {
        "several".to_owned()
    };
    match fitting.len() {
        0 => Err(Error::NoSuchSession {
            name: name.to_owned(),
        }
        .into()),
        1 => {
            let (id, _) = fitting.remove(0);
            ctx.session(id)
        }
        _ => Err(Error::Ambiguous {
            what: format!("{name:?} matches {several} sessions"),
            by_name: true,
            candidates: fitting
                .into_iter()
                .take(MAX_CANDIDATES)
                .map(|(_, handle)| handle.to_string())
                .collect(),
        }
        .into()),
    }
}

/// Whether `session` was registered inside `ancestor`, directly or indirectly, in that life.
pub fn descends_from(
    ctx: &mut Ctx<'_>,
    session: &Session,
    ancestor: SessionToken,
) -> Result<bool, Stop> {
    let mut parent = session.parent;
    for _ in 0..64 {
        let Some(token) = parent else {
            return Ok(false);
        };
        if token == ancestor {
            return Ok(true);
        }
        let above = ctx.session(token.id)?;
        if above.life != token.life {
            return Ok(false);
        }
        parent = above.parent;
    }
    Ok(false)
}
