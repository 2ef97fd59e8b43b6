//! The truth about an agent: whether its process runs, by /proc, and what the agent's own files say.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_testkit::pinned::Stat;
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::tui::Doing;

use super::seen::own_word;

/// What became of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Truth {
    Live(Doing),
    Left,
    CutOff,
}

/// The pid of a session's process, where that very process runs.
pub(super) fn running(session: &Value) -> Option<u32> {
    let process = &session["process"];
    let pid = u32::try_from(process["pid"].as_u64()?).ok()?;
    let stat = Stat::read(pid).filter(|stat| stat.state != 'Z')?;
    (process["start_ticks"] == stat.start).then_some(pid)
}

/// Where the agent's own files say something else than this session: its conversation is not there, or it does
/// something else. A conversation without a prompt is in no file yet.
pub(super) fn denied(
    world: &RealWorld,
    kind: Real,
    session: &Value,
    truth: Truth,
    talked: bool,
) -> Vec<String> {
    let (name, id) = (kind.name(), session["native_id"].as_str().unwrap_or("none"));
    let mut denied = Vec::new();
    if talked && !has_conversation(world, kind, id) {
        denied.push(format!("{name}: its files have no conversation {id}"));
    }
    let Truth::Live(doing) = truth else {
        return denied;
    };
    if let Some(pid) = running(session) {
        let registered = registered(world, kind, pid);
        if registered.as_ref().is_some_and(|its| its != id) {
            denied.push(format!("{name}: is in {registered:?}, not in {id}"));
        }
        let word = own_word(world, kind, pid);
        if word.as_ref().is_some_and(|word| *word != doing.to_string()) {
            denied.push(format!("{name}: is {doing}, its registry says {word:?}"));
        }
    }
    if let Some(in_turn) = in_turn(world, kind, id)
        && in_turn == (doing == Doing::Idle)
    {
        denied.push(format!(
            "{name}: is {doing}, in a turn by its file: {in_turn}"
        ));
    }
    denied
}

/// Whether the agent keeps a conversation, and could go on with it.
fn has_conversation(world: &RealWorld, kind: Real, id: &str) -> bool {
    let home = world.home();
    let has = |dir: &str, ending: String| {
        let mut files = Vec::new();
        add_files(&home.join(dir), &mut files);
        let name = |file: &PathBuf| file.file_name()?.to_str().map(str::to_owned);
        let mut names = files.iter().filter_map(name);
        names.any(|name| name.ends_with(&ending))
    };
    match kind {
        Real::Claude | Real::ClaudeOld => has(".claude/projects", format!("{id}.jsonl")),
        Real::Codex => codex_file(world, id).is_some(),
        Real::Gemini => has(
            ".gemini/tmp",
            format!("-{}.jsonl", id.get(..8).unwrap_or(id)),
        ),
        Real::Opencode => opencode_knows(&home.join(".local/share/opencode/opencode.db"), id),
        Real::Qwen => has(".qwen/projects", format!("{id}.jsonl")),
    }
}

fn opencode_knows(database: &Path, id: &str) -> bool {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let Ok(store) = rusqlite::Connection::open_with_flags(database, flags) else {
        return false;
    };
    let count = "select count(*) from session where id = ?1";
    store
        .query_row(count, [id], |row| row.get(0))
        .is_ok_and(|found: i64| found == 1)
}

fn codex_file(world: &RealWorld, id: &str) -> Option<PathBuf> {
    let mut files = Vec::new();
    add_files(&world.home().join(".codex/sessions"), &mut files);
    let ending = format!("-{id}.jsonl");
    files
        .into_iter()
        .find(|file| file.to_str().is_some_and(|file| file.ends_with(&ending)))
}

/// Which conversation a process is in, by the agent's registry.
fn registered(world: &RealWorld, kind: Real, pid: u32) -> Option<String> {
    if kind != Real::Claude {
        return None;
    }
    let file = world.home().join(format!(".claude/sessions/{pid}.json"));
    let entry: Value = serde_json::from_str(&std::fs::read_to_string(file).ok()?).ok()?;
    entry["sessionId"].as_str().map(str::to_owned)
}

/// Whether a turn runs, by the records of the conversation, where an agent writes its beginning and its end.
fn in_turn(world: &RealWorld, kind: Real, id: &str) -> Option<bool> {
    if kind != Real::Codex {
        return None;
    }
    let text = std::fs::read_to_string(codex_file(world, id)?).ok()?;
    let kind = |line: &str| {
        let record: Value = serde_json::from_str(line).ok()?;
        match record["payload"]["type"].as_str()? {
            "task_started" => Some(true),
            "task_complete" | "turn_aborted" => Some(false),
            _ => None,
        }
    };
    text.lines().rev().find_map(kind)
}

fn add_files(dir: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    for entry in entries {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => add_files(&entry.path(), files),
            Ok(_) => files.push(entry.path()),
            Err(_) => {}
        }
    }
}
