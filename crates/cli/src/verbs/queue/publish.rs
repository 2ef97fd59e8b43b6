use serde_json::json;
use tenure_runs::publish;

use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Output};
use crate::render::job as shown;

/// Publish results that wait for a person
///
/// Approves exactly the commit that the run ended with, and pushes it to tenure's branch for the item. A result waits
/// if its rule says `publish = "ask"`, if it changes what gives orders (CI files, CLAUDE.md, ...), or if it could not be
/// pushed. `tenure runs show RUN` names the file with its patch. To decide against a result, run `tenure queue cancel`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure queue                          to see which results wait
  tenure queue publish j-k7qd
  tenure queue publish j-k7qd j-m4zw")]
pub struct Args {
    /// Job ids, or the beginnings of ids
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<String>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let published = publish::publish(&mut context, &args.jobs)?;
    let mut text = Lines::default();
    let mut branches = Vec::new();
    for one in &published {
        let (job, branch) = (&one.job, &one.branch);
        text.line(format!(
            "{}: pushed to the branch {branch}",
            shown::name(job)
        ));
        branches.push(json!({"job": job.id, "branch": branch}));
    }
    let jobs: Vec<_> = published.iter().map(|one| &one.job).collect();
    Ok(Output::new("jobs", &jobs, text).with("published", &branches))
}
