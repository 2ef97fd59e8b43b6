//! Counts for Prometheus. No label has a name of a session, an item, a repository or a person.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tenure_app::open::Context;
use tenure_core::store::ClaimFilter;
use tenure_service::answer::Problem;
use tenure_service::{ListJobs, ListRequest};

/// One metric: its name, what it counts, and its values by label.
struct Metric {
    name: &'static str,
    about: &'static str,
    kind: &'static str,
    label: &'static str,
    values: BTreeMap<String, u64>,
}

pub fn text(context: &mut Context, requests: u64, followers: usize) -> Result<String, Problem> {
    let sessions = context.service().list(&ListRequest::default())?.value.items;
    let claims = context
        .service()
        .claims(None, &ClaimFilter::default())?
        .value
        .items;
    let jobs = context
        .service()
        .list_jobs(&ListJobs::default())?
        .value
        .items;
    let counted = |words: &mut dyn Iterator<Item = &str>| {
        let mut counts = BTreeMap::new();
        words.for_each(|word| *counts.entry(word.to_owned()).or_default() += 1);
        counts
    };
    let alone = |value: u64| BTreeMap::from([(String::new(), value)]);
    let gauge = |name, about, label, values| Metric {
        name,
        about,
        kind: "gauge",
        label,
        values,
    };
    let ranks = counted(&mut sessions.iter().map(|one| one.rank.unwrap_or("unknown")));
    let all = [
        gauge(
            "tenure_sessions",
            "Sessions by why they have their place in the list.",
            "rank",
            ranks,
        ),
        gauge(
            "tenure_claims",
            "Claimed items by state.",
            "state",
            counted(&mut claims.iter().map(|one| one.state)),
        ),
        gauge(
            "tenure_jobs",
            "Jobs of the queue that are not over, by state.",
            "state",
            counted(&mut jobs.iter().map(|one| one.state.as_str())),
        ),
        gauge(
            "tenure_followers",
            "Streams that are open.",
            "",
            alone(followers as u64),
        ),
        Metric {
            kind: "counter",
            ..gauge(
                "tenure_http_requests_total",
                "Requests since the server began.",
                "",
                alone(requests),
            )
        },
    ];
    Ok(all.iter().map(Metric::text).collect())
}

impl Metric {
    fn text(&self) -> String {
        let Self {
            name,
            about,
            kind,
            label,
            values,
        } = self;
        let mut text = format!("# HELP {name} {about}\n# TYPE {name} {kind}\n");
        for (value, count) in values {
            let labels = if label.is_empty() {
                String::new()
            } else {
                format!("{{{label}=\"{value}\"}}")
            };
            if writeln!(text, "{name}{labels} {count}").is_err() {
                // Writing to a string does not fail.
            }
        }
        text
    }
}
