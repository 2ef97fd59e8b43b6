//! Processes in rows: the seven columns that identify a process, and the lives.
//!
//! Every life of a session keeps its row, so that a superseded process is recognised when it comes back.
//! *Crash*: a life is recorded with its session, or not at all.

use tenure_core::id::{HostId, Life, SessionId, SessionToken};
use tenure_core::process::{BootId, Process, StartTicks};
use tenure_core::store::{ProcessPlace, StoreError};
use tenure_core::time::Timestamp;

use super::handle::{PostgresTx, limit_or_all};
use super::row::Cells;
use super::value::{Value, params};

const LIVES_AT: &str = "SELECT session, life, host_id, boot_id, boot_private, pid_ns, \
     pid, start_ticks, start_shifted FROM lives \
     WHERE pid = $1 AND boot_id = $2 AND pid_ns = $3 AND host_id = $4 AND boot_private = $5 \
     ORDER BY at DESC, session DESC, life DESC";

pub(super) fn lives_at_any(
    tx: &mut PostgresTx<'_>,
    places: &[ProcessPlace<'_>],
) -> Result<Vec<(SessionToken, Process)>, StoreError> {
    let life = |cells: &mut Cells<'_>| {
        let token = SessionToken {
            id: cells.parsed(SessionId::parse)?,
            life: Life(cells.number()?),
        };
        match read(cells)? {
            Some(process) => Ok((token, process)),
            None => Err(cells.broken("it has no process")),
        }
    };
    let mut found = Vec::new();
    for place in places {
        found.extend(tx.all("lives", LIVES_AT, coordinates(place), life)?);
    }
    Ok(found)
}

const LIVES_OF: &str = "SELECT life, host_id, boot_id, boot_private, pid_ns, pid, \
     start_ticks, start_shifted FROM lives WHERE session = $1 AND life <= $2 ORDER BY life DESC LIMIT $3";

pub(super) fn lives_up_to(
    tx: &mut PostgresTx<'_>,
    token: SessionToken,
    most: usize,
) -> Result<Vec<(Life, Process)>, StoreError> {
    let life = |cells: &mut Cells<'_>| {
        let life = Life(cells.number()?);
        match read(cells)? {
            Some(process) => Ok((life, process)),
            None => Err(cells.broken("it has no process")),
        }
    };
    let who = params![token.id.to_string(), token.life.0, limit_or_all(most)];
    tx.all("lives", LIVES_OF, who, life)
}

pub(super) fn insert_life(
    tx: &mut PostgresTx<'_>,
    token: SessionToken,
    process: &Process,
    at: Timestamp,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO lives (session, life, host_id, boot_id, boot_private, pid_ns, pid, \
         start_ticks, start_shifted, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    tx.insert(
        sql,
        params![
            token.id.to_string(),
            token.life.0,
            process.host.as_str(),
            process.boot.id.as_str(),
            process.boot.private,
            process.pid_ns.cast_signed(),
            process.pid,
            process.start.ticks.cast_signed(),
            process.start.shifted,
            at.0,
        ],
    )
}

/// The parameters of statements that search by place, in order.
pub(super) fn coordinates(place: &ProcessPlace<'_>) -> Vec<Value> {
    params![
        place.pid,
        place.boot.id.as_str(),
        place.pid_ns.cast_signed(),
        place.host.as_str(),
        place.boot.private,
    ]
}

/// Reads host, boot, its privacy, namespace, pid, start and its shift: all of them, or none.
pub(super) fn read(cells: &mut Cells<'_>) -> Result<Option<Process>, StoreError> {
    let host = cells.maybe_text()?;
    let boot = cells.maybe_text()?;
    let private: Option<i64> = cells.maybe_number()?;
    let pid_ns: Option<i64> = cells.maybe_number()?;
    let pid: Option<u32> = cells.maybe_number()?;
    let ticks: Option<i64> = cells.maybe_number()?;
    let shifted: Option<i64> = cells.maybe_number()?;
    match (host, boot, private, pid_ns, pid, ticks, shifted) {
        (None, None, None, None, None, None, None) => Ok(None),
        (Some(host), Some(id), Some(private), Some(ns), Some(pid), Some(ticks), Some(shifted)) => {
            Ok(Some(Process {
                host: HostId::new(host),
                boot: BootId {
                    id,
                    private: private != 0,
                },
                pid_ns: ns.cast_unsigned(),
                pid,
                start: StartTicks {
                    ticks: ticks.cast_unsigned(),
                    shifted: shifted != 0,
                },
            }))
        }
        _ => Err(cells.broken("its process is incomplete")),
    }
}

/// Reads pid, start and its shift of a process on the machine, boot and namespace of another.
pub(super) fn read_beside(
    cells: &mut Cells<'_>,
    beside: Option<&Process>,
) -> Result<Option<Process>, StoreError> {
    let pid: Option<u32> = cells.maybe_number()?;
    let ticks: Option<i64> = cells.maybe_number()?;
    let shifted = cells.maybe_flag()?;
    match (pid, ticks, shifted, beside) {
        (None, None, None, _) => Ok(None),
        (Some(pid), Some(ticks), Some(shifted), Some(beside)) => Ok(Some(Process {
            pid,
            start: StartTicks {
                ticks: ticks.cast_unsigned(),
                shifted,
            },
            ..beside.clone()
        })),
        _ => Err(cells.broken("its daemon is incomplete")),
    }
}
