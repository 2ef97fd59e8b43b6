//! What sessions used, in rows: one for each transcript, day and item.
//!
//! A row also says how far its transcript was read, so that the sum and that place are written together. It goes
//! with its session. *Crash*: a row is replaced completely or not at all. *Clock jump*: see core. *Older version*:
//! it does not know the table.

use tenure_core::id::{AgentName, SessionId};
use tenure_core::key::Key;
use tenure_core::run::line::Tokens;
use tenure_core::spend::{DailySpend, Day, ReadMark};
use tenure_core::store::{SpendRows, StoreError};

use crate::cells::Cells;
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::params;

columns! { $
    SpendRow of "spend" by select_spend {
        session, source, day, item, agent, tokens_in, tokens_out, read_to, last_at,
    }
}

const OF_SESSIONS: &str = concat!(
    "SELECT ",
    select_spend!(columns "s."),
    " FROM json_each(?1) CROSS JOIN spend s ON s.session = json_each.value"
);
const SINCE: &str =
    select_spend!("/* may scan: it is added up when somebody looks */ WHERE day >= ?1");
const SET: &str = "INSERT INTO spend \
     (session, source, day, item, agent, tokens_in, tokens_out, read_to, last_at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (session, source, day, item) DO UPDATE SET \
     tokens_in = excluded.tokens_in, tokens_out = excluded.tokens_out, read_to = excluded.read_to, \
     last_at = excluded.last_at";

fn read(cells: &mut Cells<'_>) -> Result<DailySpend, StoreError> {
    let row = SpendRow::read(cells);
    let item = row.item.text()?;
    Ok(DailySpend {
        session: row.session.parsed(SessionId::parse)?,
        source: row.source.text()?,
        day: row.day.parsed(Day::parse)?,
        item: match item.as_str() {
            "" => None,
            _ => Some(row.item.parsed(Key::stored)?),
        },
        agent: row.agent.parsed(AgentName::parse)?,
        tokens: Tokens {
            input: row.tokens_in.number()?,
            output: row.tokens_out.number()?,
        },
        mark: ReadMark {
            end: row.read_to.number()?,
            last: row.last_at.number()?,
        },
    })
}

impl<E: Engine> SpendRows for Rows<E> {
    fn spend_of(&mut self, sessions: &[SessionId]) -> Result<Vec<DailySpend>, StoreError> {
        self.for_each_of("spend", OF_SESSIONS, sessions, read)
    }

    fn spend_since(&mut self, day: &Day) -> Result<Vec<DailySpend>, StoreError> {
        self.all_readable("spend", SINCE, &params![day.as_str()], read)
    }

    fn set_spend(&mut self, spend: &DailySpend) -> Result<(), StoreError> {
        let row = SpendRow {
            session: spend.session.to_string().into(),
            source: spend.source.as_str().into(),
            day: spend.day.as_str().into(),
            item: spend.item.as_ref().map_or("", Key::as_str).into(),
            agent: spend.agent.as_str().into(),
            tokens_in: self.count("tokens", spend.tokens.input)?.into(),
            tokens_out: self.count("tokens", spend.tokens.output)?.into(),
            read_to: self.count("place", spend.mark.end)?.into(),
            last_at: self.count("place", spend.mark.last)?.into(),
        };
        self.run(SET, &row.values())?;
        Ok(())
    }
}
