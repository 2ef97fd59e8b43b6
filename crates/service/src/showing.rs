//! How a session is shown: its activity by the newest report, and the views built from it.
//!
//! Agents' own files and terminals are checked before a view is built, outside any transaction, like every
//! other observation of the machine. A hook checks none of them: its service has no witness.

use std::collections::HashMap;

use crate::context::{Ctx, Stop};
use crate::evidence::Want;
use crate::session::cut_off::SHOWN_FOR;
use crate::session::view::{HeldView, SessionObservation, SessionView, WaitView};
use crate::starting::show_as_starting;
use tenure_core::activity::{self, ShownActivity, Words};
use tenure_core::agent;
use tenure_core::id::{NativeId, SessionId};
use tenure_core::line::{Fitness, Waiter};
use tenure_core::liveness::Liveness;
use tenure_core::process::{Process, RunState, Sighting};
use tenure_core::session::{Doing, EndKind, Session, Standing, State};
use tenure_core::time::Timestamp;
use tenure_core::witness::{Question, Subject};

impl Ctx<'_> {
    /// Makes sure that agents and terminals were asked about these, in one pass: about the live ones, and
    /// what the dead ones left.
    pub fn ask_about_all(&mut self, sessions: &[Session]) -> Result<(), Stop> {
        self.ask(sessions, Question::Whole)
    }

    /// The same only for what they do, which is cheap.
    pub fn ask_what_they_do(&mut self, sessions: &[Session]) -> Result<(), Stop> {
        self.ask(sessions, Question::Activity)
    }

    fn ask(&mut self, sessions: &[Session], question: Question) -> Result<(), Stop> {
        if !self.evidence.has_witness() {
            return Ok(());
        }
        self.look_at_branches(sessions)?;
        let mut unasked: Vec<Subject> = Vec::new();
        // A session created in this run gets another id in the next run, so an answer about it
        // would never be found.
        for session in sessions {
            let is_known = self.evidence.answer_to(session.id, question).is_some();
            if is_known || self.created.contains(&session.id) {
                continue;
            }
            let starting = self.starting(session)?;
            let is_starting = starting.is_some();
            let Some(process) = starting.or_else(|| session.process.clone()) else {
                continue;
            };
            let is_over = !is_starting && self.liveness(session)? != Liveness::Alive;
            if is_over && (question == Question::Activity || !self.left_files(session, &process)?) {
                continue;
            }
            unasked.push(Subject {
                session: session.id,
                agent: session.agent.clone(),
                process,
                native_id: session.native_id.clone(),
                transcript: None,
                daemon: session.daemon.clone(),
                asks_silently: session.doing() == Some(Doing::Waiting)
                    && agent::silent_ends(&session.agent).contains(&Doing::Waiting),
                is_over,
            });
        }
        if unasked.is_empty() {
            return Ok(());
        }
        self.name_transcripts(&mut unasked)?;
        Err(Stop::Look(Want::Testimony(unasked, question)))
    }

    /// Whether a dead session may have left files here that still matter: it seems to be cut off, and is listed.
    fn left_files(&mut self, session: &Session, process: &Process) -> Result<bool, Stop> {
        let is_dead = matches!(self.liveness(session)?, Liveness::Dead(_));
        let is_listed = session.closed.as_ref().is_none_or(|closed| {
            let is_new = closed.at.age_at(self.now.wall) < SHOWN_FOR;
            closed.kind == EndKind::CutOff && closed.dismissed_at.is_none() && is_new
        });
        Ok(is_dead && is_listed && process.host == self.observer.host)
    }

    /// Adds where the agents' own files of these conversations are.
    fn name_transcripts(&mut self, subjects: &mut [Subject]) -> Result<(), Stop> {
        let named = subjects
            .iter()
            .filter_map(|subject| Some((subject.session, subject.native_id.clone()?)));
        let conversations: Vec<(SessionId, NativeId)> = named.collect();
        let known = self.tx.transcripts_of(&conversations)?.into_iter();
        let mut paths: HashMap<(SessionId, NativeId), String> = known
            .map(|known| {
                let path = known.file().to_owned();
                ((known.session, known.native_id), path)
            })
            .collect();
        for subject in subjects {
            if let Some(native_id) = &subject.native_id {
                subject.transcript = paths.remove(&(subject.session, native_id.clone()));
            }
        }
        Ok(())
    }

    /// What a session is doing, as far as that was checked.
    pub fn shown(&self, session: &Session) -> Option<ShownActivity> {
        let testimony = self.evidence.testimony(session.id);
        let words = Words {
            events: session.activity.as_ref(),
            seen_at: session.seen_at,
            own: testimony.and_then(|testimony| testimony.own.as_ref()),
            runs_since: testimony.and_then(|testimony| testimony.runs_since),
            suspended: self.is_stopped(session),
            asked: (session.asked_at, session.asked_before),
            attended_at: session.attended_at,
            silent_ends: agent::spec_of(&session.agent).map_or(&[], |spec| spec.silent_ends),
            now: self.now.wall,
        };
        words.newest()
    }

    /// Whether a session's process is stopped, as far as it was looked at.
    fn is_stopped(&self, session: &Session) -> bool {
        let process = session.process.as_ref().filter(|_| session.is_open());
        let seen = process.and_then(|process| self.evidence.sighting(process));
        let stopped = |seen: &Sighting| matches!(seen, Sighting::Present { state, .. } if *state == RunState::Stopped);
        seen.is_some_and(stopped)
    }

    /// Whether a turn ended since a person was last there.
    pub fn is_finished(&self, session: &Session, shown: Option<&ShownActivity>) -> bool {
        let testimony = self.evidence.testimony(session.id);
        let at_pane = testimony.and_then(|testimony| testimony.attended_at);
        let attended_at: Option<Timestamp> = session.attended_at.max(at_pane);
        activity::is_finished(shown, attended_at, self.now.wall)
    }

    /// The state for people.
    pub fn state(&self, session: &Session, liveness: &Liveness) -> State {
        let shown = self.shown(session);
        let busy = shown.filter(|shown| shown.doing == Doing::Busy && shown.certain);
        let busy_since = busy.map(|shown| shown.since);
        let stalled_after = self.policy.stalled_after;
        State::of(session, liveness, busy_since, stalled_after, &self.now)
    }

    /// The view of a session, with lineage and claims.
    pub fn view(&mut self, session: &Session) -> Result<SessionView, Stop> {
        let liveness = self.liveness(session)?;
        self.view_as(session, &liveness)
    }

    /// The view of a session whose liveness is already known.
    pub fn view_as(&mut self, session: &Session, liveness: &Liveness) -> Result<SessionView, Stop> {
        let standing = self.standing_as(session, liveness)?;
        let shown = self.shown(session);
        let state = self.state(session, liveness);
        let lineage = self.lineage(session.id)?;
        let held = if session.is_open() {
            self.open_holds(session.id)?
        } else {
            Vec::new()
        };
        let claims = held
            .into_iter()
            .map(|hold| HeldView {
                key: hold.key.to_string(),
                epoch: hold.epoch.0,
            })
            .collect();
        let waits_for = self.waits_of(session)?;
        let decides = self.lives_by(session)?.1;
        let host = self.other_machine(session)?;
        let branch = self.branch_of(session);
        self.note_attendance(session, shown.as_ref());
        let seen = SessionObservation {
            liveness,
            standing: &standing,
            state,
            shown: shown.as_ref(),
            finished: self.is_finished(session, shown.as_ref()),
            branch,
            decides: decides.as_ref(),
            testimony: self.evidence.testimony(session.id),
            host,
            now: &self.now,
        };
        let mut view = SessionView::new(session, &seen, &lineage, claims, waits_for);
        if let Some(process) = self.starting(session)? {
            show_as_starting(&mut view, &process);
        }
        Ok(view)
    }

    /// The view of a session as the holder of a claim, without its claims and history, and its standing.
    pub fn brief(&mut self, session: &Session) -> Result<(SessionView, Standing), Stop> {
        // The caller knows what it is doing itself, and a grant to it must not restart for an observation.
        if self.own != Some(session.id) {
            self.ask(std::slice::from_ref(session), Question::Activity)?;
        }
        let liveness = self.liveness(session)?;
        let standing = self.standing_as(session, &liveness)?;
        let shown = self.shown(session);
        let state = self.state(session, &liveness);
        let decides = self.lives_by(session)?.1;
        let host = self.other_machine(session)?;
        let branch = self.branch_of(session);
        self.note_attendance(session, shown.as_ref());
        let seen = SessionObservation {
            liveness: &liveness,
            standing: &standing,
            state,
            shown: shown.as_ref(),
            finished: self.is_finished(session, shown.as_ref()),
            branch,
            decides: decides.as_ref(),
            testimony: self.evidence.testimony(session.id),
            host,
            now: &self.now,
        };
        Ok((SessionView::brief(session, &seen), standing))
    }

    /// What the live waiters of a session wait for.
    fn waits_of(&mut self, session: &Session) -> Result<Vec<WaitView>, Stop> {
        if !session.is_open() {
            return Ok(Vec::new());
        }
        let waiters = self.waiters_of(session.id)?;
        self.show_waiters(waiters)
    }

    /// Waiters that are not dead, for display.
    pub fn show_waiters(&mut self, waiters: Vec<Waiter>) -> Result<Vec<WaitView>, Stop> {
        let unseen: Vec<Process> = waiters
            .iter()
            .filter(|waiter| matches!(self.fitness(&waiter.process), Err(Stop::Look(_))))
            .map(|waiter| waiter.process.clone())
            .collect();
        if !unseen.is_empty() {
            return Err(Stop::Look(Want::Processes(unseen)));
        }
        let mut shown = Vec::new();
        for waiter in waiters {
            if self.fitness(&waiter.process)? == Fitness::Dead {
                continue;
            }
            let session = match waiter.session {
                Some(token) => Some(self.session(token.id)?.handle.to_string()),
                None => None,
            };
            shown.push(WaitView {
                key: waiter.key.to_string(),
                session,
                pid: waiter.process.pid,
                since: waiter.since,
            });
        }
        Ok(shown)
    }
}
