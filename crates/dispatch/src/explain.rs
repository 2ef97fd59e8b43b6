//! What a delivery would do, without a server or a forge.
//!
//! The forge is not asked, so its answer about permissions is unknown here.

use serde::Serialize;
use serde_json::json;
use tenure_core::dispatch::{Decision, Facts, No, decide};
use tenure_core::forge::ForgeEvent;
use tenure_service::view::DeliveryView;

use super::config::Config;
use super::forge_config::ForgeConfig;
use super::given::ReadDelivery;

/// A delivery's meaning and outcome.
#[derive(Debug, Clone)]
pub struct Explained {
    pub forge: String,
    /// None if the event is ignored.
    pub event: Option<ForgeEvent>,
    pub decision: Decision,
    /// Whether the forge would be asked for more.
    pub is_asked: bool,
    /// Its outcome when it arrived, if it is stored.
    pub stored: Option<DeliveryView>,
}

/// Explains what a delivery would do now.
pub fn explain(config: &Config, given: ReadDelivery) -> Explained {
    let forge = config.forge(&given.forge);
    let decision = match &given.event {
        Some(event) => decide(event, &given.forge, &config.rules, &Facts::default()),
        None => Decision::default(),
    };
    Explained {
        is_asked: forge.is_some_and(ForgeConfig::has_api),
        forge: given.forge,
        event: given.event,
        decision,
        stored: given.stored,
    }
}

/// The verdict of a rule, for programs.
#[derive(Debug, Clone, Serialize)]
struct VerdictView<'a> {
    rule: &'a str,
    matches: bool,
    kind: Option<&'static str>,
    why: Option<String>,
}

impl Explained {
    /// The answer for programs.
    pub fn view(&self) -> serde_json::Value {
        let decision = &self.decision;
        let runs: Vec<_> = decision
            .runs
            .iter()
            .map(|run| {
                json!({
                    "rule": run.rule,
                    "agent": run.agent.as_str(),
                    "item": run.item.as_str(),
                    "trust": run.trust.as_str(),
                    "head": run.head,
                })
            })
            .collect();
        let verdicts: Vec<VerdictView<'_>> = decision
            .verdicts
            .iter()
            .map(|verdict| VerdictView {
                rule: &verdict.rule,
                matches: verdict.no.is_none(),
                kind: verdict.no.as_ref().map(No::kind),
                why: verdict.no.as_ref().map(No::to_string),
            })
            .collect();
        json!({
            "forge": self.forge,
            "event": self.event.as_ref().map(|event| event.kind.as_str()),
            "repo": self.event.as_ref().map(|event| event.repo.as_str()),
            "item": self.event.as_ref().and_then(|event| event.item.as_ref()),
            "actor": self.event.as_ref().map(|event| event.actor.name()),
            "runs": runs,
            "closes": decision.cleanup.as_ref().map(|cleanup| json!({
                "item": cleanup.item,
                "merged": cleanup.is_merged,
                "by_person": cleanup.by_person,
                "stops": cleanup.stops,
            })),
            "reopens": decision.reopened,
            "resets": decision.reset,
            "stops": decision.halt.as_ref().map(|halt| json!({"item": halt.item, "rules": halt.rules})),
            "links": decision.link.as_ref().map(|link| json!({"item": link.item, "target": link.target})),
            "rules": verdicts,
            "kind": decision.no.as_ref().map(No::kind),
            "why": decision.no.as_ref().map(No::to_string),
            "delivery": self.stored,
        })
    }
}
