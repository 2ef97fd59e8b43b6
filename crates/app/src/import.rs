//! Reading what other systems kept on this machine, and taking it over.
//!
//! A file that cannot be read is an entry that was refused: what can be read is. A path that is not what it is said to
//! be is an error, and nothing changes. Files are read whole, at most 64 MiB each; nothing of the other system is
//! written. *Crash*: the store has all of an import or nothing of it; tokens are written after that, and a second import
//! does not write them again.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tenure_core::conversation::Home;
use tenure_core::conversation::fitness::Existence;
use tenure_core::import::{
    Format, ImportEntry, NotTaken, PastConversation, Record, claude_hooks, ehg, openclaw, pact,
    spec_kitty,
};
use tenure_core::time::Timestamp;
use tenure_core::transcript::layout_of;
use tenure_core::witness::StoredConversation;
use tenure_host::env::var;
use tenure_host::{cwd, read};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::view::ImportView;
use tenure_service::{Answer, ImportRequest};
use tenure_store::sqlite::foreign;

use crate::conversation::home;
use crate::location::argued_place;
use crate::mission_token;
use crate::open::Context;
use crate::server_store;
use crate::store_place::StorePlace;
use crate::witness::kept;

/// The longest file.
const MAX_LENGTH: u64 = 64 << 20;

/// Reads what another system kept and, if asked to, takes it over.
pub fn import(
    context: &mut Context,
    format: Format,
    path: &str,
    apply: bool,
) -> Result<Answer<ImportView>, Problem> {
    let mut entries = match format {
        Format::Ehg if tenure_store::server::PostgresUrl::is_one(path) => of_server(path)?,
        _ => of_path(format, Path::new(path))?,
    };
    for entry in &mut entries {
        if let Ok(Record::Conversation(one)) = &mut entry.content {
            match home_of(context, one, format, Path::new(path)) {
                Ok(home) => one.home = Some(home),
                Err(why) => entry.content = NotTaken::refused(why),
            }
        }
    }
    refuse_absent(&mut entries);
    let request = ImportRequest {
        format,
        source: shown(path),
        entries,
        apply,
    };
    let here = context.here();
    let answer = context.service().import(&here, &request)?;
    let state = context.dir().to_owned();
    for (session, mission, token) in &answer.value.tokens {
        mission_token::set(&state, session, mission, token).map_err(|error| {
            let message = format!("everything was taken but the token of {mission}: {error}");
            let hint = Hint::run("mission", ["set", "token"], "to store it");
            Problem::new(Class::Store, "store_unavailable", message, hint)
        })?;
    }
    Ok(Answer {
        value: answer.value.report,
        notices: answer.notices,
        damaged: answer.damaged,
    })
}

/// A source as the log shows it: an absolute path, or a URL without its password.
fn shown(path: &str) -> String {
    match argued_place(path) {
        Ok(place @ StorePlace::Server { .. }) => place.shown(),
        _ => std::path::absolute(path)
            .map_or_else(|_| path.to_owned(), |path| path.display().to_string()),
    }
}

/// Where an agent keeps a conversation, here.
fn home_of(
    context: &Context,
    one: &PastConversation,
    format: Format,
    path: &Path,
) -> Result<Home, String> {
    let dir = match (&one.dir, format) {
        (Some(dir), _) => PathBuf::from(dir),
        // A gateway resumes by the key, wherever it is called.
        (None, Format::Openclaw) => path.to_owned(),
        (None, _) => cwd::name(),
    };
    home(context, &one.agent, &one.item, &dir)
        .map_err(|_| format!("its directory {} is not on this machine", dir.display()))
}

/// Refuses conversations that the agent does not have in this HOME: they cannot be resumed here. Where it has no
/// conversations at all, or where nobody can look, that says nothing.
fn refuse_absent(entries: &mut [ImportEntry]) {
    let mut asked = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        if let Ok(Record::Conversation(one)) = &entry.content
            && let Some(home) = &one.home
            && let Some(root) = layout_of(&one.agent)
                .and_then(|rule| tenure_host::transcript_files::root(&rule, &var))
            && root.is_dir()
        {
            let kept = StoredConversation {
                agent: one.agent.clone(),
                native_id: one.native_id.clone(),
                home: home.clone(),
            };
            asked.push((at, kept, root));
        }
    }
    let kept: Vec<StoredConversation> = asked.iter().map(|(_, kept, _)| kept.clone()).collect();
    for ((at, kept, root), existence) in asked.iter().zip(kept::look(&kept)) {
        if existence == Existence::Absent {
            entries[*at].content = NotTaken::refused(format!(
                "{} does not have {} in {}: it is of another HOME, or was removed",
                kept.agent,
                kept.native_id,
                root.display()
            ));
        }
    }
}

fn invalid(message: String, hint: &str) -> Problem {
    Problem::new(Class::Invalid, "invalid", message, Hint::step(hint))
}

fn of_path(format: Format, path: &Path) -> Result<Vec<ImportEntry>, Problem> {
    let found = match format {
        Format::Openclaw => of_openclaw(path),
        Format::ClaudeHooks => {
            file(path).and_then(|text| claude_hooks::sessions_json(&text, &name(path)))
        }
        Format::SpecKitty => of_spec_kitty(path),
        Format::Pact => of_pact(path),
        Format::Tenure => Err("all of a store is imported alone".to_owned()),
        Format::Ehg => file(path).and_then(|text| of_csv(&text, &name(path))),
    };
    found.map_err(|why| {
        let message = format!(
            "{} cannot be imported as {}: {why}",
            path.display(),
            format.as_str()
        );
        invalid(
            message,
            "run `tenure help import` to see what each format expects",
        )
    })
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

fn file(path: &Path) -> Result<String, String> {
    read::text(path, MAX_LENGTH).map_err(|error| in_words(path, &error))
}

/// Why something cannot be read, as a sentence that names it.
fn in_words(path: &Path, error: &io::Error) -> String {
    let name = path.display();
    match error.kind() {
        ErrorKind::NotADirectory if path.exists() => format!("{name} is not a directory"),
        ErrorKind::NotFound | ErrorKind::NotADirectory => format!("{name} does not exist"),
        ErrorKind::PermissionDenied => format!("you may not read {name}"),
        _ => error.to_string(),
    }
}

/// What is directly below a directory, in order.
fn below(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let listed = fs_err::read_dir(dir).map_err(|error| in_words(dir, &error))?;
    let mut paths: Vec<PathBuf> = listed.flatten().map(|one| one.path()).collect();
    paths.sort();
    Ok(paths)
}

fn last(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// An entry that stands for a file that cannot be read.
fn unread(path: &Path, why: String) -> ImportEntry {
    ImportEntry {
        name: last(path),
        source: name(path),
        content: NotTaken::refused(why),
    }
}

/// A state directory with databases and older files for each agent, or one `sessions.json`.
fn of_openclaw(path: &Path) -> Result<Vec<ImportEntry>, String> {
    if path.is_file() {
        return openclaw::sessions_json(&file(path)?, &name(path));
    }
    let agents = below(&path.join("agents")).map_err(|_| {
        "expected OpenClaw's state directory, which has agents/, or a sessions.json".to_owned()
    })?;
    let mut entries = Vec::new();
    for agent in agents {
        let database = agent.join("agent/openclaw-agent.sqlite");
        if database.is_file() {
            match foreign::rows(&database, openclaw::QUERY) {
                Ok(rows) => entries.extend(openclaw::rows(&rows, &name(&database))),
                Err(why) => entries.push(unread(&database, why)),
            }
        }
        let older = agent.join("sessions/sessions.json");
        if older.is_file() {
            let text = file(&older);
            match text.and_then(|text| openclaw::sessions_json(&text, &name(&older))) {
                Ok(found) => entries.extend(found),
                Err(why) => entries.push(unread(&older, why)),
            }
        }
    }
    Ok(entries)
}

/// The directory with `missions/` and the pointer.
fn of_spec_kitty(path: &Path) -> Result<Vec<ImportEntry>, String> {
    let missions = below(&path.join("missions"))
        .map_err(|_| "expected spec-kitty's directory, which has missions/".to_owned())?;
    let mut entries = Vec::new();
    for mission in missions.into_iter().filter(|one| one.is_dir()) {
        let session = mission.join("session.json");
        match file(&session) {
            Ok(text) => {
                let entry = spec_kitty::mission(&last(&mission), &text, &name(&session));
                entries.extend(with_checked_token(entry));
            }
            Err(why) => entries.push(ImportEntry {
                name: last(&mission),
                ..unread(&session, why)
            }),
        }
    }
    let pointer = path.join("session.json");
    if pointer.is_file() {
        entries.push(match file(&pointer) {
            Ok(text) => spec_kitty::pointer(&text, &name(&pointer)),
            Err(why) => unread(&pointer, why),
        });
    }
    Ok(entries)
}

/// A participant whose token cannot be stored is taken without it, and the token is an entry of its own.
fn with_checked_token(mut entry: ImportEntry) -> Vec<ImportEntry> {
    let Ok(Record::Participant(one)) = &mut entry.content else {
        return vec![entry];
    };
    let Some(token) = one.token.take() else {
        return vec![entry];
    };
    match mission_token::checked(&token) {
        Ok(token) => {
            one.token = Some(token.to_owned());
            vec![entry]
        }
        Err(why) => {
            let token = ImportEntry {
                name: format!("{} session_token", entry.name),
                source: entry.source.clone(),
                content: NotTaken::refused(why),
            };
            vec![entry, token]
        }
    }
}

/// `pact-sessions`: a directory for each project, in it one for each session.
fn of_pact(path: &Path) -> Result<Vec<ImportEntry>, String> {
    let mut entries = Vec::new();
    for project in below(path)?.into_iter().filter(|one| one.is_dir()) {
        match below(&project) {
            Ok(sessions) => {
                let sessions = sessions.into_iter().filter(|one| one.is_dir());
                entries.extend(sessions.map(|session| of_pact_session(&project, &session)));
            }
            Err(why) => entries.push(unread(&project, why)),
        }
    }
    if entries.is_empty() {
        return Err(
            "expected PACT's pact-sessions directory: PROJECT/SESSION/pact-session-context.json"
                .to_owned(),
        );
    }
    Ok(entries)
}

fn of_pact_session(project: &Path, session: &Path) -> ImportEntry {
    let context = session.join("pact-session-context.json");
    let written = fs_err::metadata(&context)
        .and_then(|found| found.modified())
        .map_err(|error| in_words(&context, &error));
    let read = written.and_then(|written| Ok((file(&context)?, written)));
    match read {
        Ok((text, written)) => pact::context(
            &last(project),
            &last(session),
            &text,
            &name(&context),
            timestamp(written),
        ),
        Err(why) => ImportEntry {
            name: last(session),
            ..unread(&context, why)
        },
    }
}

fn timestamp(at: std::time::SystemTime) -> Timestamp {
    let since = at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or_default())
}

/// `claude_sessions` as CSV with a line of names.
fn of_csv(text: &str, source: &str) -> Result<Vec<ImportEntry>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(text.as_bytes());
    let names = reader.headers().map_err(|error| error.to_string())?.clone();
    if let Some(missing) = ehg::COLUMNS
        .iter()
        .find(|one| !names.iter().any(|name| name == **one))
    {
        return Err(format!(
            "it has no column {missing}: expected a CSV of claude_sessions"
        ));
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(*name)) {
        return Err(format!("it has the column {twice} more than once"));
    }
    let mut entries = Vec::new();
    for (at, record) in reader.records().enumerate() {
        let line = format!("{source}, row {}", at + 1);
        match record {
            Ok(record) if record.len() == names.len() => {
                let cells = names.iter().zip(record.iter());
                let fields: Map<String, Value> = cells
                    .map(|(name, cell)| (name.to_owned(), Value::from(cell)))
                    .collect();
                entries.extend(ehg::row(&fields, &line));
            }
            Ok(record) => entries.push(ImportEntry {
                name: record.get(0).unwrap_or_default().to_owned(),
                source: line,
                content: NotTaken::refused(format!(
                    "it has {} cells, not {}",
                    record.len(),
                    names.len()
                )),
            }),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(entries)
}

/// `claude_sessions` in EHG's database.
fn of_server(url: &str) -> Result<Vec<ImportEntry>, Problem> {
    let names_schema = url.contains("schema=");
    let StorePlace::Server { url, .. } = argued_place(url)? else {
        return Ok(Vec::new());
    };
    let query = ehg::query(names_schema.then_some(url.schema.as_str()));
    let Some(rows) = server_store::texts(&url, &query)? else {
        let message = format!(
            "{} has no table claude_sessions: it is not EHG's",
            url.location()
        );
        return Err(invalid(message, "name the database of EHG_Engineer"));
    };
    let rows = rows.iter();
    Ok(rows
        .flat_map(|row| ehg::json_row(row, "claude_sessions"))
        .collect())
}
