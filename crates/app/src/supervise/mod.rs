//! `claim KEY -- CMD`: a command that holds an item exactly while it is alive.
//!
//! The [`trampoline`] waits at a gate while its process is made a session with the claim, and only
//! then executes the command. The process id stays the same, so the claim is held from before the
//! command's first instruction until its process is gone, whatever happens to us. If we are killed
//! before the gate opens, the command never runs; if we are killed later, it continues and holds
//! the claim until it ends.

mod child;
mod locked;
pub mod trampoline;

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure_core::agent;
use tenure_core::id::{AgentName, Epoch, SessionToken};
use tenure_core::key::Key;
use tenure_core::notice::Pending;
use tenure_core::process::{Process, ProcessAppearance};
use tenure_core::store::{StoreError, WaitTopic};
use tenure_host::watch::Watch;
use tenure_service::answer::Problem;
use tenure_service::error::Error;
use tenure_service::{ActFor, Answer, ChildRequest, ChildTurn, ClaimRequest};

use crate::keeper;
use crate::mirror;
use crate::open::Context;
use crate::place::place_here;
use crate::unfinished::Unfinished;
use crate::watch::{CheckResult, Sleep, listen, repeatable, wait_for_turn, watch_signals};
use child::pass_on;
pub use child::readable;
pub use child::{cannot_run, failure};
pub use locked::under_lock;
use trampoline::Trampoline;

/// How a command is run.
pub struct Options<'a> {
    pub command: &'a [OsString],
    /// Whether the command is ended when the item is lost.
    pub ends_when_lost: bool,
    /// How long to wait for the item.
    pub patience: Duration,
    /// Who claims it.
    pub act_for: &'a ActFor,
}

/// How long a command may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(10);
/// The longest time between two checks while the command runs.
const WATCHFUL: Duration = Duration::from_secs(5);

/// How the command ended.
pub struct CommandEnd {
    pub status: ExitStatus,
    /// What it held.
    pub held: Vec<(Key, Epoch)>,
    /// Its session's handle.
    pub session: Option<String>,
    /// Whether it lost its claim while it ran.
    pub lost: bool,
    pub notices: Pending,
}

/// Runs a command under a claim to its end. Messages that cannot wait are reported at once.
pub fn run(
    options: &Options<'_>,
    request: ClaimRequest,
    context: &mut Context,
    tell: &mut dyn FnMut(String),
) -> Result<CommandEnd, Unfinished> {
    let mut watch = watch_signals(context)?;
    let mut trampoline = Trampoline::start(options.command)?;
    let (own, chain) = trampoline.chain(context.machine())?;
    let child = ChildRequest {
        claim: if options.patience.is_zero() {
            request
        } else {
            repeatable(context, &request)
        },
        chain,
        agent: agent_name(&options.command[0].to_string_lossy()),
        title: readable(options.command),
        workdir: place_here(),
    };
    let turn = turn_of(options, &child, context, &mut watch)?;
    let (mut token, mut session, mut held) = (None, None, Vec::new());
    if let ChildTurn::Granted {
        session: granted_to,
        token: granted,
        grants,
    } = turn.value
    {
        for grant in &grants {
            held.push((Key::stored(&grant.key)?, Epoch(grant.epoch)));
        }
        token = Some(granted);
        session = Some(granted_to.handle);
    }
    let word = token.map_or_else(String::new, |token| token.to_string());
    trampoline.release(&word)?;
    mirror::catch_up(context).into_iter().for_each(&mut *tell);
    let mut supervised = Supervised {
        trampoline,
        own,
        token,
        held,
        lost: false,
    };
    let status = supervised.wait_for_child(context, &mut watch, options.ends_when_lost, tell)?;
    if let Some(why) = supervised.trampoline.not_executed(options.command) {
        return Err(why);
    }
    Ok(CommandEnd {
        status,
        held: supervised.held,
        session,
        lost: supervised.lost,
        notices: turn.notices,
    })
}

/// Waits until the command may run.
fn turn_of(
    options: &Options<'_>,
    child: &ChildRequest,
    context: &mut Context,
    watch: &mut Watch,
) -> Result<Answer<ChildTurn>, Unfinished> {
    let act_for = options.act_for;
    if options.patience.is_zero() {
        return Ok(context.service().claim_for_child(act_for, child, None)?);
    }
    wait_for_turn(
        context,
        watch,
        options.patience,
        |service, waiting| service.claim_for_child(act_for, child, Some(waiting)),
        |turn| match turn {
            ChildTurn::Wait(wait) => CheckResult::Wait(wait),
            done => CheckResult::Done(done),
        },
    )
}

/// A name for the command's session.
fn agent_name(program: &str) -> AgentName {
    let looks = ProcessAppearance {
        exe: program.to_owned(),
        ..ProcessAppearance::default()
    };
    match agent::recognise(&looks) {
        Some(spec) => AgentName::known(spec.name),
        None => agent::name_from_looks(&looks),
    }
}

/// A command that runs under a claim.
struct Supervised {
    trampoline: Trampoline,
    own: Process,
    token: Option<SessionToken>,
    held: Vec<(Key, Epoch)>,
    lost: bool,
}

/// How a command ended, for the log.
fn end_of(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the command ended with exit {code}"),
        (None, signal) => {
            let signal = signal.unwrap_or_default();
            format!("the command was killed by signal {signal}")
        }
    }
}

impl Supervised {
    /// Waits for the command's end, passes signals on, and notices when the claim is lost.
    fn wait_for_child(
        &mut self,
        context: &mut Context,
        watch: &mut Watch,
        ends_when_lost: bool,
        tell: &mut dyn FnMut(String),
    ) -> Result<ExitStatus, Problem> {
        let watched = [self.own.clone()];
        let wake_files = listen(context, watch, &self.topics());
        let mut deadline: Option<Instant> = None;
        let status = loop {
            match self.trampoline.child.try_wait() {
                Ok(Some(status)) => break Ok(status),
                Ok(None) => {}
                Err(error) => break Err(child::unwaited(&error)),
            }
            let seen = context.service().changes().ok().filter(|_| !wake_files);
            if !self.lost
                && let Some(how) = self.has_lost(context)
            {
                self.lost = true;
                tell(self.loss(ends_when_lost, how));
                if ends_when_lost {
                    self.signal(Signal::TERM);
                    deadline = Some(tenure_host::clock::instant() + GRACE);
                }
            }
            if deadline.is_some_and(|deadline| tenure_host::clock::instant() >= deadline) {
                self.signal(Signal::KILL);
                deadline = None;
            }
            let mut until = Sleep {
                watch: &mut *watch,
                processes: &watched,
                seen,
                limit: if deadline.is_some() {
                    Duration::from_millis(200)
                } else {
                    WATCHFUL
                },
            };
            let happened = until.something_happens(context).or_else(|_| {
                // If the store becomes unavailable, the command continues, and so do we.
                until.seen = None;
                until.something_happens(context)
            })?;
            if let Some(signal) = happened {
                pass_on(&self.trampoline.child, signal);
            }
        };
        let why = status.as_ref().map_or_else(
            |_| "the command ended, and its exit code is unknown".to_owned(),
            |status| end_of(*status),
        );
        if let Some(said) = self.record_end(context, &why) {
            tell(said);
        }
        status
    }

    fn signal(&self, signal: Signal) {
        child::send(&self.trampoline.child, signal);
    }

    /// Records the end. The claim is free as soon as the process is gone, even if the store does
    /// not answer now.
    fn record_end(&self, context: &mut Context, why: &str) -> Option<String> {
        let token = self.token?;
        let problem = keeper::end_child(context, token, why).err()?;
        let why = problem.message;
        Some(format!("cannot record the end of {token}: {why}"))
    }

    /// The topics of events that may cost the command its claim.
    fn topics(&self) -> Vec<WaitTopic> {
        let keys = self.held.iter().map(|(key, _)| WaitTopic::Key(key.clone()));
        let own = self.token.map(|token| WaitTopic::Session(token.id));
        keys.chain(own).collect()
    }

    /// How the claim was lost, if it was. A store that exists but does not answer proves no loss.
    fn has_lost(&self, context: &mut Context) -> Option<&'static str> {
        let token = self.token?;
        self.held.iter().find_map(|(key, epoch)| {
            match context.service().still_holds(token.id, key, *epoch) {
                Ok(answer) if !answer.value => Some("was taken over from this command"),
                Err(failure) if matches!(failure.error, Error::Store(StoreError::Replaced { .. })) => {
                    Some("is no longer held: the store was removed or replaced while this command ran")
                }
                Ok(_) | Err(_) => None,
            }
        })
    }

    fn loss(&self, ends_when_lost: bool, how: &str) -> String {
        let keys: Vec<String> = self.held.iter().map(|(key, _)| key.to_string()).collect();
        let what = if ends_when_lost {
            "ending the command"
        } else {
            "the command keeps running"
        };
        format!("{} {how}; {what}", keys.join(", "))
    }
}
