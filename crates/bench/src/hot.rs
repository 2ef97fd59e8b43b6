//! Counts of a hook and of the verbs that agents run all the time, each in a store that was prepared in the same way.

use std::path::{Path, PathBuf};

use crate::Failed;
use crate::counts::Counts;
use crate::counts_by_verb::CountsByVerb;
use crate::place::{BenchStore, answered};
use crate::program::{ProgramCall, Surroundings};
use crate::rows::{START, TOOL, written};
use crate::seeded::{SMALL, Seeded, fill_log, log_pages};

const FREE: &str = "issue:bench/free#1";
const OWN: &str = "issue:bench/own#1";

/// This process as an agent with a session, and what it runs.
struct Agent {
    place: BenchStore,
    around: Surroundings,
    dir: PathBuf,
    tenure: PathBuf,
}

/// Counts all of them, with everything that they need below `dir`.
pub fn count(tenure: &Path, dir: &Path) -> Result<CountsByVerb, Failed> {
    let place = Seeded::fresh(&dir.join("state"), SMALL)?.place;
    let agent = Agent {
        around: Surroundings::make(dir, place.dir())?,
        place,
        dir: dir.to_owned(),
        tenure: tenure.to_owned(),
    };
    agent.hook("start", START)?.run()?;
    agent.hook("tool", TOOL)?.run()?;
    agent.call(&["claim", OWN]).run()?;
    let mut counted = CountsByVerb::default();
    counted.add("hook", agent.quiet_hook()?);
    counted.add("hook-writes", agent.writing_hook()?);
    counted.add("claim", agent.claim()?);
    counted.add("guard", agent.guard()?);
    counted.add("lock", agent.lock()?);
    Ok(counted)
}

impl Agent {
    fn call(&self, args: &[&str]) -> ProgramCall {
        self.around.call(&self.tenure, args.iter().copied())
    }

    fn hook(&self, name: &str, event: &str) -> Result<ProgramCall, Failed> {
        let event = written(&self.dir, name, event)?;
        let own = std::process::id().to_string();
        let call = self.call(&["hook", "claude"]);
        Ok(call.env("CLAUDE_PID", own).stdin(&event))
    }

    fn pages(&self) -> u64 {
        log_pages(&self.place.database())
    }

    fn activity(&self) -> Result<Option<&'static str>, Failed> {
        let mut store = self.place.store()?;
        let mut service = self.place.service(&mut store);
        let own = answered(service.own_session(&Default::default()))?;
        Ok(own.session.activity)
    }

    /// A tool's use of a session that was heard of just now: the store is not opened.
    fn quiet_hook(&self) -> Result<Counts, Failed> {
        let hook = self.hook("tool", TOOL)?;
        let filled = std::cell::Cell::new(0);
        let before = || {
            fill_log(&self.place)?;
            // So that the next one is a repeat.
            hook.run()?;
            filled.set(self.pages());
            Ok(())
        };
        let after = || {
            if self.pages() == filled.get() {
                return Ok(());
            }
            Err("a heartbeat was due".into())
        };
        Counts::of_effect(&hook, &self.dir, before, after)
    }

    /// An event that changes what the session does.
    fn writing_hook(&self) -> Result<Counts, Failed> {
        let idle = self.hook("idle", &TOOL.replace("PreToolUse", "Stop"))?;
        let busy = self.hook("busy", &TOOL.replace("PreToolUse", "UserPromptSubmit"))?;
        let before = || {
            idle.run()?;
            match self.activity()? {
                Some("idle") => fill_log(&self.place),
                other => Err(format!("the session is {other:?} instead of idle").into()),
            }
        };
        let after = || match self.activity()? {
            Some("busy") => Ok(()),
            other => Err(format!("the hook left the session {other:?} instead of busy").into()),
        };
        Counts::of_effect(&busy, &self.dir, before, after)
    }

    fn claim(&self) -> Result<Counts, Failed> {
        let (claim, release) = (self.call(&["claim", FREE]), self.call(&["release", FREE]));
        // So that each run is one of a claim that was held before.
        claim.run()?;
        let before = || {
            release.run()?;
            fill_log(&self.place)
        };
        Counts::of(&claim, &self.dir, before)
    }

    fn guard(&self) -> Result<Counts, Failed> {
        let guard = self.call(&["guard", OWN]);
        Counts::of(&guard, &self.dir, || fill_log(&self.place))
    }

    fn lock(&self) -> Result<Counts, Failed> {
        // The command lasts longer than it takes to look after it; or else some runs would find it ended, and others not.
        let lock = self.call(&["lock", "bench", "--", "/bin/sleep", "1"]);
        Counts::of(&lock, &self.dir, || fill_log(&self.place))
    }
}
