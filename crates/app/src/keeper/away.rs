//! What a command does about a store that is away: it answers from memory, and spools what is given up.

use tenure_core::id::{Epoch, SessionToken};
use tenure_core::ignore::Ignore;
use tenure_core::key::Key;
use tenure_core::process::CallerFacts;
use tenure_core::repository::Repository;
use tenure_core::store::StoreError;
use tenure_core::time::Timestamp;
use tenure_core::world::World;
use tenure_host::machine::Machine;
use tenure_host::{caller, clock, cwd, process};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::error::Error;
use tenure_service::view::{ClaimView, SessionView};
use tenure_service::{ActFor, Answer, Failure, HandoffRequest, Killable, ReleaseRequest, Reply};

use super::files::KeeperFiles;
use super::memory::{KeeperMemory, Permitted, RememberedSession};
use super::spool::{Learnt, Spool, SpoolLine};
use crate::location::{machine_of, peeked_state_dir_of, store_place};
use crate::open::Context;
use crate::settings::Settings;

/// What this machine knows without the store.
pub struct Away {
    machine: Machine,
    facts: CallerFacts,
    files: KeeperFiles,
    memory: Option<KeeperMemory>,
}

/// Whether a problem means that a store on a server did not answer.
pub fn is_away(problem: &Problem) -> bool {
    problem.class == Class::Store
        && matches!(problem.kind.as_str(), "store_unavailable" | "store_busy")
}

impl Away {
    /// What is known here; none if the store is not on a server.
    pub fn look() -> Result<Option<Self>, Problem> {
        let settings = Settings::of_user()?;
        let place = store_place(&settings)?;
        if place.server().is_none() {
            return Ok(None);
        }
        let machine = machine_of(&peeked_state_dir_of(&place)?)?;
        let files = KeeperFiles::of(place.dir(), &place.shown(), machine.observer());
        let facts = caller::facts(
            machine.observer().clone(),
            cwd::name().to_string_lossy().into_owned(),
            None,
        );
        Ok(Some(Self {
            memory: KeeperMemory::read(&files.memory(), &machine.observer().boot),
            machine,
            facts,
            files,
        }))
    }

    /// The sessions of this machine when the store last answered, and when that was.
    pub fn remembered(&self) -> Option<(Timestamp, Vec<RememberedSession>)> {
        let memory = self.memory.as_ref()?;
        Some((memory.as_of, memory.sessions()))
    }

    /// Whether this caller may write to what a key protects, while the store is away for this reason.
    pub fn guard(&self, key: &Key, epoch: Option<Epoch>) -> Result<Permitted, Problem> {
        let unknown = |reason: &str| {
            let message = format!(
                "cannot tell whether this session still holds {key}: the store cannot be reached, and {reason}"
            );
            let hint = Hint::run("keeper", ["status"], "to see since when");
            Problem::new(Class::CannotTell, "store_away", message, hint)
        };
        let memory = self
            .memory
            .as_ref()
            .ok_or_else(|| unknown("no keeper of this machine reached it before"))?;
        let session = memory
            .caller(&self.facts)
            .ok_or_else(|| unknown("this session was not known when it last answered"))?;
        let now = clock::since_boot();
        let permitted = memory.guard(&session, key, epoch, &self.files.spool(), now);
        permitted.map_err(|unanswered| unknown(&unanswered.to_string()))
    }

    /// Why this caller may not publish its work in a repository while the store is away; none if it may, or if it is not
    /// a session that holds or lost a claim there.
    pub fn may_not_publish(&self, repository: Option<Repository>) -> Option<Problem> {
        let repository = repository.map(|found| found.on(&self.machine.observer().host));
        let memory = self.memory.as_ref()?;
        let session = memory.caller(&self.facts)?;
        let is_elsewhere = |key: &Key| {
            let named = key.repository();
            named.is_some_and(|name| !repository.as_ref().is_some_and(|here| here.is_called(name)))
        };
        for (key, is_lost) in memory.claims_of(&session) {
            if is_elsewhere(&key) {
                continue;
            }
            if is_lost {
                let message = format!(
                    "this session lost {key} before the store became unavailable, and guard.on_error is closed"
                );
                let hint = Hint::run("keeper", ["status"], "to see since when");
                return Some(Problem::new(Class::CannotTell, "store_away", message, hint));
            }
            if let Err(problem) = self.guard(&key, None) {
                return Some(problem);
            }
        }
        None
    }

    /// Spools a release; the claim that was given up, or none if it is not known here.
    pub fn release(
        &self,
        key: &Key,
        epoch: Option<Epoch>,
        done: bool,
    ) -> Result<Option<(SessionToken, Epoch)>, Problem> {
        let known = self.memory.as_ref().and_then(|memory| {
            let session = memory.caller(&self.facts)?;
            let (token, _, held) = memory.hold(&session, key)?;
            let is_own = token == session.token() && epoch.is_none_or(|epoch| epoch == held);
            is_own.then_some((token, held))
        });
        let Some(known) = known else { return Ok(None) };
        let boot = &self.machine.observer().boot;
        let line = SpoolLine::release(key, done, Some(known), boot);
        self.add(line)?;
        Ok(Some(known))
    }

    /// Spools the end of the caller's session; its token, or none if it is not known here.
    pub fn end(&self) -> Result<Option<SessionToken>, Problem> {
        let session = self
            .memory
            .as_ref()
            .and_then(|memory| memory.caller(&self.facts));
        let Some(session) = session else {
            return Ok(None);
        };
        self.add(SpoolLine::end(
            Some(session.token()),
            &self.machine.observer().boot,
        ))?;
        Ok(Some(session.token()))
    }

    fn add(&self, line: SpoolLine) -> Result<String, Problem> {
        self.files.make().map_err(|error| cannot_spool(&error))?;
        let added = self.files.spool().add(line, new_name(&self.machine));
        added.map_err(|error| cannot_spool(&error))
    }
}

fn cannot_spool(error: &std::io::Error) -> Problem {
    let message = format!("nothing was given up: {error}");
    let hint = Hint::step("make room in the state directory, then try again");
    Problem::new(Class::Store, "store_unavailable", message, hint)
}

fn new_name(machine: &Machine) -> String {
    machine.random().map(|byte| format!("{byte:02x}")).concat()
}

/// What is about to be given up in the store. It is noted first, so that nothing is permitted from memory that was
/// given up.
struct ReleaseNote {
    spool: Spool,
    name: String,
}

impl ReleaseNote {
    /// Notes it; none if the store is not on a server, or no keeper was ever here.
    fn up(context: &Context, key: Option<&Key>) -> Result<Option<Self>, Problem> {
        let place = store_place(&context.settings)?;
        if place.server().is_none() {
            return Ok(None);
        }
        let observer = context.machine.observer();
        let files = KeeperFiles::of(place.dir(), &place.shown(), observer);
        if !files.exist() {
            return Ok(None);
        }
        let line = match key {
            Some(key) => SpoolLine::release(key, false, None, &observer.boot),
            None => SpoolLine::end(None, &observer.boot),
        };
        let own = process::identify(std::process::id(), observer).ok();
        let spool = files.spool();
        let name = spool.add(line.by(own), new_name(&context.machine));
        let name = name.map_err(|error| cannot_spool(&error))?;
        Ok(Some(Self { spool, name }))
    }

    /// Notes what became of it: what was learnt if it was given up.
    fn over(self, learnt: Option<&Learnt>) {
        let noted = match learnt {
            Some(learnt) => self.spool.sent(&self.name, learnt),
            None => self.spool.take_back(&self.name),
        };
        noted.ignore("the line stays, and nothing that it may mean is permitted from memory");
    }
}

/// Gives something up in the store, noted before and after.
fn given_up<T>(
    context: &mut Context,
    key: Option<&Key>,
    act: impl FnOnce(&mut Context) -> Reply<T>,
    learnt: impl FnOnce(&T) -> Learnt,
) -> Result<Answer<T>, Problem> {
    let giving = ReleaseNote::up(context, key)?;
    let answer = act(context);
    if let Some(giving) = giving {
        match &answer {
            Ok(answer) => giving.over(Some(&learnt(&answer.value))),
            // It may have happened. The line stays.
            Err(Failure {
                error: Error::Store(StoreError::OutcomeUnknown { .. }),
                ..
            }) => {}
            Err(_) => giving.over(None),
        }
    }
    answer.map_err(Problem::from)
}

/// Releases a claim.
pub fn release(
    context: &mut Context,
    act_for: &ActFor,
    request: &ReleaseRequest,
) -> Result<Answer<ClaimView>, Problem> {
    given_up(
        context,
        Some(&request.key),
        |context| context.service().release(act_for, request),
        |claim| Learnt {
            epoch: Some(Epoch(claim.epoch)),
            ..Learnt::default()
        },
    )
}

/// Hands a claim over to another session. Until the keeper's next list, neither of the two is answered from memory.
pub fn handoff(
    context: &mut Context,
    act_for: &ActFor,
    request: &HandoffRequest,
) -> Result<Answer<ClaimView>, Problem> {
    given_up(
        context,
        Some(&request.key),
        |context| context.service().handoff(act_for, request),
        |_| Learnt::default(),
    )
}

/// Ends a session.
pub fn end(context: &mut Context, act_for: &ActFor) -> Result<Answer<SessionView>, Problem> {
    given_up(
        context,
        None,
        |context| context.service().end(act_for),
        its_session,
    )
}

/// Records that a session was ended with its process.
pub fn end_killed(
    context: &mut Context,
    act_for: &ActFor,
    killed: &Killable,
    how: &str,
) -> Result<Answer<SessionView>, Problem> {
    given_up(
        context,
        None,
        |context| context.service().end_killed(act_for, killed, how),
        its_session,
    )
}

/// Ends the session of a command that has exited; what it started may go on.
pub fn end_child(
    context: &mut Context,
    child: SessionToken,
    why: &str,
) -> Result<Answer<SessionView>, Problem> {
    given_up(
        context,
        None,
        |context| context.service().end_child(child, why),
        its_session,
    )
}

fn its_session(session: &SessionView) -> Learnt {
    Learnt {
        session: Some(session.id.clone()),
        ..Learnt::default()
    }
}
