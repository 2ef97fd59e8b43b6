//! An agent's own registry of live processes: the conversation and the activity of each process.
//!
//! A registry is a folder with a file per process. A file counts only if it names exactly this
//! process, by pid and start: files survive a kill, and pids are reused. An agent may have been
//! started with another home than its caller's, so the folder is taken from the process's own
//! environment, if that can be read.
//!
//! *Crash*: the file of a dead process is never read. A file that is being written gives no answer
//! until it is complete. *Older version*: what its files omit is unknown.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_agents::{Adapter, Registry, Says};
use tenure_core::id::NativeId;
use tenure_core::process::Process;
use tenure_core::session::Doing;
use tenure_core::text;
use tenure_core::time::Timestamp;
use tenure_core::witness::{OwnReport, Subject};
use tenure_host::env::{self, Environment};
use tenure_host::read;

/// The longest entry of a registry.
const MAX_LENGTH: u64 = 1 << 20;
/// The longest question or title, in characters.
const MAX_LINE: usize = 120;
/// The name of the source for people.
const SOURCE: &str = "its own registry";

/// The entry of a process in its agent's registry.
#[derive(Debug)]
pub struct RegistryEntry {
    pub native_id: Option<NativeId>,
    pub doing: Option<Doing>,
    asks: Option<String>,
    pub(super) title: Option<String>,
    at: Option<Timestamp>,
}

/// What the agent itself reports about this process, if it has a registry.
pub(super) fn own_word(subject: &Subject) -> Option<OwnReport> {
    let adapter = tenure_agents::adapter(subject.agent.as_str())?;
    let entry = entry_of(adapter, &subject.process)?;
    // A version that does not report its activity may not report the past either.
    let tells: &[Doing] = match entry.doing {
        Some(_) => &[Doing::Busy, Doing::Waiting, Doing::Idle],
        None => &[],
    };
    Some(OwnReport {
        doing: entry.doing,
        asks: entry.asks,
        title: entry.title,
        at: entry.at?,
        ..OwnReport::empty(SOURCE, tells)
    })
}

/// The entry in the registry of the process's own home.
pub fn entry_of(adapter: &Adapter, process: &Process) -> Option<RegistryEntry> {
    let registry = adapter.registry?;
    read_entry(&registry, &folder(&registry, process)?, process)
}

/// The entry in the registry of the caller's home: enough for a caller below the agent, which
/// inherited the agent's environment.
pub fn entry_here(adapter: &Adapter, process: &Process) -> Option<RegistryEntry> {
    let registry = adapter.registry?;
    let home = own_dir(&registry, |name| {
        env::var(name).filter(|value| !value.is_empty())
    })?;
    read_entry(&registry, &home.join(registry.folder), process)
}

/// The folder whose files change when this process's activity does.
pub fn folder_of(agent: &str, process: &Process) -> Option<PathBuf> {
    let registry = tenure_agents::adapter(agent)?.registry?;
    folder(&registry, process)
}

fn folder(registry: &Registry, process: &Process) -> Option<PathBuf> {
    let theirs = Environment::of(process.pid)
        .and_then(|environment| own_dir(registry, |name| environment.var(name)));
    let here = || {
        own_dir(registry, |name| {
            env::var(name).filter(|value| !value.is_empty())
        })
    };
    let dir = theirs.filter(|dir| dir.is_absolute()).or_else(here)?;
    Some(dir.join(registry.folder))
}

/// The agent's own directory, from these variables.
fn own_dir(
    registry: &Registry,
    var: impl Fn(&str) -> Option<std::ffi::OsString>,
) -> Option<PathBuf> {
    match var(registry.variable) {
        Some(dir) => Some(PathBuf::from(dir)),
        None => Some(PathBuf::from(var("HOME")?).join(registry.home)),
    }
}

/// The text of the entry that names exactly this process.
pub(crate) fn text_of(adapter: &Adapter, process: &Process) -> Option<String> {
    let registry = adapter.registry?;
    read_text(&registry, &folder(&registry, process)?, process)
}

/// A file in the agent's own directory, in the caller's home.
pub(crate) fn own_file(adapter: &Adapter, name: &str) -> Option<String> {
    let registry = adapter.registry?;
    let var = |name: &str| env::var(name).filter(|value| !value.is_empty());
    read::text(&own_dir(&registry, var)?.join(name), MAX_LENGTH).ok()
}

fn read_text(registry: &Registry, folder: &Path, process: &Process) -> Option<String> {
    let file = folder.join(format!("{}.json", process.pid));
    let text = read::text(&file, MAX_LENGTH).ok()?;
    (registry.names)(&text, process).then_some(text)
}

fn read_entry(registry: &Registry, folder: &Path, process: &Process) -> Option<RegistryEntry> {
    let text = read_text(registry, folder, process)?;
    let fields: Value = serde_json::from_str(&text).ok()?;
    let id = fields[registry.conversation].as_str();
    let says = &registry.says;
    Some(RegistryEntry {
        native_id: id.and_then(|id| NativeId::parse(id).ok()),
        doing: doing(says, &fields),
        asks: line(&fields[says.asks]),
        title: title(says, &fields),
        at: since(says, &fields),
    })
}

fn doing(says: &Says, fields: &Value) -> Option<Doing> {
    let status = fields[says.status].as_str()?;
    let mut known = says.states.iter().filter(|(word, _)| *word == status);
    known.next().map(|(_, doing)| *doing)
}

fn since(says: &Says, fields: &Value) -> Option<Timestamp> {
    let mut times = says.since.iter().filter_map(|name| fields[*name].as_i64());
    times.next().map(Timestamp)
}

/// Its title, unless the agent generated the name.
fn title(says: &Says, fields: &Value) -> Option<String> {
    let source = fields[says.title_source].as_str()?;
    says.titles
        .contains(&source)
        .then(|| line(&fields[says.title]))?
}

fn line(field: &Value) -> Option<String> {
    let words = field.as_str()?.trim();
    (!words.is_empty()).then(|| text::clipped(&text::line(words), MAX_LINE))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenure_core::id::HostId;
    use tenure_core::process::{BootId, StartTicks};

    use super::*;

    fn process(pid: u32, ticks: u64) -> Process {
        Process {
            host: HostId::new("host"),
            boot: BootId {
                id: "boot".into(),
                private: false,
            },
            pid_ns: 1,
            pid,
            start: StartTicks {
                ticks,
                shifted: false,
            },
        }
    }

    fn entry(fields: &Value, process: &Process) -> Option<RegistryEntry> {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(format!("{}.json", process.pid));
        fs_err::write(file, fields.to_string()).unwrap();
        let registry = tenure_agents::adapter("claude").unwrap().registry.unwrap();
        read_entry(&registry, home.path(), process)
    }

    #[test]
    fn an_entry_tells_what_the_process_does() {
        let whole = json!({"pid": 7, "procStart": "90", "sessionId": "c-1", "status": "waiting",
            "waitingFor": "input\nneeded", "statusUpdatedAt": 5, "updatedAt": 9,
            "name": "fix login", "nameSource": "user"});
        let found = entry(&whole, &process(7, 90)).unwrap();
        assert_eq!(found.doing, Some(Doing::Waiting));
        assert_eq!(found.asks.as_deref(), Some("input\\nneeded"));
        assert_eq!(found.title.as_deref(), Some("fix login"));
        assert_eq!(found.at, Some(Timestamp(5)));
        assert_eq!(found.native_id.unwrap().as_str(), "c-1");
        assert!(entry(&whole, &process(7, 91)).is_none(), "another start");
    }

    #[test]
    fn what_an_entry_leaves_out_is_not_known() {
        let old = json!({"pid": 7, "procStart": "90", "sessionId": "c-1", "name": "web-a7",
            "nameSource": "derived", "status": "dreaming", "updatedAt": 9});
        let found = entry(&old, &process(7, 90)).unwrap();
        assert_eq!((found.doing, found.title, found.asks), (None, None, None));
        assert_eq!(found.at, Some(Timestamp(9)));
    }
}
