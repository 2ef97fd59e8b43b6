//! The end of a run, stored next to its log before it goes to the store.
//!
//! It is complete on disk before the store is called. So an end is recorded exactly once, whatever
//! happens in between: if the store is unavailable, it gets the end later, from the runner or from
//! the next reader, and recording it twice changes nothing.

use std::io;

use serde::{Deserialize, Serialize};
use tenure_core::conversation::fitness::Left;
use tenure_core::dispatch::publish::ResultState;
use tenure_core::id::{AgentName, Malformed, NativeId, RunId};
use tenure_core::process::Survivor;
use tenure_core::run::line::Tokens;
use tenure_core::run::progress::Totals;
use tenure_core::run::{Outcome, Usage};
use tenure_core::time::Timestamp;
use tenure_service::EndRun;
use tenure_service::view::UsageView;

use super::files::RunFiles;
use tenure_app::open::Context;
use tenure_app::read_json::read_json;

/// The longest end that is read: an answer, and the rest.
const MAX_LENGTH: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpooledEnd {
    pub run: String,
    pub outcome: String,
    pub why: String,
    pub exit_code: Option<i32>,
    /// The state in which the run left its conversation.
    pub left: String,
    pub after: Option<String>,
    pub usage: UsageView,
    /// Until when the agent is parked, and whether the provider named that time.
    pub parked: Option<(Timestamp, bool)>,
    pub answer: Option<String>,
    /// The conversation's total usage, if the agent counts that way.
    pub totals: TotalsView,
    /// How many bytes of the log were dropped.
    pub dropped: u64,
    /// Processes of the run that were still running when it ended.
    pub survivors: Vec<Survivor>,
    /// Other notes for a person.
    pub notes: Vec<String>,
    /// What became of its result, if it has one that its rule publishes.
    #[serde(default)]
    pub result: Option<ResultState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct TotalsView {
    pub tokens_in: Option<u64>,
    pub tokens_out: Option<u64>,
    pub cost: Option<f64>,
}

impl SpooledEnd {
    /// Adds a sentence of ours to what the agent answered.
    pub fn add_to_answer(&mut self, sentence: &str) {
        let answer = self.answer.get_or_insert_default();
        if !answer.is_empty() {
            answer.push_str("\n\n");
        }
        answer.push_str(sentence);
    }

    pub fn write(&self, files: &RunFiles) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(self)?;
        tenure_host::file::write_atomic(&files.end(), &text)
    }

    /// None if the runner did not get that far.
    pub fn read(files: &RunFiles) -> io::Result<Option<Self>> {
        match tenure_host::read::whole(&files.end(), MAX_LENGTH) {
            Ok(text) => read_json(&text).map(Some),
            Err(error) if tenure_host::read::is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The end as the store records it.
    pub fn record(&self) -> Result<EndRun, Malformed> {
        let after = self.after.as_deref().map(NativeId::parse).transpose()?;
        Ok(EndRun {
            id: RunId::parse(&self.run)?,
            outcome: Outcome::parse(&self.outcome)?,
            why: self.why.clone(),
            exit_code: self.exit_code,
            left: Left::parse(&self.left)?,
            after,
            usage: Usage {
                turns: self.usage.turns,
                tokens_in: self.usage.tokens_in,
                tokens_out: self.usage.tokens_out,
                cost: self.usage.cost,
            },
            parked: self.parked,
        })
    }
}

/// A conversation's total usage at the end of its last run; unknown if that run did not report it.
pub(super) fn totals_before(
    context: &mut Context,
    agent: &AgentName,
    native_id: &NativeId,
) -> Totals {
    let read = |context: &mut Context| {
        let newest = context
            .service()
            .newest_run_in(agent, native_id)
            .ok()?
            .value?;
        let run = context.service().run_record(newest.as_str()).ok()?.value;
        SpooledEnd::read(&RunFiles::at(run.log?)).ok()?
    };
    let totals = read(context).map(|end| end.totals).unwrap_or_default();
    let tokens = totals.tokens_in.zip(totals.tokens_out);
    Totals {
        tokens: tokens.map(|(input, output)| Tokens { input, output }),
        cost_usd: totals.cost,
    }
}
