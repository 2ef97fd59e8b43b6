//! Checks the store after a run, without the product's own code: does it contain everything that
//! was acknowledged, and nothing that no one asked for?

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::history::{Call, History};
use super::model::{HoldEnd, Item, KeyStates, Space};
use super::record::{CallAnswer, Op};
use super::rule::{Violation, observed};
use super::worker::is_away;

/// A row of the holds table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldRow {
    pub session: String,
    pub means: String,
    /// The tag of the call that it was first granted to.
    pub note: Option<String>,
    pub ended_by: Option<String>,
}

/// The contents of the store after a run.
#[derive(Debug, Default)]
pub struct Audit {
    pub claims: BTreeMap<String, u64>,
    /// Each key's holds by epoch.
    pub holds: BTreeMap<String, BTreeMap<u64, HoldRow>>,
    /// The first event of each call in the log.
    pub events: HashMap<String, u64>,
    /// Keys and epochs whose grant is in the log.
    pub granted: HashSet<(String, u64)>,
    /// Keys and epochs whose end is in the log.
    pub ended: HashSet<(String, u64)>,
    /// The number of events.
    pub count: u64,
    /// The findings of the store's own checks.
    pub damage: Vec<String>,
}

impl Audit {
    pub fn read(database: &Path, history: &History) -> rusqlite::Result<Self> {
        let conn = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let mut audit = Self {
            damage: damage(&conn)?,
            ..Self::default()
        };
        let mut rows = conn.prepare("SELECT key, epoch FROM claims")?;
        let pairs = rows.query_map([], |row| Ok((row.get(0)?, number(row, 1)?)))?;
        audit.claims = pairs.collect::<rusqlite::Result<_>>()?;
        audit.read_holds(&conn)?;
        audit.read_events(&conn, history)?;
        Ok(audit)
    }

    fn read_holds(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        let sql = "SELECT key, epoch, session, means, note, ended_by FROM holds";
        let mut statement = conn.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let hold = HoldRow {
                session: row.get(2)?,
                means: row.get(3)?,
                note: row.get(4)?,
                ended_by: row.get(5)?,
            };
            let key: String = row.get(0)?;
            self.holds
                .entry(key)
                .or_default()
                .insert(number(row, 1)?, hold);
        }
        Ok(())
    }

    fn read_events(&mut self, conn: &Connection, history: &History) -> rusqlite::Result<()> {
        let resumed = resumptions(history);
        let sql = "SELECT id, kind, key, epoch, evidence, reason, session FROM events ORDER BY id";
        let mut statement = conn.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (id, kind): (u64, String) = (number(row, 0)?, row.get(1)?);
            let key: Option<String> = row.get(2)?;
            let epoch: Option<i64> = row.get(3)?;
            let (evidence, reason): (String, Option<String>) = (row.get(4)?, row.get(5)?);
            let session: Option<String> = row.get(6)?;
            let about = key.zip(epoch.map(i64::cast_unsigned));
            match kind.as_str() {
                "claim.granted" | "claim.taken_over" => self.granted.extend(about),
                "claim.released" | "claim.done" | "claim.freed" | "claim.handed_off" => {
                    self.ended.extend(about);
                }
                _ => {}
            }
            let tag = match kind.as_str() {
                "session.resumed" => {
                    session.and_then(|session| resumed_by(&resumed, &session, &evidence))
                }
                "session.ended" => Some(evidence.clone()),
                _ => reason,
            };
            if let Some(tag) = tag {
                self.events.entry(tag).or_insert(id);
            }
            self.count += 1;
        }
        Ok(())
    }

    /// Checks the store against what was acknowledged.
    pub fn violations(&self, history: &History) -> Vec<Violation> {
        let mut found: Vec<Violation> = self
            .damage
            .iter()
            .map(|damage| Violation::new("a whole store", damage.clone(), Vec::new()))
            .collect();
        found.extend(self.broken_rows());
        found.extend(self.lost_grants(history));
        for (place, call) in history.calls.iter().enumerate() {
            found.extend(self.lost_act(place, call));
            found.extend(self.secret_act(place, call));
        }
        found
    }

    /// Rows that contradict each other.
    fn broken_rows(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut broken = |what: String| found.push(Violation::new("a whole store", what, vec![]));
        for (key, holds) in &self.holds {
            let epoch = self.claims.get(key).copied().unwrap_or(0);
            let epochs: Vec<u64> = holds.keys().copied().collect();
            if !epochs.iter().copied().eq(1..=epoch) {
                broken(format!("{key} has epoch {epoch} and the holds {epochs:?}"));
            }
            for (at, hold) in holds {
                if hold.ended_by.is_none() && *at != epoch {
                    broken(format!(
                        "{key} epoch {at} is open, and {epoch} is the newest"
                    ));
                }
                if !self.granted.contains(&(key.clone(), *at)) {
                    broken(format!(
                        "{key} epoch {at} was granted, and no event says so"
                    ));
                }
                if hold.ended_by.is_some() != self.ended.contains(&(key.clone(), *at)) {
                    let by = hold.ended_by.as_deref().unwrap_or("nothing");
                    broken(format!("{key} epoch {at} ended by {by}; its events differ"));
                }
            }
        }
        found
    }

    /// Acknowledged grants that the store does not have.
    fn lost_grants(&self, history: &History) -> Vec<Violation> {
        let mut found = Vec::new();
        for (key, sightings) in observed(history) {
            for seen in sightings {
                let row = self
                    .holds
                    .get(&key)
                    .and_then(|holds| holds.get(&seen.epoch));
                if row.is_none_or(|row| *row.session != *seen.session) {
                    let what = format!(
                        "{key} epoch {} was acknowledged to {}; the store has {row:?}",
                        seen.epoch, seen.session
                    );
                    found.push(Violation::new(
                        "acknowledged means stored",
                        what,
                        vec![seen.call],
                    ));
                }
            }
        }
        found
    }

    /// A change by a call that was told that nothing was changed.
    fn secret_act(&self, place: usize, call: &Call) -> Option<Violation> {
        let is_told_so = call.answer.as_ref().is_some_and(is_away);
        let tag = Some(call.tag.as_str());
        let mut rows = self.holds.values().flat_map(BTreeMap::values);
        let mut changed =
            || self.events.contains_key(&call.tag) || rows.any(|row| row.note.as_deref() == tag);
        (is_told_so && changed()).then(|| {
            let what = format!("{} was told that nothing was changed", call.tag);
            Violation::new("refused means unchanged", what, vec![place])
        })
    }

    /// An acknowledged change that the log, or the row that it changed, does not have.
    fn lost_act(&self, place: usize, call: &Call) -> Option<Violation> {
        let lost = |what: &str| {
            let what = format!("{} was acknowledged; {what}", call.tag);
            Some(Violation::new(
                "acknowledged means stored",
                what,
                vec![place],
            ))
        };
        let ended = |key: &str, epoch: u64| {
            let row = self.holds.get(key).and_then(|holds| holds.get(&epoch));
            row.and_then(|row| row.ended_by.as_deref())
                .unwrap_or("not ended")
        };
        let (key, epoch, expected) = match (&call.op, call.answer.as_ref()?) {
            (Op::End, CallAnswer::Yes { .. }) => {
                let logged = self.events.contains_key(&call.tag);
                return if logged {
                    None
                } else {
                    lost("no event says so")
                };
            }
            (
                Op::Release { key, done, .. },
                CallAnswer::Yes {
                    epoch: Some(epoch), ..
                },
            ) => (key, *epoch, if *done { "done" } else { "release" }),
            (
                Op::Handoff { key, .. },
                CallAnswer::Yes {
                    epoch: Some(epoch), ..
                },
            ) => (key, epoch - 1, "handoff"),
            (Op::Takeover { key, .. }, CallAnswer::Granted { grants }) => {
                let grant = grants.first()?;
                let kept = |held: &&(String, u64)| ended(&held.0, held.1) != "taken";
                match grant.also_ended.iter().find(kept) {
                    Some((along, epoch)) => (along, *epoch, "taken"),
                    None => (key, grant.epoch - 1, "taken"),
                }
            }
            _ => return None,
        };
        if !self.events.contains_key(&call.tag) {
            return lost("no event says so");
        }
        match ended(key, epoch) {
            by if by == expected => None,
            by => lost(&format!("{key} epoch {epoch} is {by}")),
        }
    }

    /// Whether the store's rows match a state of the model.
    pub fn fits(&self, space: &Space, state: &KeyStates) -> bool {
        let same = |(key, item): (&String, &Item)| {
            let epoch = self.claims.get(key).copied().unwrap_or(0);
            let row = self.holds.get(key).and_then(|holds| holds.get(&epoch));
            item.epoch == epoch
                && match (&item.newest, row) {
                    (None, None) => true,
                    (Some(hold), Some(row)) => {
                        *hold.session == *row.session && ends_as(hold.end, row.ended_by.as_deref())
                    }
                    _ => false,
                }
        };
        space.keys.iter().zip(state).all(same)
    }
}

/// Whether a row ended as in the model. All processes are dead by then, whether or not their deaths
/// are recorded.
pub fn ends_as(end: Option<HoldEnd>, row: Option<&str>) -> bool {
    match end {
        None | Some(HoldEnd::Death) => matches!(row, None | Some("death")),
        Some(HoldEnd::Given) => matches!(row, Some("release" | "handoff")),
        Some(HoldEnd::Done) => row == Some("done"),
        Some(HoldEnd::End) => row == Some("end"),
        Some(HoldEnd::Taken) => row == Some("taken"),
        Some(HoldEnd::Fallen) => matches!(row, Some("taken" | "death" | "lease")),
    }
}

/// A number that is never negative.
pub(super) fn number(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}

fn damage(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = conn.prepare("PRAGMA integrity_check")?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut found: Vec<String> = rows.collect::<rusqlite::Result<_>>()?;
    found.retain(|line| line != "ok");
    let mut statement = conn.prepare("PRAGMA foreign_key_check")?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    for table in rows {
        found.push(format!("a row of {} refers to nothing", table?));
    }
    Ok(found)
}

/// The registrations by session and life; those without an answer by their process, as the log names it.
fn resumptions(history: &History) -> HashMap<String, String> {
    let mut found = HashMap::new();
    for call in &history.calls {
        let process = &history.lives[call.life];
        match (&call.op, &call.answer) {
            (Op::Register { .. }, Some(CallAnswer::Registered { session, life, .. })) => {
                found.insert(format!("{session} {life}"), call.tag.clone());
            }
            (Op::Register { .. }, None) => {
                let named = format!("pid {} started at tick {}", process.pid, process.start);
                found.insert(named, call.tag.clone());
            }
            _ => {}
        }
    }
    found
}

/// The registration that an event of a resumption names.
fn resumed_by(resumed: &HashMap<String, String>, session: &str, evidence: &str) -> Option<String> {
    let (_, life) = evidence.rsplit_once("life ")?;
    let answered = resumed.get(&format!("{session} {life}"));
    let process = evidence.split([',', ';']).next()?;
    answered.or_else(|| resumed.get(process)).cloned()
}
