//! The shapes of what `dispatch` answers.

use serde_json::{Value, json};

use super::parts::{
    list, listed, number, object, or_null, reference, text, text_or_null, texts, yes_or_no,
};

/// All of them, by name.
pub fn shapes() -> Vec<(&'static str, Value)> {
    let forge = object(
        "A forge, and where its webhooks arrive.",
        &[
            ("name", text()),
            ("kind", text()),
            ("endpoint", text()),
            ("url", text_or_null()),
            ("own_account", text_or_null()),
        ],
    );
    let run = object(
        "A run that a rule would start; outside tells whether it needs the rule's wrap.",
        &[
            ("rule", text()),
            ("agent", text()),
            ("item", text()),
            ("trust", json!({"enum": ["permitted", "outside"]})),
            ("head", text_or_null()),
        ],
    );
    let rule = object(
        "What a rule says about an event.",
        &[
            ("rule", text()),
            ("matches", yes_or_no()),
            ("kind", text_or_null()),
            ("why", text_or_null()),
        ],
    );
    let maybe = |parts: &[(&str, Value)], about: &str| json!({"anyOf": [object(about, parts), {"type": "null"}]});
    let closes = maybe(
        &[
            ("item", text()),
            ("merged", yes_or_no()),
            ("by_person", yes_or_no()),
            ("stops", texts()),
        ],
        "An item that is over, and the rules whose live runs of it would be stopped.",
    );
    let stops = maybe(
        &[
            ("item", text()),
            (
                "rules",
                json!({"type": ["array", "null"], "items": {"type": "string"}}),
            ),
        ],
        "An item whose runs would be stopped, of these rules or of all.",
    );
    let links = maybe(
        &[("item", text()), ("target", text())],
        "An item that would continue the conversations of another.",
    );
    let mut all = vec![
        (
            "dispatch_config",
            object(
                "A dispatch.toml without faults.",
                &[
                    ("file", text()),
                    ("listen", text()),
                    ("forges", list(&forge)),
                    ("repos", texts()),
                    ("rules", texts()),
                    ("notes", texts()),
                ],
            ),
        ),
        (
            "dispatch_init",
            object(
                "The files that were written, without skills that already existed; or the repository that was added.",
                &[
                    ("file", text()),
                    ("secret_file", text()),
                    ("added", text_or_null()),
                    ("skills", texts()),
                    ("endpoint", text()),
                ],
            ),
        ),
        (
            "explained",
            object(
                "What a delivery means and what would come of it.",
                &[
                    ("forge", text()),
                    ("event", text_or_null()),
                    ("repo", text_or_null()),
                    ("item", text_or_null()),
                    ("actor", text_or_null()),
                    ("runs", list(&run)),
                    ("closes", closes),
                    ("reopens", text_or_null()),
                    ("resets", text_or_null()),
                    ("stops", stops),
                    ("links", links),
                    ("rules", list(&rule)),
                    ("kind", text_or_null()),
                    ("why", text_or_null()),
                    ("delivery", or_null("delivery")),
                ],
            ),
        ),
        (
            "pinged",
            object(
                "A test delivery that the dispatcher accepted, with each of the forge's secrets.",
                &[
                    ("forge", text()),
                    ("address", text()),
                    ("endpoint", text()),
                    ("secrets", number()),
                    ("status", number()),
                    ("verdict", text()),
                    ("why", text()),
                ],
            ),
        ),
    ];
    all.push(("dispatch_status", of_status()));
    all.extend(of_stopping());
    all
}

fn of_status() -> Value {
    let counts = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let endpoint = object(
        "What arrived at an endpoint since its dispatcher started; refusing is why no work arrives.",
        &[
            ("name", text()),
            ("accepted", number()),
            ("accepted_at", text_or_null()),
            ("refused", counts),
            ("refusing", text_or_null()),
        ],
    );
    let forge = object(
        "A forge that does not answer as it should.",
        &[("name", text()), ("why", text())],
    );
    let dispatcher = object(
        "A dispatcher of this state directory.",
        &[
            ("pid", number()),
            ("address", text_or_null()),
            ("config", text_or_null()),
            ("doubt", text_or_null()),
            ("endpoints", list(&endpoint)),
            ("failing_forges", list(&forge)),
        ],
    );
    let queue = object(
        "How many jobs are in which state.",
        &[
            ("queued", number()),
            ("running", number()),
            ("parked", number()),
            ("unpublished", number()),
        ],
    );
    object(
        "The dispatchers of this state directory, and what waits.",
        &[
            ("dispatchers", list(&dispatcher)),
            ("queue", queue),
            ("waiting", listed("job")),
            ("deliveries", listed("delivery")),
            ("next_retry", text_or_null()),
        ],
    )
}

fn of_stopping() -> Vec<(&'static str, Value)> {
    let before = object(
        "The earlier delivery of the same event that led to something, and its run.",
        &[("delivery", reference("delivery")), ("run", text_or_null())],
    );
    let dispatcher = object(
        "A dispatcher that was stopped.",
        &[
            ("pid", number()),
            ("address", text_or_null()),
            ("config", text_or_null()),
        ],
    );
    vec![
        (
            "replayed",
            object(
                "A delivery that was replayed, and whether a dispatcher is running that takes its jobs.",
                &[
                    ("delivery", reference("delivery")),
                    ("jobs", listed("job")),
                    ("before", json!({"anyOf": [before, {"type": "null"}]})),
                    ("worked", yes_or_no()),
                ],
            ),
        ),
        (
            "stopped",
            object(
                "Dispatchers and runs that were stopped, and how many runs finished first.",
                &[
                    ("dispatchers", list(&dispatcher)),
                    ("finished", number()),
                    ("runs", listed("run")),
                    ("survivors", listed("survivor")),
                ],
            ),
        ),
    ]
}
