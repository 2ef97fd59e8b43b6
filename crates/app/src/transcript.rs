//! Transcripts as files: found on the agent's directory, read, and appended to under their lock.
//!
//! The store decides which file belongs to which session; this module searches only if the store does not know. A
//! read never changes the file. An append is complete or refused; one that was cut short reports how much was written.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tenure_core::transcript::{LineProblem, Survey, new_file_path};
use tenure_host::append::{AppendError, Durability, append_lines, check_whole};
use tenure_host::kernel_lock::{LockError, Patience};
use tenure_host::repair::{self, CutOff, RepairError};
use tenure_host::{clock, pause, transcript_files};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::{ActFor, Answer, Derivation, Reply, Vouched, VouchedFile};

use crate::location::locks;
use crate::open::Context;
use crate::openclaw;
use tenure_host::env::var as env;

/// The most bytes in one append.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What to do about something else in the place of a transcript.
const UNCHANGED: &str = "check what is there; nothing was changed";

/// A transcript, and what was wrong with the path that was stored before, if anything.
#[derive(Debug)]
pub struct TranscriptFile {
    pub file: VouchedFile,
    pub quarantined: Option<String>,
}

/// The result of an append.
#[derive(Debug)]
pub struct Appended {
    pub file: VouchedFile,
    /// The offset of the lines in the file.
    pub offset: u64,
    pub lines: usize,
}

/// A session's transcript: the one that the store vouches for, or else one that is derived and then
/// stored.
pub fn find(context: &mut Context, name: &str) -> Result<Answer<TranscriptFile>, Problem> {
    let vouched = context.service().transcript(name);
    settled(context, name, vouched)
}

fn settled(
    context: &mut Context,
    name: &str,
    vouched: Reply<Vouched>,
) -> Result<Answer<TranscriptFile>, Problem> {
    let answer = vouched?;
    let value = match answer.value {
        Vouched::File(file) => TranscriptFile {
            file: *file,
            quarantined: None,
        },
        Vouched::Derive(derivation) => {
            let path = derive(&derivation)?;
            TranscriptFile {
                file: context.service().keep_transcript(name, &path)?.value,
                quarantined: derivation.quarantined,
            }
        }
    };
    Ok(Answer {
        value,
        notices: answer.notices,
        damaged: answer.damaged,
    })
}

fn derive(derivation: &Derivation) -> Result<String, Problem> {
    let native_id = &derivation.native_id;
    // Not a command to run: in another session it would move the conversation there.
    let register = |why| {
        Hint::step(format!(
            "inside that session, register again with --native-id {native_id} --transcript FILE {why}"
        ))
    };
    let nowhere = |message: String| {
        let hint = register("to set its path");
        Problem::new(Class::NotFound, "not_found", message, hint)
    };
    let known = derivation
        .layout
        .and_then(|layout| Some((layout, transcript_files::root(&layout, &env)?)));
    let Some((layout, root)) = known else {
        return Err(nowhere(format!(
            "tenure does not know where {} stores conversation {native_id}",
            derivation.agent
        )));
    };
    let found = transcript_files::find(&root, &layout, &derivation.agent, native_id);
    match found.as_slice() {
        [one] => Ok(one.to_string_lossy().into_owned()),
        [] => {
            let layout = root.to_string_lossy();
            let new_file = new_file_path(&derivation.agent, native_id, &layout, &derivation.dir);
            let message = || format!("no file of conversation {native_id} was found in {layout}");
            new_file.ok_or_else(|| nowhere(message()))
        }
        several => {
            let names: Vec<String> = several
                .iter()
                .map(|one| one.display().to_string())
                .collect();
            let names = names.join(", ");
            let message = format!("conversation {native_id} has several files: {names}");
            let hint = register("to choose one");
            Err(Problem::new(Class::Invalid, "ambiguous", message, hint))
        }
    }
}

/// Checks every line of a session's transcript, or every record if its agent keeps them in a database.
pub fn verify(
    context: &mut Context,
    name: &str,
) -> Result<Answer<(TranscriptFile, Survey)>, Problem> {
    let answer = context.service().transcript(name)?;
    if let Vouched::Derive(derivation) = &answer.value
        && let Some((path, survey)) = openclaw::survey_session(derivation)?
    {
        let file = VouchedFile {
            path: path.to_string_lossy().into_owned(),
            handle: context.service().show(name)?.value.session.handle,
            native_id: derivation.native_id.clone(),
        };
        let quarantined = derivation.quarantined.clone();
        return Ok(Answer {
            value: (TranscriptFile { file, quarantined }, survey),
            notices: answer.notices,
            damaged: answer.damaged,
        });
    }
    let found = settled(context, name, Ok(answer))?;
    let survey = survey(&found.value.file)?;
    Ok(Answer {
        value: (found.value, survey),
        notices: found.notices,
        damaged: found.damaged,
    })
}

/// Checks every line of a transcript.
fn survey(file: &VouchedFile) -> Result<Survey, Problem> {
    let unreadable = |error: io::Error| {
        let (message, hint) = match error.kind() {
            io::ErrorKind::NotFound => (
                format!("the transcript {} does not exist", file.path),
                "send the agent its first prompt; it creates the file then",
            ),
            _ => (format!("cannot read the transcript: {error}"), UNCHANGED),
        };
        Problem::new(Class::NotFound, "not_found", message, Hint::step(hint))
    };
    let found = fs_err::symlink_metadata(&file.path).map_err(unreadable)?;
    if !found.is_file() {
        let message = format!("{} is not a regular file", file.path);
        let hint = Hint::step(UNCHANGED);
        return Err(Problem::new(Class::Invalid, "invalid", message, hint));
    }
    let context = tenure_host::read::open(Path::new(&file.path)).map_err(unreadable)?;
    let mut reader = BufReader::new(context);
    let (mut survey, mut line) = (Survey::default(), Vec::new());
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
            return Ok(survey);
        }
        if !line.ends_with(b"\n") {
            // The agent may be writing: a write that crosses a page becomes visible in two parts.
            pause::sleep(Duration::from_millis(50));
            reader.read_until(b'\n', &mut line).map_err(unreadable)?;
        }
        survey.take(&file.native_id, &line);
    }
}

/// Appends complete lines of its own conversation to a session's transcript, all or nothing.
pub fn append(
    context: &mut Context,
    act_for: &ActFor,
    lines: &[u8],
    wait: Duration,
    durability: Durability,
) -> Result<Answer<Appended>, Problem> {
    let name = act_for.session.as_deref().unwrap_or_default();
    check_whole(lines).map_err(|error| append_problem(error, name))?;
    let what = "lines are appended to its transcript on its behalf";
    let vouched = context.service().transcript_to_write(act_for, what);
    let found = settled(context, name, vouched)?;
    let file = found.value.file;
    let problems = context.service().check_appended(act_for, &file, lines)?;
    refuse_lines(&file, &problems)?;
    let patience = if wait.is_zero() {
        Patience::None
    } else {
        Patience::AtMost(wait)
    };
    let offset = append_lines(
        &locks()?,
        Path::new(&file.path),
        lines,
        patience,
        durability,
    )
    .map_err(|error| append_problem(error, name))?;
    Ok(Answer {
        value: Appended {
            file,
            offset,
            lines: lines.iter().filter(|byte| **byte == b'\n').count(),
        },
        notices: found.notices,
        damaged: found.damaged,
    })
}

/// Cuts off the last line of a session's transcript if it is incomplete; none if it is complete.
pub fn repair(
    context: &mut Context,
    act_for: &ActFor,
    wait: Duration,
) -> Result<Answer<(VouchedFile, Option<CutOff>)>, Problem> {
    let name = act_for.session.as_deref().unwrap_or_default();
    let what = "its transcript is repaired on its behalf";
    let vouched = context.service().transcript_to_write(act_for, what);
    let found = settled(context, name, vouched)?;
    let file = found.value.file;
    let patience = if wait.is_zero() {
        Patience::None
    } else {
        Patience::AtMost(wait)
    };
    let path = Path::new(&file.path);
    let cut = repair::cut_off_torn_line(&locks()?, path, patience, clock::wall())
        .map_err(|error| repair_problem(error, name))?;
    if let Some(cut) = &cut {
        let (bytes, aside) = (cut.bytes, cut.quarantine.display());
        let what = format!(
            "its transcript was repaired: an incomplete line of {bytes} bytes is now in {aside}"
        );
        context.service().transcript_repaired(act_for, &what)?;
    }
    Ok(Answer {
        value: (file, cut),
        notices: found.notices,
        damaged: found.damaged,
    })
}

#[allow(clippy::needless_pass_by_value)] // for map_err
fn repair_problem(error: RepairError, name: &str) -> Problem {
    let message = format!("nothing was repaired: {error}");
    match error {
        RepairError::Append(error) => {
            let mut problem = append_problem(error, name);
            problem.message = message;
            problem
        }
        RepairError::Writers { pids, .. } => {
            let all: Vec<String> = pids.iter().map(|pid| format!("pid {pid}")).collect();
            let message = format!("{message} by {}", all.join(", "));
            let hint = Hint::step("end that process, or wait until it has written the line");
            let mut problem = Problem::new(Class::Held, "held", message, hint);
            problem.data.insert("pids".to_owned(), json!(pids));
            problem
        }
        RepairError::Missing { .. } => {
            let hint = Hint::step("send the agent its first prompt; it creates the file then");
            Problem::new(Class::NotFound, "not_found", message, hint)
        }
        RepairError::Changed { .. } => {
            let hint = Hint::run("transcript", ["repair", name], "to try again");
            Problem::new(Class::Held, "held", message, hint)
        }
        RepairError::Io(_) => {
            let hint = Hint::step("free up space or fix the directory");
            Problem::new(Class::Store, "store_unavailable", message, hint)
        }
    }
}

/// Refuses lines that `verify` would report after the append.
fn refuse_lines(file: &VouchedFile, problems: &[LineProblem]) -> Result<(), Problem> {
    let Some(first) = problems.first() else {
        return Ok(());
    };
    let more = match problems.len() - 1 {
        0 => String::new(),
        1 => "; 1 more line is invalid".to_owned(),
        more => format!("; {more} more lines are invalid"),
    };
    let message = format!(
        "nothing was appended to {}: line {} of the input is {} ({}){more}",
        file.path, first.line, first.kind, first.what
    );
    let hint = Hint::step("write one JSON object of this conversation per line");
    let mut problem = Problem::new(Class::Invalid, "invalid", message, hint);
    problem.data.insert("problems".to_owned(), json!(problems));
    Err(problem)
}

/// A write that was cut short reports what is in the file.
#[allow(clippy::needless_pass_by_value)] // for map_err
fn append_problem(error: AppendError, name: &str) -> Problem {
    let verify = |why| Hint::run("transcript", ["verify", name], why);
    let (class, kind, hint) = match &error {
        AppendError::Torn { resumable, .. } => {
            let hint = if *resumable {
                Hint::step(
                    "free up space; the next append completes it, if nothing else is added first",
                )
            } else {
                verify("to see the line")
            };
            (Class::Store, "store_unavailable", hint)
        }
        AppendError::NotLines(_) => {
            let hint = Hint::step("write whole lines to stdin, each with a newline");
            (Class::Usage, "usage", hint)
        }
        AppendError::Incomplete { .. } => {
            let why = "to cut that line off into a file beside it";
            let hint = Hint::run("transcript", ["repair", name], why);
            (Class::Invalid, "invalid", hint)
        }
        AppendError::Target { .. } => {
            let hint = verify("for details; nothing was changed");
            (Class::Invalid, "invalid", hint)
        }
        AppendError::Lock(LockError::Held { .. }) => {
            let hint = Hint::run("locks", [""; 0], "to see the holder");
            (Class::TimedOut, "timed_out", hint)
        }
        AppendError::Lock(LockError::Unusable { .. }) => {
            let hint = Hint::step("send the agent its first prompt; it creates the directory then");
            (Class::NotFound, "not_found", hint)
        }
        AppendError::Lock(_) => {
            let hint = Hint::step("append without holding that lock");
            (Class::Invalid, "nested", hint)
        }
        AppendError::Io(_) => {
            let hint = Hint::step("free up space or fix the directory");
            (Class::Store, "store_unavailable", hint)
        }
    };
    let said = match &error {
        AppendError::Torn { .. } => "the append was cut short",
        AppendError::Lock(LockError::Held { .. }) => "timed out; nothing was appended",
        _ => "nothing was appended",
    };
    let mut problem = Problem::new(class, kind, format!("{said}: {error}"), hint);
    if let AppendError::Torn {
        offset,
        written,
        length,
        resumable,
        ..
    } = error
    {
        let torn =
            json!({"offset": offset, "written": written, "length": length, "resumable": resumable});
        problem.data.insert("torn".to_owned(), torn);
    }
    problem
}
