//! Creating the store when several processes start at once.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Barrier;

use tenure_core::store::{Store, StoreError, TxMode};
use tenure_store::SqliteStore;
use tenure_testkit::conformance::sample::{clock, id, session};

const PROCESSES: u32 = 32;

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, clock()).unwrap()
}

fn register(path: &Path, n: u32) {
    let mut store = open(path);
    let mut tx = store.begin(TxMode::Write).unwrap();
    tx.insert_session(&session(n)).unwrap();
    tx.commit().unwrap();
}

fn assert_all_registered(path: &Path) {
    let mut store = open(path);
    let mut tx = store.begin(TxMode::Read).unwrap();
    for n in 0..PROCESSES {
        assert!(tx.session(id(n)).unwrap().is_some(), "session {n} is lost");
    }
}

fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs_err::read_dir(dir).unwrap();
    let name = |entry: std::io::Result<fs_err::DirEntry>| entry.unwrap().file_name();
    entries
        .map(|entry| name(entry).into_string().unwrap())
        .collect()
}

#[test]
fn threads_that_are_first_at_once_make_one_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let start = Barrier::new(PROCESSES.try_into().unwrap());
    std::thread::scope(|scope| {
        for n in 0..PROCESSES {
            let (path, start) = (&path, &start);
            scope.spawn(move || {
                start.wait();
                register(path, n);
            });
        }
    });
    assert_all_registered(&path);
}

/// What each process of the next test runs; nothing without its arguments.
#[test]
fn one_of_the_processes() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--");
    if let (Some(_), Some(path), Some(n)) = (arguments.next(), arguments.next(), arguments.next()) {
        // Ready; go when standard input closes.
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
        register(Path::new(&path), n.parse().unwrap());
    }
}

#[test]
fn processes_that_are_first_at_once_make_one_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let start = |n: u32| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "one_of_the_processes", "--"])
            .args([path.to_str().unwrap(), &n.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut children: Vec<_> = (0..PROCESSES).map(start).collect();
    for child in &mut children {
        drop(child.stdin.take());
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_all_registered(&path);
}

#[test]
fn the_files_are_the_users_alone_and_nothing_is_left_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    register(&path, 1);
    let expected = [
        "tenure.db",
        "tenure.db-shm",
        "tenure.db-wal",
        "tenure.db.init",
        "tenure.db.mark",
    ];
    assert_eq!(names(dir.path()), expected.map(str::to_owned).into());
    for name in expected {
        let mode = fs_err::metadata(dir.path().join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_store_is_complete_in_its_own_file_before_anybody_sees_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    drop(open(&path));
    let copy = dir.path().join("copy.db");
    fs_err::copy(&path, &copy).unwrap();
    register(&copy, 1);
}

#[test]
fn what_a_killed_creator_left_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    for left in [
        "tenure.db.new",
        "tenure.db.new-journal",
        "tenure.db.new-wal",
    ] {
        fs_err::write(dir.path().join(left), "half a database").unwrap();
    }
    register(&path, 1);
    let names = names(dir.path());
    assert!(names.iter().all(|name| !name.contains(".new")), "{names:?}");
}

#[test]
fn a_log_without_its_database_is_damage_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    register(&path, 1);
    fs_err::remove_file(&path).unwrap();
    let log = fs_err::read(dir.path().join("tenure.db-wal")).unwrap();
    let refused = SqliteStore::open(&path, clock()).unwrap_err();
    assert!(matches!(refused, StoreError::Damaged { .. }), "{refused}");
    assert!(!path.exists());
    assert_eq!(fs_err::read(dir.path().join("tenure.db-wal")).unwrap(), log);
}

#[test]
fn a_symbolic_link_is_refused_as_the_database_and_followed_on_the_way_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().join("real");
    fs_err::create_dir(&real).unwrap();
    let way = dir.path().join("way");
    std::os::unix::fs::symlink(&real, &way).unwrap();
    register(&way.join("tenure.db"), 1);
    assert!(real.join("tenure.db").exists());

    let link = dir.path().join("tenure.db");
    std::os::unix::fs::symlink(real.join("tenure.db"), &link).unwrap();
    let refused = SqliteStore::open(&link, clock()).unwrap_err();
    assert!(
        matches!(refused, StoreError::Unavailable { .. }),
        "{refused}"
    );
    std::os::unix::fs::symlink(real.join("nowhere"), dir.path().join("dangling.db")).unwrap();
    let refused = SqliteStore::open(&dir.path().join("dangling.db"), clock()).unwrap_err();
    assert!(
        matches!(refused, StoreError::Unavailable { .. }),
        "{refused}"
    );
    assert!(!real.join("nowhere").exists());
}

#[test]
fn a_missing_directory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("absent/tenure.db");
    let refused = SqliteStore::open(&path, clock()).unwrap_err();
    assert!(
        matches!(&refused, StoreError::Unavailable { store, .. } if store.ends_with("absent/tenure.db"))
    );
    assert!(refused.to_string().contains("No such file"), "{refused}");
}

#[test]
fn opening_again_changes_no_byte() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    register(&path, 1);
    let before = (
        fs_err::read(&path).unwrap(),
        fs_err::metadata(&path).unwrap().ino(),
    );
    assert!(
        open(&path)
            .begin(TxMode::Read)
            .unwrap()
            .session(id(1))
            .unwrap()
            .is_some()
    );
    let after = (
        fs_err::read(&path).unwrap(),
        fs_err::metadata(&path).unwrap().ino(),
    );
    assert!(before == after);
}

/// Every process parses all of it before its first statement.
#[test]
fn a_new_store_has_at_most_77_tables_indexes_and_views() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    drop(open(&path));
    let conn = rusqlite::Connection::open(&path).unwrap();
    let objects: i64 = conn
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .unwrap();
    assert!(objects <= 77, "{objects}");
}

#[test]
fn a_store_of_a_development_build_is_refused_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    drop(open(&path));
    let conn = rusqlite::Connection::open(&path).unwrap();
    let older = "PRAGMA application_id = 0x74656e75; PRAGMA user_version = 11";
    conn.execute_batch(older).unwrap();
    conn.close().unwrap();
    let before = (names(dir.path()), fs_err::read(&path).unwrap());
    let refused = SqliteStore::open(&path, clock()).unwrap_err();
    let expected = StoreError::Unavailable {
        store: path.display().to_string(),
        why: "a development build of tenure wrote it; move the state directory away".into(),
    };
    assert_eq!(refused, expected);
    assert!(before == (names(dir.path()), fs_err::read(&path).unwrap()));
}

/// What a store says when it cannot be opened or written.
fn refusal(path: &Path) -> String {
    let opened = SqliteStore::open(path, clock());
    let written = opened.and_then(|mut store| store.begin(TxMode::Write).map(drop));
    written.unwrap_err().to_string()
}

#[test]
fn a_link_beside_the_database_is_refused_and_nothing_is_written_through_it() {
    for suffix in ["init", "mark"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tenure.db");
        if suffix == "mark" {
            register(&path, 0);
        }
        let (victim, link) = (
            dir.path().join("victim"),
            path.with_extension(format!("db.{suffix}")),
        );
        let _absent = fs_err::remove_file(&link);
        fs_err::write(&victim, "precious").unwrap();
        fs_err::set_permissions(&victim, PermissionsExt::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        let why = refusal(&path);
        assert!(why.contains("is a symbolic link"), "{why}");
        assert_eq!(fs_err::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(fs_err::metadata(&victim).unwrap().mode() & 0o777, 0o644);
        // A link that leads nowhere makes no file there.
        fs_err::remove_file(&victim).unwrap();
        let why = refusal(&path);
        assert!(why.contains("is a symbolic link"), "{why}");
        assert!(!victim.exists());
    }
}

#[test]
fn a_pipe_beside_the_database_stops_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let pipe = |suffix: &str| {
        let at = path.with_extension(format!("db.{suffix}"));
        let _absent = fs_err::remove_file(&at);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &at, mode).unwrap();
        at
    };
    let init = pipe("init");
    // Without a reader it cannot be opened for writing; with one it is not a file.
    refusal(&path);
    let reader = fs_err::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&init)
        .unwrap();
    let why = refusal(&path);
    assert!(why.contains("is not a regular file"), "{why}");
    drop(reader);
    fs_err::remove_file(&init).unwrap();
    register(&path, 0);
    let mark = pipe("mark");
    register(&path, 1);
    let _reader = fs_err::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&mark)
        .unwrap();
    register(&path, 2);
}
