//! The wraps of the guide, for real: bubblewrap, and another user. `scripts/tools` brings the first, and the second
//! needs root.

use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::time::{Duration, Instant};

use tenure_host::own_repository::PackLimits;

use super::plants::{ELSEWHERE, ORDERS, PIPES};
use super::*;
use crate::places::NotTaken;
use crate::wrap;

/// The user of the second wrap in the guide.
const AGENT: u32 = 64001;

/// The words of a wrap in docs/dispatch.md, by their first one.
fn guide(program: &str) -> Vec<String> {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dispatch.md");
    let text = std::fs::read_to_string(guide).unwrap();
    let begin = format!("wrap = [\n  \"{program}\"");
    let at = text.find(&begin).expect("the guide has this wrap");
    let rest = &text[at..];
    let end = rest.find("\n]").unwrap() + 2;
    let table: toml::Table = toml::from_str(&rest[..end]).unwrap();
    let words = table["wrap"].as_array().unwrap().iter();
    words
        .map(|word| word.as_str().unwrap().to_owned())
        .collect()
}

struct Wrapped {
    fixture: Fixture,
    place: Place,
}

impl Wrapped {
    fn place(fixture: &Fixture, words: &[String], dir: &Path, is_theirs: bool) -> Place {
        let shown = wrap::WrapWords {
            dir,
            socket: &fixture.path().join("no-socket"),
            run: "r-1",
        };
        Place {
            dir: dir.to_owned(),
            wrap: wrap::words(words, &shown),
            home: Some(wrap::home(dir)),
            is_theirs,
        }
    }

    fn bubblewrap() -> Self {
        let fixture = Fixture::new();
        let mut words = guide("bwrap");
        words[0] = std::env::var("TENURE_BWRAP").expect("TENURE_BWRAP is set by scripts/tools");
        let dir = fixture.path().join("state/places/one");
        let place = Self::place(&fixture, &words, &dir, false);
        fixture.make(&place);
        Self { fixture, place }
    }

    fn another_user() -> Self {
        assert!(rustix::process::geteuid().is_root(), "this needs root");
        let fixture = Fixture::new();
        let passable = std::fs::Permissions::from_mode(0o711);
        fs_err::set_permissions(fixture.path(), passable).unwrap();
        let places = fixture.path().join("agent");
        fs_err::create_dir(&places).unwrap();
        fs_err::set_permissions(&places, PermissionsExt::from_mode(0o700)).unwrap();
        chown(&places, Some(AGENT), Some(AGENT)).unwrap();
        let dir = places.join("web/one");
        let place = Self::place(&fixture, &guide("setpriv"), &dir, true);
        fixture.make(&place);
        Self { fixture, place }
    }

    /// Runs a script inside, in the place.
    fn inside(&self, script: &str, arguments: &[&str]) -> PlaceAnswer {
        let script = format!("cd \"$1\" || exit 1\n{{ {script}\n}} >&2\ncd /; echo yes");
        self.place.ask(&script, arguments)
    }

    fn commits(&self) {
        let script = "echo done > work; git add work; \
             git -c user.name=a -c user.email=a@example.invalid commit -q -m work";
        assert_eq!(self.inside(script, &[]), PlaceAnswer::Yes);
    }

    fn take(&self) -> Result<PlaceContent, NotTaken> {
        let fixture = &self.fixture;
        self.place.take_within(
            &fixture.repositories,
            &run(),
            &fixture.start,
            PackLimits::default(),
            Duration::from_secs(5),
        )
    }
}

fn round(wrapped: &Wrapped) {
    let Wrapped { fixture, place } = wrapped;
    assert_eq!(place.has_more(), PlaceAnswer::No);
    wrapped.commits();
    assert!(matches!(wrapped.take().unwrap(), PlaceContent::Commit(_)));
    let secret = fixture.path().join("state/secret");
    fs_err::write(&secret, "s").unwrap();
    fs_err::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
    let secret = secret.to_str().unwrap();
    let reads = "if cat \"$2\" >/dev/null 2>&1; then echo yes; else echo no; fi";
    assert_eq!(place.ask(reads, &[secret]), PlaceAnswer::No);
    let canary = fixture.path().join("state/canary");
    wrapped.inside("touch \"$2\"; true", &[canary.to_str().unwrap()]);
    assert!(!canary.exists());
    place.remove_with_home().unwrap();
    if !place.is_theirs {
        assert!(!place.dir.exists() && !wrap::home(&place.dir).exists());
    }
    // It can be made again at the same path.
    fixture.make(place);
}

#[test]
#[ignore = "needs bubblewrap: scripts/test --stage wraps"]
fn the_guides_bubblewrap_does_the_whole_round_and_shows_nothing_else() {
    let wrapped = Wrapped::bubblewrap();
    round(&wrapped);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let connects =
        "if bash -c \"exec 3<>/dev/tcp/127.0.0.1/$2\" 2>/dev/null; then echo yes; else echo no; fi";
    assert_eq!(wrapped.place.ask(connects, &[&port]), PlaceAnswer::No);
}

#[test]
#[ignore = "needs root: scripts/test --stage wraps"]
fn the_guides_other_user_does_the_whole_round_in_a_directory_that_only_it_can_enter() {
    let wrapped = Wrapped::another_user();
    round(&wrapped);
    let owner = std::os::unix::fs::MetadataExt::uid(&fs_err::metadata(&wrapped.place.dir).unwrap());
    assert_eq!(owner, AGENT);
}

/// Every plant is made by code in the wrap; then everything that the dispatcher does with a place is done.
#[test]
#[ignore = "needs bubblewrap: scripts/test --stage wraps"]
fn nothing_that_code_in_bubblewrap_plants_runs_leaks_calls_or_hangs() {
    let elsewhere = ELSEWHERE.iter().map(|plant| (plant, false));
    let orders = ORDERS.iter().map(|plant| (plant, true));
    for ((name, script), gives) in elsewhere.chain(orders) {
        let wrapped = Wrapped::bubblewrap();
        let fixture = &wrapped.fixture;
        let private = fixture.path().join("private");
        tenure_testkit::scratch_git(&private, None);
        let head = commit(&private, "secret", "the secret");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        wrapped.commits();
        let canary = fixture.path().join("canary");
        let program = wrapped.place.dir.join(".git/trace");
        let (program, canary_name) = (program.to_str().unwrap(), canary.to_str().unwrap());
        let trace = format!(
            "printf '#!/bin/sh\\ntouch {canary_name}\\nexec cat\\n' > \"$4\"; chmod +x \"$4\"; mkdir -p .git/hooks; {script}"
        );
        let arguments = [private.to_str().unwrap(), head.as_str(), program, &port];
        let planted = wrapped.inside(&trace, &arguments);
        assert_eq!(planted, PlaceAnswer::Yes, "{name}");
        let began = Instant::now();
        let taken = wrapped.take();
        assert_eq!(taken.is_ok(), gives, "{name}: {taken:?}");
        wrapped.place.has_more();
        let url = fixture.forge().to_str().unwrap().to_owned();
        let from = RemoteSource {
            url: &url,
            settings: &[],
        };
        let locks = LockDir::open(&fixture.path().join("locks")).unwrap();
        fixture.repositories.fetch(from, None, &locks).unwrap();
        wrapped.place.remove().unwrap();
        assert!(began.elapsed() < Duration::from_secs(60), "{name}");
        assert!(!canary.exists(), "{name}: a program ran outside");
        assert!(listener.accept().is_err(), "{name}: something called");
        let leaked = fixture.repositories.results().commit(head.as_str());
        assert_eq!(leaked.unwrap(), None, "{name}");
    }
}

#[test]
#[ignore = "needs bubblewrap: scripts/test --stage wraps"]
fn a_pipe_that_code_in_bubblewrap_leaves_hangs_nothing_of_ours() {
    for (name, script) in PIPES {
        let wrapped = Wrapped::bubblewrap();
        wrapped.commits();
        assert_eq!(wrapped.inside(script, &[]), PlaceAnswer::Yes, "{name}");
        let began = Instant::now();
        if let Err(error) = wrapped.take() {
            let expected = matches!(error, NotTaken::Late | NotTaken::NoCommit(_));
            assert!(expected, "{name}: {error}");
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{name}");
        wrapped.place.remove().unwrap();
    }
}
