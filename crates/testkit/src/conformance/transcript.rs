//! Transcripts: one session for a path.

use tenure_core::id::NativeId;
use tenure_core::store::{Store, StoreError};
use tenure_core::time::Timestamp;
use tenure_core::transcript::Transcript;

use super::sample::{conflict, id, read, with_sessions, write};

fn transcript(n: u32, native_id: &str, path: &str) -> Transcript {
    Transcript {
        path: path.to_owned(),
        session: id(n),
        native_id: NativeId::parse(native_id).unwrap(),
        at: Timestamp(5),
    }
}

pub fn a_path_is_one_sessions(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    let first = transcript(1, "a", "/t/a.jsonl");
    write(store, |tx| tx.set_transcript(&first).unwrap());
    write(store, |tx| tx.set_transcript(&first).unwrap());
    conflict(store, |tx| -> Result<(), StoreError> {
        tx.set_transcript(&transcript(2, "b", "/t/a.jsonl"))
    });
    read(store, |tx| {
        assert_eq!(tx.transcript_owner("/t/a.jsonl").unwrap(), Some(id(1)));
        assert_eq!(tx.transcript_owner("/t/x.jsonl").unwrap(), None);
        assert_eq!(
            tx.transcript_of(id(1), &first.native_id).unwrap(),
            Some(first.clone())
        );
        assert_eq!(tx.transcript_of(id(2), &first.native_id).unwrap(), None);
    });
}

pub fn a_conversations_new_path_takes_the_place_of_the_old(store: &mut dyn Store) {
    with_sessions(store, [1]);
    write(store, |tx| {
        tx.set_transcript(&transcript(1, "a", "/t/old-a.jsonl"))
            .unwrap();
        tx.set_transcript(&transcript(1, "a", "/t/new-a.jsonl"))
            .unwrap();
    });
    read(store, |tx| {
        let native = NativeId::parse("a").unwrap();
        assert_eq!(
            tx.transcript_of(id(1), &native).unwrap().unwrap().path,
            "/t/new-a.jsonl"
        );
        assert_eq!(tx.transcript_owner("/t/old-a.jsonl").unwrap(), None);
    });
}

pub fn what_is_set_aside_is_kept_and_no_longer_used(store: &mut dyn Store) {
    with_sessions(store, [1]);
    let wrong = transcript(1, "a", "/t/b.jsonl");
    write(store, |tx| {
        tx.set_transcript(&wrong).unwrap();
        tx.quarantine_transcript(&wrong, "it is not its own", Timestamp(9))
            .unwrap();
    });
    read(store, |tx| {
        assert_eq!(tx.transcript_of(id(1), &wrong.native_id).unwrap(), None);
        let kept = tx.quarantined_transcripts(id(1)).unwrap();
        assert_eq!(kept, [(wrong.clone(), "it is not its own".to_owned())]);
    });
}
