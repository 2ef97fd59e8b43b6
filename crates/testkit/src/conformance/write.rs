//! Files that sessions wrote, and the states of their worktrees.

use tenure_core::store::Store;
use tenure_core::time::Timestamp;
use tenure_core::write_conflict::{FileStamp, FileWrite, Tree};

use super::sample::*;

fn wrote(n: u32, path: &str, at: i64) -> FileWrite {
    FileWrite {
        path: path.into(),
        session: id(n),
        at: Timestamp(EPOCH + at),
        stamp: None,
    }
}

pub fn a_stamp_stays_until_the_next_write(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    let stamp = FileStamp {
        size: 1 << 40,
        modified: -5,
    };
    let stamped = FileWrite {
        stamp: Some(stamp),
        ..wrote(1, "/w/a", 1)
    };
    write(store, |tx| {
        tx.note_write(&wrote(1, "/w/a", 1)).unwrap();
        tx.note_write(&wrote(2, "/w/a", 2)).unwrap();
        tx.stamp_write(id(1), "/w/a", Some(stamp)).unwrap();
        tx.stamp_write(id(1), "/w/never", Some(stamp)).unwrap();
    });
    read(store, |tx| {
        assert_eq!(
            tx.writes_of(id(1), 0).unwrap(),
            std::slice::from_ref(&stamped)
        );
        assert_eq!(tx.writes_of(id(2), 0).unwrap(), [wrote(2, "/w/a", 2)]);
    });
    write(store, |tx| tx.note_write(&wrote(1, "/w/a", 3)).unwrap());
    read(store, |tx| {
        assert_eq!(tx.writes_of(id(1), 0).unwrap(), [wrote(1, "/w/a", 3)]);
    });
    write(store, |tx| tx.note_write(&stamped).unwrap());
    write(store, |tx| tx.stamp_write(id(1), "/w/a", None).unwrap());
    read(store, |tx| {
        assert_eq!(tx.writes_of(id(1), 0).unwrap(), [wrote(1, "/w/a", 1)]);
    });
}

pub fn a_later_write_of_a_file_replaces_the_time(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    write(store, |tx| {
        assert_eq!(tx.writers("/w/a").unwrap(), []);
        tx.note_write(&wrote(1, "/w/a", 1)).unwrap();
        tx.note_write(&wrote(2, "/w/a", 2)).unwrap();
        tx.note_write(&wrote(1, "/w/A", 3)).unwrap();
        tx.note_write(&wrote(1, "/w/a", 4)).unwrap();
    });
    read(store, |tx| {
        let mut writers = tx.writers("/w/a").unwrap();
        writers.sort_by_key(|write| write.at);
        assert_eq!(writers, [wrote(2, "/w/a", 2), wrote(1, "/w/a", 4)]);
        assert_eq!(tx.writers("/w/A").unwrap(), [wrote(1, "/w/A", 3)]);
    });
}

pub fn what_was_written_below_a_directory_is_found(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    write(store, |tx| {
        for path in ["/w/a", "/w/a/b", "/w/a/c/d", "/w/a.rs", "/w/a0", "/w/A/b"] {
            tx.note_write(&wrote(1, path, 1)).unwrap();
        }
        tx.note_write(&wrote(2, "/w/a/b", 2)).unwrap();
    });
    read(store, |tx| {
        let found = tx.written_below("/w/a").unwrap();
        assert_eq!(found, ["/w/a/b", "/w/a/b", "/w/a/c/d"]);
    });
}

pub fn what_a_session_wrote_is_listed_the_newest_first(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    write(store, |tx| {
        tx.note_write(&wrote(1, "/w/b", 1)).unwrap();
        tx.note_write(&wrote(1, "/w/c", 5)).unwrap();
        tx.note_write(&wrote(1, "/w/a", 3)).unwrap();
        tx.note_write(&wrote(2, "/w/a", 9)).unwrap();
    });
    read(store, |tx| {
        let newest = [wrote(1, "/w/c", 5), wrote(1, "/w/a", 3)];
        assert_eq!(tx.writes_of(id(1), 2).unwrap(), newest);
        assert_eq!(tx.writes_of(id(1), 0).unwrap().len(), 3);
    });
}

pub fn what_is_old_is_forgotten_of_that_session_alone(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    write(store, |tx| {
        tx.note_write(&wrote(1, "/w/old", 1)).unwrap();
        tx.note_write(&wrote(1, "/w/edge", 5)).unwrap();
        tx.note_write(&wrote(2, "/w/old", 1)).unwrap();
        tx.forget_writes(id(1), Timestamp(EPOCH + 5)).unwrap();
    });
    read(store, |tx| {
        assert_eq!(tx.writes_of(id(1), 0).unwrap(), [wrote(1, "/w/edge", 5)]);
        assert_eq!(tx.writers("/w/old").unwrap(), [wrote(2, "/w/old", 1)]);
    });
}

pub fn a_worktree_is_kept_as_it_was_last(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    let first = Tree {
        root: "/w".into(),
        head: Some("c0ffee".into()),
        branch: Some("main".into()),
        at: Timestamp(EPOCH + 1),
    };
    let second = Tree {
        root: "/x".into(),
        head: None,
        branch: None,
        at: Timestamp(EPOCH + 2),
    };
    for tree in [first, second] {
        write(store, |tx| {
            tx.set_tree(id(1), &tree).unwrap();
        });
        read(store, |tx| {
            assert_eq!(tx.tree_of(id(1)).unwrap(), Some(tree));
            assert_eq!(tx.tree_of(id(2)).unwrap(), None);
        });
    }
}

pub fn what_several_sessions_wrote_lately_is_found_in_one_look(store: &mut dyn Store) {
    with_sessions(store, [1, 2, 3]);
    write(store, |tx| {
        for (n, path, at) in [
            (1, "/w/a", 5),
            (2, "/w/a", 6),
            (2, "/w/old", 4),
            (3, "/w/b", 9),
        ] {
            tx.note_write(&wrote(n, path, at)).unwrap();
        }
    });
    read(store, |tx| {
        let since = Timestamp(EPOCH + 5);
        assert_eq!(
            tx.writes_since(&[id(1), id(2)], since).unwrap(),
            [wrote(1, "/w/a", 5), wrote(2, "/w/a", 6)]
        );
        assert_eq!(tx.writes_since(&[], since).unwrap(), []);
    });
}
