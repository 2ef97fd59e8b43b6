//! Places that were made honestly, and what hostile ones try.

mod hostile;
mod plants;
mod publishing;
mod wrapped;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tenure_core::commit::CommitId;
use tenure_core::id::RunId;
use tenure_host::kernel_lock::LockDir;

use super::{
    ExtraHead, Heads, Place, PlaceAnswer, PlaceContent, RemoteSource, Repositories, Start,
};

/// A forge's repository with one commit, the dispatcher's two, and room for places.
pub(super) struct Fixture {
    dir: tempfile::TempDir,
    pub repositories: Repositories,
    pub heads: Heads,
    pub start: CommitId,
}

pub(super) fn run() -> RunId {
    RunId::mint([7; 16])
}

/// Git as an agent runs it.
pub(super) fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=Agent",
            "-c",
            "user.email=agent@example.invalid",
        ])
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub(super) fn commit(dir: &Path, file: &str, text: &str) -> CommitId {
    fs_err::write(dir.join(file), text).unwrap();
    git(dir, &["add", "--all"]);
    git(dir, &["commit", "--quiet", "-m", "work"]);
    CommitId::parse(&git(dir, &["rev-parse", "HEAD"])).unwrap()
}

impl Fixture {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let forge = dir.path().join("forge");
        tenure_testkit::scratch_git(&forge, None);
        let start = commit(&forge, "README", "hello");
        git(&forge, &["update-ref", "refs/pull/7/head", "HEAD"]);
        let locks = LockDir::open(&dir.path().join("locks")).unwrap();
        let repositories = Repositories::open(
            &dir.path().join("state"),
            "git.example.org/acme/web",
            &locks,
        )
        .unwrap();
        let url = forge.to_str().unwrap().to_owned();
        let from = RemoteSource {
            url: &url,
            settings: &[],
        };
        let heads = repositories
            .fetch(from, Some(&ExtraHead::Pull(7)), &locks)
            .unwrap();
        Self {
            dir,
            repositories,
            heads,
            start,
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn forge(&self) -> PathBuf {
        self.dir.path().join("forge")
    }

    pub fn place(&self, wrap: &[&str]) -> Place {
        Place {
            dir: self.dir.path().join("places/one"),
            wrap: wrap.iter().map(OsString::from).collect(),
            home: None,
            is_theirs: false,
        }
    }

    pub fn make(&self, place: &Place) {
        let start = Start {
            commit: &self.start,
            branch: "tenure/issue-6",
            url: "https://git.example.org/acme/web.git",
            base: Some(("main", &self.start)),
            last: None,
        };
        place.make(&self.repositories, &start).unwrap();
    }

    /// A place that was made and not worked in yet.
    pub fn made(&self) -> Place {
        let place = self.place(&[]);
        self.make(&place);
        place
    }

    pub fn take(&self, place: &Place) -> Result<PlaceContent, super::NotTaken> {
        place.take(&self.repositories, &run(), &self.start)
    }

    /// Nothing arrived, and no trace of a try is left.
    pub fn assert_nothing_taken(&self) {
        assert_eq!(self.repositories.result_of(&run()).unwrap(), None);
        let objects = self.repositories.results().objects();
        let names = fs_err::read_dir(&objects).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        let is_incoming = |name: &OsString| name.to_string_lossy().starts_with("incoming");
        assert!(!names.iter().any(is_incoming), "{names:?}");
        assert_eq!(fs_err::read_dir(objects.join("pack")).unwrap().count(), 0);
    }
}

#[test]
fn what_an_agent_commits_is_taken_and_only_that() {
    let fixture = Fixture::new();
    assert_eq!(fixture.heads.head.as_ref(), Some(&fixture.start));
    assert_eq!(
        fixture.heads.base,
        Some(("main".to_owned(), fixture.start.clone()))
    );
    let place = fixture.made();
    assert_eq!(fixture.take(&place).unwrap(), PlaceContent::Nothing);
    fixture.assert_nothing_taken();
    let work = commit(&place.dir, "work", "done");
    fs_err::write(place.dir.join("unfinished"), "x").unwrap();
    assert_eq!(place.has_more(), PlaceAnswer::Yes);
    assert_eq!(
        fixture.take(&place).unwrap(),
        PlaceContent::Commit(work.clone())
    );
    let results = fixture.repositories.results();
    assert_eq!(
        fixture.repositories.result_of(&run()).unwrap(),
        Some(work.clone())
    );
    let files = git(results.dir(), &["ls-tree", "--name-only", work.as_str()]);
    assert_eq!(files, "README\nwork");
    assert_eq!(fixture.repositories.runs().unwrap(), [run()]);
    // Once more, from what is known now.
    let again = place.take(&fixture.repositories, &run(), &work).unwrap();
    assert_eq!(again, PlaceContent::Nothing);
    fixture.repositories.forget(&run()).unwrap();
    assert_eq!(fixture.repositories.runs().unwrap(), []);
}

#[test]
fn a_place_has_the_objects_that_it_was_given_and_no_others() {
    let fixture = Fixture::new();
    let forge = fixture.forge();
    git(&forge, &["checkout", "--quiet", "-b", "private"]);
    let secret = commit(&forge, "secret", "s");
    let locks = LockDir::open(&fixture.path().join("locks")).unwrap();
    let url = forge.to_str().unwrap().to_owned();
    let from = RemoteSource {
        url: &url,
        settings: &[],
    };
    let heads = fixture.repositories.fetch(from, None, &locks).unwrap();
    assert_eq!(heads.head, None);
    assert!(
        fixture
            .repositories
            .base()
            .commit(secret.as_str())
            .unwrap()
            .is_some()
    );
    let place = fixture.made();
    let objects = [
        "cat-file",
        "--batch-all-objects",
        "--batch-check=%(objectname)",
    ];
    assert!(!git(&place.dir, &objects).contains(secret.as_str()));
    let origin = git(&place.dir, &["remote", "get-url", "origin"]);
    assert_eq!(origin, "https://git.example.org/acme/web.git");
    assert_eq!(
        git(&place.dir, &["rev-parse", "--abbrev-ref", "HEAD"]),
        "tenure/issue-6"
    );
    assert_eq!(
        git(&place.dir, &["rev-parse", "origin/main"]),
        fixture.start.as_str()
    );
    assert_eq!(place.has_more(), PlaceAnswer::No);
}

#[test]
fn a_fresh_place_has_the_last_result_beside_it() {
    let fixture = Fixture::new();
    let place = fixture.made();
    let work = commit(&place.dir, "work", "done");
    fixture.take(&place).unwrap();
    let aside = place.dir.with_extension("aside");
    place.move_to(&aside).unwrap();
    let start = Start {
        commit: &fixture.start,
        branch: "tenure/issue-6",
        url: "https://git.example.org/acme/web.git",
        base: None,
        last: Some(&work),
    };
    place.make(&fixture.repositories, &start).unwrap();
    assert_eq!(
        git(&place.dir, &["rev-parse", "HEAD"]),
        start.commit.as_str()
    );
    assert_eq!(
        git(&place.dir, &["rev-parse", "tenure/last"]),
        work.as_str()
    );
    assert!(aside.join("work").exists());
    assert!(place.move_to(&aside).is_err(), "something is there");
}

#[test]
fn a_place_is_removed_whole() {
    let fixture = Fixture::new();
    let place = fixture.made();
    let locked = place.dir.join("cache");
    fs_err::create_dir(&locked).unwrap();
    fs_err::write(locked.join("file"), "x").unwrap();
    let read_only = std::os::unix::fs::PermissionsExt::from_mode(0o500);
    fs_err::set_permissions(&locked, read_only).unwrap();
    place.remove().unwrap();
    assert!(!place.dir.exists());
    place.remove().unwrap();
    fixture.make(&place);
}

#[test]
fn what_is_in_the_way_is_not_made_into_a_place() {
    let fixture = Fixture::new();
    let place = fixture.place(&[]);
    fs_err::create_dir_all(&place.dir).unwrap();
    fs_err::write(place.dir.join("mine"), "x").unwrap();
    let start = Start {
        commit: &fixture.start,
        branch: "b",
        url: "u",
        base: None,
        last: None,
    };
    let error = place.make(&fixture.repositories, &start).unwrap_err();
    assert_eq!(error.to_string(), "its directory is not empty");
    assert!(place.dir.join("mine").exists());
}

#[test]
fn what_a_branch_lost_by_force_can_still_be_given() {
    let fixture = Fixture::new();
    let forge = fixture.forge();
    git(&forge, &["commit", "--quiet", "--amend", "-m", "other"]);
    let locks = LockDir::open(&fixture.path().join("locks")).unwrap();
    let url = forge.to_str().unwrap().to_owned();
    let from = RemoteSource {
        url: &url,
        settings: &[],
    };
    let heads = fixture.repositories.fetch(from, None, &locks).unwrap();
    assert_ne!(heads.base.unwrap().1, fixture.start);
    fixture.made();
}

#[test]
fn the_head_of_a_pull_request_is_found_under_each_forges_name_and_forgotten_with_it() {
    let fixture = Fixture::new();
    let forge = fixture.forge();
    let locks = LockDir::open(&fixture.path().join("locks")).unwrap();
    let from = RemoteSource {
        url: forge.to_str().unwrap(),
        settings: &[],
    };
    let head = || {
        let wanted = ExtraHead::Pull(7);
        let heads = fixture.repositories.fetch(from, Some(&wanted), &locks);
        heads.unwrap().head
    };
    git(&forge, &["update-ref", "-d", "refs/pull/7/head"]);
    assert_eq!(head(), None);
    git(
        &forge,
        &["update-ref", "refs/merge-requests/7/head", "HEAD"],
    );
    assert_eq!(head(), Some(fixture.start.clone()));
}
