//! Reading runs.

use tenure_core::hint::Hint;
use tenure_core::id::{AgentName, NativeId, RunId};
use tenure_core::key::Key;
use tenure_core::liveness::Liveness;
use tenure_core::process::Process;
use tenure_core::run::Run;
use tenure_core::store::{RunFilter, TxMode};
use tenure_core::time::Timestamp;

use super::view::RunView;
use crate::caller;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::list::{Listed, MAX_COUNTED, Page, counted, page, page_size, unless_damaged};
use crate::transact::{Reply, Service};
use crate::unseen::Unseen;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRuns {
    pub item: Option<Key>,
    pub agent: Option<AgentName>,
    /// Only those that failed.
    pub failed: bool,
    /// At most this many, newest first; zero means all.
    pub limit: usize,
}

impl ListRuns {
    fn filter(&self) -> RunFilter {
        RunFilter {
            item: self.item.clone(),
            agent: self.agent.clone(),
            failed: self.failed,
            limit: self.limit,
            readable_only: true,
            ..RunFilter::default()
        }
    }
}

/// The place of a run in a list, newest first.
pub type RunPlace = (Timestamp, RunId);

/// A run whose runner is gone and whose end is not recorded.
#[derive(Debug, Clone)]
pub struct LeftRun {
    pub run: RunView,
    /// Its record, for a caller that judges it by its log.
    pub record: Run,
    /// Whether its agent is gone too.
    pub is_over: bool,
}

impl Service<'_> {
    pub fn list_runs(&mut self, request: &ListRuns) -> Reply<Listed<RunView>> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let filter = request.filter();
            let runs = ctx.tx.list_runs(&filter)?;
            let items = views(ctx, runs)?;
            let limit = filter.limit;
            Listed::counted_to(items, limit, |count_to| {
                ctx.tx.count_runs(&RunFilter { count_to, ..filter })
            })
        })
    }

    /// How many runs are beyond a request's limit, and whether there may be more, for a reader of its pages.
    pub fn runs_start(&mut self, request: &ListRuns) -> Reply<(usize, bool)> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            if request.limit == 0 {
                return Ok((0, false));
            }
            let count_to = request.limit + MAX_COUNTED + 1;
            let filter = RunFilter {
                count_to,
                ..request.filter()
            };
            let all = ctx.tx.count_runs(&filter)?;
            Ok(counted(all.saturating_sub(request.limit)))
        })
    }

    /// The next runs, older than this place: at most as many as the request wants, and not too many for one
    /// transaction.
    pub fn runs_page(
        &mut self,
        request: &ListRuns,
        before: Option<&RunPlace>,
    ) -> Reply<Page<RunView, RunPlace>> {
        self.transact(TxMode::Read, |ctx| {
            let size = page_size(request.limit);
            let (runs, is_full) = page(ctx, size, |ctx, limit| {
                let filter = RunFilter {
                    limit,
                    before: before.cloned(),
                    ..request.filter()
                };
                Ok(ctx.tx.list_runs(&filter)?)
            })?;
            let last = runs.last().map(|run| (run.created_at, run.id.clone()));
            Ok(Page {
                items: views(ctx, runs)?,
                next: last.filter(|_| is_full),
            })
        })
    }

    pub fn show_run(&mut self, name: &str) -> Reply<RunView> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let run = ctx.find_run(name)?;
            ctx.run_view(&run)
        })
    }

    /// The record of a run.
    pub fn run_record(&mut self, name: &str) -> Reply<Run> {
        self.transact(TxMode::Read, |ctx| ctx.find_run(name))
    }

    /// The process of a run's agent, if it is alive.
    pub fn run_agent(&mut self, id: &RunId) -> Reply<Option<Process>> {
        self.transact(TxMode::Read, |ctx| {
            let run = ctx.run_of(id)?;
            let life = ctx.run_life(&run)?;
            let lives = life.agent == Liveness::Alive;
            Ok(life.process.filter(|_| lives))
        })
    }

    /// The directory of the newest run of an item on this machine.
    pub fn newest_run_dir(&mut self, item: &Key) -> Reply<String> {
        self.transact(TxMode::Read, |ctx| {
            let of_item = RunFilter {
                item: Some(item.clone()),
                ..RunFilter::default()
            };
            let runs = ctx.tx.list_runs(&of_item)?;
            let here = runs.into_iter().find(|run| run.host == ctx.observer.host);
            here.map(|run| run.dir).ok_or_else(|| {
                let item = item.as_str();
                Stop::from(Error::NotFound {
                    what: format!("no run of {item} on this machine"),
                    hint: Hint::run("runs", ["--item", item], "to list its runs"),
                })
            })
        })
    }

    /// Runs of this host without a recorded end and without a runner.
    pub fn left_runs(&mut self) -> Reply<Vec<LeftRun>> {
        self.transact(TxMode::Read, |ctx| {
            let open = ctx.tx.list_runs(&RunFilter {
                open: true,
                readable_only: true,
                ..RunFilter::default()
            })?;
            look_at(ctx, &open)?;
            let mut left = Vec::new();
            for record in open {
                let life = ctx.run_life(&record)?;
                if record.host == ctx.observer.host && matches!(life.runner, Liveness::Dead(_)) {
                    left.push(LeftRun {
                        run: ctx.run_view(&record)?,
                        is_over: life.is_over(),
                        record,
                    });
                }
            }
            Ok(left)
        })
    }

    /// The run in a conversation whose end was recorded last. Its log shows what the agent had used
    /// by then.
    pub fn newest_run_in(&mut self, agent: &AgentName, native: &NativeId) -> Reply<Option<RunId>> {
        self.transact(TxMode::Read, |ctx| {
            let newest = ctx.tx.newest_left(agent, native)?;
            Ok(newest.map(|(run, _)| run))
        })
    }
}

fn views(ctx: &mut Ctx<'_>, runs: Vec<Run>) -> Result<Vec<RunView>, Stop> {
    look_at(ctx, &runs)?;
    let mut items = Vec::new();
    for run in runs {
        let view = ctx.run_view(&run);
        items.extend(unless_damaged(ctx, run.id.as_str(), view)?);
    }
    Ok(items)
}

/// Makes sure that the processes of all these runs have been observed, in one pass.
fn look_at(ctx: &mut Ctx<'_>, runs: &[Run]) -> Result<(), Stop> {
    let mut unseen = Unseen::default();
    for run in runs.iter().filter(|run| run.is_open()) {
        let life = ctx.run_life(run);
        unseen.gather(life)?;
    }
    unseen.look()
}
