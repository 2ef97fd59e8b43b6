//! What tenure says of a world, to be compared with what /proc and the agents' own files say.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tenure_testkit::pinned::{Pinned, Stat};
use tenure_testkit::protocol::Started;
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::{Agent, RecordedRequest, Signal, poll};

pub(super) const LONG: Duration = Duration::from_secs(90);

/// A world in which this agent calls tenure.
#[track_caller]
pub(super) fn hooked(kind: Real) -> RealWorld {
    let world = crate::world();
    world.agent(kind);
    let _installed = world.tenure(&["install", kind.name()]).ok();
    world
}

/// Every session, also those that ended, the newest first.
#[track_caller]
pub(super) fn sessions(world: &RealWorld) -> Vec<Value> {
    let shown = world.tenure(&["ps", "-a", "--json"]).ok().json();
    shown["sessions"].as_array().unwrap().clone()
}

/// The only session that there ever was.
#[track_caller]
pub(super) fn only(world: &RealWorld) -> Value {
    let mut all = sessions(world);
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

/// The session in this conversation now.
#[track_caller]
pub(super) fn in_conversation(world: &RealWorld, id: &str) -> Value {
    let all = sessions(world);
    let mut fitting = all.iter().filter(|session| session["native_id"] == id);
    let found = fitting.next();
    assert!(fitting.next().is_none(), "two are in {id}: {all:#?}");
    found
        .unwrap_or_else(|| panic!("nobody is in {id}: {all:#?}"))
        .clone()
}

/// The session of this process.
#[track_caller]
pub(super) fn of_process(world: &RealWorld, pid: u32) -> Value {
    poll(LONG, "the process is a session", || {
        let all = sessions(world);
        all.into_iter()
            // One that is only starting has not said yet which session it is.
            .filter(|session| session["activity"] != "starting")
            .find(|session| session["process"]["pid"] == pid && session["ended_at"].is_null())
    })
}

/// Asserts that a session's process is this very one.
#[track_caller]
pub(super) fn assert_process(session: &Value, pid: u32) {
    assert_eq!(session["process"]["pid"], pid, "{session:#}");
    assert_eq!(session["process"]["verified"], true, "{session:#}");
    let start = Stat::read(pid).unwrap().start;
    assert_eq!(session["process"]["start_ticks"], start, "{session:#}");
}

/// A file that appears whole, once a tool has written it.
pub(super) struct Left(PathBuf);

impl Left {
    pub(super) fn new(world: &RealWorld, name: &str) -> Self {
        Self(world.scratch().join(name))
    }

    /// In the project, where a sandbox lets a tool write.
    pub(super) fn in_project(world: &RealWorld, name: &str) -> Self {
        Self(world.project().join(name))
    }

    /// A shell command whose output becomes the file.
    pub(super) fn by(&self, command: &str) -> String {
        let file = self.0.display();
        format!("{{ {command}; }} > {file}.new 2>&1; mv {file}.new {file}")
    }

    #[track_caller]
    pub(super) fn text(&self) -> String {
        poll(LONG, &format!("{} is there", self.0.display()), || {
            std::fs::read_to_string(&self.0).ok()
        })
    }

    #[track_caller]
    pub(super) fn json(&self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

/// Who has a key now.
#[track_caller]
pub(super) fn holder(world: &RealWorld, key: &str) -> Value {
    let why = world.tenure(&["why", key, "--json"]);
    why.json()["claim"]["holder"]["handle"].clone()
}

pub(super) fn handle(session: &Value) -> &str {
    session["handle"].as_str().unwrap()
}

/// Kills a process with -9 that the harness did not start itself, and waits until it is gone.
#[track_caller]
pub(super) fn kill9(pid: u32) {
    let start = Stat::read(pid).unwrap().start;
    let process = Pinned::open(Started { pid, start }).unwrap();
    assert!(process.signal(Signal::KILL));
    assert!(process.wait_gone(LONG), "{pid} is still there");
}

/// Whether a process is one of this world's.
pub(super) fn is_at_home(world: &RealWorld, pid: u32) -> bool {
    has_word(pid, "environ", &format!("HOME={}", world.home().display()))
}

/// Processes of this world whose command line has this word.
pub(super) fn called(world: &RealWorld, word: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| has_word(*pid, "cmdline", word) && is_at_home(world, *pid))
        .collect()
}

fn has_word(pid: u32, file: &str, wanted: &str) -> bool {
    let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let mut words = text.split(|byte| *byte == 0);
    words.any(|word| word == wanted.as_bytes())
}

/// A worker that is a session and no real agent.
#[track_caller]
pub(super) fn other(world: &RealWorld) -> Agent {
    let other = world.env().agent("other");
    let pid = other.pid().to_string();
    let _session = other
        .tenure(&["register", "--agent", "other", "--pid", &pid])
        .ok();
    other
}

/// How often this stands in the whole conversation, as the model was last shown it.
#[track_caller]
pub(super) fn times_told(world: &RealWorld, text: &str) -> usize {
    let asked = world.mock().asked();
    let last = asked
        .iter()
        .rfind(|asked| RecordedRequest::offers_tools(asked));
    last.unwrap().body.to_string().matches(text).count()
}
