//! What a session that is over left running, and ending it: for a person only.
//!
//! The search is the machine's, and [`tenure_core::process::Signs`] decides what connects a process to a session. A
//! process may be ended only if it began in the session's last life, its environment names that life or its run, and it
//! neither is another session nor runs below one. Everything else is only listed.
//!
//! The processes are ended outside, between two transactions, through descriptors that are compared with what was
//! observed: a pid that was reused is not hit. *Crash* between the kill and the record: the log lacks an entry.

use crate::caller::{self, ActFor, behalf};
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::evidence::Want;
use crate::session::view::SessionView;
use crate::transact::{Reply, Service};
use crate::unseen::Unseen;
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::{Life, SessionToken};
use tenure_core::line::Fitness;
use tenure_core::liveness::{self, Liveness};
use tenure_core::process::{Leader, LeftProcess, Signs, Survivors};
use tenure_core::session::{Session, Standing};
use tenure_core::store::TxMode;

/// How many lives of a session are searched for what they left running.
const MAX_LIVES: usize = 32;

/// A session that is over, and what it left running.
#[derive(Debug, Clone)]
pub struct LeftBehind {
    pub session: SessionView,
    /// Those that may be ended, and those that are only listed.
    pub found: Vec<LeftProcess>,
    /// Why this list may be incomplete, if so.
    pub doubt: Option<String>,
}

impl Service<'_> {
    /// What a session that is over left running here. Changes nothing.
    pub fn left_behind(&mut self, act_for: &ActFor) -> Reply<LeftBehind> {
        self.transact(TxMode::Read, |ctx| {
            if caller::is_agents(ctx)? {
                let what = "end what a session left running";
                return Err(Error::PersonOnly { what }.into());
            }
            let session = behalf::tidying(ctx, act_for)?.session;
            let session = ctx.record_death_if_proved(session)?;
            refuse_unfinished(ctx, &session)?;
            let view = ctx.view(&session)?;
            if let Some(process) = &session.process
                && let Some(Liveness::Unknown(doubt)) =
                    liveness::settled_unseen(process, ctx.observer)
            {
                return Err(Error::SurvivorsUnseen {
                    handle: view.handle,
                    host: view.host,
                    doubt,
                }
                .into());
            }
            if let Some(process) = &session.process
                && ctx.fitness(process)? != Fitness::Dead
            {
                // The session was ended, and its process was not.
                let handle = view.handle;
                return Err(Error::NotOver { handle }.into());
            }
            behalf::may_change(ctx, &session)?;
            let left = ctx.survivors(&session, session.life)?;
            Ok(LeftBehind {
                session: view,
                found: left.found,
                doubt: left.doubt,
            })
        })
    }

    /// Records that a person ended what a session left running, and how.
    pub fn log_survivors_ended(&mut self, act_for: &ActFor, how: &str) -> Reply<()> {
        self.transact(TxMode::Write, |ctx| {
            let tidying = behalf::tidying(ctx, act_for)?;
            let about = Some(tidying.session.id);
            ctx.log(&NewEvent {
                actor: tidying.actor,
                reason: tidying.reason,
                ..ctx.event(EventKind::Changed, about, "survivors", how.to_owned())
            })
        })
    }
}

/// What a session that is not over runs is its own.
fn refuse_unfinished(ctx: &mut Ctx<'_>, session: &Session) -> Result<(), Stop> {
    if !session.is_open() {
        return Ok(());
    }
    let handle = session.handle.to_string();
    Err(match ctx.standing(session)? {
        Standing::Gone(_) => return Ok(()),
        Standing::Live => Error::NotOver { handle },
        Standing::Trusted { doubt, .. }
        | Standing::Suspect { doubt, .. }
        | Standing::Expired(doubt) => Error::CannotTell {
            handle,
            doubt,
            key: None,
        },
    }
    .into())
}

impl Ctx<'_> {
    /// What each of these sessions, which are over, left running, in one search.
    pub fn survivors_of_all(&mut self, sessions: &[Session]) -> Result<Vec<Survivors>, Stop> {
        let mut unseen = Unseen::default();
        let mut all = Vec::with_capacity(sessions.len());
        for session in sessions {
            let left = self.survivors(session, session.life);
            all.push(unseen.gather(left)?.unwrap_or_default());
        }
        unseen.look()?;
        Ok(all)
    }

    /// What a session left running in its lives up to this one, the last of which has ended, as far
    /// as this observer can see. Earlier lives count too, because their processes keep running
    /// whatever happens to the session.
    pub fn survivors(&mut self, session: &Session, life: Life) -> Result<Survivors, Stop> {
        let token = SessionToken {
            id: session.id,
            life,
        };
        let mut lives = self.tx.lives_up_to(token, MAX_LIVES)?;
        let Some((_, last)) = lives.first() else {
            return Ok(Survivors::default());
        };
        if let Some(settled) = liveness::settled_unseen(last, self.observer) {
            return Ok(match settled {
                Liveness::Alive | Liveness::Dead(_) => Survivors::default(),
                Liveness::Unknown(doubt) => Survivors {
                    found: Vec::new(),
                    doubt: Some(doubt.to_string()),
                },
            });
        }
        if let Some(found) = self.evidence.left_behind(token) {
            let own = |pid: u32| {
                self.facts
                    .chain
                    .iter()
                    .any(|above| above.process.pid == pid)
            };
            let mut others = found.clone();
            others.found.retain(|left| !own(left.process.pid));
            for left in others.found.iter_mut().filter(|left| left.shown.can_end) {
                left.shown.can_end = !self.is_of_another(left, session.id)?;
            }
            return Ok(others);
        }
        // Lives of another boot left nothing, and lives on another machine nothing that is visible here.
        lives.retain(|(_, process)| liveness::settled_unseen(process, self.observer).is_none());
        let of = |life: Life| SessionToken {
            id: session.id,
            life,
        };
        let last = Session {
            life,
            ..session.clone()
        };
        let signs = Signs {
            run: self.run_of_session(&last)?.map(|run| run.id.to_string()),
            agents_too: false,
            tokens: lives
                .iter()
                .map(|(life, _)| of(*life).to_string())
                .collect(),
            natives: self.native_signs(session, life)?,
            leaders: lives
                .iter()
                .map(|(_, process)| Leader::of(process))
                .collect(),
        };
        Err(Stop::Look(Want::Survivors(vec![(token, signs)])))
    }

    /// The conversations of a session, which identify its processes. They do not distinguish its lives: while
    /// it continues in a later one, they prove nothing.
    fn native_signs(
        &mut self,
        session: &Session,
        life: Life,
    ) -> Result<Vec<(&'static str, String)>, Stop> {
        let variable =
            tenure_core::agent::spec_of(&session.agent).and_then(|spec| spec.id_variable);
        let Some(variable) = variable.filter(|_| session.life == life || !session.is_open()) else {
            return Ok(Vec::new());
        };
        let lineage = self.tx.lineage(session.id)?;
        let owned = lineage.iter().filter(|entry| entry.owned);
        Ok(owned
            .map(|entry| (variable, entry.native_id.to_string()))
            .collect())
    }
}
