//! `claim KEY -- CMD`: a command that holds an item exactly while it lives.
//!
//! tenure starts itself as a trampoline that waits at a gate, makes that process a session with the
//! claim, and only then lets it execute the command: the process id stays the same, so the claim is held
//! from before the command's first instruction until its process is gone, whatever becomes of us.
//! If we are killed before the gate opens, the command never runs; if we are killed later, it runs on
//! and holds the claim until it ends.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Map, Value, json};
use tenure_core::agent;
use tenure_core::id::{AgentName, Epoch, SessionToken};
use tenure_core::key::Key;
use tenure_core::notice::Pending;
use tenure_core::process::{Looks, Process};
use tenure_core::reason::Reason;
use tenure_core::store::{StoreError, Topic};
use tenure_core::world::World;
use tenure_host::caller::SESSION_VARIABLE;
use tenure_host::gate::{self, Gate};
use tenure_host::process;
use tenure_host::watch::Watch;
use tenure_service::error::Error;
use tenure_service::{Answer, ChildRequest, ChildTurn, ClaimRequest, Waiting};

use crate::app::{App, Opened, place_here};
use crate::child::{self, OWN_FAILURE, own_trouble};
use crate::exit::Exit;
use crate::mirrors;
use crate::output::{Outcome, Shown, Trouble, add_notices, warn};
use crate::waiting::{Step, Until, listen, own_place, wait_for_turn, watch_signals};

/// What to do when the item is taken over while the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OnLost {
    /// End the command
    Term,
    /// Say so and let it run
    Warn,
}

/// How a command is run.
pub struct Options<'a> {
    /// The command line.
    pub command: &'a [OsString],
    /// What to do when the item is lost.
    pub on_lost: OnLost,
    /// The exit code when the item is not to be had.
    pub conflict_exit: Exit,
    /// How long to wait for it.
    pub patience: Duration,
    /// Why, on record.
    pub reason: Option<&'a Reason>,
}

/// How long a command may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(10);
/// How long we sleep at most while the command runs.
const WATCHFUL: Duration = Duration::from_secs(5);

/// The trampoline's own arguments.
#[derive(Debug, clap::Args)]
pub struct ExecArgs {
    /// The descriptor to wait at
    #[arg(long)]
    gate: i32,

    /// The command
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs a command under a claim. Its output is its own; ours is on stderr.
pub fn run(options: &Options<'_>, request: Result<ClaimRequest, Trouble>, app: &App) -> Outcome {
    match request.and_then(|request| hold_and_run(options, request, app)) {
        Ok(ended) => {
            let channel = match app.style.json {
                true => app.style.report(&ended.report()),
                false => app.style.tell(&ended.notices),
            };
            app.delivered(&ended.notices, channel);
            Ok(Shown::silent(ended.exit()))
        }
        Err(trouble) => Err(child::conflict_or_failure(trouble, options.conflict_exit)),
    }
}

/// What became of the command.
struct Ended {
    status: ExitStatus,
    held: Vec<(Key, Epoch)>,
    session: Option<String>,
    lost: bool,
    notices: Pending,
}

impl Ended {
    fn exit(&self) -> Exit {
        child::exit_of(self.status)
    }

    fn report(&self) -> Value {
        let claims: Vec<_> = self
            .held
            .iter()
            .map(|(key, epoch)| json!({"key": key, "epoch": epoch}))
            .collect();
        let command = json!({"exit": self.exit().0, "session": self.session, "claims": claims, "lost": self.lost});
        let mut object = Map::new();
        object.insert("v".into(), json!(1));
        object.insert("command".into(), command);
        add_notices(&mut object, &self.notices);
        Value::Object(object)
    }
}

fn hold_and_run(options: &Options<'_>, request: ClaimRequest, app: &App) -> Result<Ended, Trouble> {
    let mut opened = app.open()?;
    let mut watch = watch_signals(&opened)?;
    let runner = Runner::start(options.command)?;
    let chain = runner.chain(&opened)?;
    let own = chain.first().map(|own| own.process.clone());
    let child = ChildRequest {
        claim: request,
        chain,
        agent: agent_name(&options.command[0].to_string_lossy()),
        title: child::readable(options.command),
        place: place_here(),
    };
    let turn = turn_of(options, &child, &mut opened, &mut watch, app)?;
    let mut supervised = Supervised {
        runner,
        own,
        token: None,
        held: Vec::new(),
        handle: None,
    };
    let mut word = String::new();
    if let ChildTurn::Granted {
        session,
        token,
        grants,
    } = turn.value
    {
        for grant in &grants {
            supervised
                .held
                .push((Key::stored(&grant.key)?, Epoch(grant.epoch)));
        }
        word = token.to_string();
        supervised.token = Some(token);
        supervised.handle = Some(session.handle);
    }
    supervised.runner.let_go(&word)?;
    mirrors::catch_up(app);
    let mut ended = supervised.see_through(&mut opened, &mut watch, options.on_lost)?;
    ended.notices = turn.notices;
    Ok(ended)
}

/// Waits until the command may run.
fn turn_of(
    options: &Options<'_>,
    child: &ChildRequest,
    opened: &mut Opened,
    watch: &mut Watch,
    app: &App,
) -> Result<Answer<ChildTurn>, Trouble> {
    let naming = app.naming(options.reason);
    if options.patience.is_zero() {
        return Ok(opened.service().claim_for_child(&naming, child, None)?);
    }
    let mut waiting: Waiting = own_place(opened)?;
    wait_for_turn(opened, watch, options.patience, |service, ticket| {
        waiting.ticket = ticket;
        let answer = service.claim_for_child(&naming, child, Some(&waiting))?;
        Ok(Answer {
            damaged: None,
            value: match answer.value {
                ChildTurn::Wait(wait) => Step::Wait(wait),
                done => Step::Done(done),
            },
            notices: answer.notices,
        })
    })
}

/// A name for the command's session.
fn agent_name(program: &str) -> AgentName {
    let looks = Looks {
        exe: program.to_owned(),
        ..Looks::default()
    };
    match agent::recognise(&looks) {
        Some(spec) => AgentName::known(spec.name),
        None => agent::name_from_looks(&looks),
    }
}

/// The trampoline and then the command: one process all along.
struct Runner {
    child: Child,
    gate: Option<Gate>,
}

impl Runner {
    fn start(command: &[OsString]) -> Result<Self, Trouble> {
        let failed =
            |error: std::io::Error| own_trouble(format!("cannot start a process: {error}"));
        let mut gate = Gate::new().map_err(failed)?;
        let program = tenure_host::env::program().map_err(failed)?;
        let child = Command::new(program)
            .args(["__exec", "--gate", &gate.number().to_string(), "--"])
            .args(command)
            .spawn()
            .map_err(failed)?;
        gate.child_started();
        Ok(Self {
            child,
            gate: Some(gate),
        })
    }

    fn chain(&self, opened: &Opened) -> Result<Vec<tenure_core::process::Ancestor>, Trouble> {
        let (chain, broken) = process::chain_from(self.child.id(), opened.machine().observer());
        match broken {
            Some(why) if chain.is_empty() => Err(own_trouble(format!(
                "cannot look at the command's process: {why}"
            ))),
            _ => Ok(chain),
        }
    }

    fn let_go(&mut self, word: &str) -> Result<(), Trouble> {
        match self.gate.take() {
            Some(gate) => gate
                .open(word)
                .map_err(|error| own_trouble(format!("the command did not start: {error}"))),
            None => Ok(()),
        }
    }

    fn signal(&self, signal: i32) {
        child::send(&self.child, signal);
    }
}

/// A trampoline that was not let through ends by itself; it must still be waited for.
impl Drop for Runner {
    fn drop(&mut self) {
        if self.gate.take().is_some() && self.child.wait().is_err() {
            // Nothing is left to wait for.
        }
    }
}

/// A command that runs under a claim of its own.
struct Supervised {
    runner: Runner,
    own: Option<Process>,
    token: Option<SessionToken>,
    held: Vec<(Key, Epoch)>,
    handle: Option<String>,
}

impl Supervised {
    /// Waits for the command's end, passes signals on, and notices when the claim is lost.
    fn see_through(
        &mut self,
        opened: &mut Opened,
        watch: &mut Watch,
        on_lost: OnLost,
    ) -> Result<Ended, Trouble> {
        let watched: Vec<Process> = self.own.clone().into_iter().collect();
        let bells = listen(opened, watch, &self.topics());
        let mut lost = false;
        let mut deadline: Option<std::time::Instant> = None;
        let status = loop {
            let ended = self.runner.child.try_wait();
            if let Some(status) = ended
                .map_err(|error| own_trouble(format!("cannot wait for the command: {error}")))?
            {
                break status;
            }
            let seen = opened.service().changes().ok().filter(|_| !bells);
            if !lost && let Some(how) = self.has_lost(opened) {
                lost = true;
                deadline = self.lose(on_lost, how);
            }
            if deadline.is_some_and(|deadline| tenure_host::clock::instant() >= deadline) {
                self.runner.signal(Signal::KILL.as_raw());
                deadline = None;
            }
            let mut until = Until {
                watch: &mut *watch,
                processes: &watched,
                seen,
                limit: if deadline.is_some() {
                    Duration::from_millis(200)
                } else {
                    WATCHFUL
                },
            };
            let happened = until.something_happens(opened).or_else(|_| {
                // The command runs on whatever becomes of the store, and so do we.
                until.seen = None;
                until.something_happens(opened)
            })?;
            if let Some(signal) = happened {
                child::pass_on(&self.runner.child, signal);
            }
        };
        let why = match (status.code(), status.signal()) {
            (Some(code), _) => format!("the command ended with exit {code}"),
            (None, signal) => format!(
                "the command was killed by signal {}",
                signal.unwrap_or_default()
            ),
        };
        self.record_end(opened, &why);
        Ok(Ended {
            status,
            held: self.held.clone(),
            session: self.handle.clone(),
            lost,
            notices: Pending::default(),
        })
    }

    /// The claim is free with the process; a store that does not answer now changes nothing about that.
    fn record_end(&self, opened: &mut Opened, why: &str) {
        let Some(token) = self.token else { return };
        if let Err(failure) = opened.service().end_child(token, why) {
            let text = format!(
                "warning: the end of {token} was not recorded: {}",
                failure.error
            );
            warn(&text);
        }
    }

    /// What may cost the command its claim.
    fn topics(&self) -> Vec<Topic> {
        let keys = self.held.iter().map(|(key, _)| Topic::Key(key.clone()));
        let own = self.token.map(|token| Topic::Session(token.id));
        keys.chain(own).collect()
    }

    /// How the claim was lost, if it was. A store that is there and does not answer proves no loss.
    fn has_lost(&self, opened: &mut Opened) -> Option<&'static str> {
        let token = self.token?;
        self.held.iter().find_map(|(key, epoch)| {
            match opened.service().still_holds(token.id, key, *epoch) {
                Ok(answer) if !answer.value => Some("was taken from this command"),
                Err(failure) if matches!(failure.error, Error::Store(StoreError::Replaced { .. })) => {
                    Some("no longer counts: the store was removed or replaced while this command ran")
                }
                Ok(_) | Err(_) => None,
            }
        })
    }

    fn lose(&self, on_lost: OnLost, how: &str) -> Option<std::time::Instant> {
        let keys: Vec<String> = self.held.iter().map(|(key, _)| key.to_string()).collect();
        let what = match on_lost {
            OnLost::Term => "it is ended",
            OnLost::Warn => "it runs on",
        };
        warn(format!("warning: {} {how}; {what}", keys.join(", ")));
        if on_lost == OnLost::Warn {
            return None;
        }
        self.runner.signal(Signal::TERM.as_raw());
        Some(tenure_host::clock::instant() + GRACE)
    }
}

/// The trampoline: waits at the gate, then becomes the command.
pub fn exec(args: &ExecArgs) -> Outcome {
    let word = gate::wait(args.gate)
        .map_err(|error| own_trouble(format!("no gate to wait at: {error}")))?;
    let Some(word) = word else {
        return Ok(Shown::silent(OWN_FAILURE));
    };
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]);
    if !word.is_empty() {
        command.env(SESSION_VARIABLE, word);
    }
    let error = command.exec();
    Err(child::exec_trouble(&args.command[0], &error))
}
