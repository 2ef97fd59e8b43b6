//! Messages that start a turn: who may, taking them for a turn, and what became of one.
//!
//! A message is taken in one transaction, under its receiver's lock, by the process that starts the turn. It stays pending until
//! the agent reports the prompt that begins with its mark ([`tenure_core::wake`]), so one that is lost on the way is
//! delivered with the next event.

use crate::caller;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::session::resume::never_returns;
use crate::session::view::SessionView;
use crate::transact::{Reply, Service};
use tenure_core::agent;
use tenure_core::event::EventKind;
use tenure_core::id::{AgentName, NativeId, SessionId};
use tenure_core::notice::{Notice, NoticeId, NoticeKind};
use tenure_core::process::Process;
use tenure_core::session::{Session, Standing};
use tenure_core::store::{Lock, StoreError, TxMode};
use tenure_core::wake;
use tenure_core::woken::WakeSender;

/// How many sessions above each other are looked at.
const MAX_DEPTH: usize = 16;

/// A session that a message may wake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sleeper {
    pub agent: AgentName,
    pub native_id: NativeId,
    pub process: Process,
}

impl Sleeper {
    /// None if nothing identifies its conversation and its process.
    pub(super) fn of(session: &Session) -> Option<Self> {
        Some(Self {
            agent: session.agent.clone(),
            native_id: session.native_id.clone()?,
            process: session.process.clone().filter(|_| session.is_open())?,
        })
    }
}

/// Who wants to start a turn, and with which messages.
#[derive(Debug, Clone)]
pub struct WakeRequest<'a> {
    pub sleeper: &'a Sleeper,
    /// The messages that this machine's senders announced to it; no other one wakes it.
    pub announced: &'a [NoticeId],
    /// Whether agents' sessions may.
    pub from_agents: bool,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Woke {
    /// These start a turn; [`wake::prompt`] is its text.
    Messages(Vec<Notice>),
    /// None starts one now; these are still pending.
    Not(Vec<NoticeId>),
}

/// When a session reads a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Delivery {
    /// At its next call: it is live.
    Delivered,
    /// When it is resumed, or reports again.
    Waiting,
}

/// When a session would read a message; refused if it never would.
pub(super) fn delivery(ctx: &mut Ctx<'_>, to: &Session) -> Result<Delivery, Stop> {
    if to.is_open() {
        return Ok(match ctx.standing(to)? {
            Standing::Live => Delivery::Delivered,
            _ => Delivery::Waiting,
        });
    }
    match never_returns(ctx, to)? {
        None => Ok(Delivery::Waiting),
        Some(why) => Err(Error::Unreachable {
            handle: to.handle.to_string(),
            why,
        }
        .into()),
    }
}

/// Whether a message was delivered.
#[derive(Debug, Clone)]
pub struct Receipt {
    pub session: SessionView,
    pub delivery: Delivery,
    /// The process whose exit is the next thing that can happen to the receiver.
    pub process: Option<Process>,
}

/// Who sends a message, if it may start a turn. A program without a terminal may not: it may be an agent's.
pub(super) fn wake_sender(
    ctx: &mut Ctx<'_>,
    from: Option<&Session>,
) -> Result<Option<WakeSender>, Stop> {
    if ctx.facts.token.is_some() {
        return Ok(Some(WakeSender::Token));
    }
    if let Some(session) = from.filter(|session| session.agent.as_str() != agent::HUMAN) {
        return Ok((!is_in_woken_turn(ctx, session)?).then_some(WakeSender::Agent));
    }
    let is_there = ctx.facts.has_terminal && ctx.facts.at_terminal;
    let is_person = is_there && !caller::is_agents(ctx)?;
    Ok(is_person.then_some(WakeSender::Person))
}

/// Whether a message started the turn that a session is in, or that of a session which started it. Deep chains count as
/// such.
fn is_in_woken_turn(ctx: &mut Ctx<'_>, session: &Session) -> Result<bool, Stop> {
    let mut one = session.clone();
    for _ in 0..MAX_DEPTH {
        if one.woken.is_turn {
            return Ok(true);
        }
        match one.parent {
            Some(parent) => one = ctx.session(parent.id)?,
            None => return Ok(false),
        }
    }
    Ok(true)
}

impl Service<'_> {
    /// Takes messages for a turn of a session that is at its prompt.
    pub fn take_to_wake(&mut self, request: &WakeRequest<'_>) -> Reply<Woke> {
        let WakeRequest {
            sleeper,
            announced,
            from_agents,
        } = *request;
        self.transact(TxMode::Write, |ctx| {
            let owner = ctx.tx.native_owner(&sleeper.agent, &sleeper.native_id)?;
            let nobody = || Ok(Woke::Not(Vec::new()));
            let Some(owner) = owner else {
                return nobody();
            };
            ctx.lock([Lock::Session(owner)])?;
            let session = ctx.session(owner)?;
            let is_it = (session.process.as_ref()).is_some_and(|its| its.same_as(&sleeper.process));
            if !session.is_open() || !is_it {
                return nobody();
            }
            let pending = ctx.tx.pending_notices(owner, 0)?.first;
            let (now, is_meant) = (ctx.now.wall, |one: &Notice| {
                one.id.is_some_and(|id| announced.contains(&id))
            });
            let pending: Vec<Notice> = pending.into_iter().filter(is_meant).collect();
            let numbers = |all: &[Notice]| all.iter().filter_map(|one| one.id).collect();
            let taken = match wake::due(&pending, session.doing(), &session.woken, from_agents, now)
            {
                Ok(due) => due.into_iter().cloned().collect::<Vec<_>>(),
                Err(_) => return Ok(Woke::Not(numbers(&pending))),
            };
            let ids: Vec<NoticeId> = numbers(&taken);
            ctx.tx.take_to_wake(owner, &ids, now)?;
            ctx.tx
                .note_woken(session.token(), &session.woken.again(now))?;
            let evidence = match taken.len() {
                1 => "a message started a turn".to_owned(),
                count => format!("{count} messages started a turn"),
            };
            ctx.log(&ctx.event(EventKind::Told, Some(owner), "wake", evidence))?;
            Ok(Woke::Messages(taken))
        })
    }

    /// Whether a message was delivered, or will be; refused if its receiver can never get it any more.
    pub fn receipt(&mut self, to: SessionId, message: NoticeId) -> Reply<Receipt> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let session = ctx.session(to)?;
            let session = ctx.record_death_if_proved(session)?;
            let pending = ctx.tx.pending_notices(to, 0)?;
            let is_pending = pending.iter().any(|one| one.id == Some(message));
            if is_pending
                && !session.is_open()
                && let Some(why) = never_returns(ctx, &session)?
            {
                let handle = session.handle.to_string();
                return Err(Error::Unreachable { handle, why }.into());
            }
            Ok(Receipt {
                session: ctx.view(&session)?,
                delivery: if is_pending {
                    Delivery::Waiting
                } else {
                    Delivery::Delivered
                },
                process: ctx.watched(&session)?,
            })
        })
    }
}

impl Ctx<'_> {
    /// Stores a message; returns its number.
    pub(super) fn send(
        &mut self,
        to: SessionId,
        message: &str,
        from: Option<SessionId>,
        wakes: Option<WakeSender>,
    ) -> Result<NoticeId, Stop> {
        self.tx.add_notice(&Notice {
            id: None,
            to,
            kind: NoticeKind::Told,
            message: message.to_owned(),
            key: None,
            epoch: None,
            from,
            at: self.now.wall,
            wakes,
            woke_at: None,
        })?;
        let pending = self.tx.pending_notices(to, 0)?.first;
        let same = pending.into_iter().rev();
        let mut same = same.filter(|one| one.message == message && one.from == from);
        let id = same.find_map(|one| one.id);
        id.ok_or(Stop::Store(StoreError::Conflict))
    }
}
