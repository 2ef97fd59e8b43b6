//! Deliveries whose forge must be asked and did not answer.
//!
//! Such a delivery is stored at once, so that the sender gets its answer, and decided later.
//! Effects that need no answer (a closed item, a link) happen at once. *Which code*: if the event
//! does not name the commit, a late answer could name a newer one than the permitted person saw. So
//! the forge is not asked for it any more, and nothing is run. *Crash*: it stays stored, and the
//! next dispatcher asks.

use std::time::Duration;

use tenure_core::dispatch::{Decision, decide};
use tenure_core::forge::ForgeEvent;
use tenure_core::queue::delivery::{Delivery, Verdict, WaitingDelivery};
use tenure_forges::Headers;
use tenure_forges::api::{ApiError, ForgeApi};
use tenure_host::clock;
use tenure_service::answer::Problem;
use tenure_service::{Accept, Accepted, Person};

use super::asking::{Answers, ask_late, says};
use super::ends::ForgeEnd;
use super::receive::{Desk, Genuine, delivery};
use super::wrong::Wrong;

/// How long a delivery waits for its forge.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
const UNKNOWN_COMMIT: &str = "the forge could not be asked when it arrived, so the commit that was permitted is unknown; ask for it again";

impl Desk {
    /// Stores a delivery until its forge answers.
    pub(super) fn accept_later(
        &mut self,
        forge: &ForgeEnd,
        genuine: &Genuine,
        why: &str,
    ) -> Result<Accepted, Problem> {
        let config = self.config.clone();
        let own = forge.own();
        let answers = Answers::default();
        let facts = answers.facts(own.as_ref(), false);
        let decision = Decision {
            runs: Vec::new(),
            reset: None,
            ..decide(&genuine.event, &forge.name, &config.rules, &facts)
        };
        if decision.changes_items() && !self.is_known(genuine, &decision)? {
            self.act(&decision)?;
        }
        let request = Accept {
            delivery: Delivery {
                verdict: Verdict::Waits,
                why: why.to_owned(),
                ..delivery(genuine, &decision)
            },
            body: genuine.body.clone(),
            person: Person::No,
            jobs: Vec::new(),
        };
        let event = serde_json::to_string(&genuine.event).unwrap_or_default();
        Ok(self.context.service().accept_later(&request, &event)?.value)
    }

    /// Decides deliveries that waited for this forge, as far as it answers; returns why it did not.
    pub(super) fn decide_waiting(
        &mut self,
        forge: &ForgeEnd,
        api: &dyn ForgeApi,
    ) -> Result<Wrong, Problem> {
        let found = self.context.service().waiting_deliveries(&forge.name)?;
        let damaged = found.damaged.as_ref();
        for (waiting, stored) in found.value {
            let Ok(event) = serde_json::from_str::<ForgeEvent>(&waiting.event) else {
                let why = "its event cannot be read";
                self.give_up(&stored, why)?;
                continue;
            };
            let config = self.config.clone();
            match ask_late(api, &config, &forge.name, &event) {
                Ok(answers) => self.decide_late(forge, &stored, event, &answers)?,
                Err(error) => {
                    if !self.keep_waiting(&waiting, &stored, &error)? {
                        return Ok(Wrong::with(Some(&error), damaged));
                    }
                }
            }
        }
        Ok(Wrong::with(None, damaged))
    }

    fn decide_late(
        &mut self,
        forge: &ForgeEnd,
        stored: &Delivery,
        event: ForgeEvent,
        answers: &Answers,
    ) -> Result<(), Problem> {
        let config = self.config.clone();
        let genuine = Genuine {
            endpoint: stored.endpoint.clone(),
            delivery_id: stored.delivery_id.clone(),
            headers: Headers::default(),
            event,
            body: Vec::new(),
            is_replay: false,
        };
        let own = forge.own();
        let facts = answers.facts(own.as_ref(), self.triggered_before(&genuine)?);
        let mut decision = decide(&genuine.event, &forge.name, &config.rules, &facts);
        let before = decision.runs.len();
        decision
            .runs
            .retain(|run| run.item.scheme() != "pr" || run.head.is_some());
        let is_unknown = decision.runs.len() < before || says(&decision, "unknown_code");
        if decision.changes_items() && !self.is_known(&genuine, &decision)? {
            self.act(&decision)?;
        }
        let mut request = self.request(&config, forge, &genuine, &decision);
        request.delivery.id = stored.id;
        if is_unknown && decision.runs.is_empty() {
            request.delivery.verdict = Verdict::Refused;
            request.delivery.why = UNKNOWN_COMMIT.to_owned();
        }
        self.context.service().decide_waiting(&request)?;
        Ok(())
    }

    /// Postpones a delivery or gives it up; returns whether to ask the forge about the next one.
    fn keep_waiting(
        &mut self,
        waiting: &WaitingDelivery,
        stored: &Delivery,
        error: &ApiError,
    ) -> Result<bool, Problem> {
        if stored.received_at.age_at(clock::wall()) > LONGEST {
            let why = format!("the forge has not answered for a day: {error}");
            self.give_up(stored, &why)?;
            return Ok(true);
        }
        let until = match error {
            ApiError::Limited { until, .. } => Some(*until),
            _ => None,
        };
        self.context.service().wait_longer(waiting, until)?;
        Ok(false)
    }

    fn give_up(&mut self, stored: &Delivery, why: &str) -> Result<(), Problem> {
        let request = Accept {
            delivery: Delivery {
                verdict: Verdict::Refused,
                why: why.to_owned(),
                ..stored.clone()
            },
            body: Vec::new(),
            person: Person::No,
            jobs: Vec::new(),
        };
        self.context.service().decide_waiting(&request)?;
        Ok(())
    }
}
