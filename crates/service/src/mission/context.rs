//! A session's context: its identity, its missions, and whether they can be trusted.

use std::collections::{BTreeMap, BTreeSet};

use super::pick;
use super::request::MissionPlace;
use super::roster::{present, view};
use crate::caller::{self, ActFor, Purpose};
use crate::context::{Ctx, Stop};
use crate::conversation;
use crate::conversation::view::ConversationView;
use crate::error::Error;
use crate::log;
use crate::mirror::compare::ContextFile;
use crate::mirror::content::SessionContext;
use crate::mission::view::{ParticipantView, PointerView};
use crate::session::look::{Whoami, whoami};
use crate::transact::{Reply, Service};
use tenure_core::event::EventFilter;
use tenure_core::hint::Hint;
use tenure_core::id::{Cursor, SessionId};
use tenure_core::mirror_failure::MirrorFailure;
use tenure_core::mission::check::MissionFault;
use tenure_core::mission::pointer::PointerScope;
use tenure_core::session::{Session, Workdir};
use tenure_core::store::{SessionFilter, TxMode};

/// The active mission of a session, and its role in it.
#[derive(Debug, Clone)]
pub struct Membership {
    pub participant: Option<ParticipantView>,
    /// Which mission that is, and what decided it.
    pub pointer: PointerView,
    pub faults: Vec<MissionFault>,
}

/// A session and its missions.
#[derive(Debug, Clone)]
pub struct MissionContext {
    pub who: Whoami,
    pub mission: Membership,
    /// The conversation of an item that it is in.
    pub conversation: Option<ConversationView>,
}

/// The result of checking a session.
#[derive(Debug, Clone)]
pub struct Verified {
    pub context: SessionContext,
    /// The faults, apart from files.
    pub faults: Vec<MissionFault>,
}

impl Service<'_> {
    /// The authoritative answer to "who am I": the caller's session and its active mission.
    pub fn whoami(&mut self, act_for: &ActFor, here: &MissionPlace) -> Reply<MissionContext> {
        self.transact(TxMode::Read, |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::Read)?;
            let who = whoami(ctx, &caller)?;
            let mission = active(ctx, &caller.session, here)?;
            let conversation = conversation::of_session(ctx, &caller.session)?;
            Ok(MissionContext {
                who,
                mission,
                conversation,
            })
        })
    }

    /// Verifies the caller's identity: a live session, the one that was named, in the given project, with
    /// variables and missions that agree, and a context file of its own.
    pub fn verify(
        &mut self,
        act_for: &ActFor,
        here: &MissionPlace,
        project: Option<&Workdir>,
        file: Option<&ContextFile>,
    ) -> Reply<Verified> {
        self.transact(TxMode::Read, |ctx| {
            let mut verified = verify(ctx, act_for, here, project)?;
            if let Some(file) = file {
                let faults = file.disagreements(&verified.context);
                verified.faults.extend(faults);
            }
            Ok(verified)
        })
    }

    /// A session's context, for its mirrors. Delivers nothing and renews nothing.
    pub fn context(&mut self, session: SessionId, here: &MissionPlace) -> Reply<SessionContext> {
        self.transact(TxMode::Read, |ctx| {
            let session = ctx.session(session)?;
            let session = ctx.record_death_if_proved(session)?;
            context(ctx, &session, here)
        })
    }

    pub fn newest_event(&mut self) -> Reply<Cursor> {
        self.transact(TxMode::Read, |ctx| {
            let filter = EventFilter {
                limit: 1,
                ..EventFilter::default()
            };
            let newest = ctx.tx.events(&filter)?;
            Ok(newest.first().map_or(Cursor(0), |event| event.cursor))
        })
    }

    /// The sessions of this machine that changed after a position in the log; all of them if the log does not reach
    /// back so far.
    pub fn changed_sessions(&mut self, after: Cursor) -> Reply<Vec<SessionId>> {
        self.transact(TxMode::Read, |ctx| {
            if log::missed(ctx, after)?.is_some() {
                let all = SessionFilter {
                    closed_too: true,
                    ..SessionFilter::default()
                };
                let mut all = ctx.tx.list_sessions(&all)?;
                all.retain(|session| is_of_host(ctx, session));
                return Ok(all.into_iter().map(|session| session.id).collect());
            }
            let filter = EventFilter {
                after: Some(after),
                ..EventFilter::default()
            };
            let events = ctx.tx.events(&filter)?;
            let changed: BTreeSet<SessionId> =
                events.into_iter().filter_map(|e| e.session).collect();
            let changed: Vec<SessionId> = changed.into_iter().collect();
            let mut changed = ctx.tx.sessions(&changed)?;
            changed.retain(|session| is_of_host(ctx, session));
            Ok(changed.into_iter().map(|session| session.id).collect())
        })
    }

    /// The open sessions of this machine, those that were seen last first.
    pub fn mirrored_sessions(&mut self) -> Reply<Vec<SessionId>> {
        self.transact(TxMode::Read, |ctx| {
            let open = SessionFilter {
                readable_only: true,
                ..SessionFilter::default()
            };
            let mut open = ctx.tx.list_sessions(&open)?;
            open.retain(|session| is_of_host(ctx, session));
            open.sort_by_key(|session| std::cmp::Reverse(session.seen_at));
            Ok(open.into_iter().map(|session| session.id).collect())
        })
    }

    /// Stores the results of mirror writes. A failure stays until its path is written again.
    pub fn record_mirrors(&mut self, failed: &[MirrorFailure], written: &[String]) -> Reply<()> {
        self.transact(TxMode::Read, |ctx| {
            let known = ctx.tx.mirror_failures()?;
            let over = |path: &&String| known.iter().any(|failure| failure.path == **path);
            for path in written.iter().filter(over) {
                ctx.write()?;
                ctx.tx.clear_mirror_failure(path)?;
            }
            for failure in failed {
                ctx.write()?;
                ctx.tx.set_mirror_failure(failure)?;
            }
            Ok(())
        })
    }

    pub fn mirror_failures(&mut self) -> Reply<Vec<MirrorFailure>> {
        self.transact(TxMode::Read, |ctx| Ok(ctx.tx.mirror_failures()?))
    }
}

/// Whether a session is of this machine. The files of another machine's sessions are kept there.
fn is_of_host(ctx: &Ctx<'_>, session: &Session) -> bool {
    let process = session.process.as_ref();
    process.is_none_or(|process| process.host == ctx.observer.host)
}

fn active(ctx: &mut Ctx<'_>, session: &Session, here: &MissionPlace) -> Result<Membership, Stop> {
    let found = pick::resolve(ctx, Some(session), here, None)?;
    let mut membership = Membership {
        participant: None,
        pointer: found.clone().into(),
        faults: Vec::new(),
    };
    if let Some(mission) = &found.mission {
        let (all, _) = present(ctx, here, mission.as_str())?;
        if let Some(own) = all.iter().find(|one| one.session.id == session.id) {
            membership.participant = Some(view(ctx, own, &all)?);
        }
        if let Some(row) = ctx.tx.participant(mission.as_str(), session.id)? {
            let read = pick::read(ctx, here, &row, session.handle.as_str())?;
            membership.faults = read.err().unwrap_or_default();
        }
    }
    Ok(membership)
}

fn context(
    ctx: &mut Ctx<'_>,
    session: &Session,
    here: &MissionPlace,
) -> Result<SessionContext, Stop> {
    let mut missions = Vec::new();
    for row in ctx.tx.participations(session.id)? {
        let (all, _) = present(ctx, here, &row.mission)?;
        if let Some(own) = all.iter().find(|one| one.session.id == session.id) {
            missions.push(view(ctx, own, &all)?);
        }
    }
    let mut active = None;
    for scope in [
        PointerScope::Session(session.id),
        PointerScope::User(here.user.clone()),
    ] {
        if active.is_none()
            && let Some(pointer) = ctx.tx.pointer(&scope)?
            && missions.iter().any(|one| one.mission == pointer.mission)
        {
            active = Some((pointer.mission, pointer.at));
        }
    }
    let kept = ctx.metadata(session.id)?;
    Ok(SessionContext {
        session: ctx.view(session)?,
        metadata: kept
            .into_iter()
            .map(|(key, value)| (key.as_str().to_owned(), value))
            .collect::<BTreeMap<_, _>>(),
        missions,
        active,
        read_at: ctx.now.wall,
    })
}

fn verify(
    ctx: &mut Ctx<'_>,
    act_for: &ActFor,
    here: &MissionPlace,
    project: Option<&Workdir>,
) -> Result<Verified, Stop> {
    let named = match &act_for.session {
        Some(name) => Some(caller::find(ctx, name)?),
        None => None,
    };
    let found = match (
        caller::require(ctx, &ActFor::default(), Purpose::Read),
        &named,
    ) {
        (Ok(caller), _) => Some(caller),
        // A script outside any session may check all of them.
        (Err(Stop::Refuse(error)), Some(_)) if matches!(*error, Error::NoSession { .. }) => None,
        (Err(other), _) => return Err(other),
    };
    let mut faults = Vec::new();
    let mut add = |subject: &Session, field, value: String, why: String, hint: Hint| {
        faults.push(MissionFault {
            mission: None,
            subject: subject.handle.to_string(),
            field,
            value,
            why,
            hints: vec![hint],
        });
    };
    let session = match (&found, named) {
        (Some(caller), None) => caller.session.clone(),
        (None, Some(named)) => ctx.record_death_if_proved(named)?,
        (Some(caller), Some(named)) => {
            if named.id != caller.session.id {
                let why = format!("this process belongs to {}", caller.session.handle);
                let hint = Hint::verb("whoami", "to see how tenure determined that");
                add(
                    &caller.session,
                    "session",
                    named.handle.to_string(),
                    why,
                    hint,
                );
            }
            caller.session.clone()
        }
        (None, None) => return Err(Stop::Store(tenure_core::store::StoreError::Conflict)),
    };
    for said in found.iter().flat_map(|caller| &caller.disagreements) {
        let hint = Hint::step(format!("unset {}", said.variable));
        let why = format!("it is {}, but {}", said.value, said.own);
        add(&session, "environment", said.variable.to_owned(), why, hint);
    }
    if let Some(closed) = &session.closed {
        let hint = Hint::verb("register", "to register this process again");
        add(
            &session,
            "state",
            closed.by.past().to_owned(),
            closed.why.clone(),
            hint,
        );
    }
    if let Some(project) = project
        && !works_in(ctx, &session, project)?
    {
        let why = format!("{} works in {}", session.handle, session.workdir.dir);
        let hint = Hint::step("run the command in that directory, or register with --dir");
        add(&session, "project", project.dir.clone(), why, hint);
    }
    let mission = active(ctx, &session, here)?;
    faults.extend(mission.pointer.passed_over);
    faults.extend(mission.faults);
    Ok(Verified {
        context: context(ctx, &session, here)?,
        faults,
    })
}

/// Whether a session works in a project: in its repository, in any worktree of it, or in exactly that directory if it
/// is in no repository. A directory above the project, or another clone of it, is not the project.
fn works_in(ctx: &Ctx<'_>, session: &Session, project: &Workdir) -> Result<bool, Stop> {
    let (own, other) = (&session.workdir, project);
    match (&own.repo, &other.repo) {
        (Some(own_repo), Some(other_repo)) => {
            // A repository's name may have changed since the session registered.
            let same = same_repository(ctx, &own.dir, &other.dir)?;
            Ok(same.unwrap_or(own_repo == other_repo))
        }
        (None, None) => Ok(own.dir.trim_end_matches('/') == other.dir.trim_end_matches('/')),
        _ => Ok(false),
    }
}

/// Whether two directories are in one repository; none if one of them cannot be read any more.
fn same_repository(ctx: &Ctx<'_>, one: &str, other: &str) -> Result<Option<bool>, Stop> {
    ctx.look_at_files(&[one.to_owned(), other.to_owned()])?;
    Ok(match (ctx.file(one)?, ctx.file(other)?) {
        (Some(one), Some(other)) => Some(one.repository.home.is(&other.repository.home)),
        _ => None,
    })
}
