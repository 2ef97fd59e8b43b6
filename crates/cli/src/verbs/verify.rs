use std::path::{Path, PathBuf};

use serde_json::json;
use tenure_app::place::place;
use tenure_host::file::read_plain;
use tenure_service::Verified;
use tenure_service::error::Error;
use tenure_service::mirror::compare::ContextFile;

use crate::app::App;
use crate::output::{CliError, Outcome, Output};

/// Check the identity of this session: exit 0, or 6 with every mismatch
///
/// Checks that the environment agrees with the process table, that the session is live, and that its active
/// mission is valid. --session: it must be that session. --project: it must work in that repository (in any worktree of
/// it), or in exactly that directory. --file: the context file
/// must be its own and up to date.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure verify
  tenure verify --project . --session claude-k7qd
  tenure verify --file ~/.claude/pact-session-context.json || exit 1")]
pub struct Args {
    /// Context file that should belong to this session
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,

    /// Repository, or directory in none, that it should work in
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
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
