//! Running a use case: begin, run, look, repeat, commit.

use std::collections::BTreeMap;

use super::context::{Ctx, Stop, Surroundings};
use crate::error::Error;
use crate::id::SessionId;
use crate::notice::{Channel, Notice, Pending, counts};
use crate::policy::Policy;
use crate::process::{CallerFacts, Process, Sighting, Survivors};
use crate::store::{Mode, SessionFilter, Store, StoreError};
use crate::tree_lock::TreeChange;
use crate::world::World;

/// A use case's answer, with what the caller must be told.
#[derive(Debug, Clone)]
pub struct Answer<T> {
    /// The answer.
    pub value: T,
    /// Notices of the calling session; they wait until [`Service::delivered`] says that they were told.
    pub notices: Pending,
}

/// A use case's refusal or failure, with what the caller must be told.
#[derive(Debug, Clone)]
pub struct Failure {
    /// What went wrong.
    pub error: Error,
    /// Notices of the calling session; they wait until [`Service::delivered`] says that they were told.
    pub notices: Pending,
    /// The store that was asked, where one was.
    pub store: Option<String>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            error,
            notices: Pending::default(),
            store: None,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Error::Store(error).into()
    }
}

/// What every use case returns.
pub type Reply<T> = Result<Answer<T>, Failure>;

/// How often a use case loses a race before the store counts as busy. Each time some other caller got
/// further, so this is met only where something is wrong.
const MOST_RACES: usize = 200;
/// How often it stops to look at something new. Each look is kept, so this is met only where what there
/// is to look at changes faster than it can be looked at.
const MOST_LOOKS: usize = 10_000;

/// The use cases.
pub struct Service<'a> {
    store: &'a mut dyn Store,
    world: &'a dyn World,
    facts: &'a CallerFacts,
    policy: Policy,
}

impl<'a> Service<'a> {
    /// A service for one caller.
    pub fn new(
        store: &'a mut dyn Store,
        world: &'a dyn World,
        facts: &'a CallerFacts,
        policy: Policy,
    ) -> Self {
        Self {
            store,
            world,
            facts,
            policy,
        }
    }

    /// A number that changes whenever somebody else changed something.
    pub fn changes(&mut self) -> Result<u64, Failure> {
        Ok(self.store.changes()?)
    }

    /// Where the store is, for people.
    pub fn location(&self) -> String {
        self.store.location()
    }

    /// Keeps that notices were written to a channel, as far as they count as told there.
    pub fn delivered(&mut self, notices: &[Notice], channel: Channel) -> Reply<()> {
        self.run(Mode::Write, |ctx| {
            let mut told: BTreeMap<SessionId, Vec<&Notice>> = BTreeMap::new();
            for notice in notices {
                told.entry(notice.to).or_default().push(notice);
            }
            for (to, notices) in told {
                let reader = ctx.reader(to)?;
                let counted = |notice: &&&Notice| counts(notice.kind, reader, channel);
                let counted = notices.iter().filter(counted);
                let ids: Vec<_> = counted.filter_map(|notice| notice.id).collect();
                let at = ctx.now.wall;
                ctx.tx.mark_delivered(to, &ids, at)?;
            }
            Ok(())
        })
    }

    /// Runs a use case until it has what it needs.
    pub(super) fn run<T>(
        &mut self,
        mode: Mode,
        mut case: impl FnMut(&mut Ctx<'_>) -> Result<T, Stop>,
    ) -> Reply<T> {
        let mut mode = mode;
        let mut seen: Vec<(Process, Sighting)> = Vec::new();
        let mut left_behind: Vec<(SessionId, Survivors)> = Vec::new();
        let mut surroundings = None;
        let mut files = Vec::new();
        let (mut races, mut looks) = (0, 0);
        while races < MOST_RACES && looks < MOST_LOOKS {
            let location = self.store.location();
            let mut tx = match self.store.begin(mode) {
                Err(StoreError::Conflict) => {
                    races += 1;
                    continue;
                }
                other => other?,
            };
            let now = tx.now()?;
            let mut ctx = Ctx {
                tx: tx.as_mut(),
                mode,
                now,
                policy: &self.policy,
                facts: self.facts,
                world: self.world,
                location,
                seen: &seen,
                left_behind: &left_behind,
                surroundings: surroundings.as_ref(),
                files: &files,
                notices: Pending::default(),
                trees: Vec::new(),
                own: None,
            };
            let outcome = case(&mut ctx);
            let notices = std::mem::take(&mut ctx.notices);
            let trees = std::mem::take(&mut ctx.trees);
            match outcome {
                Ok(value) => match tx.commit() {
                    Ok(()) => {
                        self.lock_trees(&trees);
                        return Ok(Answer { value, notices });
                    }
                    Err(StoreError::Conflict) => races += 1,
                    Err(error) => return Err(error.into()),
                },
                Err(Stop::Refuse(error)) => match tx.commit() {
                    Ok(()) => {
                        self.lock_trees(&trees);
                        return Err(Failure {
                            error: *error,
                            notices,
                            store: Some(self.store.location()),
                        });
                    }
                    Err(StoreError::Conflict) => races += 1,
                    Err(error) => return Err(error.into()),
                },
                Err(Stop::Look(processes)) => {
                    drop(tx);
                    looks += 1;
                    for process in processes {
                        let sighting = self.world.look(process.pid);
                        seen.push((process, sighting));
                    }
                }
                Err(Stop::Survivors(wanted)) => {
                    drop(tx);
                    looks += 1;
                    let (sessions, signs): (Vec<_>, Vec<_>) = wanted.into_iter().unzip();
                    left_behind.extend(sessions.into_iter().zip(self.world.survivors(&signs)));
                }
                Err(Stop::Surroundings(pid, dir)) => {
                    drop(tx);
                    looks += 1;
                    surroundings = Some(Surroundings {
                        chain: pid.map_or_else(Vec::new, |pid| self.world.chain(pid)),
                        place: self.world.place(&dir),
                    });
                }
                Err(Stop::WhereAre(paths)) => {
                    drop(tx);
                    looks += 1;
                    for path in paths {
                        let found = self.world.file(&path);
                        files.push((path, found));
                    }
                }
                Err(Stop::Write(stronger)) => mode = stronger,
                Err(Stop::Store(StoreError::Conflict)) => races += 1,
                Err(Stop::Store(error)) => return Err(error.into()),
            }
        }
        Err(StoreError::Busy {
            store: self.store.location(),
        }
        .into())
    }

    /// Locks the worktrees of sessions that began, and frees those of sessions that stopped unless others
    /// are there. Where that fails, a lock stays until the next session of that worktree ends.
    fn lock_trees(&mut self, changes: &[TreeChange]) {
        for change in changes {
            if change.begins {
                self.world.set_tree_lock(&change.dir, Some(&change.handle));
            } else if self.world.tree_lock(&change.dir).as_deref() == Some(&change.handle)
                && let Ok(next) = self.still_there(change)
            {
                self.world.set_tree_lock(&change.dir, next.as_deref());
            }
        }
    }

    /// Another open session in the same worktree.
    fn still_there(&mut self, change: &TreeChange) -> Result<Option<String>, StoreError> {
        let filter = SessionFilter {
            repo: Some(change.repo.clone()),
            ..SessionFilter::default()
        };
        let open = self.store.begin(Mode::Read)?.list_sessions(&filter)?;
        let root = |dir: &str| self.world.file(dir).map(|found| found.root);
        let here = root(&change.dir);
        let other = open.into_iter().find(|session| {
            session.handle.as_str() != change.handle && root(&session.place.dir) == here
        });
        Ok(other.map(|session| session.handle.to_string()))
    }
}
