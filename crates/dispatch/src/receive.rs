//! A delivery that arrives: whether it is genuine, what it means, and its outcome.
//!
//! [`check`] reads the raw bytes and needs no store. [`DeliveryIntake`] stores a delivery and decides it afterwards, together with
//! its jobs in one transaction. Other effects of an event (a closed item, a link, a reset) happen before that. Each of
//! them can be repeated without further change, so after a crash in between, the next dispatcher completes them.

use std::sync::Arc;

use serde_json::{Value, json};
use tenure_core::dispatch::{self, Action, Decision, Matched, Trust as Whose};
use tenure_core::forge::{EventKind, ForgeEvent, text};
use tenure_core::id::{AgentName, JobId};
use tenure_core::key::Key;
use tenure_core::queue::breaker::RUNS_PER_HOUR;
use tenure_core::queue::delivery::{Delivery, Verdict};
use tenure_core::queue::identity::SeenRepository;
use tenure_core::queue::{Caps, JobAsk, JobSpec, JobWorkdir, Trust};
use tenure_core::store::{Checkpoint, DeliveryFilter};
use tenure_core::time::Timestamp;
use tenure_forges::{Headers, Received};
use tenure_service::answer::{Class, Problem};
use tenure_service::{Accept, Accepted, NewJob, Person};

use super::backlog::Backlog;
use super::closing::close;
use super::code;
use super::config::Config;
use super::forge_config::{ForgeConfig, RepoConfig};
use super::pulls;
use super::reply::wanted;
use tenure_app::open::Context;

/// How many deliveries of an item are searched for one triggered by the same text.
const SEARCHED: usize = 500;

/// A delivery whose sender knows the secret.
#[derive(Debug, Clone)]
pub struct VerifiedDelivery {
    pub(super) endpoint: String,
    pub(super) delivery_id: Option<String>,
    /// The headers that name its event.
    pub(super) headers: Headers,
    pub(super) event: ForgeEvent,
    pub(super) body: Vec<u8>,
    /// Whether a person asked for it again. It is then not compared with earlier deliveries.
    pub(super) is_replay: bool,
}

impl VerifiedDelivery {
    /// The endpoint at which it arrived.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Whether its forge must be asked about it.
    pub fn is_asked(&self, config: &Config) -> bool {
        let forge = config.forge(&self.endpoint);
        forge.is_some_and(|forge| forge.connection.is_some())
    }

    /// Whether earlier deliveries affect the decision about it.
    pub(super) fn depends_on_earlier(&self) -> bool {
        let event = &self.event;
        event.item.is_some() && (event.is_edit || self.adds_unnamed_label())
    }

    fn adds_unnamed_label(&self) -> bool {
        let event = &self.event;
        event.kind.is_labeling() && event.added.is_empty() && !self.is_replay
    }
}

/// The answer to a sender.
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookResponse {
    pub status: u16,
    pub body: Value,
}

impl WebhookResponse {
    fn new(status: u16, body: Value) -> Self {
        Self { status, body }
    }

    /// The answer for a stored delivery.
    pub fn of(accepted: &Accepted) -> WebhookResponse {
        let delivery = &accepted.delivery;
        let job = accepted.jobs.first();
        let body = json!({
            "delivery": delivery.id,
            "verdict": delivery.verdict,
            "why": delivery.why,
            "job": job.map(|queued| &queued.job.id),
            "run": job.and_then(|queued| queued.job.run.as_ref()),
            "duplicate": accepted.duplicate,
        });
        let is_work = matches!(
            delivery.verdict.as_str(),
            "queued" | "joined" | "acted" | "waits"
        );
        let status = if accepted.duplicate || !is_work {
            200
        } else {
            202
        };
        WebhookResponse::new(status, body)
    }

    /// The answer for one that could not be stored.
    pub(super) fn of_failure(problem: &Problem) -> WebhookResponse {
        let status = match problem.class {
            // The forge lists the failed delivery, and it can be sent again.
            Class::Store | Class::Internal => 503,
            _ => 500,
        };
        WebhookResponse::new(status, json!({"error": problem.message}))
    }

    /// The same answer for every sender that does not prove to be the forge.
    pub fn unknown_sender() -> Self {
        Self::new(401, json!({"error": "not authorised"}))
    }
}

/// Whether a delivery is genuine, and its event. `Err` is the complete answer.
pub fn check(
    config: &Config,
    endpoint: &str,
    headers: &Headers,
    body: Vec<u8>,
    now: Timestamp,
) -> Result<VerifiedDelivery, WebhookResponse> {
    let received = Received {
        headers,
        body: &body,
        now,
    };
    let Some(forge) = config.forge(endpoint) else {
        tenure_forges::refuse(&received);
        return Err(WebhookResponse::unknown_sender());
    };
    let is_genuine = forge.row.verify(&received, &forge.secrets);
    if !(is_genuine & forge.row.agrees(headers)) {
        return Err(WebhookResponse::unknown_sender());
    }
    let delivery_id = forge.row.delivery_id(headers);
    match forge.row.read(headers, &body) {
        Ok(Some(event)) => Ok(VerifiedDelivery {
            endpoint: endpoint.to_owned(),
            delivery_id,
            headers: forge.row.naming(headers),
            event,
            body,
            is_replay: false,
        }),
        Ok(None) => {
            let why = "this event starts nothing";
            Err(WebhookResponse::new(
                200,
                json!({"verdict": "ignored", "why": why}),
            ))
        }
        Err(why) => Err(WebhookResponse::new(
            400,
            json!({"error": format!("the delivery cannot be read: {why}")}),
        )),
    }
}

/// Stores and decides deliveries.
pub struct DeliveryIntake {
    pub(super) context: Context,
    pub(super) config: Arc<Config>,
    /// Deliveries that are stored and undecided.
    pub(super) backlog: Backlog,
}

impl DeliveryIntake {
    pub fn new(context: Context, config: Arc<Config>) -> Self {
        Self {
            context,
            config,
            backlog: Backlog::default(),
        }
    }

    /// Decides by these settings from now on.
    pub fn use_config(&mut self, config: Arc<Config>) {
        self.config = config;
    }

    /// Does the upkeep of the store for which there is time now.
    pub fn checkpoint(&mut self, checkpoint: Checkpoint) {
        if checkpoint == Checkpoint::Full {
            self.context.look_after_keeper();
        }
        self.context.checkpoint(checkpoint);
    }

    /// Whether the same was delivered and acted on before.
    pub(super) fn is_known(
        &mut self,
        verified: &VerifiedDelivery,
        decision: &Decision,
    ) -> Result<bool, Problem> {
        let delivery = delivery(verified, decision);
        Ok(self.context.service().is_known_delivery(&delivery)?.value)
    }

    /// Whether this text triggered a job before: its author may not trigger another by editing it.
    /// If a forge does not report which label was added, the same applies to labels.
    pub(super) fn triggered_before(
        &mut self,
        verified: &VerifiedDelivery,
    ) -> Result<bool, Problem> {
        let event = &verified.event;
        let is_label = verified.adds_unnamed_label();
        let (Some(item), true) = (&event.item, verified.depends_on_earlier()) else {
            return Ok(false);
        };
        let filter = DeliveryFilter {
            item: Some(item.clone()),
            limit: SEARCHED,
            ..DeliveryFilter::default()
        };
        let found = self.context.service().find_deliveries(&filter)?.value;
        let own = event.content_key().filter(|_| verified.is_replay);
        let is_other = |delivery: &&Delivery| own.is_none() || delivery.content_key != own;
        Ok(found.iter().filter(is_other).any(|delivery| {
            let object = delivery.content_key.as_deref();
            let object = object.and_then(|key| key.split('\n').nth(3));
            let version = event.version.as_ref().map(|version| version.id.as_str());
            let is_same = if is_label {
                delivery.event == event.kind.as_str()
            } else {
                object.is_some() && object == version
            };
            delivery.job.is_some() && is_same
        }))
    }

    /// The forge that a reset is confirmed in; none if no rule of its repository writes comments.
    pub(super) fn confirms_in(&self, verified: &VerifiedDelivery) -> Option<String> {
        let (forge, event) = (self.config.forge(&verified.endpoint)?, &verified.event);
        let mut rules = self.config.rules.rules.iter();
        let writes = rules.any(|rule| {
            let repo = rule.when.repo.as_ref();
            let wish = wanted(forge, event, &rule.action);
            repo.is_none_or(|repo| *repo == event.repo) && wish.is_some_and(|wish| wish.comment)
        });
        writes.then(|| forge.name.clone())
    }

    /// Carries out the other effects of an event, besides its runs. A reset is confirmed in this forge.
    pub(super) fn act(
        &mut self,
        decision: &Decision,
        confirms_in: Option<&str>,
    ) -> Result<(), Problem> {
        if let Some(cleanup) = &decision.cleanup {
            let (item, stops) = (&cleanup.item, &cleanup.stops);
            close(&mut self.context, item, cleanup.is_merged, stops)?;
        }
        if let Some(item) = &decision.reopened {
            let grace = self.context.settings.policy.grace;
            self.context.service().reopen_item(item, grace)?;
        }
        if let Some(item) = &decision.reset {
            self.reset(item, &decision.reset_stops, confirms_in)?;
        }
        if let Some(halt) = &decision.halt {
            for run in self.context.service().halt_jobs_of(halt)?.value {
                let asked = self
                    .context
                    .service()
                    .ask_run_to_stop(run.as_str(), &halt.why);
                // It may have ended meanwhile.
                if let Err(problem) = asked.map_err(Problem::from)
                    && !matches!(problem.class, Class::NotFound | Class::Refused)
                {
                    return Err(problem);
                }
            }
        }
        if let Some(link) = &decision.link {
            pulls::link(&mut self.context, link)?;
        }
        Ok(())
    }

    /// Drops the conversations of an item. Runs of these rules are stopped; the conversations of the
    /// others are dropped when they end.
    fn reset(&mut self, item: &Key, stops: &[String], forge: Option<&str>) -> Result<(), Problem> {
        let done = self.context.service().reset_item(item, forge)?;
        let running = done.value.running;
        for run in &running {
            let job = self.context.service().job_of_run(run)?.value;
            let rule = job.and_then(|job| job.rule);
            if rule.is_some_and(|rule| stops.contains(&rule)) {
                let why = format!("{item} was reset");
                self.context.service().ask_run_to_stop(run.as_str(), &why)?;
            }
        }
        Ok(())
    }

    pub(super) fn request(
        &self,
        config: &Config,
        forge: &ForgeConfig,
        verified: &VerifiedDelivery,
        decision: &Decision,
    ) -> Accept {
        let event = &verified.event;
        let repo = config.repo(&forge.name, &event.repo);
        let jobs = decision.runs.iter().filter_map(|run| {
            let rule = config.rules.rule(&run.rule)?;
            Some(self.job(config, (forge, repo?), event, run, &rule.action))
        });
        Accept {
            delivery: delivery(verified, decision),
            // A rule matched, so its author may trigger it. But a permitted bot is not a person,
            // and in a replay the author says nothing new.
            person: if decision.runs.is_empty() || !decision.by_person || verified.is_replay {
                Person::No
            } else if names_tenure(forge, event, decision, config) {
                Person::Yes
            } else {
                Person::Account
            },
            // A replayed event says what was so when it first came.
            repository: repo
                .filter(|_| !verified.is_replay)
                .and_then(|repo| seen(repo, event)),
            jobs: jobs.collect(),
        }
    }

    fn job(
        &self,
        config: &Config,
        (forge, repo): (&ForgeConfig, &RepoConfig),
        event: &ForgeEvent,
        run: &Matched,
        action: &Action,
    ) -> NewJob {
        NewJob {
            id: JobId::mint(self.context.random()),
            agent: AgentName::clone(&run.agent),
            role: action.role.clone(),
            item: run.item.clone(),
            rule: Some(run.rule.clone()),
            trust: match run.trust {
                Whose::Permitted => Trust::Trusted,
                Whose::Outside => Trust::Outside,
            },
            repo: Some(repo.name.clone()),
            spec: JobSpec {
                ask: JobAsk::Skill {
                    name: action.skill.to_string(),
                    variables: Default::default(),
                },
                // Its runner gives it a place.
                workdir: JobWorkdir {
                    dir: String::new(),
                    worktree: false,
                },
                args: action.args.clone(),
                env: action.env.clone(),
                wrap: action.wrap.clone(),
                exclusive: action.exclusive,
                fresh: action.fresh,
                shares_dir: false,
                timeout_ms: action
                    .timeout
                    .map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
                caps: Caps {
                    runs_per_hour: action.caps.runs_per_hour.or(Some(RUNS_PER_HOUR)),
                    budget_per_day: action.caps.usd_per_day,
                    per_repo: repo.concurrency,
                    breaker: Some(config.breaker),
                },
                dispatched: true,
                trusted_repo: repo.trusted && run.trust == Whose::Permitted,
                code: code::code(config, forge, repo, run, action),
            },
            summary: format!("{} by {}", event.kind.as_str(), event.actor.name()),
            data: serde_json::to_string(event).unwrap_or_default(),
            reply: wanted(forge, event, action),
        }
    }
}

/// What an event says about its repository.
fn seen(repo: &RepoConfig, event: &ForgeEvent) -> Option<SeenRepository> {
    Some(SeenRepository {
        name: repo.name.clone(),
        id: event.repo_id?,
        is_deleted: event.kind == EventKind::RepoDeleted,
    })
}

/// Whether an event names the account that tenure writes as, or the mention of a rule that it starts.
fn names_tenure(
    forge: &ForgeConfig,
    event: &ForgeEvent,
    decision: &Decision,
    config: &Config,
) -> bool {
    let rules = decision.runs.iter();
    let has_mention = |run: &Matched| {
        let rule = config.rules.rule(&run.rule);
        rule.is_some_and(|rule| rule.when.mention.is_some())
    };
    let own = forge.own().map(|own| own.login);
    let is_named = |login: String| {
        let added = event.added.iter();
        text::mentions(&event.spoken(), &format!("@{login}"))
            || added
                .into_iter()
                .any(|one| one.eq_ignore_ascii_case(&login))
    };
    rules.into_iter().any(has_mention) || own.is_some_and(is_named)
}

pub(super) fn delivery(verified: &VerifiedDelivery, decision: &Decision) -> Delivery {
    let event = &verified.event;
    let (verdict, mut why) = verdict(decision);
    if verified.is_replay {
        why.push_str(" (replayed)");
    }
    let compared = !verified.is_replay;
    Delivery {
        id: 0,
        endpoint: verified.endpoint.clone(),
        delivery_id: verified.delivery_id.clone().filter(|_| compared),
        content_key: event.content_key().filter(|_| compared),
        body_hash: None,
        received_at: Timestamp(0),
        event: event.kind.as_str().to_owned(),
        repo: Some(event.repo.clone()),
        item: event.item.clone(),
        author: Some(event.actor.name()),
        verdict,
        rule: decision.runs.first().map(|run| run.rule.clone()),
        why,
        job: None,
    }
}

fn verdict(decision: &Decision) -> (Verdict, String) {
    if let Some(run) = decision.runs.first() {
        return (Verdict::Queued, format!("rule {} matches", run.rule));
    }
    if decision.acts() {
        return (Verdict::Acted, acts(decision));
    }
    let by_rule = |one: &dispatch::RuleVerdict| {
        let no = one.no.as_ref().filter(|no| no.is_refusal())?;
        Some(format!("rule {}: {no}", one.rule))
    };
    match decision.no.as_ref() {
        Some(no) if no.is_refusal() => (Verdict::Refused, no.to_string()),
        no => match decision.verdicts.iter().find_map(by_rule) {
            Some(why) => (Verdict::Refused, why),
            None => {
                let why = no.map_or_else(|| "no rule matches".to_owned(), ToString::to_string);
                (Verdict::Ignored, why)
            }
        },
    }
}

fn acts(decision: &Decision) -> String {
    if let Some(cleanup) = &decision.cleanup {
        return format!("{} is over", cleanup.item);
    }
    if let Some(item) = &decision.reset {
        return format!("{item} is reset as soon as no run uses its conversations");
    }
    if let Some(halt) = &decision.halt {
        return format!("{} is stopped: {}", halt.item, halt.why);
    }
    if let Some(link) = &decision.link {
        return format!("{} continues {}", link.item, link.target);
    }
    match &decision.reopened {
        Some(item) => format!("{item} is open again"),
        None => "done".to_owned(),
    }
}
