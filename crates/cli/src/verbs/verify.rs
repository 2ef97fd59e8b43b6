use std::path::{Path, PathBuf};

use serde_json::json;
use tenure_app::openclaw::{self, Repairs};
use tenure_app::place::place;
use tenure_host::file::read_plain;
use tenure_service::Verified;
use tenure_service::answer::{Class, Hint};
use tenure_service::error::Error;
use tenure_service::mirror::compare::ContextFile;

use crate::app::App;
use crate::exit::Exit;
use crate::hooks_setup::place::InstallTarget;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output};

/// Check the identity of this session: exit 0, or 6 with every mismatch
///
/// Checks that the environment agrees with the process table, that the session is live, and that its active
/// mission is valid. --session: it must be that session. --project: it must work in that repository (in any worktree of
/// it), or in exactly that directory. --file: the context file
/// must be its own and up to date.
///
/// --openclaw checks OpenClaw's state directory instead: session ids under a foreign key, ids of spawned sessions,
/// transcripts of another session, and a lock that no process holds but that keeps the gateway from starting. It only
/// reads; --fix gives ids back to the key that tenure recorded as their owner, after a copy of the database, and removes
/// the lock.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure verify
  tenure verify --project . --session claude-k7qd
  tenure verify --file ~/.claude/pact-session-context.json || exit 1
  tenure verify --openclaw              check ~/.openclaw, or $OPENCLAW_STATE_DIR
  tenure verify --openclaw --fix        and repair what can be repaired")]
pub struct Args {
    /// Context file that should belong to this session
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,

    /// Repository, or directory in none, that it should work in
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,

    /// Check OpenClaw's state directory instead of this session
    #[arg(long, value_name = "DIR", num_args = 0..=1, conflicts_with_all = ["file", "project"])]
    openclaw: Option<Option<PathBuf>>,

    /// With --openclaw: repair what can be repaired
    #[arg(long, requires = "openclaw")]
    fix: bool,

    /// What the plugin runs: repair session ids, unless openclaw.heal is false
    #[arg(long, requires = "openclaw", hide = true)]
    heal: bool,
}

impl Args {
    pub fn changes(&self) -> bool {
        self.fix || self.heal
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    if let Some(dir) = &args.openclaw {
        return verify_openclaw(args, app, dir.as_deref());
    }
    let project = args.project.as_deref().map(place).transpose()?;
    let file = args.file.as_deref().map(read);
    let mut context = app.open()?;
    let here = context.here();
    let act_for = app.act_for(None);
    let answer = context
        .service()
        .verify(&act_for, &here, project.as_ref(), file.as_ref())?;
    let Verified { context, faults } = &answer.value;
    let handle = &context.session.handle;
    if !faults.is_empty() {
        let what = match &file {
            Some(file) => format!("{} for {handle}", file.path),
            None => format!("session {handle}"),
        };
        let faults = faults.clone();
        let mut failure = CliError::from(Error::Faulty { what, faults });
        failure.problem.notices = answer.notices;
        return Err(failure);
    }
    let part = json!({"session": handle, "id": context.session.id, "faults": []});
    Ok(Output::new("verified", &part, format!("{handle}: all checks passed")).told(&answer))
}

/// Checks OpenClaw's state directory.
fn verify_openclaw(args: &Args, app: &App, dir: Option<&Path>) -> Outcome {
    let dir = match dir {
        Some(dir) => dir.to_owned(),
        None => InstallTarget::user("openclaw")?.dir,
    };
    if !dir.join("agents").is_dir() {
        let message = format!("{} is not a state directory of OpenClaw's", dir.display());
        let hint = Hint::run(
            "verify",
            ["--openclaw", "DIR"],
            "with the directory that has agents/",
        );
        return Err(CliError::new(Class::NotFound, "not_found", message, hint));
    }
    let mut context = app.open()?;
    let repairs = match (args.fix, args.heal) {
        (true, _) => Repairs::Everything,
        (false, true) => Repairs::Ids,
        (false, false) => Repairs::Nothing,
    };
    let faults = openclaw::verify(&mut context, &dir, repairs)?;
    let mut text = Lines::default();
    for fault in &faults {
        let word = if fault.fixed { "fixed" } else { "wrong" };
        let whose = fault.key.as_deref().unwrap_or(&fault.file);
        text.line(format!("{word}: {whose}: {}", fault.what));
        if let Some(copy) = &fault.copy {
            text.line(format!("  the database from before is in {copy}"));
        }
        if let Some(problem) = &fault.problem {
            text.line(format!("  not repaired: {problem}"));
        }
    }
    let is_well = faults.iter().all(|fault| fault.fixed);
    if faults.is_empty() {
        text.line(format!("{}: all checks passed", dir.display()));
    } else if !is_well && repairs == Repairs::Nothing {
        text.line("run `tenure verify --openclaw --fix` to repair what can be repaired");
    }
    let part = json!({"dir": dir, "faults": faults});
    let exit = if is_well { Exit::DONE } else { Exit::INVALID };
    Ok(Output::new("openclaw", &part, text).exit(exit))
}

/// A file that may be missing or something else than a file.
fn read(path: &Path) -> ContextFile {
    ContextFile {
        path: path.display().to_string(),
        text: match read_plain(path) {
            Ok(Some(text)) => Ok(text),
            Ok(None) => Err("it does not exist".to_owned()),
            Err(error) => Err(error.to_string()),
        },
    }
}
