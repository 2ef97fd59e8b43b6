//! Transcripts in rows: one session per path, one path per conversation of a session.
//!
//! *Crash*: a transcript is replaced or quarantined completely or not at all. *Clock jump*: times are for people only.
//! *Older version*: see the schema.

use std::collections::{BTreeSet, HashSet};

use tenure_core::id::{NativeId, SessionId};
use tenure_core::store::{StoreError, TranscriptRows};
use tenure_core::time::Timestamp;
use tenure_core::transcript::Transcript;

use crate::cells::Cells;
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::params;

columns! { $
    TranscriptRow of "transcripts" by select_transcripts { path, session, native_id, at }
}

columns! { $
    QuarantineRow of "quarantine" by select_quarantine { path, session, native_id, since, why, at }
}

const OF: &str =
    select_transcripts!("INDEXED BY transcripts_session WHERE session = ?1 AND native_id = ?2");
const OF_SESSIONS: &str = concat!(
    "SELECT ",
    select_transcripts!(columns "t."),
    " FROM json_each(?1) CROSS JOIN transcripts t INDEXED BY transcripts_session ON t.session = json_each.value"
);
const OWNER: &str = "SELECT session FROM transcripts WHERE path = ?1";
const DROP: &str = "DELETE FROM transcripts WHERE session = ?1 AND native_id = ?2";
const SET: &str = "INSERT INTO transcripts (path, session, native_id, at) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT (path) DO UPDATE SET native_id = excluded.native_id, at = excluded.at \
     WHERE transcripts.session = excluded.session";
const DROP_PATH: &str = "DELETE FROM transcripts WHERE path = ?1 AND session = ?2";
const SET_ASIDE: &str =
    select_quarantine!("/* may scan: few are quarantined */ WHERE session = ?1 ORDER BY id");

fn read(cells: &mut Cells<'_>) -> Result<Transcript, StoreError> {
    let row = TranscriptRow::read(cells);
    Ok(Transcript {
        path: row.path.text()?,
        session: row.session.parsed(SessionId::parse)?,
        native_id: row.native_id.parsed(NativeId::parse)?,
        at: row.at.time()?,
    })
}

fn read_quarantined(cells: &mut Cells<'_>) -> Result<(Transcript, String), StoreError> {
    let row = QuarantineRow::read(cells);
    let transcript = Transcript {
        path: row.path.text()?,
        session: row.session.parsed(SessionId::parse)?,
        native_id: row.native_id.parsed(NativeId::parse)?,
        at: row.since.time()?,
    };
    Ok((transcript, row.why.text()?))
}

impl<E: Engine> TranscriptRows for Rows<E> {
    fn transcript_of(
        &mut self,
        session: SessionId,
        native_id: &NativeId,
    ) -> Result<Option<Transcript>, StoreError> {
        let key = &params![session.to_string(), native_id.as_str()];
        self.first("transcripts", OF, key, read)
    }

    fn transcripts_of(
        &mut self,
        conversations: &[(SessionId, NativeId)],
    ) -> Result<Vec<Transcript>, StoreError> {
        let sessions: BTreeSet<SessionId> = conversations.iter().map(|(id, _)| *id).collect();
        let sessions: Vec<SessionId> = sessions.into_iter().collect();
        let wanted: HashSet<&(SessionId, NativeId)> = conversations.iter().collect();
        let mut found = self.transcripts_of_sessions(&sessions)?;
        found.retain(|known| wanted.contains(&(known.session, known.native_id.clone())));
        Ok(found)
    }

    fn transcripts_of_sessions(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<Vec<Transcript>, StoreError> {
        self.for_each_of("transcripts", OF_SESSIONS, sessions, read)
    }

    fn transcript_owner(&mut self, path: &str) -> Result<Option<SessionId>, StoreError> {
        self.first("transcripts", OWNER, &params![path], |cells| {
            cells.parsed(SessionId::parse)
        })
    }

    fn set_transcript(&mut self, transcript: &Transcript) -> Result<(), StoreError> {
        let session = transcript.session.to_string();
        let native_id = transcript.native_id.as_str();
        self.run(DROP, &params![&session, native_id])?;
        self.compare_and_set(
            SET,
            &params![&transcript.path, &session, native_id, transcript.at.0],
        )
    }

    fn quarantine_transcript(
        &mut self,
        transcript: &Transcript,
        why: &str,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let session = transcript.session.to_string();
        let row = QuarantineRow {
            path: (&transcript.path).into(),
            session: (&session).into(),
            native_id: transcript.native_id.as_str().into(),
            since: transcript.at.0.into(),
            why: why.into(),
            at: at.0.into(),
        };
        self.compare_and_set(QuarantineRow::INSERT, &row.values())?;
        self.run(DROP_PATH, &params![&transcript.path, &session])?;
        Ok(())
    }

    fn quarantined_transcripts(
        &mut self,
        session: SessionId,
    ) -> Result<Vec<(Transcript, String)>, StoreError> {
        let session = &params![session.to_string()];
        self.all("quarantine", SET_ASIDE, session, read_quarantined)
    }
}
