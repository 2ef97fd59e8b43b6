//! What sessions and runs used: counted when somebody looks.
//!
//! A look asks which transcripts may have new records ([`Service::usage_sources`]), reads them outside of any
//! transaction, and adds the records up ([`Service::count_usage`]). If another look was faster, its sums stay and this
//! one adds nothing. Runs are added up from their own records.

pub mod view;

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::claim::Hold;
use tenure_core::id::{AgentName, SessionId};
use tenure_core::local_time::Zone;
use tenure_core::notice::NoticeKind;
use tenure_core::run::budget::Budgets;
use tenure_core::run::line::Tokens;
use tenure_core::session::Session;
use tenure_core::spend::{
    self, Attribution, DailySpend, Day, ReadMark, ReadTranscript, RunTime, UsageBy, UsageOf,
    UsageSum, Used,
};
use tenure_core::store::{Lock, RunFilter, SessionFilter, TxMode};
use tenure_core::time::{DAY, Timestamp};
use tenure_core::timeline::TimelineFilter;

use crate::caller;
use crate::context::{Ctx, Stop};
use crate::run::budget::runs_of_day;
use crate::transact::{Reply, Service};
use view::{SpendRowView, SpendView};

/// Which usage is wanted.
#[derive(Debug, Clone)]
pub struct UsageRequest {
    pub by: UsageBy,
    /// Whole days are counted, from that of this time on.
    pub since: Timestamp,
    pub zone: Zone,
    pub budgets: Budgets,
}

/// The transcripts of one session of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageSource {
    pub session: SessionId,
    pub agent: AgentName,
    /// The conversations, each with its file.
    pub files: Vec<(String, String)>,
    /// How far each of them was read, and each subagent's.
    pub marks: BTreeMap<String, ReadMark>,
}

impl Service<'_> {
    /// The sessions of this machine whose transcripts may have records from this time or later.
    pub fn usage_sources(&mut self, since: Timestamp) -> Reply<Vec<UsageSource>> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let filter = SessionFilter {
                // The day of this time is counted from its first moment on.
                open_since: Some(since.minus(DAY)),
                readable_only: true,
                ..SessionFilter::default()
            };
            let mut sessions = ctx.tx.list_sessions(&filter)?;
            sessions.retain(|session| is_here(ctx, session));
            let ids: Vec<SessionId> = sessions.iter().map(|session| session.id).collect();
            let mut files: BTreeMap<SessionId, Vec<(String, String)>> = BTreeMap::new();
            for found in ctx.tx.transcripts_of_sessions(&ids)? {
                let file = (found.native_id.to_string(), found.file().to_owned());
                files.entry(found.session).or_default().push(file);
            }
            let mut marks: BTreeMap<SessionId, BTreeMap<String, ReadMark>> = BTreeMap::new();
            for row in ctx.tx.spend_of(&ids)? {
                let of_session = marks.entry(row.session).or_default();
                let mark = of_session.entry(row.source.clone()).or_default();
                *mark = further(*mark, row.mark);
            }
            let damage = ctx.tx.take_damage();
            ctx.effects.damage.extend(damage);
            let with_files = sessions.into_iter().filter_map(|session| {
                Some(UsageSource {
                    session: session.id,
                    files: files.remove(&session.id)?,
                    agent: session.agent,
                    marks: marks.remove(&session.id).unwrap_or_default(),
                })
            });
            Ok(with_files.collect())
        })
    }

    /// Adds the new records of a session's transcripts to its sums. A session with which the tokens of a day are used
    /// up is told so, once.
    pub fn count_usage(
        &mut self,
        id: SessionId,
        read: &[ReadTranscript],
        request: &UsageRequest,
    ) -> Reply<()> {
        self.transact(TxMode::Write, |ctx| {
            ctx.lock([Lock::Session(id)])?;
            let Some(session) = ctx.tx.session(id)? else {
                return Ok(());
            };
            let mut rows = ctx.tx.spend_of(&[id])?;
            let runs = ctx.tx.runs_of_sessions(&[id])?;
            let runs: Vec<RunTime> = runs.iter().filter_map(RunTime::of).collect();
            let holds = holds_of(ctx, id, read)?;
            let by = Attribution {
                holds: &holds,
                runs: &runs,
                forked_at: session.fork_of.as_ref().map(|_| session.started_at),
                zone: &request.zone,
            };
            let before = past_day_tokens(ctx, request)?;
            for one in read {
                for row in new_rows(&session, &mut rows, one, &by, ctx.now.wall) {
                    ctx.tx.set_spend(&row)?;
                }
            }
            if let (None, Some(past)) = (before, past_day_tokens(ctx, request)?)
                && session.is_open()
            {
                ctx.notify(id, NoticeKind::Warned, past, None, None)?;
            }
            Ok(())
        })
    }

    /// What was used, as far as it was counted.
    pub fn usage(&mut self, request: &UsageRequest) -> Reply<SpendView> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let since = Day::of(request.since, &request.zone);
            let used = used_since(ctx, request.since, &since, &request.zone)?;
            let mut view = SpendView::empty(request.by.as_str(), &since);
            let sums = spend::sums(request.by, &used);
            let handles = handles_of(ctx, &sums)?;
            view.rows = sums
                .into_iter()
                .map(|(of, sum)| row(of, sum, &handles))
                .collect();
            view.total = spend::total(&used).into();
            let now = ctx.now.wall;
            if request.budgets.looks_back() {
                let runs = runs_of_day(ctx, true)?;
                let used_up = request.budgets.used_up(None, &runs, now);
                view.past_budgets.extend(used_up.map(|used| used.why));
            }
            view.past_budgets.extend(past_day_tokens(ctx, request)?);
            Ok(view)
        })
    }
}

/// That the sessions of today used more tokens than the user allows, if so.
fn past_day_tokens(ctx: &mut Ctx<'_>, request: &UsageRequest) -> Result<Option<String>, Stop> {
    let most = u64::try_from(request.budgets.day_tokens).unwrap_or(u64::MAX);
    if most == 0 {
        return Ok(None);
    }
    let today = Day::of(ctx.now.wall, &request.zone);
    let mut used = 0_u64;
    for spent in ctx.tx.spend_since(&today)? {
        let tokens = spent.tokens;
        used = used.saturating_add(tokens.input.saturating_add(tokens.output));
    }
    let why = || format!("sessions used {used} tokens today; budget.day_tokens is {most}");
    Ok((used >= most).then(why))
}

/// Whether a session's files are on this machine.
fn is_here(ctx: &Ctx<'_>, session: &Session) -> bool {
    match &session.process {
        Some(process) => process.host == ctx.observer.host,
        None => !ctx.observer.shared_store,
    }
}

fn further(one: ReadMark, other: ReadMark) -> ReadMark {
    if other.end > one.end { other } else { one }
}

/// What a session held while these records were written.
fn holds_of(
    ctx: &mut Ctx<'_>,
    session: SessionId,
    read: &[ReadTranscript],
) -> Result<Vec<Hold>, Stop> {
    let records = read.iter().flat_map(|one| &one.records);
    let Some(since) = records.map(|record| record.at).min() else {
        return Ok(Vec::new());
    };
    let filter = TimelineFilter {
        since: Some(since),
        session: Some(session),
        ..TimelineFilter::default()
    };
    let found = ctx.tx.timeline(&filter)?;
    let damage = ctx.tx.take_damage();
    ctx.effects.damage.extend(damage);
    Ok(found.into_iter().map(|one| one.hold).collect())
}

/// The rows that change because of new records, which `rows` has afterwards too.
fn new_rows(
    session: &Session,
    rows: &mut Vec<DailySpend>,
    read: &ReadTranscript,
    by: &Attribution<'_>,
    now: Timestamp,
) -> Vec<DailySpend> {
    let of_source = rows.iter().filter(|row| row.source == read.source);
    let mark = of_source.fold(ReadMark::default(), |mark, row| further(mark, row.mark));
    if mark != read.from {
        // Another look was faster.
        return Vec::new();
    }
    let mut new = spend::add_up(read, by);
    if new.mark == mark {
        return Vec::new();
    }
    if new.sums.is_empty() {
        // A row says how far it was read.
        let today = (Day::of(now, by.zone), None);
        new.sums.insert(today, Tokens::default());
    }
    let mut changed = Vec::new();
    for ((day, item), tokens) in new.sums {
        let is_same =
            |row: &&mut DailySpend| row.source == read.source && row.day == day && row.item == item;
        let before = rows.iter_mut().find(is_same);
        let tokens = before.map_or(tokens, |row| row.tokens.plus(tokens));
        changed.push(DailySpend {
            session: session.id,
            source: read.source.clone(),
            day,
            item,
            agent: session.agent.clone(),
            tokens,
            mark: new.mark,
        });
    }
    rows.extend(changed.iter().cloned());
    changed
}

/// What was used from a day on: by sessions as it was counted, and by runs.
fn used_since(
    ctx: &mut Ctx<'_>,
    since: Timestamp,
    first: &Day,
    zone: &Zone,
) -> Result<Vec<Used>, Stop> {
    let spent = ctx.tx.spend_since(first)?;
    let filter = RunFilter {
        since: Some(since.minus(DAY)),
        readable_only: true,
        ..RunFilter::default()
    };
    let runs = ctx.tx.list_runs(&filter)?;
    let damage = ctx.tx.take_damage();
    ctx.effects.damage.extend(damage);
    let of_runs = runs.iter().filter_map(|run| spend::of_run(run, zone));
    let of_runs = of_runs.filter(|used| used.day >= *first);
    Ok(spent.into_iter().map(Used::from).chain(of_runs).collect())
}

fn handles_of(
    ctx: &mut Ctx<'_>,
    sums: &[(UsageOf, UsageSum)],
) -> Result<BTreeMap<SessionId, String>, Stop> {
    let named = sums.iter().filter_map(|(of, _)| match of {
        UsageOf::Session(id) => *id,
        _ => None,
    });
    let ids: Vec<SessionId> = named.collect::<BTreeSet<_>>().into_iter().collect();
    let sessions = ctx.tx.sessions(&ids)?.into_iter();
    Ok(sessions
        .map(|session| (session.id, session.handle.to_string()))
        .collect())
}

fn row(of: UsageOf, sum: UsageSum, handles: &BTreeMap<SessionId, String>) -> SpendRowView {
    let session = match &of {
        UsageOf::Session(id) => *id,
        _ => None,
    };
    let name = match of {
        // One that cannot be read has its id only.
        UsageOf::Session(id) => {
            id.map(|id| handles.get(&id).cloned().unwrap_or_else(|| id.to_string()))
        }
        UsageOf::Item(item) => item.map(|item| item.to_string()),
        UsageOf::Day(day) => Some(day.to_string()),
        UsageOf::Agent(agent) => Some(agent),
    };
    SpendRowView {
        name,
        session: session.map(|id| id.to_string()),
        used: sum.into(),
    }
}
