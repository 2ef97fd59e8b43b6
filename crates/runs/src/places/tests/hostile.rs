//! What hostile places try: to have another repository read, a program run, or a process of ours wait or grow.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tenure_host::own_repository::PackLimits;

use super::*;
use crate::places::NotTaken;

/// A repository of the user's that no place may have.
struct Private {
    dir: PathBuf,
    head: CommitId,
}

fn private(fixture: &Fixture) -> Private {
    let dir = fixture.path().join("private");
    tenure_testkit::scratch_git(&dir, None);
    let head = commit(&dir, "secret", "the secret");
    Private { dir, head }
}

/// A wrap that does not run what it is given, but writes this.
fn writes(script: &str) -> Vec<String> {
    ["sh", "-c", script, "sh"].map(str::to_owned).to_vec()
}

fn replies(fixture: &Fixture, script: &str) -> Place {
    let wrap = writes(script);
    let wrap: Vec<&str> = wrap.iter().map(String::as_str).collect();
    fixture.place(&wrap)
}

#[test]
fn a_place_that_leads_elsewhere_gives_nothing() {
    type Plant = fn(&Path, &Private);
    let plants: &[(&str, Plant)] = &[
        ("a gitdir file", |place, private| {
            fs_err::remove_dir_all(place.join(".git")).unwrap();
            let line = format!("gitdir: {}/.git\n", private.dir.display());
            fs_err::write(place.join(".git"), line).unwrap();
        }),
        ("a linked .git", |place, private| {
            fs_err::remove_dir_all(place.join(".git")).unwrap();
            fs_err::os::unix::fs::symlink(private.dir.join(".git"), place.join(".git")).unwrap();
        }),
        ("a linked place", |place, private| {
            fs_err::remove_dir_all(place).unwrap();
            fs_err::os::unix::fs::symlink(&private.dir, place).unwrap();
            fs_err::write(private.dir.join(".git/commondir"), "../.git\n").unwrap();
        }),
        ("commondir", |place, private| {
            let line = format!("{}/.git\n", private.dir.display());
            fs_err::write(place.join(".git/commondir"), line).unwrap();
        }),
        ("alternates", |place, private| {
            let line = format!("{}/.git/objects\n", private.dir.display());
            fs_err::write(place.join(".git/objects/info/alternates"), line).unwrap();
            git(place, &["update-ref", "HEAD", private.head.as_str()]);
        }),
        ("linked objects and refs", |place, private| {
            for name in ["objects", "refs"] {
                fs_err::remove_dir_all(place.join(".git").join(name)).unwrap();
                let from = private.dir.join(".git").join(name);
                fs_err::os::unix::fs::symlink(from, place.join(".git").join(name)).unwrap();
            }
            fs_err::write(place.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        }),
        ("no .git at all", |place, private| {
            fs_err::remove_dir_all(place.join(".git")).unwrap();
            // One above it.
            let above = place.parent().unwrap().join(".git");
            fs_err::os::unix::fs::symlink(private.dir.join(".git"), above).unwrap();
        }),
    ];
    for (name, plant) in plants {
        let fixture = Fixture::new();
        let private = private(&fixture);
        let place = fixture.made();
        plant(&place.dir, &private);
        let error = fixture.take(&place).unwrap_err();
        assert!(matches!(error, NotTaken::NoCommit(_)), "{name}: {error}");
        assert!(
            matches!(place.has_more(), PlaceAnswer::CannotTell(_)),
            "{name}"
        );
        fixture.assert_nothing_taken();
        let known = fixture.repositories.results().commit(private.head.as_str());
        assert_eq!(known.unwrap(), None, "{name}");
    }
}

#[test]
fn programs_that_a_place_names_do_not_run() {
    let fixture = Fixture::new();
    let place = fixture.made();
    let canary = fixture.path().join("canary");
    let program = place.dir.join(".git/program");
    let script = format!("#!/bin/sh\ntouch {}\ncat\n", canary.display());
    fs_err::write(&program, script).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs_err::set_permissions(&program, executable).unwrap();
    commit(&place.dir, "work", "done");
    let named = program.to_str().unwrap();
    for (name, value) in [
        ("core.fsmonitor", named),
        ("core.hooksPath", place.dir.join(".git").to_str().unwrap()),
        ("core.sshCommand", named),
        ("core.pager", named),
        ("uploadpack.packObjectsHook", named),
        ("remote.origin.uploadpack", named),
        ("gc.recentObjectsHook", named),
    ] {
        git(&place.dir, &["config", name, value]);
    }
    for hook in [
        "post-checkout",
        "reference-transaction",
        "post-index-change",
    ] {
        fs_err::copy(&program, place.dir.join(".git").join(hook)).unwrap();
    }
    assert!(matches!(
        fixture.take(&place).unwrap(),
        PlaceContent::Commit(_)
    ));
    place.has_more();
    assert!(!canary.exists());
}

#[test]
fn a_pipe_in_a_place_hangs_nothing_of_ours() {
    for name in ["HEAD", "config", "packed-refs", "index"] {
        let fixture = Fixture::new();
        let place = fixture.made();
        commit(&place.dir, "work", "done");
        let file = place.dir.join(".git").join(name);
        if file.exists() {
            fs_err::remove_file(&file).unwrap();
        }
        mknodat(CWD, &file, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let began = Instant::now();
        let taken = place.take_within(
            &fixture.repositories,
            &run(),
            &fixture.start,
            PackLimits::default(),
            Duration::from_secs(2),
        );
        assert!(began.elapsed() < Duration::from_secs(20), "{name}");
        if let Err(error) = taken {
            assert!(
                matches!(error, NotTaken::Late | NotTaken::NoCommit(_)),
                "{name}: {error}"
            );
            fixture.assert_nothing_taken();
        }
    }
}

#[test]
fn a_shallow_place_gives_its_result() {
    let fixture = Fixture::new();
    let place = fixture.made();
    let work = commit(&place.dir, "work", "done");
    fs_err::write(place.dir.join(".git/shallow"), format!("{work}\n")).unwrap();
    assert_eq!(fixture.take(&place).unwrap(), PlaceContent::Commit(work));
}

#[test]
fn a_place_that_pruned_what_it_was_given_still_gives_its_result() {
    let fixture = Fixture::new();
    let place = fixture.made();
    git(&place.dir, &["checkout", "--quiet", "--orphan", "new"]);
    let work = commit(&place.dir, "work", "done");
    for name in ["refs/heads/tenure/issue-6", "refs/remotes/origin/main"] {
        git(&place.dir, &["update-ref", "-d", name]);
    }
    git(&place.dir, &["reflog", "expire", "--expire=now", "--all"]);
    git(&place.dir, &["gc", "--quiet", "--prune=now"]);
    assert_eq!(fixture.take(&place).unwrap(), PlaceContent::Commit(work));
}

#[test]
fn an_answer_that_is_no_commit_and_pack_takes_nothing() {
    let fixture = Fixture::new();
    let id = "1".repeat(40);
    for (script, expected) in [
        ("echo ../../etc/passwd", "does not name a commit"),
        ("echo --all", "does not name a commit"),
        ("printf abc", "does not name a commit"),
        ("head -c 1000000 /dev/zero", "does not name a commit"),
        ("head -c 1000000 /dev/urandom", "does not name a commit"),
        ("yes", "does not name a commit"),
        ("exit 3", "names no commit: it ended with exit code 3"),
        ("printf '\\033[31mno\\n' >&2; exit 1", "names no commit: "),
        (&format!("echo {id}"), "git refused its commits"),
        (
            &format!("echo {id}; head -c 100000 /dev/urandom"),
            "git refused its commits",
        ),
    ] {
        let error = fixture.take(&replies(&fixture, script)).unwrap_err();
        let said = error.to_string();
        assert!(said.contains(expected), "{script}: {said}");
        assert!(!said.contains('\u{1b}'), "{said:?}");
        fixture.assert_nothing_taken();
    }
    let error = fixture
        .take(&fixture.place(&["/nonexistent/wrap"]))
        .unwrap_err();
    assert!(
        error.to_string().contains("its wrap cannot be started"),
        "{error}"
    );
}

#[test]
fn a_stream_without_end_is_cut() {
    let fixture = Fixture::new();
    let script = format!(
        "echo {}; printf 'PACK\\0\\0\\0\\2\\0\\0\\0\\1'; yes",
        "1".repeat(40)
    );
    let limits = PackLimits {
        bytes: 1 << 20,
        ..PackLimits::default()
    };
    let take = |script: &str, patience| {
        replies(&fixture, script).take_within(
            &fixture.repositories,
            &run(),
            &fixture.start,
            limits,
            patience,
        )
    };
    let error = take(&script, Duration::from_secs(60)).unwrap_err();
    assert!(
        matches!(error, NotTaken::TooLarge { .. } | NotTaken::Refused(_)),
        "{error}"
    );
    let silent = format!("echo {}; exec sleep 60", "1".repeat(40));
    let error = take(&silent, Duration::from_secs(1)).unwrap_err();
    assert!(matches!(error, NotTaken::Late), "{error}");
    fixture.assert_nothing_taken();
}

#[test]
fn a_small_pack_that_grows_to_gigabytes_is_refused() {
    let fixture = Fixture::new();
    let pack = fixture.path().join("bomb");
    fs_err::write(&pack, bomb()).unwrap();
    let script = format!("echo {}; cat {}", "1".repeat(40), pack.display());
    let began = Instant::now();
    let error = fixture.take(&replies(&fixture, &script)).unwrap_err();
    assert!(matches!(error, NotTaken::Refused(_)), "{error}");
    assert!(began.elapsed() < Duration::from_secs(60));
    fixture.assert_nothing_taken();
}

/// A pack with a file of 16 MiB and a delta that copies it 200 times.
fn bomb() -> Vec<u8> {
    let script = r"
import struct,zlib,hashlib,sys
def hdr(t,n):
    b=(t<<4)|(n&15); n>>=4; r=bytearray()
    while n: r.append(b|0x80); b=n&0x7f; n>>=7
    r.append(b); return bytes(r)
def vi(n):
    r=bytearray()
    while True:
        b=n&0x7f; n>>=7
        if n: r.append(b|0x80)
        else: r.append(b); return bytes(r)
base=b'\0'*((16<<20)-1); L=len(base); N=200
first=hdr(3,L)+zlib.compress(base,9)
delta=vi(L)+vi(L*N)+bytes([0xf0,L&255,(L>>8)&255,(L>>16)&255])*N
n=len(first); r=[n&0x7f]; n>>=7
while n: n-=1; r.insert(0,0x80|(n&0x7f)); n>>=7
p=b'PACK'+struct.pack('>II',2,2)+first+hdr(6,len(delta))+bytes(r)+zlib.compress(delta,9)
sys.stdout.buffer.write(p+hashlib.sha1(p).digest())";
    let made = Command::new("python3")
        .args(["-c", script])
        .output()
        .unwrap();
    assert!(made.status.success());
    made.stdout
}

#[test]
fn commits_that_are_not_complete_are_refused() {
    let fixture = Fixture::new();
    let place = fixture.made();
    let work = commit(&place.dir, "work", "done");
    let dir = place.dir.display();
    // The commit alone, without its tree and file.
    let script = format!("echo {work}; cd {dir} && echo {work} | git pack-objects --stdout -q");
    let error = fixture.take(&replies(&fixture, &script)).unwrap_err();
    assert!(
        matches!(error, NotTaken::NotWhole(_) | NotTaken::Refused(_)),
        "{error}"
    );
    // A whole pack, and an id that is not a commit.
    let tree = git(&place.dir, &["rev-parse", "HEAD^{tree}"]);
    let script = format!(
        "echo {tree}; cd {dir} && printf '{work}\\n' | git pack-objects --revs --stdout -q"
    );
    let error = fixture.take(&replies(&fixture, &script)).unwrap_err();
    assert!(matches!(error, NotTaken::NotACommit), "{error}");
    fixture.assert_nothing_taken();
}

#[test]
fn trees_that_would_write_into_a_repository_are_refused() {
    let fixture = Fixture::new();
    let place = fixture.made();
    let blob = git(&place.dir, &["rev-parse", "HEAD:README"]);
    let input = format!("100644 blob {blob}\t.git\n");
    let file = fixture.path().join("tree");
    fs_err::write(&file, input).unwrap();
    let script = format!("git mktree < {}", file.display());
    let made = Command::new("sh")
        .args(["-c", &script])
        .current_dir(&place.dir)
        .output()
        .unwrap();
    let tree = String::from_utf8(made.stdout).unwrap();
    let bad = git(&place.dir, &["commit-tree", tree.trim(), "-m", "x"]);
    git(&place.dir, &["update-ref", "HEAD", &bad]);
    let error = fixture.take(&place).unwrap_err();
    assert!(matches!(error, NotTaken::Refused(_)), "{error}");
    fixture.assert_nothing_taken();
}

#[test]
fn only_one_of_two_words_is_an_answer() {
    let fixture = Fixture::new();
    for (script, is_answer) in [
        ("echo yes", true),
        ("echo no", true),
        ("echo yes; exit 1", false),
        ("printf yes", false),
        ("echo maybe", false),
        ("yes yes | head -n 2", false),
    ] {
        let answer = replies(&fixture, script).has_more();
        let found = !matches!(answer, PlaceAnswer::CannotTell(_));
        assert_eq!(found, is_answer, "{script}: {answer:?}");
    }
}

/// Nothing of ours asks a place what it is. A person who is in one may: their own reader of `.git` runs nothing, and
/// waits for no pipe and no end of a file.
#[test]
fn the_reader_of_worktrees_neither_waits_nor_reads_without_end_in_a_place() {
    let big = |file: &str| format!("rm -rf .git/{file}; truncate -s 1T .git/{file}");
    let mut plants: Vec<(String, String)> = ["HEAD", "config", "commondir"]
        .map(|file| (format!("a huge {file}"), big(file)))
        .into();
    let dot_git = "rm -rf .git; mkfifo .git".to_owned();
    plants.push(("a pipe".to_owned(), dot_git));
    plants.push((
        "a huge gitdir file".to_owned(),
        "rm -rf .git; truncate -s 1T .git".to_owned(),
    ));
    let known = super::plants::PIPES.iter();
    plants.extend(known.map(|(name, script)| ((*name).to_owned(), (*script).to_owned())));
    let outside = "[include]\n\tpath = ../../../private/.git/config\n";
    let include = format!("printf '{outside}' >.git/config");
    plants.push(("an include outside".to_owned(), include));
    for (name, script) in plants {
        let fixture = Fixture::new();
        tenure_testkit::scratch_git(
            &fixture.path().join("private"),
            Some("https://private.example.org/a/secret.git"),
        );
        let place = fixture.place(&[]);
        fixture.make(&place);
        let planted = std::process::Command::new("sh")
            .args(["-c", &script])
            .current_dir(&place.dir)
            .status();
        assert!(planted.unwrap().success(), "{name}");
        let began = Instant::now();
        let found = tenure_host::git::worktree(&place.dir);
        let branch = tenure_host::git::branch(&place.dir);
        assert!(began.elapsed() < Duration::from_secs(30), "{name}");
        let text = format!("{found:?} {branch:?}");
        assert!(!text.contains("a/secret"), "{name}: {text}");
    }
}
