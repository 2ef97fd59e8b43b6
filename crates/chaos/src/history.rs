//! A history: which processes lived when, their calls and answers, and their sessions.
//!
//! A call without an answer came from a process that was killed. It took effect once, before that
//! process was gone, or never.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::hosts::Terms;
use super::keepers::KEEPERS;
use super::pulse::{STALLS, Stall};
use super::record::{CallAnswer, Deed, Disturbance, JOURNAL, Op, RecordLine, Stay, read};
use super::weather::{self, WEATHER};
use super::worker::is_away;

pub type Name = Rc<str>;

/// A file that a run on a server leaves: what is sent may arrive later than its sender is gone.
pub const SHARED: &str = "shared";

/// The name of the nemesis's own log.
pub const DEEDS: &str = "nemesis.log";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// Its name: the worker, and how many times it was started.
    pub name: String,
    /// Its pid in its own namespace.
    pub pid: u32,
    /// The tick at which it started.
    pub start: u64,
    /// Its host, if there are several.
    pub host: Option<String>,
    /// When it may be dead from.
    pub doomed: u64,
    /// When it is dead from.
    pub gone: u64,
    /// The processes that it started and that continue without it.
    pub sent: Vec<Sent>,
}

/// A process that continues when the worker that started it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// When it may run from.
    pub from: u64,
    /// When it certainly runs from.
    pub surely_from: u64,
    pub surely_until: u64,
    /// Until when it may run.
    pub until: u64,
}

/// How long a process may take to exit after announcing it, in nanoseconds.
const GOING: u64 = 5_000_000_000;

/// How much later all processes together may be for each stall that one thread saw: a waiter waits for one before it,
/// for the holder of the lock and for its own turn, and each of them may stall.
const PER_STALL: u64 = 4;

/// The most that is allowed for stalls, in nanoseconds.
const MAX_STALLED: u64 = 10_000_000_000;

/// A call, with its answer if there was one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The calling process: its index among the lives.
    pub life: usize,
    /// Its name: that of the process, and the number of the call.
    pub tag: String,
    /// The calling session; for a registration, the resulting one.
    pub session: Option<Name>,
    pub op: Op,
    pub asked: u64,
    /// When it had taken effect, if it ever did.
    pub until: u64,
    pub answer: Option<CallAnswer>,
}

/// A session in one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenancy {
    pub life: usize,
    /// When the process may be that session from.
    pub from: u64,
    /// When it certainly is from.
    pub surely_from: u64,
    pub surely_until: u64,
    /// Until when it may be.
    pub until: u64,
}

/// All calls and answers.
#[derive(Debug, Default)]
pub struct History {
    pub lives: Vec<Life>,
    /// Their calls, in order of asking.
    pub calls: Vec<Call>,
    /// The processes of each session, in order.
    pub tenancies: BTreeMap<Name, Vec<Tenancy>>,
    /// How many times each process registered.
    pub(super) registrations: Vec<usize>,
    /// Whether the store was on a server, which may be away.
    pub is_shared: bool,
    /// Whether the disk of the store failed now and then.
    pub has_faults: bool,
    /// The times of leases, if there were several hosts.
    pub terms: Option<Terms>,
    /// For each session, when calls were asked and answered that renewed its lease, in order of asking.
    pub(super) signs: BTreeMap<Name, Vec<(u64, u64)>>,
    /// What kept the store or a keeper from answering.
    pub troubles: Vec<Disturbance>,
    /// When the machine held all of them up.
    pub stalls: Vec<Stall>,
}

impl History {
    pub fn new(lives: Vec<Life>, mut calls: Vec<Call>) -> Self {
        calls.sort_by_key(|call| call.asked);
        name_sessions(&mut calls);
        let tenancies = tenancies(&lives, &calls);
        let mut registrations = vec![0; lives.len()];
        for call in &calls {
            registrations[call.life] += usize::from(matches!(call.op, Op::Register { .. }));
        }
        Self {
            signs: signs(&calls),
            lives,
            calls,
            tenancies,
            registrations,
            is_shared: false,
            has_faults: false,
            terms: None,
            troubles: Vec::new(),
            stalls: Vec::new(),
        }
    }

    /// Reads the logs of a run.
    pub fn load(dir: &Path) -> io::Result<Self> {
        let shared = dir.join(SHARED);
        let is_shared = shared.exists();
        let terms = if is_shared {
            serde_json::from_str(&std::fs::read_to_string(&shared)?)?
        } else {
            None
        };
        let late = if is_shared {
            weather::MAX_TIME * 2
        } else {
            Duration::ZERO
        };
        let late = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        let mut lives = lives(&read::<Deed>(&dir.join(DEEDS))?);
        let mut calls = Vec::new();
        for (place, life) in lives.iter_mut().enumerate() {
            let path = dir.join(format!("{}.log", life.name));
            let lines = if path.exists() {
                read::<RecordLine>(&path)?
            } else {
                Vec::new()
            };
            for line in &lines {
                if let RecordLine::Sends { at, name } = line {
                    life.sent.push(sent(dir, *at, name)?);
                }
            }
            calls.extend(calls_of(place, life, lines, late)?);
        }
        let stalls = match dir.join(STALLS) {
            log if log.exists() => read::<Stall>(&log)?,
            _ => Vec::new(),
        };
        let mut troubles = Vec::new();
        for log in [WEATHER, KEEPERS] {
            let path = dir.join(log);
            if path.exists() {
                troubles.extend(read::<Disturbance>(&path)?);
            }
        }
        Ok(Self {
            is_shared,
            has_faults: dir.join(JOURNAL).exists(),
            terms,
            troubles,
            stalls,
            ..Self::new(lives, calls)
        })
    }

    /// Whether the store may have failed to answer through nobody's fault.
    pub fn may_be_away(&self) -> bool {
        self.is_shared || self.has_faults
    }

    /// How much longer everything may have taken between these times because the machine stalled.
    pub fn stalled(&self, from: u64, until: u64) -> u64 {
        let within = |stall: &Stall| stall.until.min(until).saturating_sub(stall.from.max(from));
        let seen: u64 = self.stalls.iter().map(within).sum();
        seen.saturating_mul(PER_STALL).min(MAX_STALLED)
    }

    pub fn tenancies_of(&self, session: &str) -> &[Tenancy] {
        self.tenancies.get(session).map_or(&[], Vec::as_slice)
    }

    /// Whether two processes are on hosts of which one cannot see the processes of the other.
    pub fn are_apart(&self, one: usize, other: usize) -> bool {
        self.lives[one].host != self.lives[other].host
    }

    /// The processes in which a session may have been open during a call. On another host a process that is gone may
    /// still count as alive, until its keeper has reported.
    pub fn open_in(&self, session: &str, call: &Call) -> Vec<usize> {
        let during = |one: &&Tenancy| {
            let has_died = one.until == self.lives[one.life].gone;
            let is_unknown = has_died && self.are_apart(one.life, call.life);
            one.from <= call.until && (call.asked <= one.until || is_unknown)
        };
        let open = self.tenancies_of(session).iter().filter(during);
        let mut found: Vec<usize> = open.map(|tenancy| tenancy.life).collect();
        found.dedup();
        found
    }
}

/// When each session was heard by the store.
fn signs(calls: &[Call]) -> BTreeMap<Name, Vec<(u64, u64)>> {
    let mut found: BTreeMap<Name, Vec<(u64, u64)>> = BTreeMap::new();
    for call in calls {
        let (Some(session), Some(answer)) = (&call.session, &call.answer) else {
            continue;
        };
        if !is_away(answer) && !matches!(call.op, Op::End | Op::Recall { .. }) {
            let signs = found.entry(session.clone()).or_default();
            signs.push((call.asked, call.until));
        }
    }
    found
}

/// Sets the sessions of registrations. One without an answer can only have become the session that
/// owns its conversation, if other calls show which that is.
fn name_sessions(calls: &mut [Call]) {
    let mut owners: HashMap<String, Name> = HashMap::new();
    for call in calls.iter() {
        if let (Op::Register { native }, Some(CallAnswer::Registered { session, word, .. })) =
            (&call.op, &call.answer)
            && word != "twin"
        {
            owners.insert(native.clone(), session.as_str().into());
        }
    }
    for call in calls {
        let Op::Register { native } = &call.op else {
            continue;
        };
        call.session = match &call.answer {
            Some(CallAnswer::Registered { session, .. }) => Some(session.as_str().into()),
            Some(_) => None,
            None => owners.get(native).cloned(),
        };
    }
}

fn tenancies(lives: &[Life], calls: &[Call]) -> BTreeMap<Name, Vec<Tenancy>> {
    let mut found: BTreeMap<Name, Vec<Tenancy>> = BTreeMap::new();
    for call in calls {
        let Some(session) = &call.session else {
            continue;
        };
        let life = &lives[call.life];
        let all = found.entry(session.clone()).or_default();
        match &call.op {
            Op::Register { .. } => all.push(Tenancy {
                life: call.life,
                from: call.asked,
                surely_from: call.answer.as_ref().map_or(u64::MAX, |_| call.until),
                surely_until: life.doomed,
                until: life.gone,
            }),
            // One that was refused changed nothing.
            Op::End if !call.answer.as_ref().is_some_and(is_away) => {
                let ended = all
                    .iter_mut()
                    .filter(|open| open.life == call.life && open.until > call.until);
                for open in ended {
                    open.surely_until = open.surely_until.min(call.asked);
                    open.until = call.until;
                }
            }
            _ => {}
        }
    }
    found
}

/// The processes as the nemesis saw them.
fn lives(deeds: &[Deed]) -> Vec<Life> {
    let mut lives: Vec<Life> = Vec::new();
    for deed in deeds {
        match deed {
            Deed::Started {
                worker,
                pid,
                start,
                host,
                ..
            } => lives.push(Life {
                name: worker.clone(),
                pid: *pid,
                start: *start,
                host: host.clone(),
                doomed: u64::MAX,
                gone: u64::MAX,
                sent: Vec::new(),
            }),
            Deed::Kills { at, worker } => {
                for life in lives.iter_mut().filter(|life| life.name == *worker) {
                    life.doomed = life.doomed.min(*at);
                }
            }
            Deed::Gone { at, worker, .. } => {
                for life in lives.iter_mut().filter(|life| life.name == *worker) {
                    life.gone = life.gone.min(*at);
                    life.doomed = life.doomed.min(*at);
                }
            }
            Deed::Stopped { .. } => {}
        }
    }
    lives
}

/// When a process that a worker started ran, according to its own log.
fn sent(dir: &Path, from: u64, name: &str) -> io::Result<Sent> {
    let path = dir.join(format!("{name}.stay"));
    let lines = if path.exists() {
        read::<Stay>(&path)?
    } else {
        Vec::new()
    };
    let mut sent = Sent {
        from,
        surely_from: u64::MAX,
        surely_until: 0,
        until: u64::MAX,
    };
    for line in lines {
        match line {
            Stay::Begins { at } => sent.surely_from = at,
            Stay::Ends { at } => {
                sent.surely_until = at;
                sent.until = at.saturating_add(GOING);
            }
        }
    }
    Ok(sent)
}

/// What one process asked; it may be dead from when it says that it leaves.
fn calls_of(
    place: usize,
    life: &mut Life,
    lines: Vec<RecordLine>,
    late: u64,
) -> io::Result<Vec<Call>> {
    let mut calls: Vec<Call> = Vec::new();
    for line in lines {
        match line {
            RecordLine::Asked {
                at,
                call,
                session,
                op,
            } => calls.push(Call {
                life: place,
                tag: format!("{}#{call}", life.name),
                session: session.map(Into::into),
                op,
                asked: at,
                until: life.gone.saturating_add(late),
                answer: None,
            }),
            RecordLine::Answered { at, call, answer } => {
                let tag = format!("{}#{call}", life.name);
                let asked = calls.last_mut().filter(|asked| asked.tag == tag);
                let asked = asked.ok_or_else(|| io::Error::other(format!("{tag}: not asked")))?;
                asked.until = at;
                asked.answer = Some(answer);
            }
            RecordLine::Sends { .. } => {}
            RecordLine::Leaves { at } => life.doomed = life.doomed.min(at),
        }
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Log;
    use crate::story::{Story, register, registered};

    #[test]
    fn a_registration_without_an_answer_may_be_its_conversations_session() {
        let mut story = Story::default();
        let (a, b, c) = (story.life("a"), story.life("b"), story.life("c"));
        story.killed(a, 10, 11);
        story.killed(b, 21, 22);
        story.call(a, "", 1, 2, register("n"), registered("S", "new", &[]));
        story.call(b, "", 20, 22, register("n"), None);
        story.call(c, "", 30, 31, register("other"), None);
        let history = story.history();
        let sessions: Vec<_> = history.calls.iter().map(|c| c.session.clone()).collect();
        assert_eq!(sessions, [Some("S".into()), Some("S".into()), None]);
        let spans: Vec<_> = history.tenancies["S"]
            .iter()
            .map(|t| (t.from, t.until))
            .collect();
        assert_eq!(spans, [(1, 11), (20, 22)]);
    }

    #[test]
    fn a_process_that_is_gone_may_still_have_its_session_for_another_host() {
        let mut story = Story::default();
        let (dies, near, far) = (story.life("a"), story.life("b"), story.life("c"));
        for (life, host) in [(dies, "one"), (near, "one"), (far, "two")] {
            story.on(life, host);
        }
        story.killed(dies, 10, 11);
        story.call(dies, "", 1, 2, register("n"), registered("S", "new", &[]));
        let seen = |life, asked: u64| {
            let mut story = story.clone();
            let tag = story.call(life, "T", asked, asked + 1, Op::Renew, None);
            let history = story.history();
            let call = history.calls.iter().find(|call| call.tag == tag).unwrap();
            history.open_in("S", call)
        };
        for life in [near, far] {
            assert_eq!(seen(life, 9), [dies]);
        }
        assert_eq!(seen(far, 20), [dies]);
        assert!(seen(near, 20).is_empty());
    }

    #[test]
    fn logs_are_read_and_the_unanswered_lasts_until_its_process_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let mut deeds = Log::open(&dir.path().join(DEEDS)).unwrap();
        let worker = || "w0.0".to_owned();
        let lines = [
            Deed::Started {
                at: 1,
                worker: worker(),
                pid: 7,
                start: 1,
                host: None,
            },
            Deed::Kills {
                at: 90,
                worker: worker(),
            },
            Deed::Gone {
                at: 95,
                worker: worker(),
                trouble: None,
            },
        ];
        lines.iter().for_each(|line| deeds.write(line).unwrap());
        let mut log = Log::open(&dir.path().join("w0.0.log")).unwrap();
        let asked = |at, call| RecordLine::Asked {
            at,
            call,
            session: None,
            op: Op::Renew,
        };
        let answer = CallAnswer::Yes {
            epoch: None,
            holder: None,
        };
        log.write(&asked(10, 1)).unwrap();
        log.write(&RecordLine::Answered {
            at: 12,
            call: 1,
            answer,
        })
        .unwrap();
        log.write(&asked(80, 2)).unwrap();
        let stall = Stall {
            from: 20,
            until: 22,
        };
        let mut stalls = Log::open(&dir.path().join(STALLS)).unwrap();
        stalls.write(&stall).unwrap();
        let history = History::load(dir.path()).unwrap();
        let ends: Vec<_> = history.calls.iter().map(|call| call.until).collect();
        assert_eq!(ends, [12, 95]);
        assert_eq!((history.lives[0].doomed, history.lives[0].gone), (90, 95));
        assert_eq!((history.stalled(0, 21), history.stalled(30, 40)), (4, 0));
    }
}
