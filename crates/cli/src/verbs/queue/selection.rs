//! Which jobs a verb changes, and how they are shown.

use tenure_service::view::JobView;
use tenure_service::{Answer, WhichJobs};

use crate::app::App;
use crate::output::CliError;
use crate::output::{Outcome, Output};
use crate::render::job as shown;

#[derive(Debug, clap::Args)]
#[group(id = "which", required = true, multiple = true)]
pub struct JobSelection {
    /// Job ids, or the beginnings of ids
    #[arg(value_name = "JOB")]
    jobs: Vec<String>,

    /// All waiting jobs for this item
    #[arg(long, value_name = "ITEM")]
    item: Option<String>,

    /// All parked jobs; with --item, those for the item
    #[arg(long)]
    all_parked: bool,
}

impl JobSelection {
    pub fn request(&self, app: &App) -> Result<WhichJobs, CliError> {
        Ok(WhichJobs {
            named: self.jobs.clone(),
            item: self.item.as_deref().map(|item| app.key(item)).transpose()?,
            all_parked: self.all_parked,
        })
    }

    /// One named job is shown as before; several, or those that were searched for, as a list.
    pub fn show(&self, answer: &Answer<Vec<JobView>>) -> Outcome {
        let jobs = &answer.value;
        if let ([_], None, false, [job]) = (
            self.jobs.as_slice(),
            &self.item,
            self.all_parked,
            jobs.as_slice(),
        ) {
            return Ok(Output::new("job", job, shown::line(job)).told(answer));
        }
        let text = shown::list(jobs.iter());
        Ok(Output::new("jobs", jobs, text).told(answer))
    }
}
