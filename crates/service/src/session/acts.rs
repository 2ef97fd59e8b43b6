//! Acts on a session between its registration and its end.

use crate::caller::{self, ActFor, Purpose};
use crate::context::{Ctx, Stop};
use crate::error::{Error, add_a_reason};
use crate::session::view::SessionView;
use crate::session::wake::{Delivery, Sleeper, delivery, wake_sender};
use crate::transact::{Reply, Service};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::hint::Hint;
use tenure_core::id::SessionId;
use tenure_core::notice::{MAX_WAITING, Notice, NoticeId};
use tenure_core::policy::Policy;
use tenure_core::session::{ClosedBy, META_KEYS, MetaKey, Session, check_meta_value};
use tenure_core::store::{Lock, TxMode};
use tenure_core::text;
use tenure_core::time::Span;
use tenure_core::visible::has_visible;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenewRequest {
    /// How long the session expects to be silent; none for the usual lease.
    pub length: Option<Span>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetaChange {
    Set(MetaKey, String),
    Unset(MetaKey),
}

/// A message that was stored.
#[derive(Debug, Clone)]
pub struct SentMessage {
    pub session: SessionView,
    pub delivery: Delivery,
    /// Its number among the notices.
    pub id: NoticeId,
    /// Whom it may wake, if its sender may.
    pub wakes: Option<Sleeper>,
}

impl Service<'_> {
    /// Ends a session and all its holds.
    pub fn end(&mut self, act_for: &ActFor) -> Reply<SessionView> {
        self.transact(TxMode::Write, |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::ActOrEnded)?;
            refuse_ended(&caller.session)?;
            let reason = caller.reason_text();
            let why = reason.clone().unwrap_or_else(|| "it ended itself".into());
            let closed = ctx.close(&caller.session, ClosedBy::End, &why, caller.actor, reason)?;
            ctx.view(&closed)
        })
    }

    pub fn renew(&mut self, act_for: &ActFor, request: &RenewRequest) -> Reply<SessionView> {
        if let Some(Span(length)) = request.length {
            if length > Policy::MAX_SILENCE {
                return Err(usage(
                    "a session can announce at most 4h of silence",
                    Hint::step("use a shorter --for"),
                )
                .into());
            }
            if act_for.reason.is_none() {
                return Err(usage(
                    "renewing for longer than usual needs a reason",
                    add_a_reason(),
                )
                .into());
            }
        }
        self.transact(TxMode::Write, |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::Itself("renew its lease"))?;
            renew_session(ctx, caller, request)
        })
    }

    /// Sends a message that a session receives at its next call, or when it is resumed. A session that cannot be resumed
    /// is refused, and nothing is stored.
    pub fn tell(&mut self, to: &str, message: &str) -> Reply<SentMessage> {
        if !has_visible(message) {
            let hint = Hint::run("tell", ["SESSION", "MESSAGE"], "to send one");
            return Err(usage("the message has no visible characters", hint).into());
        }
        text::check_length("message", message, text::MAX_MESSAGE).map_err(Error::from)?;
        self.transact(TxMode::Write, |ctx| {
            let from = caller::identify(ctx)?;
            let to = caller::find(ctx, to)?;
            let to = ctx.record_death_if_proved(to)?;
            let delivery = delivery(ctx, &to)?;
            let token = ctx.facts.token.as_ref();
            let token = token.map(|token| format!("token {}", token.name));
            let sender = from.as_ref().map(|caller| caller.session.handle.as_str());
            let sender = sender
                .or(token.as_deref())
                .unwrap_or("someone outside any session");
            let begins = format!("message from {sender}: ");
            let said = format!("{begins}{}", text::quoted(message));
            let from_session = from.map(|caller| caller.session);
            let from = from_session.as_ref().map(|session| session.id);
            let pending = ctx.tx.pending_notices(to.id, 0)?;
            let is_same_sender =
                |notice: &&Notice| notice.from == from && notice.message.starts_with(&begins);
            if pending.iter().filter(is_same_sender).count() >= MAX_WAITING {
                let handle = to.handle.to_string();
                return Err(Error::Unread {
                    handle,
                    count: MAX_WAITING,
                }
                .into());
            }
            let wakes = wake_sender(ctx, from_session.as_ref())?;
            let id = ctx.send(to.id, &said, from, wakes)?;
            ctx.log(&NewEvent {
                actor: from,
                ..ctx.event(EventKind::Told, Some(to.id), "tell", message.to_owned())
            })?;
            Ok(SentMessage {
                session: ctx.view(&to)?,
                delivery,
                id,
                wakes: wakes.and_then(|_| Sleeper::of(&to)),
            })
        })
    }

    /// Records an answer from elsewhere to what a session asks a person, before it is sent.
    pub fn note_answer(&mut self, to: SessionId, said: &str) -> Reply<()> {
        self.transact(TxMode::Write, |ctx| {
            let actor = caller::identify(ctx)?.map(|caller| caller.session.id);
            let event = ctx.event(EventKind::Answered, Some(to), "answer", said.to_owned());
            ctx.log(&NewEvent { actor, ..event })
        })
    }

    /// Sets or removes one metadata value of a session.
    pub fn change_metadata(&mut self, act_for: &ActFor, change: &MetaChange) -> Reply<SessionView> {
        if let MetaChange::Set(_, value) = change {
            check_meta_value(value).map_err(Error::from)?;
        }
        self.transact(TxMode::Write, |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::Act)?;
            let id = caller.session.id;
            let present = ctx.metadata(id)?;
            let (key, value) = match change {
                MetaChange::Set(key, value) => (key, Some(value.as_str())),
                MetaChange::Unset(key) => (key, None),
            };
            refuse_reserved(key)?;
            match (present.get(key), value) {
                (None, None) => return Err(no_such_value(key).into()),
                (None, Some(_)) if present.len() >= META_KEYS => {
                    return Err(Error::Invalid {
                        what: format!("a session can have at most {META_KEYS} metadata values"),
                        hint: Hint::run("meta", ["unset", "KEY"], "to make room"),
                    }
                    .into());
                }
                _ => {}
            }
            ctx.lock([Lock::Session(id)])?;
            ctx.tx.set_metadata(id, key, value)?;
            let evidence = match value {
                Some(value) => format!("{} set ({} bytes)", key.as_str(), value.len()),
                None => format!("{} unset", key.as_str()),
            };
            ctx.log(&NewEvent {
                actor: caller.actor.filter(|actor| *actor != id),
                reason: caller.reason_text(),
                ..ctx.event(EventKind::Changed, Some(id), "meta", evidence)
            })?;
            ctx.view(&caller.session)
        })
    }
}

fn renew_session(
    ctx: &mut Ctx<'_>,
    caller: caller::Caller,
    request: &RenewRequest,
) -> Result<SessionView, Stop> {
    let reason = caller.reason_text();
    let mut session = caller.session;
    let length = request
        .length
        .map_or(ctx.policy.lease, |Span(length)| length);
    session.lease = session.lease.or_later(ctx.now.after(length));
    ctx.lock([Lock::Session(session.id)])?;
    ctx.tx
        .touch_session(session.token(), ctx.now.wall, &session.lease, None, None)?;
    if request.length.is_some() {
        ctx.log(&NewEvent {
            actor: caller.actor.filter(|actor| *actor != session.id),
            reason,
            ..ctx.event(
                EventKind::Renewed,
                Some(session.id),
                "renew",
                format!("silent for up to {}", Span(length)),
            )
        })?;
    }
    let session = ctx.session(session.id)?;
    ctx.view(&session)
}

fn usage(what: &str, hint: Hint) -> Error {
    Error::Usage {
        what: what.into(),
        hint,
    }
}

/// Refuses a metadata name that tenure reserves.
pub fn refuse_reserved(key: &MetaKey) -> Result<(), Error> {
    if !key.is_reserved() {
        return Ok(());
    }
    Err(Error::Invalid {
        what: format!("{} is reserved for tenure", key.as_str()),
        hint: Hint::step("choose a name that does not begin with `tenure.`"),
    })
}

pub fn no_such_value(key: &MetaKey) -> Error {
    Error::NotFound {
        what: format!("this session has no metadata value {:?}", key.as_str()),
        hint: Hint::run("meta", ["get"], "to list its values"),
    }
}

fn refuse_ended(session: &Session) -> Result<(), Error> {
    match &session.closed {
        None => Ok(()),
        Some(closed) if closed.by == ClosedBy::End => Err(Error::NotLive {
            handle: session.handle.to_string(),
            state: "has already ended".into(),
        }),
        Some(closed) => Err(caller::not_live(session, closed)),
    }
}
