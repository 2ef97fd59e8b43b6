//! `transcript`: the file in which an agent keeps one conversation, and only that session's.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tenure_core::reason::Reason;
use tenure_core::time::Span;
use tenure_core::transcript::{LineProblem, check_line, check_lines, unborn_path};
use tenure_host::append::{AppendError, Durability, append_lines, check_whole};
use tenure_host::kernel_lock::{LockError, Patience};
use tenure_host::{pause, shelf};
use tenure_service::{Derivation, Naming, Vouched, VouchedFile};

use crate::app::{App, Opened, env};
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{Outcome, Shown, Trouble};

/// Show, check or append to a session's transcript
///
/// Which file it is, is the store's word and never the caller's.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure transcript show claude-k7qd
  tenure transcript verify claude-k7qd
  echo '{\"type\":\"note\"}' | tenure transcript append claude-k7qd --durable")]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

impl Args {
    pub fn changes(&self) -> bool {
        matches!(self.act, Act::Append { .. })
    }
}

#[derive(Debug, clap::Subcommand)]
enum Act {
    /// Say which file it is
    Show {
        /// The session
        name: String,
    },
    /// Report a torn tail, malformed lines and lines of other conversations; change nothing
    Verify {
        /// The session
        name: String,
    },
    /// Append JSON lines from stdin, all or nothing, under the file's lock
    Append {
        /// The session
        name: String,

        /// Wait until the disk has it
        #[arg(long)]
        durable: bool,

        /// Wait at most this long for the lock
        #[arg(
            long,
            value_name = "TIME",
            default_value = "10s",
            allow_hyphen_values = true
        )]
        wait: Span,

        /// Why, on record; needed for a session that is not one's own
        #[arg(long, value_name = "TEXT")]
        reason: Option<Reason>,
    },
}

/// The most that one append takes.
const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// How many problems are listed.
const MOST_PROBLEMS: usize = 1000;

pub fn run(args: &Args, app: &App) -> Outcome {
    match &args.act {
        Act::Show { name } => show(name, app),
        Act::Verify { name } => verify(name, app),
        Act::Append {
            name,
            durable,
            wait,
            reason,
        } => append(name, *durable, wait.0, reason.as_ref(), app),
    }
}

fn show(name: &str, app: &App) -> Outcome {
    let mut opened = app.open()?;
    let answer = opened.service().transcript(name)?;
    let (file, quarantined) = vouched(&mut opened, name, answer.value.clone())?;
    let mut text = Lines::from(file.path.as_str());
    if let Some(why) = &quarantined {
        text.line(format!("what was stored was wrong and is set aside: {why}"));
    }
    let exists = std::path::Path::new(&file.path).exists();
    let part = json!({"path": file.path, "session": file.handle, "native_id": file.native_id, "exists": exists, "quarantined": quarantined});
    Ok(Shown::new("transcript", &part, text).told(&answer))
}

/// The file that the store vouches for, derived and kept if it knew none.
fn vouched(
    opened: &mut Opened,
    name: &str,
    vouched: Vouched,
) -> Result<(VouchedFile, Option<String>), Trouble> {
    match vouched {
        Vouched::File(file) => Ok((*file, None)),
        Vouched::Derive(derivation) => {
            let path = derive(&derivation)?;
            let file = opened.service().keep_transcript(name, &path)?.value;
            Ok((file, derivation.quarantined))
        }
    }
}

fn derive(derivation: &Derivation) -> Result<String, Trouble> {
    let native_id = &derivation.native_id;
    let nowhere = |why: String| {
        let hint = "tenure register --native-id ID --transcript FILE says where it is";
        Trouble::new(Exit::NOT_FOUND, "not_found", why, hint)
    };
    let known = derivation
        .shelf
        .and_then(|shelf| Some((shelf, shelf::root(&shelf, &env)?)));
    let Some((shelf, root)) = known else {
        return Err(nowhere(format!(
            "{} has no rule for where conversation {native_id} is kept",
            derivation.agent
        )));
    };
    let found = shelf::find(&root, &shelf, &derivation.agent, native_id);
    match found.as_slice() {
        [one] => Ok(one.to_string_lossy().into_owned()),
        [] => unborn_path(
            &derivation.agent,
            native_id,
            &root.to_string_lossy(),
            &derivation.dir,
        )
        .ok_or_else(|| {
            nowhere(format!(
                "no file of conversation {native_id} is in {}",
                root.display()
            ))
        }),
        several => {
            let names: Vec<String> = several
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            let message = format!(
                "conversation {native_id} has several files: {}",
                names.join(", ")
            );
            Err(Trouble::new(
                Exit::INVALID,
                "ambiguous",
                message,
                "register with --transcript says which one it is",
            ))
        }
    }
}

fn verify(name: &str, app: &App) -> Outcome {
    let mut opened = app.open()?;
    let answer = opened.service().transcript(name)?;
    let (file, quarantined) = vouched(&mut opened, name, answer.value.clone())?;
    let (lines, problems, more) = check_file(&file)?;
    let clean = problems.is_empty() && quarantined.is_none();
    let well = if clean { ", nothing wrong" } else { "" };
    let mut text = Lines::from(format!("{}: {lines} lines{well}", file.path));
    for problem in &problems {
        text.line(format!(
            "  line {}: {}: {}",
            problem.line, problem.kind, problem.what
        ));
    }
    if more > 0 {
        text.line(format!("  {more} more"));
    }
    let part = json!({"path": file.path, "session": file.handle, "lines": lines, "problems": problems, "more": more, "quarantined": quarantined});
    let exit = if clean { Exit::DONE } else { Exit::INVALID };
    Ok(Shown::new("transcript", &part, text)
        .told(&answer)
        .exit(exit))
}

/// Reads a transcript line by line; it is never changed.
fn check_file(file: &VouchedFile) -> Result<(u64, Vec<LineProblem>, usize), Trouble> {
    let unreadable = |error: std::io::Error| {
        let message = format!("cannot read the transcript: {error}");
        Trouble::new(
            Exit::NOT_FOUND,
            "not_found",
            message,
            "the agent makes it with its first prompt",
        )
    };
    let found = fs_err::symlink_metadata(&file.path).map_err(unreadable)?;
    if !found.is_file() {
        let message = format!("{} is not a plain file", file.path);
        return Err(Trouble::new(
            Exit::INVALID,
            "invalid",
            message,
            "look at what is there; nothing was changed",
        ));
    }
    let mut reader =
        BufReader::new(tenure_host::read::open(Path::new(&file.path)).map_err(unreadable)?);
    let (mut number, mut problems, mut line) = (0, Vec::new(), Vec::new());
    let mut more = 0;
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
            return Ok((number, problems, more));
        }
        number += 1;
        if !line.ends_with(b"\n") {
            // The agent may be writing it: a write that crosses a page is seen in two parts.
            pause::for_a_while(Duration::from_millis(50));
            reader.read_until(b'\n', &mut line).map_err(unreadable)?;
        }
        let problem = match line.strip_suffix(b"\n") {
            Some(whole) => check_line(&file.native_id, number, whole),
            None => Some(LineProblem {
                line: number,
                kind: "torn",
                what: format!("the last {} bytes are no whole line", line.len()),
            }),
        };
        match problems.len() < MOST_PROBLEMS {
            true => problems.extend(problem),
            false => more += usize::from(problem.is_some()),
        }
    }
}

fn append(
    name: &str,
    durable: bool,
    wait: Duration,
    reason: Option<&Reason>,
    app: &App,
) -> Outcome {
    let mut lines = Vec::new();
    std::io::stdin()
        .take(MOST_BYTES + 1)
        .read_to_end(&mut lines)
        .map_err(|error| {
            Trouble::new(
                Exit::USAGE,
                "usage",
                format!("cannot read stdin: {error}"),
                "give whole lines on stdin",
            )
        })?;
    if lines.len() as u64 > MOST_BYTES {
        return Err(Trouble::new(
            Exit::USAGE,
            "usage",
            "more than 64 MiB at once",
            "append it in parts",
        ));
    }
    check_whole(&lines).map_err(append_trouble)?;
    let mut opened = app.open()?;
    let naming = Naming {
        session: Some(name.to_owned()),
        reason: reason.cloned(),
    };
    let answer = opened.service().transcript_to_write(&naming)?;
    let (file, _) = vouched(&mut opened, name, answer.value.clone())?;
    let problems = check_lines(&file.native_id, &lines, MOST_PROBLEMS);
    if let Some(refused) = bad_lines(&file, &problems) {
        let foreign = problems.iter().find(|problem| problem.kind == "foreign");
        if let Some(LineProblem { line, what, .. }) = foreign {
            let what = format!("line {line}: {what}");
            opened.service().foreign_lines_refused(&naming, &what)?;
        }
        return Err(refused);
    }
    let durability = if durable {
        Durability::Disk
    } else {
        Durability::Kernel
    };
    let patience = if wait.is_zero() {
        Patience::None
    } else {
        Patience::AtMost(wait)
    };
    let path = std::path::Path::new(&file.path);
    let offset =
        append_lines(&app.locks()?, path, &lines, patience, durability).map_err(append_trouble)?;
    let count = lines.iter().filter(|byte| **byte == b'\n').count();
    let part = json!({"path": file.path, "session": file.handle, "offset": offset, "lines": count, "bytes": lines.len()});
    let text = format!("{count} lines appended to {}", file.path);
    Ok(Shown::new("transcript", &part, text).told(&answer))
}

/// What `verify` would report after an append is refused before it.
fn bad_lines(file: &VouchedFile, problems: &[LineProblem]) -> Option<Trouble> {
    let first = problems.first()?;
    let more = match problems.len() - 1 {
        0 => String::new(),
        1 => "; 1 more line is wrong".to_owned(),
        more => format!("; {more} more lines are wrong"),
    };
    let message = format!(
        "nothing was appended to {}: line {} of the input is {}: {}{more}",
        file.path, first.line, first.kind, first.what
    );
    let hint = "give one JSON object per line, of this conversation";
    let mut trouble = Trouble::new(Exit::INVALID, "invalid", message, hint);
    trouble.data.insert("problems".to_owned(), json!(problems));
    Some(trouble)
}

/// A write that was cut short: what is in the file is said, so that nobody takes it for whole.
fn torn_trouble(error: &AppendError, resumable: bool) -> Trouble {
    let hint = match resumable {
        true => {
            "make room; the next append finishes it, if nothing was added to the file until then"
        }
        false => "tenure transcript verify SESSION shows the line",
    };
    let message = format!("the append was cut short: {error}");
    Trouble::new(Exit::STORE, "store_unavailable", message, hint)
}

#[allow(clippy::needless_pass_by_value)] // for map_err
fn append_trouble(error: AppendError) -> Trouble {
    let message = format!("nothing was appended: {error}");
    match error {
        AppendError::Torn {
            offset,
            written,
            length,
            resumable,
            ..
        } => {
            let mut trouble = torn_trouble(&error, resumable);
            let torn = json!({"offset": offset, "written": written, "length": length, "resumable": resumable});
            trouble.data.insert("torn".to_owned(), torn);
            trouble
        }
        AppendError::NotLines(_) => Trouble::new(
            Exit::USAGE,
            "usage",
            message,
            "give whole lines on stdin, each with its end",
        ),
        AppendError::Target { .. } => {
            let hint = "tenure transcript verify SESSION says more; nothing was changed";
            Trouble::new(Exit::INVALID, "invalid", message, hint)
        }
        AppendError::Lock(LockError::Held { .. }) => Trouble::new(
            Exit::TIMED_OUT,
            "timed_out",
            message,
            "tenure locks shows who holds it",
        ),
        AppendError::Lock(LockError::Unusable { .. }) => {
            let hint = "the agent makes its directory with its first prompt";
            Trouble::new(Exit::NOT_FOUND, "not_found", message, hint)
        }
        AppendError::Lock(_) => Trouble::new(
            Exit::INVALID,
            "nested",
            message,
            "append outside of that lock",
        ),
        AppendError::Io(_) => Trouble::new(
            Exit::STORE,
            "store_unavailable",
            message,
            "make room or mend the directory",
        ),
    }
}
