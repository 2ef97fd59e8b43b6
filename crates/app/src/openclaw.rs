//! OpenClaw's state directory, seen from outside: what is wrong with its sessions and locks, and repairing it.
//!
//! Read only, unless a repair is asked for. A repair changes a database in one transaction, after a copy to the state
//! directory, and only if its rows are exactly as an intrusion leaves them; it removes a lock only while it holds the
//! kernel lock that protects it. The gateway may run meanwhile. *Crash*: a copy may be left that was not needed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tenure_agents::KEY_SCHEME;
use tenure_core::id::AgentName;
use tenure_core::ignore::Ignore;
use tenure_core::import::{ImportEntry, NotTaken, openclaw as older};
use tenure_core::key::Key;
use tenure_core::openclaw::{
    ConversationFault, FaultKind, Intrusion, QUERY, SessionRow, faults, records_query, survey,
};
use tenure_core::transcript::{Survey, TranscriptLayout};
use tenure_host::env::var as env;
use tenure_host::{file, read, transcript_files};
use tenure_service::Derivation;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_store::sqlite::foreign;
use tenure_store::sqlite::foreign_repair::{self, TwoKeys};

use crate::open::Context;

/// No list of sessions is longer.
const MAX_LENGTH: u64 = 64 << 20;
/// As many copies of databases are kept.
const MAX_COPIES: usize = 5;
/// The folder of the copies, in the state directory.
const COPIES: &str = "openclaw-copies";

/// Where its databases are.
const AGENTS: TranscriptLayout = TranscriptLayout {
    variable: Some("OPENCLAW_STATE_DIR"),
    home: ".openclaw",
    folder: "agents",
    depth: 2,
    name: "ID",
    new_file: None,
    empty_is_absent: false,
};

/// What to repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repairs {
    Nothing,
    /// Ids that another key took over, unless the user does not want that.
    Ids,
    /// Also locks that no process holds.
    Everything,
}

/// Something that is wrong, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct OpenclawFault {
    pub kind: FaultKind,
    /// The session key.
    pub key: Option<String>,
    /// The session id.
    pub id: Option<String>,
    pub file: String,
    pub what: String,
    pub fixed: bool,
    /// Why it was not repaired, although that was asked for.
    pub problem: Option<String>,
    /// The copy of the database from before the repair.
    pub copy: Option<String>,
}

/// OpenClaw's state directory here, if there is one.
pub fn dir_here() -> Option<PathBuf> {
    let agents = transcript_files::root(&AGENTS, &env)?;
    let dir = agents.parent()?.to_owned();
    agents.is_dir().then_some(dir)
}

/// Checks a state directory of OpenClaw's.
pub fn verify(
    context: &mut Context,
    dir: &Path,
    repairs: Repairs,
) -> Result<Vec<OpenclawFault>, Problem> {
    let repairs = match repairs {
        Repairs::Ids if !context.settings.openclaw_heal => Repairs::Nothing,
        asked => asked,
    };
    let agent = AgentName::known("openclaw");
    let owners = context.service().owners(&agent)?.value;
    let owners: BTreeMap<String, String> = owners
        .into_iter()
        .filter_map(|(id, item)| {
            let key = item.as_str().strip_prefix(KEY_SCHEME)?;
            Some((id.to_string(), key.to_owned()))
        })
        .collect();
    let mut found = Vec::new();
    for agent in below(&dir.join("agents")) {
        let database = agent.join("agent/openclaw-agent.sqlite");
        if database.is_file() {
            found.extend(of_database(context, &database, &owners, repairs)?);
        }
        let older = agent.join("sessions/sessions.json");
        if older.is_file() {
            found.extend(of_older(&older));
        }
    }
    found.extend(locks(&dir.join("tmp"), repairs == Repairs::Everything));
    Ok(found)
}

/// The database that has a session's records, and what is wrong with them; none for other agents, and if none has any.
pub fn survey_session(derivation: &Derivation) -> Result<Option<(PathBuf, Survey)>, Problem> {
    let Some(agents) = transcript_files::root(&AGENTS, &env)
        .filter(|_| derivation.agent == AgentName::known("openclaw"))
    else {
        return Ok(None);
    };
    let id = &derivation.native_id;
    for agent in below(&agents) {
        let database = agent.join("agent/openclaw-agent.sqlite");
        if !database.is_file() {
            continue;
        }
        let rows = foreign::rows(&database, &records_query(id)).map_err(|why| {
            let message = format!("cannot read {}: {why}", database.display());
            let hint = Hint::step("check what is there; nothing was changed");
            Problem::new(Class::NotFound, "not_found", message, hint)
        })?;
        let records: Vec<Option<String>> = rows.into_iter().map(|mut row| row.remove(0)).collect();
        if !records.is_empty() {
            return Ok(Some((database, survey(id, &records))));
        }
    }
    Ok(None)
}

fn below(dir: &Path) -> Vec<PathBuf> {
    let Ok(listed) = fs_err::read_dir(dir) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = listed.flatten().map(|one| one.path()).collect();
    paths.sort();
    paths
}

fn plain(kind: FaultKind, file: &Path, what: String) -> OpenclawFault {
    OpenclawFault {
        kind,
        key: None,
        id: None,
        file: file.display().to_string(),
        what,
        fixed: false,
        problem: None,
        copy: None,
    }
}

fn of_database(
    context: &mut Context,
    database: &Path,
    owners: &BTreeMap<String, String>,
    repairs: Repairs,
) -> Result<Vec<OpenclawFault>, Problem> {
    let rows = match foreign::rows(database, QUERY) {
        Ok(rows) => rows,
        Err(why) => return Ok(vec![plain(FaultKind::Unreadable, database, why)]),
    };
    let rows: Vec<SessionRow> = rows
        .iter()
        .filter_map(|row| SessionRow::read(row))
        .collect();
    let mut shown = Vec::new();
    for ConversationFault {
        kind,
        key,
        id,
        what,
        repair,
    } in faults(&rows, owners)
    {
        let mut view = OpenclawFault {
            key: Some(key),
            id: Some(id),
            ..plain(kind, database, what)
        };
        if repairs != Repairs::Nothing && kind == FaultKind::ForeignId {
            match &repair {
                Some(intrusion) => give_back(context, database, intrusion, &mut view)?,
                None => {
                    view.problem = Some(
                        "its rows are not as an intrusion leaves them, or tenure recorded no owner"
                            .to_owned(),
                    );
                }
            }
        }
        shown.push(view);
    }
    Ok(shown)
}

/// Copies the database, gives an id back and logs it.
fn give_back(
    context: &mut Context,
    database: &Path,
    intrusion: &Intrusion,
    view: &mut OpenclawFault,
) -> Result<(), Problem> {
    let copies = context.dir().join(COPIES);
    let copy = copies.join(format!("{:020}.sqlite", tenure_host::clock::wall().0));
    let made = file::make_dirs(&copies).map_err(|error| error.to_string());
    let done = made
        .and_then(|()| foreign_repair::copy(database, &copy))
        .and_then(|()| {
            let two = TwoKeys {
                id: &intrusion.id,
                owner: &intrusion.owner,
                intruder: &intrusion.intruder,
            };
            foreign_repair::give_back(database, two)
        });
    match done {
        Ok(true) => {
            view.fixed = true;
            view.copy = Some(copy.display().to_string());
            let evidence = format!(
                "openclaw: {} is the conversation of {KEY_SCHEME}{} alone again (copy from before: {})",
                intrusion.id,
                intrusion.owner,
                copy.display()
            );
            let key = |key: &str| Key::parse(&format!("{KEY_SCHEME}{key}"));
            if let (Ok(owner), Ok(intruder)) = (key(&intrusion.owner), key(&intrusion.intruder)) {
                context.service().log_repair(&owner, &intruder, &evidence)?;
            }
        }
        Ok(false) => view.problem = Some("its rows changed meanwhile".to_owned()),
        Err(why) => view.problem = Some(why),
    }
    let mut old = below(&copies);
    old.truncate(old.len().saturating_sub(MAX_COPIES));
    for one in old {
        fs_err::remove_file(&one).ignore("the next repair removes it");
    }
    Ok(())
}

/// The entries of a list of older versions that cannot be its keys' own.
fn of_older(list: &Path) -> Vec<OpenclawFault> {
    let text = read::text(list, MAX_LENGTH).map_err(|error| error.to_string());
    let name = list.display().to_string();
    match text.and_then(|text| older::sessions_json(&text, &name)) {
        Err(why) => vec![plain(FaultKind::Unreadable, list, why)],
        Ok(entries) => entries
            .into_iter()
            .filter_map(|ImportEntry { name, content, .. }| match content {
                Err(NotTaken::Refused(what)) => Some(OpenclawFault {
                    key: Some(name),
                    ..plain(FaultKind::ForeignId, list, what)
                }),
                _ => None,
            })
            .collect(),
    }
}

/// Directories of a reclaimer that was killed. Each keeps the gateway from starting until someone removes it.
fn locks(tmp: &Path, repairs: bool) -> Vec<OpenclawFault> {
    const RECLAIM: &str = ".lock.reclaim";
    let mut found = Vec::new();
    for path in below(tmp).iter().flat_map(|dir| below(dir)) {
        let name = path.to_string_lossy();
        let Some(lock) = name.strip_suffix(RECLAIM).filter(|_| path.is_dir()) else {
            continue;
        };
        let sidecar = PathBuf::from(format!("{lock}.lock.sqlite"));
        let remove = || repairs.then(|| fs_err::remove_dir(&path));
        let removed = if sidecar.exists() {
            match foreign_repair::if_unlocked(&sidecar, remove) {
                Some(removed) => removed,
                // A gateway is taking it over.
                None => continue,
            }
        } else {
            remove()
        };
        let what = "no process holds this lock, and the gateway does not start while it is there";
        found.push(OpenclawFault {
            fixed: matches!(removed, Some(Ok(()))),
            problem: removed.and_then(|done| Some(done.err()?.to_string())),
            ..plain(FaultKind::OrphanedLock, &path, what.to_owned())
        });
    }
    found
}
