//! The records of a chaos run: one JSON object per line, one file per process.
//!
//! A worker writes each call before it makes it and each answer after that, with one write call
//! each. So a kill leaves at most one call without an answer, and perhaps a torn last line, which
//! is skipped. Times are nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What a failing disk noted; that it is there says that the disk failed.
pub const JOURNAL: &str = "disk.journal";
/// The variable in which a worker finds that the disk may fail.
pub const FAULTS_VARIABLE: &str = "TENURE_FAULTS_DIR";

/// Nanoseconds of the clock that all processes share.
pub fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}

/// A worker's request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub enum Op {
    /// Register as a session, in a conversation.
    Register {
        native: String,
    },
    End,
    Renew,
    Claim(Claim),
    /// Release a key.
    Release {
        key: String,
        /// The epoch that it names.
        epoch: Option<u64>,
        done: bool,
    },
    /// Hand a key off to another session.
    Handoff {
        key: String,
        to: String,
        /// The epoch that it names.
        epoch: Option<u64>,
    },
    /// Take over a key from its holder.
    Takeover {
        key: String,
        /// Only from this session.
        from: Option<String>,
        /// Only with this epoch.
        epoch: Option<u64>,
    },
    Guard {
        key: String,
        /// The epoch that it names.
        epoch: Option<u64>,
    },
    /// The same, asked of what the host remembers, as a caller does that the store does not answer.
    Recall {
        key: String,
        /// The epoch that it names.
        epoch: Option<u64>,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The keys, in the order in which they were named.
    pub keys: Vec<String>,
    /// The first free one, or else all of them.
    pub any: bool,
    /// The worker's own id for the request.
    pub request: Option<String>,
    /// Refuse what it already holds.
    pub once: bool,
    /// Claim an item that is done.
    pub reopen: bool,
    /// How many milliseconds it waits in line.
    pub wait: Option<u64>,
    /// Refuse while a dead holder's processes still run.
    #[serde(default)]
    pub quiet: bool,
}

/// The answer to a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum CallAnswer {
    Registered {
        session: String,
        /// Which life of that session it is.
        life: u32,
        word: String,
        /// What it was granted again.
        regranted: Vec<(String, u64)>,
    },
    Granted {
        grants: Vec<Grant>,
    },
    /// Yes, or done.
    Yes {
        /// The epoch of the key that the answer is about, if any.
        epoch: Option<u64>,
        /// Who holds that key now.
        holder: Option<String>,
    },
    Refused(RefusalRecord),
}

/// A key that a worker has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub key: String,
    pub epoch: u64,
    /// The holder named in the answer.
    pub holder: Option<String>,
    /// Whether it held the key before.
    pub already_held: bool,
    /// The previous holder, and its epoch.
    pub taken_from: Option<(String, u64)>,
    /// Other holds that were taken from the same holder, with their epochs.
    #[serde(default)]
    pub also_ended: Vec<(String, u64)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalRecord {
    /// The kind of the error; of the first one if none of several keys was free.
    pub kind: String,
    /// Whether the error is that none of several keys was free.
    pub none_free: bool,
    /// The requested key that was refused.
    pub key: Option<String>,
    /// The key in the way, if it is a different one.
    pub rival: Option<String>,
    /// The holder of the key in the way.
    pub holder: Option<String>,
    /// The epoch of the key in the way.
    pub epoch: Option<u64>,
    pub text: String,
}

/// A line of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum RecordLine {
    Asked {
        at: u64,
        /// The number of the call.
        call: u64,
        /// Its session, if it has one.
        session: Option<String>,
        op: Op,
    },
    Answered {
        at: u64,
        /// The number of the call.
        call: u64,
        answer: CallAnswer,
    },
    /// It starts a process that continues when it is killed.
    Sends {
        at: u64,
        /// The name of that process, whose log shows when it ran.
        name: String,
    },
    /// It makes no more calls, and exits.
    Leaves { at: u64 },
}

/// A line of a process that a worker left running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Stay {
    Begins {
        at: u64,
    },
    /// It is about to exit.
    Ends {
        at: u64,
    },
}

/// A line of the nemesis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Deed {
    Started {
        at: u64,
        worker: String,
        /// Its pid in its own namespace.
        pid: u32,
        /// The tick at which it started.
        #[serde(default)]
        start: u64,
        /// The host that it runs on, if there are several.
        #[serde(default)]
        host: Option<String>,
    },
    /// A worker is about to be killed.
    Kills { at: u64, worker: String },
    /// A worker is gone and reaped.
    Gone {
        at: u64,
        worker: String,
        /// How it ended, if not as expected.
        trouble: Option<String>,
    },
    /// A worker was stopped for this many milliseconds.
    Stopped {
        at: u64,
        worker: String,
        millis: u64,
    },
}

/// A line about something that kept the store, or a keeper, from answering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbance {
    pub from: u64,
    pub until: u64,
    /// The only host that it concerns, if so.
    pub host: Option<String>,
    /// Whether the keeper there was harmed, and nothing else.
    pub is_keeper: bool,
}

/// A file to which lines are appended.
#[derive(Debug)]
pub struct Log(File);

impl Log {
    /// Opens a log; creates it if missing.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self(file))
    }

    /// Appends a line with one write call.
    pub fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.0.write_all(&bytes)
    }
}

/// Reads a log; a torn last line is skipped.
pub fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Vec<T>> {
    let text = std::fs::read_to_string(path)?;
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole.lines().map(serde_json::from_str);
    Ok(lines.collect::<Result<Vec<T>, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_a_torn_line_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = Log::open(&path).unwrap();
        let asked = RecordLine::Asked {
            at: monotonic(),
            call: 1,
            session: None,
            op: Op::Claim(Claim {
                keys: vec!["wp:1".into()],
                wait: Some(5),
                ..Claim::default()
            }),
        };
        let answered = RecordLine::Answered {
            at: monotonic(),
            call: 1,
            answer: CallAnswer::Refused(RefusalRecord {
                kind: "held".into(),
                ..RefusalRecord::default()
            }),
        };
        log.write(&asked).unwrap();
        log.write(&answered).unwrap();
        log.0.write_all(b"{\"line\":\"leaves\",\"a").unwrap();
        assert_eq!(read::<RecordLine>(&path).unwrap(), [asked, answered]);
    }
}
