//! Deliveries that arrive faster than they are decided.
//!
//! They are stored together with all that their decision needs, answered, and decided in the order of their arrival when
//! there is time ([`tenure_core::queue::backlog`]). Those that lead to nothing, which their rules tell alone, keep that
//! verdict at once. Many are decided in one transaction; one that acts (closes, links, resets), or whose decision depends
//! on what an earlier one stored, is decided alone and in its turn.
//!
//! *Crash*: nothing is answered before it is stored, and what is stored is decided by the next dispatcher. *A full
//! disk*: what is undecided stays so, and is tried again.

use std::time::Duration;

use tenure_core::dispatch::{Decision, decide};
use tenure_core::queue::backlog::{PAUSE, TOGETHER, due, is_stored_first};
use tenure_core::queue::delivery::{Delivery, UndecidedDelivery, Verdict};
use tenure_forges::Headers;
use tenure_host::clock;
use tenure_service::answer::{Class, Problem};
use tenure_service::{Arrival, Decided, Undecided};

use super::asking::{Answers, Asked};
use super::behind::Behind;
use super::config::Config;
use super::ends::ForgeEnd;
use super::receive::{Desk, Genuine, Told, delivery};

/// Why a delivery has no verdict yet.
const IN_ITS_TURN: &str = "deliveries that arrived earlier are decided first";
/// When decisions are tried again that the store refused.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Whether the store failed, and not one delivery.
fn is_for_all(problem: &Problem) -> bool {
    matches!(problem.class, Class::Store | Class::Internal)
}

impl Desk {
    /// Looks for deliveries that an earlier dispatcher stored and did not decide.
    pub fn look_behind(&mut self) -> Result<(), Problem> {
        if self.behind.is_some() || !self.has_undecided()? {
            return Ok(());
        }
        let mut behind = Behind::now();
        for forge in &self.config.clone().forges {
            let ids = self.context.service().undecided_ids(&forge.name)?.value;
            for (id, number) in ids {
                behind.add(&forge.name, id, number);
            }
        }
        self.behind = Some(behind);
        Ok(())
    }

    fn has_undecided(&mut self) -> Result<bool, Problem> {
        let config = self.config.clone();
        let endpoints: Vec<&str> = config.forges.iter().map(|one| one.name.as_str()).collect();
        Ok(self.context.service().has_undecided(&endpoints)?.value)
    }

    /// Stores deliveries that arrived together; the answers are in the same order.
    pub fn receive_all(&mut self, letters: Vec<(Genuine, Asked)>) -> Vec<Told> {
        // Another dispatcher on this store may be behind, too.
        if letters.len() == 1
            && let Err(problem) = self.look_behind()
        {
            return vec![Told::of_stored(Err(problem))];
        }
        if is_stored_first(letters.len(), self.behind.is_some()) {
            return self.store_first(letters);
        }
        let receive = |(genuine, asked): &(Genuine, Asked)| self.receive(genuine, asked);
        letters.iter().map(receive).collect()
    }

    fn store_first(&mut self, letters: Vec<(Genuine, Asked)>) -> Vec<Told> {
        let arrivals: Vec<Arrival> = letters
            .into_iter()
            .map(|(genuine, asked)| self.arrival(genuine, &asked))
            .collect();
        match self.context.service().store_all(&arrivals) {
            Ok(stored) => {
                let behind = self.behind.get_or_insert_with(Behind::now);
                for (arrival, accepted) in arrivals.into_iter().zip(&stored.value) {
                    if let (Arrival::Undecided(one), false) = (arrival, accepted.duplicate)
                        && let Some(id) = one.delivery.delivery_id
                    {
                        behind.add(&one.delivery.endpoint, id, accepted.delivery.id);
                    }
                }
                stored.value.iter().map(Told::of).collect()
            }
            Err(failure) => {
                let problem = Problem::from(failure);
                let failed = || Told::of_stored(Err(problem.clone()));
                arrivals.iter().map(|_| failed()).collect()
            }
        }
    }

    fn arrival(&self, genuine: Genuine, asked: &Asked) -> Arrival {
        let known =
            |behind: &Behind| behind.number(&genuine.endpoint, genuine.delivery_id.as_ref());
        if let Some(number) = self.behind.as_ref().and_then(known) {
            return Arrival::Again(number);
        }
        if let Some((forge, decision)) = self.plain(&genuine, asked)
            && decision.runs.is_empty()
        {
            let request = self.request(&self.config, forge, &genuine, &decision);
            return Arrival::Decided(request);
        }
        let known = delivery(&genuine, &Decision::default());
        Arrival::Undecided(Undecided {
            delivery: Delivery {
                verdict: Verdict::Waits,
                why: IN_ITS_TURN.to_owned(),
                ..known
            },
            headers: serde_json::to_string(genuine.headers.pairs()).unwrap_or_default(),
            asked: serde_json::to_string(asked).unwrap_or_default(),
            body: genuine.body,
        })
    }

    /// The decision about a delivery that only asks for runs, or for nothing.
    fn plain(&self, genuine: &Genuine, asked: &Asked) -> Option<(&ForgeEnd, Decision)> {
        let forge = self.config.forge(&genuine.endpoint)?;
        let Asked::Answered(answers) = asked else {
            return None;
        };
        if genuine.depends_on_earlier() {
            return None;
        }
        let own = forge.own();
        let facts = answers.facts(own.as_ref(), false);
        let decision = decide(&genuine.event, &forge.name, &self.config.rules, &facts);
        (!decision.changes_items()).then_some((forge, decision))
    }

    /// After how long without a delivery undecided ones are decided; none if there are none. If it is already quiet,
    /// they are decided at once.
    pub fn next_decision(&self, is_quiet: bool) -> Option<Duration> {
        let behind = self.behind.as_ref()?;
        let now = clock::instant();
        let retry = behind.retry_at.map(|at| at.saturating_duration_since(now));
        let pause = if is_quiet { Duration::ZERO } else { PAUSE };
        Some(retry.map_or(pause, |left| left.max(pause)))
    }

    /// Decides some, because no delivery arrives.
    pub fn catch_up(&mut self) {
        self.decide_some(TOGETHER);
    }

    /// Decides some during a burst, if they have waited for long.
    pub fn keep_up(&mut self, stored: usize) {
        let now = clock::instant();
        let Some(behind) = &self.behind else {
            return;
        };
        let is_early = behind.retry_at.is_some_and(|at| now < at);
        let count = due(stored, now.duration_since(behind.since));
        if count > 0 && !is_early {
            self.decide_some(count);
        }
    }

    fn decide_some(&mut self, most: usize) {
        match self.decide_oldest(most) {
            Ok(false) => self.behind = None,
            Ok(true) => {
                if let Some(behind) = &mut self.behind {
                    behind.retry_at = None;
                }
            }
            Err(_) => {
                // The store is full or busy: new deliveries are refused, which the forge shows.
                if let Some(behind) = &mut self.behind {
                    behind.retry_at = Some(clock::instant() + RETRY_AFTER);
                }
            }
        }
    }

    /// Decides the oldest; returns whether there may be more.
    fn decide_oldest(&mut self, most: usize) -> Result<bool, Problem> {
        let config = self.config.clone();
        let endpoints: Vec<&str> = config.forges.iter().map(|one| one.name.as_str()).collect();
        let oldest = self.context.service().undecided(&endpoints, most)?.value;
        let mut plain = Vec::new();
        for (row, body) in &oldest.found {
            let Some((genuine, asked)) = read(&config, row, body.as_deref()) else {
                self.settle(&mut plain)?;
                self.give_up_undecided(row.delivery, "its event cannot be read")?;
                continue;
            };
            if let Some((forge, decision)) = self.plain(&genuine, &asked) {
                let mut request = self.request(&self.config, forge, &genuine, &decision);
                request.delivery.id = row.delivery;
                plain.push(Decided::Now(request));
                continue;
            }
            self.settle(&mut plain)?;
            match self.decide_alone(row, &genuine, &asked) {
                Err(problem) if is_for_all(&problem) => return Err(problem),
                Err(problem) => self.give_up_undecided(row.delivery, &problem.message)?,
                Ok(()) => {}
            }
        }
        self.settle(&mut plain)?;
        if let Some(behind) = &mut self.behind {
            for (row, _) in &oldest.found {
                behind.remove(&row.endpoint, row.delivery_id.as_ref());
            }
        }
        Ok(oldest.more)
    }

    /// Records decisions together.
    fn settle(&mut self, plain: &mut Vec<Decided>) -> Result<(), Problem> {
        let decisions = std::mem::take(plain);
        if decisions.is_empty() {
            return Ok(());
        }
        match self.context.service().decide_all(&decisions) {
            Ok(_) => return Ok(()),
            Err(failure) => {
                let problem = Problem::from(failure);
                if is_for_all(&problem) {
                    return Err(problem);
                }
            }
        }
        // One of them fails, and is found by recording each alone.
        for decided in &decisions {
            let recorded = self
                .context
                .service()
                .decide_all(std::slice::from_ref(decided));
            if let Err(failure) = recorded {
                let problem = Problem::from(failure);
                if is_for_all(&problem) {
                    return Err(problem);
                }
                self.give_up_undecided(decided.number(), &problem.message)?;
            }
        }
        Ok(())
    }

    /// Decides one that acts, that depends on earlier ones, or whose forge did not answer.
    fn decide_alone(
        &mut self,
        row: &UndecidedDelivery,
        genuine: &Genuine,
        asked: &Asked,
    ) -> Result<(), Problem> {
        let config = self.config.clone();
        let Some(forge) = config.forge(&genuine.endpoint) else {
            return Ok(());
        };
        let own = forge.own();
        let none = Answers::default();
        let answers = match asked {
            Asked::Answered(answers) => answers,
            Asked::Unanswered(_) => &none,
        };
        let facts = answers.facts(own.as_ref(), self.triggered_before(genuine)?);
        let mut decision = decide(&genuine.event, &forge.name, &config.rules, &facts);
        if matches!(asked, Asked::Unanswered(_)) {
            // Effects that need no answer happen at once.
            decision.runs = Vec::new();
            decision.reset = None;
        }
        if decision.changes_items() && !self.is_known(genuine, &decision)? {
            self.act(&decision)?;
        }
        let mut request = self.request(&config, forge, genuine, &decision);
        request.delivery.id = row.delivery;
        let decided = match asked {
            Asked::Answered(_) => Decided::Now(request),
            Asked::Unanswered(why) => {
                request.delivery.verdict = Verdict::Waits;
                request.delivery.why.clone_from(why);
                let event = serde_json::to_string(&genuine.event).unwrap_or_default();
                Decided::WhenAnswered(request, event)
            }
        };
        self.context.service().decide_all(&[decided])?;
        Ok(())
    }

    fn give_up_undecided(&mut self, delivery: i64, why: &str) -> Result<(), Problem> {
        let why = why.to_owned();
        let given_up = Decided::GivenUp { delivery, why };
        self.context.service().decide_all(&[given_up])?;
        Ok(())
    }
}

/// A delivery as it was when it arrived, without its body, which is stored.
fn read(config: &Config, row: &UndecidedDelivery, body: Option<&[u8]>) -> Option<(Genuine, Asked)> {
    let pairs: Vec<(String, String)> = serde_json::from_str(&row.headers).ok()?;
    let headers = Headers::from_iter(pairs);
    let forge = config.forge(&row.endpoint)?;
    let event = forge.row.read(&headers, body?).ok()??;
    let genuine = Genuine {
        endpoint: row.endpoint.clone(),
        delivery_id: row.delivery_id.clone(),
        headers,
        event,
        body: Vec::new(),
        is_replay: false,
    };
    Some((genuine, serde_json::from_str(&row.asked).ok()?))
}
