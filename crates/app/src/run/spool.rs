//! The end of a run, kept beside its log before it goes to the store.
//!
//! It is whole on disk before the store is asked. So an end is recorded exactly once, whatever happens in between:
//! a store that is away gets it later, from the runner or from who looks next, and recording it twice changes
//! nothing.

use std::io;

use serde::{Deserialize, Serialize};
use tenure_core::conversation::fitness::Left;
use tenure_core::id::{AgentName, Malformed, NativeId, RunId};
use tenure_core::process::Survivor;
use tenure_core::run::line::Tokens;
use tenure_core::run::seen::Totals;
use tenure_core::run::{Outcome, Usage};
use tenure_core::time::Timestamp;
use tenure_service::EndRun;
use tenure_service::view::UsageView;

use super::files::RunFiles;
use crate::open::Context;

/// The longest end that is read: an answer, and what is around it.
const LONGEST: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpooledEnd {
    pub run: String,
    pub outcome: String,
    pub why: String,
    pub exit_code: Option<i32>,
    /// What the run says about its conversation.
    pub left: String,
    pub after: Option<String>,
    pub usage: UsageView,
    /// Until when the agent is parked, and whether its provider named that time.
    pub parked: Option<(Timestamp, bool)>,
    pub answer: Option<String>,
    /// What the conversation had used in all, where the agent counts so.
    pub totals: TotalsView,
    /// How much of the log was dropped, in bytes.
    pub dropped: u64,
    /// Processes of the run that went on when it ended.
    pub survivors: Vec<Survivor>,
    /// What else a person should know.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct TotalsView {
    pub tokens_in: Option<u64>,
    pub tokens_out: Option<u64>,
    pub cost: Option<f64>,
}

impl SpooledEnd {
    pub fn write(&self, files: &RunFiles) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(self)?;
        tenure_host::file::write_atomic(&files.end(), &text)
    }

    /// None where the runner did not come so far.
    pub fn read(files: &RunFiles) -> io::Result<Option<Self>> {
        match tenure_host::read::whole(&files.end(), LONGEST) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if tenure_host::read::is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What the store is told.
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

/// What a conversation had used in all when the run ended that was in it last; unknown where that did not say.
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
