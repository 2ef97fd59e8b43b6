//! From an arrived delivery to its decision, the same way for each: stored, asked about, decided.
//!
//! [`DeliveryIntake::store`] stores what arrived, and only then may the forge be told that it was accepted. [`DeliveryIntake::questions`] are
//! asked of the forges by threads that nobody waits for, and [`DeliveryIntake::answer`] stores what they answered. What is answered
//! is decided in the order of its arrival ([`tenure_core::queue::backlog`]). Many are decided in one transaction; one that
//! acts (closes, links, resets), or whose decision depends on what an earlier one stored, is decided alone and in its turn.
//!
//! *Forge away*: the delivery waits, for as long as it takes. Effects that need no answer (a closed item, a link) happen
//! at once. *Which code*: if the event does not name the commit, a late answer could name a newer one than the permitted
//! person saw. So the forge is not asked for it any more, and nothing is run. *Crash*: nothing is answered before it is
//! stored, and what is stored is decided by the next dispatcher. *A full disk*: what is undecided stays so, and is tried
//! again.

use std::time::{Duration, Instant};

use tenure_core::dispatch::{Decision, Matched, No, Trust, decide};
use tenure_core::forge::ForgeEvent;
use tenure_core::queue::backlog::{LATE, PAUSE, TOGETHER, due};
use tenure_core::queue::delivery::{Delivery, Verdict};
use tenure_core::time::Timestamp;
use tenure_forges::Headers;
use tenure_host::{clock, digest};
use tenure_service::answer::{Class, Problem};
use tenure_service::{Accepted, Arrival, Decided, StoredDelivery, Undecided};

use super::config::Config;
use super::forge_answers::{Answers, ForgeAnswers, ask_about};
use super::receive::{DeliveryIntake, VerifiedDelivery, WebhookResponse, delivery};

/// Why a delivery has no verdict yet.
const UNDECIDED: &str = "it is stored and not decided yet";
const UNKNOWN_COMMIT: &str = "the forge could not be asked when it arrived, so the commit that was permitted is unknown; ask for it again";
const UNREADABLE: &str = "its event cannot be read";
/// When decisions are tried again that the store refused.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Whether the store failed, and not one delivery.
fn is_for_all(problem: &Problem) -> bool {
    matches!(problem.class, Class::Store | Class::Internal)
}

/// An arrived delivery after it was stored, or refused by the store.
#[derive(Debug, Clone)]
pub struct IntakeResult {
    pub told: WebhookResponse,
    /// Its number, if it is new and undecided.
    pub undecided: Option<i64>,
}

/// What became of a delivery, by its number. If it is the same as an earlier one, what became of that.
pub type DeliveryOutcome = (i64, Accepted);

/// What its forge must be asked about a delivery.
#[derive(Debug, Clone)]
pub struct Question {
    number: i64,
    endpoint: String,
    event: ForgeEvent,
    received_at: Timestamp,
    acted: bool,
}

impl Question {
    /// Asks. This takes as long as the forge does.
    pub fn ask(&self, config: &Config) -> ForgeAnswers {
        let is_late = self.received_at.age_at(clock::wall()) > LATE;
        ask_about(config, &self.endpoint, &self.event, is_late)
    }
}

impl DeliveryIntake {
    /// Looks for deliveries that another process stored and did not decide.
    pub fn look_behind(&mut self) -> Result<(), Problem> {
        let config = self.config.clone();
        for forge in &config.forges {
            let mut service = self.context.service();
            for (id, number) in service.undecided_ids(&forge.name)?.value {
                self.backlog.add(&forge.name, id, number);
            }
            let ready = self.context.service().undecided(&[&forge.name], 1)?;
            if !ready.value.found.is_empty() {
                self.backlog.set_ready();
            }
            if !self
                .context
                .service()
                .unanswered(&forge.name)?
                .value
                .is_empty()
            {
                self.backlog.questions(&forge.name).left();
            }
        }
        Ok(())
    }

    /// Stores deliveries that arrived together; the answers are in the same order.
    pub fn store(&mut self, arrived: Vec<VerifiedDelivery>) -> Vec<IntakeResult> {
        let arrivals: Vec<Arrival> = arrived.into_iter().map(|one| self.arrival(one)).collect();
        match self.context.service().store_all(&arrivals) {
            Ok(stored) => {
                let stored = arrivals.into_iter().zip(stored.value);
                stored
                    .map(|(arrival, accepted)| self.note_stored(arrival, &accepted))
                    .collect()
            }
            Err(failure) => {
                let told = WebhookResponse::of_failure(&Problem::from(failure));
                let failed = |_| IntakeResult {
                    told: told.clone(),
                    undecided: None,
                };
                arrivals.iter().map(failed).collect()
            }
        }
    }

    fn note_stored(&mut self, arrival: Arrival, accepted: &Accepted) -> IntakeResult {
        let number = accepted.delivery.id;
        let undecided = match arrival {
            Arrival::New(one) if !accepted.duplicate => {
                let endpoint = &one.delivery.endpoint;
                if one.answers.is_some() {
                    self.backlog.set_ready();
                } else {
                    self.backlog.questions(endpoint).add();
                }
                if let Some(id) = one.delivery.delivery_id {
                    self.backlog.add(endpoint, id, number);
                }
                Some(number)
            }
            _ => None,
        };
        IntakeResult {
            told: WebhookResponse::of(accepted),
            undecided,
        }
    }

    fn arrival(&self, verified: VerifiedDelivery) -> Arrival {
        let id = verified
            .delivery_id
            .as_ref()
            .filter(|_| !verified.is_replay);
        if let Some(number) = self.backlog.number(&verified.endpoint, id) {
            return Arrival::Again(number);
        }
        let is_asked = verified.is_asked(&self.config);
        let answers = || serde_json::to_string(&Answers::default()).unwrap_or_default();
        let known = delivery(&verified, &Decision::default());
        Arrival::New(Box::new(Undecided {
            delivery: Delivery {
                verdict: Verdict::Waits,
                why: UNDECIDED.to_owned(),
                body_hash: (!verified.is_replay).then(|| digest::sha256(&verified.body)),
                ..known
            },
            headers: serde_json::to_string(verified.headers.pairs()).unwrap_or_default(),
            answers: (!is_asked).then(answers),
            replayed: verified.is_replay,
            body: verified.body,
        }))
    }

    /// The questions that are asked now. Each must be answered, with [`DeliveryIntake::answer`].
    pub fn questions(&mut self) -> Result<Vec<Question>, Problem> {
        let config = self.config.clone();
        let mut questions = Vec::new();
        for forge in &config.forges {
            let free = self.backlog.questions(&forge.name).free();
            if free == 0 {
                continue;
            }
            let left = self.context.service().unanswered(&forge.name)?.value;
            for number in self.backlog.questions(&forge.name).choose(&left, free) {
                let found = self.context.service().undecided_delivery(number)?.value;
                let read = found.and_then(|stored| Some((read(&config, &stored)?, stored)));
                let Some((verified, stored)) = read else {
                    self.backlog.questions(&forge.name).answered(number);
                    self.give_up(number, UNREADABLE)?;
                    continue;
                };
                questions.push(Question {
                    number,
                    endpoint: forge.name.clone(),
                    event: verified.event,
                    received_at: stored.received_at,
                    acted: stored.row.acted,
                });
            }
        }
        Ok(questions)
    }

    /// When a forge that did not answer is asked again.
    pub fn next_question(&self) -> Option<Instant> {
        self.backlog.next_question()
    }

    /// Stores what forges answered. What cannot be stored is asked again. Returns what became of those
    /// that are not decided because of it.
    pub fn answer(
        &mut self,
        answered: Vec<(Question, ForgeAnswers)>,
    ) -> Result<Vec<DeliveryOutcome>, Problem> {
        let mut answers = Vec::new();
        let mut told = Vec::new();
        let longest = self.context.settings.policy.retry_every;
        for (question, asked) in answered {
            let own = self.backlog.questions(&question.endpoint);
            match asked {
                ForgeAnswers::Answered(found) => {
                    own.answered(question.number);
                    let found = serde_json::to_string(&found).unwrap_or_default();
                    answers.push((question.number, found));
                }
                ForgeAnswers::Refused(why) => {
                    own.answered(question.number);
                    told.extend(self.give_up(question.number, &why)?);
                }
                ForgeAnswers::Unanswered { why, until } => {
                    own.unanswered(question.number, until.map(instant_of), longest);
                    told.extend(self.keep_waiting(&question, &why)?);
                }
            }
        }
        if !answers.is_empty() {
            if let Err(failure) = self.context.service().store_answers(&answers) {
                let config = self.config.clone();
                for forge in &config.forges {
                    self.backlog.questions(&forge.name).left();
                }
                return Err(failure.into());
            }
            self.backlog.set_ready();
        }
        Ok(told)
    }

    /// Does what needs no answer of the forge, once.
    fn keep_waiting(
        &mut self,
        question: &Question,
        why: &str,
    ) -> Result<Option<DeliveryOutcome>, Problem> {
        if question.acted {
            return Ok(None);
        }
        let verified = VerifiedDelivery {
            endpoint: question.endpoint.clone(),
            delivery_id: None,
            headers: Headers::default(),
            event: question.event.clone(),
            body: Vec::new(),
            is_replay: false,
        };
        let decision = Decision {
            runs: Vec::new(),
            reset: None,
            halt: None,
            ..self.decision(&verified, &Answers::default())?
        };
        if decision.changes_items() {
            self.act(&decision, None)?;
        }
        let item = question.event.item.as_ref();
        let mut service = self.context.service();
        service.keep_undecided(question.number, item, why)?;
        let waits = service.accepted_delivery(question.number)?.value;
        Ok(Some((question.number, waits)))
    }

    /// Stores one delivery, asks its forge and decides it; if the forge does not answer, it waits.
    pub(super) fn decide_now(&mut self, verified: VerifiedDelivery) -> Result<Accepted, Problem> {
        let arrivals = [self.arrival(verified)];
        let stored = self.context.service().store_all(&arrivals)?.value;
        let number = stored.first().map_or(0, |accepted| accepted.delivery.id);
        let config = self.config.clone();
        let mut decided = Vec::new();
        let is_unanswered = |one: &StoredDelivery| one.row.answers.is_none();
        let found = self.context.service().undecided_delivery(number)?.value;
        if let Some(one) = found.as_ref().filter(|one| is_unanswered(one))
            && let Some(verified) = read(&config, one)
        {
            let question = Question {
                number,
                endpoint: verified.endpoint,
                event: verified.event,
                received_at: one.received_at,
                acted: one.row.acted,
            };
            let asked = question.ask(&config);
            decided = self.answer(vec![(question, asked)])?;
        }
        // A running dispatcher may have decided it, too.
        let found = self.context.service().undecided_delivery(number)?.value;
        if let Some(one) = found.filter(|one| !is_unanswered(one)) {
            self.decide_these(&[one], &mut decided)?;
        }
        let accepted = decided.into_iter().map(|(_, accepted)| accepted).next();
        match accepted {
            Some(accepted) => Ok(accepted),
            None => Ok(self.context.service().accepted_delivery(number)?.value),
        }
    }

    /// After how long without a delivery undecided ones are decided; none if there are none. If it is already quiet,
    /// they are decided at once.
    pub fn next_decision(&self, is_quiet: bool) -> Option<Duration> {
        let ready = self.backlog.ready.as_ref()?;
        let now = clock::instant();
        let retry = ready.retry_at.map(|at| at.saturating_duration_since(now));
        let pause = if is_quiet { Duration::ZERO } else { PAUSE };
        Some(retry.map_or(pause, |left| left.max(pause)))
    }

    /// Decides some, because no delivery arrives.
    pub fn catch_up(&mut self) -> Vec<DeliveryOutcome> {
        self.decide_some(TOGETHER)
    }

    /// Decides some during a burst, if they have waited for long.
    pub fn keep_up(&mut self, stored: usize) -> Vec<DeliveryOutcome> {
        let now = clock::instant();
        let Some(ready) = &self.backlog.ready else {
            return Vec::new();
        };
        let is_early = ready.retry_at.is_some_and(|at| now < at);
        let count = due(stored, now.duration_since(ready.since));
        if count == 0 || is_early {
            return Vec::new();
        }
        self.decide_some(count)
    }

    fn decide_some(&mut self, most: usize) -> Vec<DeliveryOutcome> {
        let mut decided = Vec::new();
        let is_more = self.decide_oldest(most, &mut decided);
        match is_more {
            Ok(false) => self.backlog.ready = None,
            Ok(true) | Err(_) => {
                // If the store is full or busy, new deliveries are refused, which the forge shows.
                let retry_at = is_more.is_err().then(|| clock::instant() + RETRY_AFTER);
                if let Some(ready) = &mut self.backlog.ready {
                    ready.retry_at = retry_at;
                }
            }
        }
        decided
    }

    /// Decides the oldest; returns whether there may be more.
    fn decide_oldest(
        &mut self,
        most: usize,
        decided: &mut Vec<DeliveryOutcome>,
    ) -> Result<bool, Problem> {
        let config = self.config.clone();
        let endpoints: Vec<&str> = config.forges.iter().map(|one| one.name.as_str()).collect();
        let oldest = self.context.service().undecided(&endpoints, most)?;
        self.decide_these(&oldest.value.found, decided)?;
        Ok(oldest.value.more)
    }

    /// Decides stored deliveries whose forge has answered.
    pub(super) fn decide_these(
        &mut self,
        found: &[StoredDelivery],
        decided: &mut Vec<DeliveryOutcome>,
    ) -> Result<(), Problem> {
        let config = self.config.clone();
        let mut together = Vec::new();
        for stored in found {
            let number = stored.row.delivery;
            let answers = stored.row.answers.as_deref();
            let answers = answers.and_then(|text| serde_json::from_str::<Answers>(text).ok());
            let (Some(verified), Some(answers)) = (read(&config, stored), answers) else {
                decided.extend(self.give_up(number, UNREADABLE)?);
                continue;
            };
            if verified.depends_on_earlier() {
                self.settle(&mut together, decided)?;
            }
            match self.request_of(stored, &verified, &answers, (&mut together, &mut *decided)) {
                Ok(request) => together.push(request),
                Err(problem) if is_for_all(&problem) => return Err(problem),
                Err(problem) => decided.extend(self.give_up(number, &problem.message)?),
            }
        }
        self.settle(&mut together, decided)?;
        for stored in found {
            let row = &stored.row;
            self.backlog.remove(&row.endpoint, row.delivery_id.as_ref());
        }
        Ok(())
    }

    /// Carries out the effects of a delivery besides its runs, after those before it were recorded; returns what to record.
    fn request_of(
        &mut self,
        stored: &StoredDelivery,
        verified: &VerifiedDelivery,
        answers: &Answers,
        (together, decided): (&mut Vec<Decided>, &mut Vec<DeliveryOutcome>),
    ) -> Result<Decided, Problem> {
        let mut decision = self.decision(verified, answers)?;
        let mut unknown = Vec::new();
        if answers.is_late {
            unknown = without_commit(&self.config, &decision);
            decision.runs.retain(|run| !lacks_commit(run));
        }
        let mut effects = decision.clone();
        if stored.row.acted {
            effects = Decision {
                reset: decision.reset.clone(),
                reset_stops: decision.reset_stops.clone(),
                halt: decision.halt.clone(),
                ..Decision::default()
            };
        }
        if effects.changes_items() {
            self.settle(together, decided)?;
            if !self.is_known(verified, &decision)? {
                let confirms_in = self.confirms_in(verified);
                self.act(&effects, confirms_in.as_deref())?;
            }
        }
        let config = self.config.clone();
        let Some(forge) = config.forge(&verified.endpoint) else {
            return Ok(Decided::GivenUp {
                delivery: stored.row.delivery,
                why: UNREADABLE.to_owned(),
            });
        };
        let mut request = self.request(&config, forge, verified, &decision);
        request.delivery.id = stored.row.delivery;
        if !unknown.is_empty() && decision.runs.is_empty() {
            // Nothing runs; the job is stored for its reply alone.
            let refused = Decision {
                runs: unknown,
                ..decision
            };
            request.jobs = self.request(&config, forge, verified, &refused).jobs;
            request.delivery.verdict = Verdict::Refused;
            request.delivery.why = UNKNOWN_COMMIT.to_owned();
        }
        Ok(Decided::Now(Box::new(request)))
    }

    /// What the rules say about a delivery.
    fn decision(
        &mut self,
        verified: &VerifiedDelivery,
        answers: &Answers,
    ) -> Result<Decision, Problem> {
        let config = self.config.clone();
        let own = config.forge(&verified.endpoint).and_then(|one| one.own());
        let facts = answers.facts(own.as_ref(), self.triggered_before(verified)?);
        let (event, endpoint) = (&verified.event, &verified.endpoint);
        let decision = decide(event, endpoint, &config.rules, &facts);
        let repo = config.repo(endpoint, &event.repo);
        let (Some(repo), Some(id), true) = (repo, event.repo_id, decision.changes_items()) else {
            return Ok(decision);
        };
        let known = self.context.service().repository_identity(&repo.name)?;
        if known.value.is_none_or(|known| !known.is_other(id)) {
            return Ok(decision);
        }
        let repo = repo.name.clone();
        Ok(decision.without_items(No::ReplacedRepository { repo, id }))
    }

    /// Records decisions together.
    fn settle(
        &mut self,
        together: &mut Vec<Decided>,
        decided: &mut Vec<DeliveryOutcome>,
    ) -> Result<(), Problem> {
        let decisions = std::mem::take(together);
        if decisions.is_empty() {
            return Ok(());
        }
        match self.context.service().decide_all(&decisions) {
            Ok(recorded) => {
                decided.extend(numbered(&decisions, recorded.value));
                return Ok(());
            }
            Err(failure) => {
                let problem = Problem::from(failure);
                if is_for_all(&problem) {
                    return Err(problem);
                }
            }
        }
        // One of them fails, and is found by recording each alone.
        for one in decisions {
            let (number, alone) = (one.number(), [one]);
            match self.context.service().decide_all(&alone) {
                Ok(recorded) => decided.extend(numbered(&alone, recorded.value)),
                Err(failure) => {
                    let problem = Problem::from(failure);
                    if is_for_all(&problem) {
                        return Err(problem);
                    }
                    decided.extend(self.give_up(number, &problem.message)?);
                }
            }
        }
        Ok(())
    }

    fn give_up(&mut self, delivery: i64, why: &str) -> Result<Option<DeliveryOutcome>, Problem> {
        let why = why.to_owned();
        let given_up = Decided::GivenUp { delivery, why };
        let given_up = [given_up];
        let recorded = self.context.service().decide_all(&given_up)?.value;
        Ok(numbered(&given_up, recorded).next())
    }
}

/// Whether it is not known which commit a run was permitted for.
fn lacks_commit(run: &Matched) -> bool {
    run.item.scheme() == "pr" && run.head.is_none()
}

/// The runs that were asked for, if only their commit were known.
fn without_commit(config: &Config, decision: &Decision) -> Vec<Matched> {
    let mut found: Vec<Matched> = decision.runs.clone();
    found.retain(lacks_commit);
    for verdict in &decision.verdicts {
        if let Some(No::UnknownCode { item }) = &verdict.no
            && let Some(rule) = config.rules.rule(&verdict.rule)
        {
            found.push(Matched {
                rule: rule.name.clone(),
                agent: rule.action.agent.clone(),
                item: item.clone(),
                trust: Trust::Outside,
                head: None,
                branch: None,
            });
        }
    }
    found
}

/// Those that were decided here, with their numbers.
fn numbered(
    decisions: &[Decided],
    recorded: Vec<Option<Accepted>>,
) -> impl Iterator<Item = DeliveryOutcome> {
    let numbers = decisions.iter().map(Decided::number);
    let pairs = numbers.zip(recorded);
    pairs.filter_map(|(number, accepted)| Some((number, accepted?)))
}

/// A delivery as it was when it arrived, without its body, which is stored.
pub(super) fn read(config: &Config, stored: &StoredDelivery) -> Option<VerifiedDelivery> {
    let row = &stored.row;
    let pairs: Vec<(String, String)> = serde_json::from_str(&row.headers).ok()?;
    let headers = Headers::from_iter(pairs);
    let forge = config.forge(&row.endpoint)?;
    let body = stored.body.as_deref()?;
    let event = match forge.row.read(&headers, body) {
        Ok(event) => event,
        // Its headers were not kept when it was stored for the first time.
        Err(_) => forge.row.read_again(&stored.event, body),
    };
    Some(VerifiedDelivery {
        endpoint: row.endpoint.clone(),
        delivery_id: row.delivery_id.clone(),
        headers,
        event: event?,
        body: Vec::new(),
        is_replay: row.replayed,
    })
}

/// The same time on the clock that does not jump.
fn instant_of(at: Timestamp) -> Instant {
    clock::instant() + clock::wall().age_at(at)
}
