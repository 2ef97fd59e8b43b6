//! Deliveries that are stored before they are decided, because several arrived at once.
//!
//! *Crash*: a delivery is stored together with what names its event and the answers of its forge, so the next dispatcher decides it
//! as this one would have. The one that decides it removes it from the undecided ones in the same transaction, so it is
//! decided once.

use std::collections::HashMap;

use tenure_core::queue::delivery::{Delivery, UndecidedDelivery, Verdict, WaitingDelivery};
use tenure_core::store::Mode;

use super::accept::{Accept, Accepted, accept, decide_stored, duplicate, lock_all};
use super::error::QueueError;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::transact::{Reply, Service};

/// A delivery that is stored for now.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrival {
    /// It leads to nothing, which is known without others.
    Decided(Accept),
    Undecided(Undecided),
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
    /// What its forge answered, as JSON.
    pub asked: String,
}

/// The undecided deliveries that are decided next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Oldest {
    /// In the order of their arrival, with their bodies.
    pub found: Vec<(UndecidedDelivery, Option<Vec<u8>>)>,
    /// Whether there may be more.
    pub more: bool,
}

/// How many bytes of bodies are read at once; the next body may exceed that.
const TOGETHER_BYTES: usize = 8 << 20;

/// A decision about a stored delivery. A request carries its number.
#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    Now(Accept),
    /// Its forge did not answer when it arrived, and is asked later about this event.
    WhenAnswered(Accept, String),
    /// It cannot be decided.
    GivenUp {
        delivery: i64,
        why: String,
    },
}

impl Service<'_> {
    /// Stores several deliveries in one transaction, in this order, before they are decided.
    pub fn store_all(&mut self, arrivals: &[Arrival]) -> Reply<Vec<Accepted>> {
        self.transact(Mode::Write, |ctx| {
            let mut known = HashMap::new();
            let stored = arrivals.iter().map(|arrival| match arrival {
                Arrival::Decided(request) => accept(ctx, request, None),
                Arrival::Undecided(one) => store(ctx, one, &mut known),
                Arrival::Again(id) => again(ctx, *id),
            });
            stored.collect()
        })
    }

    /// The ids of the undecided deliveries of an endpoint, with their numbers.
    pub fn undecided_ids(&mut self, endpoint: &str) -> Reply<Vec<(String, i64)>> {
        self.transact(Mode::Read, |ctx| Ok(ctx.tx.undecided_ids(endpoint)?))
    }

    /// Whether a delivery of one of these endpoints is undecided.
    pub fn has_undecided(&mut self, endpoints: &[&str]) -> Reply<bool> {
        self.transact(Mode::Read, |ctx| {
            for endpoint in endpoints {
                if ctx.tx.has_undecided(endpoint)? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// The oldest undecided deliveries of these endpoints: as many as this, or fewer if their bodies are large.
    pub fn undecided(&mut self, endpoints: &[&str], most: usize) -> Reply<Oldest> {
        self.transact(Mode::Read, |ctx| {
            let mut rows = Vec::new();
            for endpoint in endpoints {
                rows.append(&mut ctx.tx.undecided_of(endpoint, most)?);
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
                let body = ctx.tx.delivery_body(row.delivery)?;
                bytes += body.as_ref().map_or(0, Vec::len);
                oldest.found.push((row, body));
            }
            Ok(oldest)
        })
    }

    /// Decides deliveries in one transaction, in this order. If one of them fails, none is decided. One that another
    /// dispatcher has decided stays as it is.
    pub fn decide_all(&mut self, decisions: &[Decided]) -> Reply<()> {
        self.transact(Mode::Write, |ctx| {
            lock_all(ctx, decisions.iter().filter_map(Decided::request))?;
            for decided in decisions {
                decide(ctx, decided)?;
            }
            Ok(())
        })
    }
}

impl Decided {
    /// The number of the delivery.
    pub fn number(&self) -> i64 {
        match self {
            Decided::Now(request) | Decided::WhenAnswered(request, _) => request.delivery.id,
            Decided::GivenUp { delivery, .. } => *delivery,
        }
    }

    fn request(&self) -> Option<&Accept> {
        match self {
            Decided::Now(request) | Decided::WhenAnswered(request, _) => Some(request),
            Decided::GivenUp { .. } => None,
        }
    }
}

/// The ids that were stored in this transaction: endpoint and id.
type Known<'a> = HashMap<(&'a str, &'a str), i64>;

fn store<'a>(
    ctx: &mut Ctx<'_>,
    one: &'a Undecided,
    known: &mut Known<'a>,
) -> Result<Accepted, Stop> {
    let own = one.delivery.delivery_id.as_deref();
    let own = own.map(|id| (one.delivery.endpoint.as_str(), id));
    if let Some(id) = own.and_then(|own| known.get(&own)) {
        return again(ctx, *id);
    }
    if let Some(before) = ctx.tx.delivery_like(&one.delivery)? {
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
        asked: one.asked.clone(),
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

fn decide(ctx: &mut Ctx<'_>, decided: &Decided) -> Result<(), Stop> {
    let id = decided.number();
    if !ctx.tx.remove_undecided(id)? {
        return Ok(());
    }
    match decided {
        Decided::Now(request) => decide_stored(ctx, request).map(|_| ()),
        Decided::WhenAnswered(request, event) => {
            let known = &request.delivery;
            let delivery = Delivery {
                verdict: known.verdict,
                why: known.why.clone(),
                item: known.item.clone(),
                ..stored(ctx, id)?
            };
            ctx.tx.update_delivery(&delivery)?;
            Ok(ctx.tx.set_waiting_delivery(&WaitingDelivery {
                delivery: id,
                endpoint: delivery.endpoint,
                event: event.clone(),
                tries: 0,
                next_at: ctx.now.wall,
            })?)
        }
        Decided::GivenUp { why, .. } => {
            let delivery = Delivery {
                verdict: Verdict::Refused,
                why: why.clone(),
                ..stored(ctx, id)?
            };
            Ok(ctx.tx.update_delivery(&delivery)?)
        }
    }
}
