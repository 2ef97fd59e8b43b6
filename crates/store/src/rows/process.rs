//! Processes in rows: the lives of sessions, and the columns that name a process in other tables.
//!
//! *Crash*: a life is recorded with the session that it is of. *Clock jump*: times order lives of one place only for
//! those who look; a process is known by its start. *Older version*: see the schema.

use tenure_core::id::{HostId, Life, SessionId, SessionToken};
use tenure_core::process::{BootId, Process, StartTicks};
use tenure_core::store::{ProcessPlace, StoreError};
use tenure_core::time::Timestamp;

use crate::cells::{Cells, RowCell};
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::{Value, limit_or_all, params};

columns! { $
    LifeRow of "lives" by select_lives {
        session, life, host_id, boot_id, boot_private, pid_ns, pid, start_ticks, start_shifted, at,
    }
}

pub(crate) const LIVES_AT: &str = select_lives!(
    "WHERE pid = ?1 AND boot_id = ?2 AND pid_ns = ?3 AND host_id = ?4 AND boot_private = ?5 \
     ORDER BY at DESC, session DESC, life DESC"
);
const LIVES_OF: &str =
    select_lives!("WHERE session = ?1 AND life <= ?2 ORDER BY life DESC LIMIT ?3");

/// The columns that name a process: all of them have a value, or none.
pub(crate) struct ProcessCells<'a> {
    pub(crate) host: RowCell<'a>,
    pub(crate) boot_id: RowCell<'a>,
    pub(crate) boot_private: RowCell<'a>,
    pub(crate) pid_ns: RowCell<'a>,
    pub(crate) pid: RowCell<'a>,
    pub(crate) start_ticks: RowCell<'a>,
    pub(crate) start_shifted: RowCell<'a>,
}

/// The cells of a process in a row, whose column for the host has this name.
macro_rules! process_cells {
    ($row:ident, $host:ident) => {
        $crate::rows::process::ProcessCells {
            host: $row.$host,
            boot_id: $row.boot_id,
            boot_private: $row.boot_private,
            pid_ns: $row.pid_ns,
            pid: $row.pid,
            start_ticks: $row.start_ticks,
            start_shifted: $row.start_shifted,
        }
    };
}

pub(crate) use process_cells;

impl ProcessCells<'_> {
    pub(crate) fn process(self) -> Result<Option<Process>, StoreError> {
        let host = self.host.maybe_text()?;
        let boot = self.boot_id.maybe_text()?;
        let private = self.boot_private.maybe_flag()?;
        let pid_ns = self.pid_ns.kernel_number()?;
        let pid: Option<u32> = self.pid.maybe_number()?;
        let ticks = self.start_ticks.kernel_number()?;
        let shifted = self.start_shifted.maybe_flag()?;
        match (host, boot, private, pid_ns, pid, ticks, shifted) {
            (None, None, None, None, None, None, None) => Ok(None),
            (
                Some(host),
                Some(id),
                Some(private),
                Some(pid_ns),
                Some(pid),
                Some(ticks),
                Some(shifted),
            ) => Ok(Some(Process {
                host: HostId::new(host),
                boot: BootId { id, private },
                pid_ns,
                pid,
                start: StartTicks { ticks, shifted },
            })),
            _ => Err(self.host.broken("its process is incomplete")),
        }
    }
}

/// The parameters of the statements that search by place.
pub(crate) fn coordinates<'a>(places: &[ProcessPlace<'a>]) -> Vec<[Value<'a>; 5]> {
    let row = |place: &ProcessPlace<'a>| {
        params![
            place.pid,
            place.boot.id.as_str(),
            place.pid_ns.cast_signed(),
            place.host.as_str(),
            place.boot.private,
        ]
    };
    places.iter().map(row).collect()
}

fn read_life(cells: &mut Cells<'_>) -> Result<(SessionToken, Process), StoreError> {
    let row = LifeRow::read(cells);
    let token = SessionToken {
        id: row.session.parsed(SessionId::parse)?,
        life: Life(row.life.number()?),
    };
    let process = process_cells!(row, host_id);
    match process.process()? {
        Some(process) => Ok((token, process)),
        None => Err(row.host_id.broken("it has no process")),
    }
}

impl<E: Engine> Rows<E> {
    pub(crate) fn lives_at(
        &mut self,
        places: &[ProcessPlace<'_>],
    ) -> Result<Vec<(SessionToken, Process)>, StoreError> {
        self.each("lives", LIVES_AT, &coordinates(places), read_life)
    }

    pub(crate) fn lives_of(
        &mut self,
        token: SessionToken,
        most: usize,
    ) -> Result<Vec<(Life, Process)>, StoreError> {
        let values = params![token.id.to_string(), token.life.0, limit_or_all(most)];
        self.all("lives", LIVES_OF, &values, |cells| {
            let (token, process) = read_life(cells)?;
            Ok((token.life, process))
        })
    }

    pub(crate) fn add_life(
        &mut self,
        token: SessionToken,
        process: &Process,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let row = LifeRow {
            session: token.id.to_string().into(),
            life: token.life.0.into(),
            host_id: process.host.as_str().into(),
            boot_id: process.boot.id.as_str().into(),
            boot_private: process.boot.private.into(),
            pid_ns: process.pid_ns.cast_signed().into(),
            pid: process.pid.into(),
            start_ticks: process.start.ticks.cast_signed().into(),
            start_shifted: process.start.shifted.into(),
            at: at.0.into(),
        };
        self.compare_and_set(LifeRow::INSERT, &row.values())
    }
}
