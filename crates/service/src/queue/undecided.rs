//! Deliveries between their arrival and their decision.
//!
//! Every delivery is stored first, with what names its event, and decided afterwards, once its forge has answered what the
//! rules ask about it. *Crash*: what is stored is decided by the next dispatcher. The one that decides it removes it from
//! the undecided ones in the same transaction, so it is decided once.

use std::collections::HashMap;

use tenure_core::key::Key;
use tenure_core::queue::delivery::{Delivery, UndecidedDelivery, Verdict};
use tenure_core::store::TxMode;
use tenure_core::time::Timestamp;

use super::accept::{Accept, Accepted, decide_stored, duplicate, like, lock_all};
use super::error::QueueError;
use super::view::DeliveryView;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::transact::{Reply, Service};

/// A delivery to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    New(Box<Undecided>),
    /// The same as this one, which is undecided.
    Again(i64),
}

/// A delivery without a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided {
    /// `id` and `received_at` are filled in when it is stored, and `item` when it is decided: an index has fewer pages to
    /// write in a burst.
    pub delivery: Delivery,
    pub body: Vec<u8>,
    /// The headers that name its event, as JSON.
    pub headers: String,
    /// What its forge answered, as JSON, if nothing is asked.
    pub answers: Option<String>,
    /// Whether a person asked for it again.
    pub replayed: bool,
}

/// An undecided delivery as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDelivery {
    pub row: UndecidedDelivery,
    pub received_at: Timestamp,
    pub event: String,
    pub body: Option<Vec<u8>>,
}

/// The undecided deliveries that are decided next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Oldest {
    /// In the order of their arrival.
    pub found: Vec<StoredDelivery>,
    /// Whether there may be more.
    pub more: bool,
}

/// How many bytes of bodies are read at once; the next body may exceed that.
const TOGETHER_BYTES: usize = 8 << 20;

/// A decision about a stored delivery. A request carries its number.
#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    Now(Box<Accept>),
    /// It cannot be decided.
    GivenUp {
        delivery: i64,
        why: String,
    },
}

impl Service<'_> {
    /// Stores several deliveries in one transaction, in this order.
    pub fn store_all(&mut self, arrivals: &[Arrival]) -> Reply<Vec<Accepted>> {
        self.transact(TxMode::Write, |ctx| {
            let mut known = HashMap::new();
            let stored = arrivals.iter().map(|arrival| match arrival {
                Arrival::New(one) => store(ctx, one, &mut known),
                Arrival::Again(id) => again(ctx, *id),
            });
            stored.collect()
        })
    }

    /// The ids of the undecided deliveries of an endpoint, with their numbers.
    pub fn undecided_ids(&mut self, endpoint: &str) -> Reply<Vec<(String, i64)>> {
        self.transact(TxMode::Read, |ctx| Ok(ctx.tx.undecided_ids(endpoint)?))
    }

    /// The oldest undecided deliveries of these endpoints whose forge has answered: as many as this, or fewer if their
    /// bodies are large.
    pub fn undecided(&mut self, endpoints: &[&str], most: usize) -> Reply<Oldest> {
        self.transact(TxMode::Read, |ctx| {
            let mut rows = Vec::new();
            for endpoint in endpoints {
                rows.append(&mut ctx.tx.undecided_of(endpoint, true, most)?);
            }
            rows.sort_by_key(|row| row.delivery);
            rows.truncate(most);
            let mut oldest = Oldest {
                more: rows.len() == most,
                found: Vec::new(),
            };
            let mut bytes = 0;
            for row in rows {
                if bytes > TOGETHER_BYTES {
                    oldest.more = true;
                    break;
                }
                let one = whole(ctx, row)?;
                bytes += one.body.as_ref().map_or(0, Vec::len);
                oldest.found.push(one);
            }
            Ok(oldest)
        })
    }

    /// The numbers of the undecided deliveries of an endpoint whose forge has not answered, oldest first.
    pub fn unanswered(&mut self, endpoint: &str) -> Reply<Vec<i64>> {
        self.transact(TxMode::Read, |ctx| {
            let rows = ctx.tx.undecided_of(endpoint, false, 0)?;
            Ok(rows.iter().map(|row| row.delivery).collect())
        })
    }

    /// One of them, if it is undecided.
    pub fn undecided_delivery(&mut self, id: i64) -> Reply<Option<StoredDelivery>> {
        self.transact(TxMode::Read, |ctx| match ctx.tx.undecided(id)? {
            Some(row) => whole(ctx, row).map(Some),
            None => Ok(None),
        })
    }

    /// What became of a delivery so far.
    pub fn accepted_delivery(&mut self, id: i64) -> Reply<Accepted> {
        self.transact(TxMode::Read, |ctx| {
            let known = again(ctx, id)?;
            Ok(Accepted {
                duplicate: false,
                ..known
            })
        })
    }

    /// Stores what the forge answered about deliveries, as JSON, by their numbers.
    pub fn store_answers(&mut self, answers: &[(i64, String)]) -> Reply<()> {
        self.transact(TxMode::Write, |ctx| {
            for (id, answers) in answers {
                if let Some(row) = ctx.tx.undecided(*id)? {
                    ctx.tx.update_undecided(&UndecidedDelivery {
                        answers: Some(answers.clone()),
                        ..row
                    })?;
                }
            }
            Ok(())
        })
    }

    /// Records that the forge of a delivery did not answer, and that what needs no answer was done.
    pub fn keep_undecided(&mut self, id: i64, item: Option<&Key>, why: &str) -> Reply<()> {
        self.transact(TxMode::Write, |ctx| {
            let Some(row) = ctx.tx.undecided(id)? else {
                return Ok(());
            };
            ctx.tx
                .update_undecided(&UndecidedDelivery { acted: true, ..row })?;
            let known = stored(ctx, id)?;
            Ok(ctx.tx.update_delivery(&Delivery {
                why: why.to_owned(),
                item: item.cloned(),
                ..known
            })?)
        })
    }

    /// The deliveries that wait for a forge, oldest first.
    pub fn waiting_deliveries(&mut self) -> Reply<Vec<DeliveryView>> {
        self.transact(TxMode::Read, |ctx| {
            let mut waiting = Vec::new();
            for row in ctx.tx.undecided_unanswered()? {
                waiting.extend(ctx.tx.delivery(row.delivery)?.map(DeliveryView::from));
            }
            Ok(waiting)
        })
    }

    /// Decides deliveries in one transaction, in this order. If one of them fails, none is decided. One that another
    /// dispatcher has decided stays as it is; it has no answer here.
    pub fn decide_all(&mut self, decisions: &[Decided]) -> Reply<Vec<Option<Accepted>>> {
        self.transact(TxMode::Write, |ctx| {
            lock_all(ctx, decisions.iter().filter_map(Decided::request))?;
            let decided = decisions.iter().map(|decided| decide(ctx, decided));
            decided.collect()
        })
    }
}

impl Decided {
    /// The number of the delivery.
    pub fn number(&self) -> i64 {
        match self {
            Decided::Now(request) => request.delivery.id,
            Decided::GivenUp { delivery, .. } => *delivery,
        }
    }

    fn request(&self) -> Option<&Accept> {
        match self {
            Decided::Now(request) => Some(request),
            Decided::GivenUp { .. } => None,
        }
    }
}

fn whole(ctx: &mut Ctx<'_>, row: UndecidedDelivery) -> Result<StoredDelivery, Stop> {
    let known = stored(ctx, row.delivery)?;
    let body = ctx.tx.delivery_body(row.delivery)?;
    Ok(StoredDelivery {
        received_at: known.received_at,
        event: known.event,
        row,
        body,
    })
}

/// The ids that were stored in this transaction: endpoint and id.
type StoredIds<'a> = HashMap<(&'a str, &'a str), i64>;

fn store<'a>(
    ctx: &mut Ctx<'_>,
    one: &'a Undecided,
    known: &mut StoredIds<'a>,
) -> Result<Accepted, Stop> {
    let own = one.delivery.delivery_id.as_deref();
    let own = own.map(|id| (one.delivery.endpoint.as_str(), id));
    if let Some(id) = own.and_then(|own| known.get(&own)) {
        return again(ctx, *id);
    }
    if let Some(before) = like(ctx, &one.delivery)? {
        return duplicate(ctx, before);
    }
    let mut delivery = Delivery {
        received_at: ctx.now.wall,
        item: None,
        ..one.delivery.clone()
    };
    delivery.id = ctx.tx.insert_delivery(&delivery, &one.body)?;
    ctx.tx.insert_undecided(&UndecidedDelivery {
        delivery: delivery.id,
        endpoint: delivery.endpoint.clone(),
        delivery_id: delivery.delivery_id.clone(),
        headers: one.headers.clone(),
        answers: one.answers.clone(),
        acted: false,
        replayed: one.replayed,
    })?;
    known.extend(own.map(|own| (own, delivery.id)));
    Ok(Accepted {
        delivery: delivery.into(),
        duplicate: false,
        jobs: Vec::new(),
    })
}

/// The answer for the same delivery as an undecided one, which may be decided by now.
fn again(ctx: &mut Ctx<'_>, id: i64) -> Result<Accepted, Stop> {
    let before = stored(ctx, id)?;
    duplicate(ctx, before)
}

fn stored(ctx: &mut Ctx<'_>, id: i64) -> Result<Delivery, Stop> {
    let missing = || Error::from(QueueError::NoSuchDelivery { id });
    Ok(ctx.tx.delivery(id)?.ok_or_else(missing)?)
}

fn decide(ctx: &mut Ctx<'_>, decided: &Decided) -> Result<Option<Accepted>, Stop> {
    let id = decided.number();
    if !ctx.tx.remove_undecided(id)? {
        return Ok(None);
    }
    match decided {
        Decided::Now(request) => decide_stored(ctx, request).map(Some),
        Decided::GivenUp { why, .. } => {
            let delivery = Delivery {
                verdict: Verdict::Refused,
                why: why.clone(),
                ..stored(ctx, id)?
            };
            ctx.tx.update_delivery(&delivery)?;
            Ok(Some(Accepted {
                delivery: delivery.into(),
                duplicate: false,
                jobs: Vec::new(),
            }))
        }
    }
}
