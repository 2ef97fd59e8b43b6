//! What a delivery would do, without a server, a store or a forge.
//!
//! A file holds the body of a delivery, as forges show it among their recent deliveries, or its headers, an empty
//! line and the body. Its signature is not checked, and the forge is not asked: what it would answer about
//! permissions is unknown here.

use serde::Serialize;
use serde_json::json;
use tenure_core::dispatch::{Decision, Facts, No, decide};
use tenure_core::forge::ForgeEvent;
use tenure_forges::{Headers, Unreadable};
use tenure_service::answer::{Class, Hint, Problem};

use super::config::Config;
use super::ends::ForgeEnd;

/// A delivery from a file.
#[derive(Debug, Clone)]
pub struct Captured {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Captured {
    pub fn parse(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        if matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[') | None) {
            return Self {
                headers: Vec::new(),
                body: bytes.to_vec(),
            };
        }
        let mut headers = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let (line, after) = match end {
                Some(end) => (&rest[..end], &rest[end + 1..]),
                None => (rest, &rest[rest.len()..]),
            };
            rest = after;
            let line = String::from_utf8_lossy(line);
            let line = line.trim();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                headers.push((name.trim().to_owned(), value.trim().to_owned()));
            }
        }
        Self {
            headers,
            body: rest.to_vec(),
        }
    }

    /// Adds a header: `NAME: VALUE`, or the value of the forge's own.
    fn add_event(&mut self, forge: &ForgeEnd, typed: &str) {
        let own = forge.row.event_headers.first().copied().unwrap_or_default();
        let (name, value) = typed.split_once(':').unwrap_or((own, typed));
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers
            .push((name.trim().to_owned(), value.trim().to_owned()));
    }
}

/// What a delivery means and what comes of it.
#[derive(Debug, Clone)]
pub struct Explained {
    pub forge: String,
    /// None where the event is of no interest.
    pub event: Option<ForgeEvent>,
    pub decision: Decision,
    /// Whether the forge would be asked for more.
    pub is_asked: bool,
}

pub fn explain(
    config: &Config,
    mut captured: Captured,
    forge: Option<&str>,
    event: Option<&str>,
) -> Result<Explained, Problem> {
    let forge = which(config, forge)?;
    if let Some(typed) = event {
        captured.add_event(forge, typed);
    }
    let headers: Headers = captured
        .headers
        .iter()
        .map(|(name, value)| (name, value))
        .collect();
    let names_forge = captured
        .headers
        .iter()
        .any(|(name, _)| is_event_header(name));
    if names_forge && !forge.row.agrees(&headers) {
        let message = format!(
            "the headers are not those of forge {}, which is {}",
            forge.name, forge.row.kind
        );
        let hint = Hint::step("name the forge that sent it with --forge");
        return Err(Problem::new(Class::Invalid, "other_forge", message, hint));
    }
    let read = forge
        .row
        .read(&headers, &captured.body)
        .map_err(|why| unreadable(forge, &why))?;
    let decision = match &read {
        Some(event) => decide(event, &forge.name, &config.rules, &Facts::default()),
        None => Decision::default(),
    };
    Ok(Explained {
        forge: forge.name.clone(),
        event: read,
        decision,
        is_asked: forge.has_api(),
    })
}

fn is_event_header(name: &str) -> bool {
    let mut all = tenure_forges::FORGES
        .iter()
        .flat_map(|forge| forge.event_headers);
    all.any(|header| header.eq_ignore_ascii_case(name))
}

/// The forge that is meant: the one that is named, or the only one.
fn which<'c>(config: &'c Config, name: Option<&str>) -> Result<&'c ForgeEnd, Problem> {
    let names: Vec<&str> = config
        .forges
        .iter()
        .map(|forge| forge.name.as_str())
        .collect();
    let names = names.join(", ");
    match (name, config.forges.as_slice()) {
        (Some(name), _) => config.forge(name).ok_or_else(|| {
            let message = format!(
                "there is no forge {name} in {}; it has {names}",
                config.file.display()
            );
            let hint = Hint::step("pass one of these names to --forge");
            Problem::new(Class::NotFound, "unknown_forge", message, hint)
        }),
        (None, [only]) => Ok(only),
        (None, _) => {
            let message = format!("{} has several forges: {names}", config.file.display());
            let hint = Hint::step("pass the one that sent the delivery to --forge");
            Err(Problem::new(Class::Usage, "usage", message, hint))
        }
    }
}

fn unreadable(forge: &ForgeEnd, why: &Unreadable) -> Problem {
    let message = format!("the delivery cannot be read: {why}");
    let hint = match why {
        Unreadable::NoHeader(_) => Hint::step(format!(
            "pass the name of the event that {} sent, such as --event issues",
            forge.row.kind
        )),
        _ => Hint::step("pass a file with the JSON body of a delivery, as the forge shows it"),
    };
    Problem::new(Class::Invalid, "unreadable_delivery", message, hint)
}

/// A rule's answer, for programs.
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
            "links": decision.link.as_ref().map(|link| json!({"item": link.item, "target": link.target})),
            "rules": verdicts,
            "kind": decision.no.as_ref().map(No::kind),
            "why": decision.no.as_ref().map(No::to_string),
        })
    }
}
