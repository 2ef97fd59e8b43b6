//! Whatever is sent, a forge answers.

use proptest::prelude::*;
use serde_json::{Value, json};
use tenure_core::forge::ForgeEvent;
use tenure_core::time::Timestamp;
use tenure_forges::{FORGES, Headers, Received, Secret};

use crate::support::{fixture, headers};

const FIXTURES: [(&str, &str); 19] = [
    ("forgejo/issue", "issues"),
    ("forgejo/comment", "issue_comment"),
    ("forgejo/pull_request", "pull_request"),
    ("forgejo/review", "pull_request_approved"),
    ("forgejo/push", "push"),
    ("forgejo/delete", "delete"),
    ("forgejo/repository", "repository"),
    ("github/issue", "issues"),
    ("github/comment", "issue_comment"),
    ("github/pull_request", "pull_request"),
    ("github/review", "pull_request_review"),
    ("github/review_comment", "pull_request_review_comment"),
    ("github/push", "push"),
    ("github/ping", "ping"),
    ("gitlab/issue", "x"),
    ("gitlab/merge_request", "x"),
    ("gitlab/note_issue", "x"),
    ("gitlab/note_merge_request", "x"),
    ("gitlab/push", "x"),
];

fn read_by_all(sent: &Headers, body: &[u8]) {
    let secrets = [Secret::new("own").unwrap()];
    for forge in FORGES {
        let received = Received {
            headers: sent,
            body,
            now: Timestamp(0),
        };
        assert!(!forge.verify(&received, &secrets));
        let _ = forge.delivery_id(sent);
        if let Ok(Some(event)) = forge.read(sent, body) {
            let json = serde_json::to_string(&event).unwrap();
            let again: ForgeEvent = serde_json::from_str(&json).unwrap();
            assert_eq!(again, event);
            let _ = (event.closes(), event.content_key(), event.spoken());
        }
    }
}

fn events(name: &str) -> Headers {
    let all = ["X-Forgejo-Event", "X-GitHub-Event", "X-Gitlab-Event"];
    all.iter().map(|header| (*header, name)).collect()
}

/// Puts a value in place of some field.
fn damage(value: &mut Value, path: &[prop::sample::Index], with: &Value) {
    let Some((first, rest)) = path.split_first() else {
        *value = with.clone();
        return;
    };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let place = first.index(fields.len());
            if let Some(field) = fields.values_mut().nth(place) {
                damage(field, rest, with);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            let place = first.index(list.len());
            damage(&mut list[place], rest, with);
        }
        other => *other = with.clone(),
    }
}

proptest! {
    #[test]
    fn no_bytes_are_too_odd(body: Vec<u8>, event in "[a-z_]{0,24}", value in ".{0,40}") {
        read_by_all(&events(&event), &body);
        let sent = headers(&[
            ("X-Forgejo-Signature", &value),
            ("X-Hub-Signature-256", &value),
            ("X-Gitlab-Token", &value),
            ("Webhook-Signature", &value),
            ("Webhook-Timestamp", &value),
            ("X-GitHub-Delivery", &value),
            ("Content-Type", &value),
        ]);
        read_by_all(&sent, &body);
    }

    #[test]
    fn no_damaged_payload_is_too_odd(
        which in 0..FIXTURES.len(),
        path: [prop::sample::Index; 3],
        depth in 1..=3_usize,
        odd in prop::sample::select(vec![
            json!(null), json!(-1), json!(1.5), json!(u64::MAX), json!(""), json!([]), json!({}),
            json!("\u{202e}\u{0}"), json!("a".repeat(300_000)), json!([null, {"login": 1}]), json!(true),
        ]),
    ) {
        let (name, event) = FIXTURES[which];
        let mut payload = fixture(name);
        damage(&mut payload, &path[..depth], &odd);
        read_by_all(&events(event), payload.to_string().as_bytes());
    }
}
