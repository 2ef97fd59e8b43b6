//! What a dispatched run made: taken from its place into the results, and places that are removed.

use std::io;
use std::path::Path;

use tenure_core::commit::CommitId;
use tenure_core::dispatch::publish::ResultState;
use tenure_core::id::RunId;
use tenure_core::ignore::Ignore;
use tenure_core::key::Key;
use tenure_core::queue::Trust;
use tenure_core::run::Outcome;
use tenure_service::answer::Problem;

use super::publish::{self, Publishable};
use super::runner::Runner;
use super::spool::SpooledEnd;
use super::{model, wrap};
use crate::places::record::{self, PlaceRecord};
use crate::places::{NotTaken, Place, PlaceAnswer, PlaceContent, Repositories};
use tenure_app::location::locks;
use tenure_app::open::Context;

/// The answer's sentence for a result that stayed in its place. The reason is the machine's business.
const NOT_TAKEN: &str = "What it committed could not be taken from its working copy.";

/// A place as its record has it, for a run that touches it.
pub(super) fn place_of(state: &Path, record: &PlaceRecord, run: &str) -> io::Result<Place> {
    let socket = model::socket(state, run);
    if record.wrap.iter().any(|word| word.contains("{socket}")) {
        model::stand_in(state, run)?;
    }
    let shown = wrap::WrapWords {
        dir: &record.dir,
        socket: &socket,
        run,
    };
    Ok(Place {
        dir: record.dir.clone(),
        wrap: wrap::words(&record.wrap, &shown),
        home: (!record.wrap.is_empty()).then(|| wrap::home(&record.dir)),
        is_theirs: record.is_theirs,
    })
}

/// Takes what the last run in a place committed.
pub(super) fn take(
    state: &Path,
    into: &Repositories,
    record: &mut PlaceRecord,
    by: &RunId,
) -> Result<PlaceContent, NotTaken> {
    let place = place_of(state, record, by.as_str())?;
    let last = record.run.as_deref().and_then(|run| RunId::parse(run).ok());
    let taken = place.take(into, last.as_ref().unwrap_or(by), record.at())?;
    if let PlaceContent::Commit(commit) = &taken {
        record.taken = Some(commit.clone());
    }
    record.is_taken = true;
    Ok(taken)
}

/// What a run committed.
struct RunOutput {
    commit: CommitId,
    of: Repositories,
    record: PlaceRecord,
    /// Whether it committed something itself.
    is_new: bool,
}

impl Runner {
    /// Takes what the run committed. Its end says what happened.
    pub fn take_result(&self, end: &mut SpooledEnd) {
        let Some(place) = &self.order.place else {
            return;
        };
        let result = match self.take_from(&place.name) {
            Ok(Some(result)) => result,
            Ok(None) => return,
            Err(why) => {
                end.notes.push(format!("nothing was taken: {why}"));
                end.add_to_answer(NOT_TAKEN);
                return;
            }
        };
        if end.outcome != Outcome::Done.as_str() {
            return;
        }
        let item = &self.item;
        // What is not known to be trusted is not.
        let trust = Trust::parse(&result.record.trust).unwrap_or(Trust::Outside);
        let publishable = Publishable {
            item,
            repo: &place.repo,
            code: &place.code,
            url: &result.record.url,
            commit: &result.commit,
            trust,
            approved: false,
        };
        let keeps_patch = if place.code.publishing.push {
            self.publish(&publishable, &result, end)
        } else {
            result.is_new
        };
        if keeps_patch && let Err(error) = publishable.write_patch(&result.of, &self.files) {
            end.notes.push(format!("no patch could be made: {error}"));
        }
    }

    /// Publishes a result. Returns whether it stays here.
    fn publish(
        &self,
        publishable: &Publishable<'_>,
        result: &RunOutput,
        end: &mut SpooledEnd,
    ) -> bool {
        let why = match publishable.publish(&result.of) {
            Ok(branch) => {
                end.add_to_answer(&format!("Pushed to the branch `{branch}`."));
                end.result = Some(ResultState::Published(branch));
                return false;
            }
            Err(why) => why,
        };
        end.notes.push(format!("the result was not pushed: {why}"));
        let said = publish::said(&why);
        // It may be an earlier run's, whose log is removed first.
        let is_kept = result.of.keep_result(&self.id, &result.commit);
        if why.waits() && is_kept.is_ok() {
            end.result = Some(ResultState::Waits(said));
        } else {
            end.add_to_answer(&format!(
                "The result was not pushed: {said}. It is kept as the result of run {}.",
                self.id
            ));
        }
        true
    }

    fn take_from(&self, name: &str) -> Result<Option<RunOutput>, String> {
        let state = self.context.dir();
        let told = |error: &dyn std::fmt::Display| error.to_string();
        let record = record::load(state, name).map_err(|error| told(&error))?;
        let mut record = record.ok_or("its place is not known")?;
        let locks = locks().map_err(|problem| problem.message)?;
        let into = Repositories::open(state, &record.url, &locks).map_err(|error| told(&error))?;
        let taken = take(state, &into, &mut record, &self.id).map_err(|error| told(&error))?;
        record::store(state, name, &record).map_err(|error| told(&error))?;
        // Also what an earlier run committed and could not publish.
        Ok(record.taken.clone().map(|commit| RunOutput {
            commit,
            of: into,
            record,
            is_new: matches!(taken, PlaceContent::Commit(_)),
        }))
    }
}

/// Removes the places of items that were closed longer ago than the grace period, and results without a log. The
/// reasons against a removal are stored in the place's record.
pub fn remove_over(context: &mut Context) -> Result<(), Problem> {
    let state = context.dir().to_owned();
    forget_results(&state);
    let mut all = record::all(&state);
    all.retain(|(_, record)| !is_used(context, record));
    let items = all.iter().map(|(_, record)| Key::stored(&record.item));
    let items: Vec<Key> = items.filter_map(Result::ok).collect();
    if items.is_empty() {
        return Ok(());
    }
    let over = context.service().items_over(&items)?.value;
    let locks = locks()?;
    for (name, mut record) in all {
        if !over.iter().any(|item| item.as_str() == record.item) {
            continue;
        }
        let Ok(of) = Repositories::open(&state, &record.url, &locks) else {
            continue;
        };
        let run = super::launch::new_id(context);
        let kept = objections(&state, &of, &mut record, &run);
        let done = match kept.is_empty() {
            true => remove(&state, &name, &record, &run),
            false if kept == record.kept => Ok(()),
            false => {
                record.kept = kept;
                record::store(&state, &name, &record)
            }
        };
        if let Err(error) = done {
            record.kept = vec![error.to_string()];
            record::store(&state, &name, &record).ignore("the next check tries again");
        }
        drop(model::remove(&state, run.as_str()));
    }
    Ok(())
}

/// Whether the last run in a place may still be live.
fn is_used(context: &mut Context, record: &PlaceRecord) -> bool {
    let Some(run) = &record.run else {
        return false;
    };
    match context.service().run_record(run) {
        Ok(run) => run.value.end.is_none(),
        // A run that was never recorded did not begin.
        Err(_) => false,
    }
}

/// Why a place is not removed: it has what is nowhere else.
fn objections(
    state: &Path,
    of: &Repositories,
    record: &mut PlaceRecord,
    run: &RunId,
) -> Vec<String> {
    let mut kept = Vec::new();
    for aside in &record.aside {
        if aside.exists() {
            kept.push(format!(
                "{} has work that was not committed",
                aside.display()
            ));
        }
    }
    if !record.is_made || (!record.is_theirs && !record.dir.exists()) {
        return kept;
    }
    if let Err(why) = take(state, of, record, run) {
        kept.push(format!("what it committed cannot be taken: {why}"));
        return kept;
    }
    match place_of(state, record, run.as_str()).map(|place| place.has_more()) {
        Ok(PlaceAnswer::No) => {}
        Ok(PlaceAnswer::Yes) => kept.push("it has work that was not committed".to_owned()),
        Ok(PlaceAnswer::CannotTell(why)) => {
            kept.push(format!("git cannot say what is in it: {why}"));
        }
        Err(error) => kept.push(error.to_string()),
    }
    if let Some(taken) = &record.taken {
        let branches = of.base().git().has_branch_with(taken.as_str());
        if !matches!(branches, Ok(true)) {
            kept.push(format!("{} is on no branch of the forge", taken.short()));
        }
    }
    kept
}

fn remove(state: &Path, name: &str, record: &PlaceRecord, run: &RunId) -> io::Result<()> {
    let place = place_of(state, record, run.as_str())?;
    place.remove_with_home().map_err(io::Error::other)?;
    record::forget(state, name)
}

/// Forgets results whose runs have no log any more, also those of repositories without a place.
fn forget_results(state: &Path) {
    for of in Repositories::all(state) {
        for run in of.runs().unwrap_or_default() {
            let has_log = state.join("runs").join(run.as_str()).exists();
            if !has_log {
                of.forget(&run).ignore("the next check tries again");
            }
        }
    }
}

/// Warnings about places that could not be removed, one sentence each.
pub fn warnings(state: &Path) -> Vec<String> {
    let all = record::all(state).into_iter();
    let kept = all.filter(|(_, record)| !record.kept.is_empty());
    kept.map(|(_, record)| {
        let why: Vec<_> = record
            .kept
            .iter()
            .map(|why| tenure_core::text::line(why))
            .collect();
        format!(
            "the working copy of {} in {} was not removed: {}",
            record.item,
            record.dir.display(),
            why.join("; ")
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use tenure_host::kernel_lock::LockDir;
    use tenure_testkit::scratch_git;

    use super::*;
    use crate::places::RemoteSource;

    #[test]
    fn results_whose_runs_have_no_log_are_forgotten_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let locks = LockDir::open(&dir.path().join("locks")).unwrap();
        let forge = dir.path().join("forge");
        scratch_git(&forge, None);
        let [kept, gone] = [1, 2].map(|number| RunId::mint([number; 16]));
        let opened = ["git.example.org/acme/web", "git.example.org/acme/docs"].map(|name| {
            let of = Repositories::open(&state, name, &locks).unwrap();
            let url = forge.to_str().unwrap();
            let from = RemoteSource { url, settings: &[] };
            let heads = of.fetch(from, None, &locks).unwrap();
            let (branch, commit) = heads.base.unwrap();
            of.keep_result(&kept, &commit).unwrap();
            of.keep_result(&gone, &commit).unwrap();
            // What tenure did not name is not its own to remove.
            for other in ["refs/runs/other", "refs/heads/other"] {
                of.results().set_ref(other, &commit).unwrap();
            }
            (of, format!("refs/heads/{branch}"), commit)
        });
        let log = state.join("runs").join(kept.as_str());
        fs_err::create_dir_all(&log).unwrap();
        forget_results(&state);
        for (of, branch, commit) in &opened {
            let result = |run| of.result_of(run).unwrap();
            assert_eq!((result(&kept), result(&gone)), (Some(commit.clone()), None));
            for other in ["refs/runs/other", "refs/heads/other"] {
                let there = of.results().commit(other).unwrap();
                assert_eq!(there.as_ref(), Some(commit), "{other}");
            }
            let base = of.base().commit(branch).unwrap();
            assert_eq!(base.as_ref(), Some(commit));
        }
        // Its log goes, and its result with it.
        fs_err::remove_dir(&log).unwrap();
        forget_results(&state);
        for (of, ..) in &opened {
            assert_eq!(of.runs().unwrap(), []);
        }
    }

    #[test]
    fn where_no_repository_was_made_none_is_made_to_forget_in() {
        let dir = tempfile::tempdir().unwrap();
        forget_results(dir.path());
        assert_eq!(fs_err::read_dir(dir.path()).unwrap().count(), 0);
    }
}
