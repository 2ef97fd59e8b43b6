//! What is pushed to the forge, and what is not.

use tenure_core::dispatch::publish::Publishing;
use tenure_core::key::Key;
use tenure_core::queue::Trust;

use super::*;
use crate::places::{NotPublished, Publication};

const PUSHES: Publishing = Publishing {
    push: true,
    asks: false,
    workflows: false,
    open_pr: false,
    merge: false,
};

fn publish(fixture: &Fixture, commit: &CommitId, trust: Trust) -> Result<String, NotPublished> {
    publish_as(fixture, commit, trust, false)
}

fn publish_as(
    fixture: &Fixture,
    commit: &CommitId,
    trust: Trust,
    approved: bool,
) -> Result<String, NotPublished> {
    let item = Key::parse("issue:acme/web#6").unwrap();
    let url = fixture.forge().to_str().unwrap().to_owned();
    let of = Publication {
        item: &item,
        repo: "acme/web",
        commit,
        trust,
        base: Some(("main", &fixture.start)),
        head: None,
        pull_branch: None,
        approved,
        to: RemoteSource {
            url: &url,
            settings: &[],
        },
    };
    fixture.repositories.publish(PUSHES, &of)
}

fn refs(fixture: &Fixture) -> String {
    git(
        &fixture.forge(),
        &["for-each-ref", "--format=%(refname) %(objectname)"],
    )
}

fn taken(fixture: &Fixture, place: &Place) -> CommitId {
    match fixture.take(place).unwrap() {
        PlaceContent::Commit(commit) => commit,
        PlaceContent::Nothing => panic!("nothing was taken"),
    }
}

#[test]
fn one_ref_of_our_name_is_pushed_and_nothing_else() {
    let fixture = Fixture::new();
    let place = fixture.made();
    git(&place.dir, &["checkout", "--quiet", "-b", "a;$(id)"]);
    commit(&place.dir, "work", "done");
    git(&place.dir, &["tag", "-a", "-m", "t", "v1"]);
    git(&place.dir, &["notes", "add", "-m", "n"]);
    let before = refs(&fixture);
    let work = taken(&fixture, &place);
    let branch = publish(&fixture, &work, Trust::Trusted).unwrap();
    assert_eq!(branch, "tenure/issue-6");
    let after = refs(&fixture);
    let new: Vec<&str> = after
        .lines()
        .filter(|line| !before.contains(line))
        .collect();
    assert_eq!(new, [format!("refs/heads/tenure/issue-6 {work}")]);
    // Once more, with what came since; and the same again changes nothing.
    let next = commit(&place.dir, "more", "done");
    fixture.take(&place).unwrap();
    publish(&fixture, &next, Trust::Trusted).unwrap();
    publish(&fixture, &next, Trust::Trusted).unwrap();
    assert!(refs(&fixture).contains(next.as_str()));
}

#[test]
fn what_someone_else_pushed_there_is_not_overwritten() {
    let fixture = Fixture::new();
    let place = fixture.made();
    let work = commit(&place.dir, "work", "done");
    fixture.take(&place).unwrap();
    git(&fixture.forge(), &["branch", "tenure/issue-6"]);
    let no = publish(&fixture, &work, Trust::Trusted).unwrap_err();
    assert!(matches!(no, NotPublished::Moved(_)), "{no}");
    assert!(!refs(&fixture).contains(work.as_str()));
}

#[test]
fn what_nobody_permitted_wrote_is_pushed_nowhere() {
    let fixture = Fixture::new();
    let place = fixture.made();
    let work = commit(&place.dir, "work", "done");
    fixture.take(&place).unwrap();
    let before = refs(&fixture);
    let no = publish_as(&fixture, &work, Trust::Outside, true).unwrap_err();
    assert!(!no.waits(), "{no}");
    assert_eq!(refs(&fixture), before);
    // Not even its objects.
    let has = Command::new("git")
        .args(["cat-file", "-e", work.as_str()])
        .current_dir(fixture.forge())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(!has.success());
}

#[test]
fn what_gives_orders_waits_for_a_person_also_in_the_next_result() {
    let fixture = Fixture::new();
    let place = fixture.made();
    fs_err::create_dir_all(place.dir.join(".github/workflows")).unwrap();
    fs_err::os::unix::fs::symlink("/etc", place.dir.join("out")).unwrap();
    let first = commit(&place.dir, ".github/workflows/ci.yml", "on: push");
    fixture.take(&place).unwrap();
    let no = publish(&fixture, &first, Trust::Trusted).unwrap_err();
    assert!(no.waits());
    let told = no.to_string();
    let named = [
        ".github/workflows/ci.yml",
        "out (a link out of the repository)",
    ];
    assert!(named.iter().all(|name| told.contains(name)), "{told}");
    let second = commit(&place.dir, "plain", "x");
    fixture.take(&place).unwrap();
    let no = publish(&fixture, &second, Trust::Trusted).unwrap_err();
    assert!(no.waits(), "the first commit would go along: {no}");
    publish_as(&fixture, &second, Trust::Trusted, true).unwrap();
    // What was approved needs no second word.
    let third = commit(&place.dir, "plain", "y");
    fixture.take(&place).unwrap();
    publish(&fixture, &third, Trust::Trusted).unwrap();
}
