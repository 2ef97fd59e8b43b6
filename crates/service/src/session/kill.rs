//! Ending a session together with its process: for a person only.
//!
//! A session whose process continues where no one can see it (its terminal is gone) has neither ended nor can
//! it be resumed until that process exits. This module decides which process that is. It is killed outside,
//! between two transactions, and the end is recorded only then: what the session held becomes free when the
//! process can no longer write.
//!
//! Only a process that is proved alive here, under its recorded start time, qualifies. Agents may not ask for
//! it, because models run what they read. *Crash* between the kill and the record: the session is found dead
//! and counts as cut off. Events of the dying process, and lists that find it dead, may close the session
//! first; the person's reason replaces theirs, unless another process has resumed the session in between.
//!
//! A store on a server may let only another role end the session. It is asked before the kill.

use crate::caller::{self, ActFor, Purpose, behalf};
use crate::error::Error;
use crate::session::view::SessionView;
use crate::transact::{Reply, Service};
use tenure_core::hint::Hint;
use tenure_core::id::SessionToken;
use tenure_core::liveness::Doubt;
use tenure_core::process::Process;
use tenure_core::reason::Reason;
use tenure_core::session::ClosedBy;
use tenure_core::store::TxMode;

/// A session whose process may be killed.
#[derive(Debug, Clone)]
pub struct Killable {
    pub session: SessionView,
    pub token: SessionToken,
    /// Proved alive, on this machine.
    pub process: Process,
}

impl Service<'_> {
    /// The process of a session that should be killed, if the store will let the caller end that session. Changes nothing.
    pub fn killable(&mut self, session: Option<&str>, reason: &Reason) -> Reply<Killable> {
        let act_for = &ActFor {
            session: session.map(str::to_owned),
            reason: Some(reason.clone()),
        };
        self.transact(TxMode::Read, |ctx| {
            if caller::is_agents(ctx)? {
                let what = "kill a session's process";
                return Err(Error::PersonOnly { what }.into());
            }
            let caller = caller::require(ctx, act_for, Purpose::Act)?;
            if caller.is_itself() {
                let handle = &caller.session.handle;
                let what = format!("this command runs inside {handle} and would kill itself");
                let hint = Hint::verb("end", "to end it without killing its process");
                return Err(Error::Usage { what, hint }.into());
            }
            let session = behalf::seen_to_live(ctx, caller.session)?;
            let handle = session.handle.to_string();
            if session.hosted {
                let what = format!("{handle} shares its process with other sessions");
                let args = [&handle, "--reason", "REASON"];
                let hint = Hint::run("end", args, "to end only this session");
                return Err(Error::Invalid { what, hint }.into());
            }
            let Some(process) = session.process.clone() else {
                let doubt = Doubt::Unverified;
                return Err(Error::CannotTell {
                    handle,
                    doubt,
                    key: None,
                }
                .into());
            };
            behalf::may_change(ctx, &session)?;
            Ok(Killable {
                session: ctx.view(&session)?,
                token: session.token(),
                process,
            })
        })
    }

    /// Records that a person ended a session whose process was killed, and how.
    pub fn end_killed(
        &mut self,
        act_for: &ActFor,
        killed: &Killable,
        how: &str,
    ) -> Reply<SessionView> {
        self.transact(TxMode::Write, |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::Read)?;
            let session = caller.session;
            if session.token() != killed.token {
                return ctx.view(&session);
            }
            let reason = act_for.reason.clone().map(String::from);
            let why = match &reason {
                Some(reason) => format!("{reason} ({how})"),
                None => how.to_owned(),
            };
            let closed = ctx.close(&session, ClosedBy::End, &why, caller.actor, reason)?;
            ctx.view(&closed)
        })
    }
}
