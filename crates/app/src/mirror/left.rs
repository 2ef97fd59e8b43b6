//! Mirrors that still show a session that is over: another program wrote them back, or their last change was lost.
//!
//! Only the files of sessions that ended last are looked at: nobody asks for older ones.

use std::path::PathBuf;

use tenure_core::id::SessionId;
use tenure_core::ignore::Ignore;
use tenure_host::{clock, file};
use tenure_service::ListRequest;
use tenure_service::answer::Problem;
use tenure_service::mirror::content::writer_of;

use super::setting::AtEnd;
use super::{PATIENCE, Writer, path_of};
use crate::open::Context;

/// How many sessions are looked at, newest first.
const MAX_SESSIONS: usize = 100;

/// A mirror that shows a session as if it were open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftMirror {
    pub path: PathBuf,
    /// The session that it shows.
    pub handle: String,
    session: SessionId,
}

/// The mirrors that show sessions that are over.
pub fn find(context: &mut Context) -> Result<Vec<LeftMirror>, Problem> {
    if !context.has_mirrors() {
        return Ok(Vec::new());
    }
    let listed = context.service().list(&ListRequest {
        closed_too: true,
        limit: MAX_SESSIONS,
        ..ListRequest::default()
    })?;
    let over = listed
        .value
        .items
        .iter()
        .filter(|one| one.ended_at.is_some());
    let over: Vec<SessionId> = over
        .filter_map(|one| SessionId::parse(&one.id).ok())
        .collect();
    let mut writer = Writer::new(context, clock::instant() + PATIENCE);
    Ok(over
        .into_iter()
        .flat_map(|one| writer.left_by(one))
        .collect())
}

/// Removes or marks them, as the settings ask for a session that ends; returns what failed.
pub fn settle(context: &mut Context, left: &[LeftMirror]) -> Vec<String> {
    let mut writer = Writer::new(context, clock::instant() + PATIENCE);
    let mut said = Vec::new();
    for one in left {
        let its = match writer.session_context(one.session) {
            Ok(its) => its,
            Err(error) => {
                said.push(format!("{}: {error}", one.path.display()));
                continue;
            }
        };
        for mirror in writer.mirrors.clone() {
            writer.mirror(&mirror, one.session, &its);
        }
    }
    let (failed, written) = (writer.failed, writer.written);
    said.extend(
        failed
            .iter()
            .map(|one| format!("{}: {}", one.path, one.why)),
    );
    context
        .service()
        .record_mirrors(&failed, &written)
        .ignore("the next command records it");
    said
}

impl Writer<'_> {
    fn left_by(&mut self, session: SessionId) -> Vec<LeftMirror> {
        let Ok(context) = self.session_context(session) else {
            return Vec::new();
        };
        let mut left = Vec::new();
        for mirror in self.mirrors.clone() {
            let Some(location) = self.place(&mirror, &context) else {
                continue;
            };
            for document in mirror.documents(&context, self.context.dir()) {
                let path = path_of(&location.path, &document);
                let Ok(Some(present)) = file::read_plain(&path) else {
                    continue;
                };
                let is_its = writer_of(&present).as_deref() == Some(context.session.id.as_str());
                let is_marked = mirror.end == AtEnd::Mark && document.is_in(&present);
                if is_its && !is_marked {
                    let handle = context.session.handle.clone();
                    left.push(LeftMirror {
                        path,
                        handle,
                        session,
                    });
                }
            }
        }
        left
    }
}
