//! What a person waits for: `tenure ps` beside 200 living agents, in stores of ten thousand and of a
//! million sessions that are nearly all over.
//!
//! The agents are processes of their own that look like Claude Code, so that the process table has them too:
//! finding agents that nobody registered is part of the price.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tenure_core::id::AgentName;
use tenure_core::ignore::Ignore;
use tenure_core::registration::RegistrationSource;
use tenure_core::session;
use tenure_service::{RegisterRequest, Subject};

use super::Bench;
use crate::Failed;
use crate::place::{BenchStore, answered};
use crate::program::{ProgramCall, Surroundings};
use crate::report::{Budget, Measurement, Unit};
use crate::sample::Sample;
use crate::seeded::{LARGE, Seeded, cut_log};

const AGENTS: usize = 200;
/// The store of somebody who has used it for a while.
const USED: u32 = 10_000;
/// What a person does not notice.
const BUDGET: Budget = Budget::AtMost(100.0);
/// How much slower the past may make the present.
const PAST: Budget = Budget::AtMost(1.3);

/// Living processes, ended with this.
struct Agents(Vec<Child>);

impl Drop for Agents {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().ignore("it may have ended by itself");
            child.wait().ignore("only its end matters");
        }
    }
}

impl Agents {
    fn start(dir: &Path) -> Result<Self, Failed> {
        let program = dir.join("claude");
        fs_err::copy("/bin/sleep", &program)?;
        let mut agents = Self(Vec::new());
        for _ in 0..AGENTS {
            let mut command = Command::new(&program);
            command.arg("100000").stdin(Stdio::null());
            agents.0.push(command.spawn()?);
        }
        Ok(agents)
    }

    fn register(&self, place: &BenchStore) -> Result<(), Failed> {
        let mut store = place.store()?;
        for child in &self.0 {
            let (chain, _) = tenure_host::process::chain_from(child.id(), place.observer());
            let request = RegisterRequest {
                subject: Subject::Given(chain.into_iter().take(1).collect()),
                agent: Some(AgentName::known("claude")),
                native_id: None,
                source: RegistrationSource::Start,
                hosted: false,
                workdir: session::Workdir {
                    dir: "/".into(),
                    repo: None,
                    branch: None,
                },
                place_named: true,
                title: None,
                parent: None,
                reason: None,
                transcript: None,
                metadata: BTreeMap::new(),
            };
            answered(place.service(&mut store).register(&request))?;
        }
        Ok(())
    }
}

pub(super) fn rows(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let dir = bench.dir("people")?;
    let agents = Agents::start(&dir)?;
    let used = Seeded::fresh(&dir.join("used"), USED)?;
    let large = Seeded::copied(&bench.kept, &dir.join("large"), LARGE)?;
    let ours = listing(bench, &agents, &used.place, &dir.join("at-used"))?;
    let theirs = listing(bench, &agents, &large.place, &dir.join("at-large"))?;
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for round in 1..=bench.times(50) {
        if round % 10 == 1 {
            bench.say(&format!("people: round {round}"));
        }
        few.push(ours.timed()?);
        many.push(theirs.timed()?);
    }
    let (few, many) = (Sample::of(few), Sample::of(many));
    let what = "tenure ps, 200 living agents: 1,000,000 sessions : 10,000 sessions";
    Ok(vec![
        time("tenure ps, 200 living agents, 10,000 sessions", &few),
        time("tenure ps, 200 living agents, 1,000,000 sessions", &many),
        Measurement::ratio("people", what, &many, &few, PAST),
    ])
}

/// The call that is measured, in a store where everybody living is registered and nobody dead is open.
fn listing(
    bench: &Bench,
    agents: &Agents,
    place: &BenchStore,
    dir: &Path,
) -> Result<ProgramCall, Failed> {
    agents.register(place)?;
    let around = Surroundings::make(dir, place.dir())?;
    let call = around.call(&bench.programs.tenure, ["ps", "--limit", "0"]);
    // The first read records the deaths that the seed left open.
    call.run()?;
    cut_log(place)?;
    Ok(around.call(&bench.programs.tenure, ["ps"]))
}

fn time(what: &str, sample: &Sample) -> Measurement {
    let mut row = Measurement {
        group: "people",
        what: what.to_owned(),
        ours: sample.shown(),
        baseline: String::new(),
        number: sample.median() / 1000.0,
        unit: Unit::Millis,
        budget: BUDGET,
        more: serde_json::Map::new(),
    };
    row.add("ours", sample.json());
    row
}
