//! Which deliveries are genuine.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tenure_core::time::Timestamp;
use tenure_forges::{FORGES, Headers, Received, Secret, Unreadable, refuse};

use crate::support::{headers, row};

const BODY: &[u8] = br#"{"action":"opened"}"#;
const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn secret(text: &str) -> Secret {
    Secret::new(text).unwrap()
}

fn verify(kind: &str, sent: &[(&str, &str)], body: &[u8], secrets: &[Secret]) -> bool {
    let json = [("Content-Type", "application/json; charset=utf-8")];
    let headers: Headers = sent.iter().chain(&json).copied().collect();
    let received = Received {
        headers: &headers,
        body,
        now: NOW,
    };
    row(kind).verify(&received, secrets)
}

/// The header of a forge that signs, and its value for a digest.
const SIGNED: [(&str, &str, &str); 5] = [
    ("forgejo", "X-Forgejo-Signature", ""),
    ("forgejo", "X-Gitea-Signature", ""),
    ("gitea", "X-Gitea-Signature", ""),
    ("gitea", "X-Hub-Signature-256", "sha256="),
    ("github", "X-Hub-Signature-256", "sha256="),
];

#[test]
fn a_body_is_genuine_when_one_of_two_secrets_signed_it() {
    let (old, new, other) = (secret("old"), secret("new"), secret("other"));
    for (kind, header, tag) in SIGNED {
        let good = format!("{tag}{}", new.sign(BODY));
        let sent = [(header, good.as_str())];
        let both = [old.clone(), new.clone()];
        assert!(
            verify(kind, &sent, BODY, std::slice::from_ref(&new)),
            "{kind}"
        );
        assert!(verify(kind, &sent, BODY, &both), "{kind}");
        assert!(
            !verify(kind, &sent, BODY, &[old.clone(), other.clone()]),
            "{kind}"
        );
        assert!(!verify(kind, &sent, BODY, &[]), "{kind}: no secret");
        assert!(
            !verify(kind, &sent, b"{}", std::slice::from_ref(&new)),
            "{kind}: another body"
        );
    }
}

#[test]
fn every_malformed_signature_is_refused() {
    let own = secret("own");
    let digest = own.sign(BODY);
    let sha1 = "a".repeat(40);
    for (kind, header, tag) in SIGNED {
        let (short, long) = (&digest[..62], format!("{digest}00"));
        let odd = digest.replace(|c: char| c.is_ascii_digit(), "g");
        for bad in ["", short, &long, &odd, &sha1, "not hex at all"] {
            let value = format!("{tag}{bad}");
            assert!(
                !verify(kind, &[(header, &value)], BODY, std::slice::from_ref(&own)),
                "{value}"
            );
        }
        assert!(
            !verify(kind, &[], BODY, std::slice::from_ref(&own)),
            "{kind}: missing"
        );
        // With another tag, or without one.
        let other = if tag.is_empty() { "sha256=" } else { "" };
        for value in [format!("{other}{digest}"), format!("sha1={digest}")] {
            assert!(
                !verify(kind, &[(header, &value)], BODY, std::slice::from_ref(&own)),
                "{value}"
            );
        }
        let good = format!("{tag}{digest}");
        let twice = [(header, good.as_str()), (header, good.as_str())];
        assert!(
            !verify(kind, &twice, BODY, std::slice::from_ref(&own)),
            "{kind}: twice"
        );
    }
}

#[test]
fn where_a_forge_has_a_header_of_its_own_only_that_counts() {
    let own = secret("own");
    let digest = own.sign(BODY);
    let hub = format!("sha256={digest}");
    let keys = std::slice::from_ref(&own);
    // No secret is set in Forgejo: its header is there and empty.
    for own_header in ["", "00"] {
        let sent = [
            ("X-Forgejo-Signature", own_header),
            ("X-Hub-Signature-256", &hub),
        ];
        assert!(!verify("forgejo", &sent, BODY, keys));
    }
    let sent = [
        ("X-Forgejo-Signature", ""),
        ("X-Gitea-Signature", digest.as_str()),
    ];
    assert!(!verify("forgejo", &sent, BODY, keys));
}

#[test]
fn a_form_is_refused_even_when_it_is_signed() {
    let own = secret("own");
    let form = b"payload=%7B%7D";
    let signature = format!("sha256={}", own.sign(form));
    for kind in ["application/x-www-form-urlencoded", "text/plain", ""] {
        let sent = headers(&[("X-Hub-Signature-256", &signature), ("Content-Type", kind)]);
        let received = Received {
            headers: &sent,
            body: form,
            now: NOW,
        };
        assert!(
            !row("github").verify(&received, std::slice::from_ref(&own)),
            "{kind}"
        );
    }
    // Forgejo signs the JSON in the form, not the form.
    let inner = own.sign(b"{}");
    assert!(!verify(
        "forgejo",
        &[("X-Forgejo-Signature", &inner)],
        form,
        &[own]
    ));
}

#[test]
fn gitlab_sends_the_secret_itself() {
    let keys = [secret("old"), secret("glpat-new")];
    let token = |value: &str| verify("gitlab", &[("X-Gitlab-Token", value)], BODY, &keys);
    assert!(token("old") && token("glpat-new"));
    for bad in [
        "",
        "ol",
        "old ",
        "OLD",
        "older",
        "no secret is configured here",
    ] {
        // A header loses the spaces at its ends.
        assert_eq!(token(bad), bad.trim() == "old", "{bad:?}");
    }
    assert!(!verify("gitlab", &[], BODY, &keys), "missing");
    assert!(!verify("gitlab", &[("X-Gitlab-Token", "old")], BODY, &[]));
}

/// A signature of Standard Webhooks with the raw key.
fn standard(key: &Secret, id: &str, at: &str, body: &[u8]) -> String {
    let message = [id.as_bytes(), b".", at.as_bytes(), b".", body].concat();
    let hex = key.sign(&message);
    let bytes: Vec<u8> = (0..32)
        .map(|place| u8::from_str_radix(&hex[place * 2..place * 2 + 2], 16).unwrap())
        .collect();
    format!("v1,{}", STANDARD.encode(bytes))
}

#[test]
fn gitlab_signs_by_standard_webhooks_within_five_minutes() {
    let raw = b"0123456789abcdef";
    let shared = secret(&format!("whsec_{}", STANDARD.encode(raw)));
    let key = Secret::new(raw.to_vec()).unwrap();
    let check = |signature: &str, id: &str, at: &str| {
        let sent = [
            ("webhook-signature", signature),
            ("webhook-id", id),
            ("webhook-timestamp", at),
        ];
        verify("gitlab", &sent, BODY, std::slice::from_ref(&shared))
    };
    let now = NOW.0 / 1000;
    for (offset, is_good) in [
        (0, true),
        (300, true),
        (-300, true),
        (301, false),
        (-301, false),
    ] {
        let at = (now + offset).to_string();
        assert_eq!(
            check(&standard(&key, "m1", &at, BODY), "m1", &at),
            is_good,
            "{offset}"
        );
    }
    let at = now.to_string();
    let good = standard(&key, "m1", &at, BODY);
    assert!(
        check(&format!("v1,AAAA v2,x {good}"), "m1", &at),
        "one of several"
    );
    assert!(!check(&good, "m2", &at), "another id");
    assert!(!check(&good, "m1", &(now + 1).to_string()), "another time");
    assert!(!check(&standard(&key, "", &at, BODY), "", &at), "no id");
    for bad in ["", "v1,", "v1,AAAA", "v2,AAAA", "not base64"] {
        assert!(!check(bad, "m1", &at), "{bad}");
    }
    for when in ["", "x", "-1", "99999999999999999999"] {
        assert!(
            !check(&standard(&key, "m1", when, BODY), "m1", when),
            "{when}"
        );
    }
    // A secret in clear does not stand in for a signature that was sent and is wrong.
    let sent = [("webhook-signature", "v1,AAAA"), ("X-Gitlab-Token", "old")];
    assert!(!verify("gitlab", &sent, BODY, &[secret("old")]));
}

#[test]
fn an_endpoint_without_a_forge_works_and_refuses() {
    let received = Received {
        headers: &Headers::default(),
        body: BODY,
        now: NOW,
    };
    assert!(!refuse(&received));
}

#[test]
fn a_header_that_names_another_forge_is_seen() {
    // Forgejo and Gitea send GitHub's header too.
    let forgejo = headers(&[
        ("X-GitHub-Event", "push"),
        ("X-Gitea-Event", "push"),
        ("X-Forgejo-Event", "push"),
    ]);
    let gitea = headers(&[("X-GitHub-Event", "push"), ("X-Gitea-Event", "push")]);
    let github = headers(&[("X-GitHub-Event", "push")]);
    let gitlab = headers(&[("X-Gitlab-Event", "Push Hook")]);
    let agree = |headers: &Headers| -> Vec<&str> {
        let agreeing = FORGES.iter().filter(|forge| forge.agrees(headers));
        agreeing.map(|forge| forge.kind).collect()
    };
    assert_eq!(agree(&forgejo), ["forgejo", "gitea"]);
    assert_eq!(agree(&gitea), ["forgejo", "gitea"]);
    assert_eq!(agree(&github), ["github"]);
    assert_eq!(agree(&gitlab), ["gitlab"]);
    assert_eq!(agree(&Headers::default()), [""; 0]);
}

#[test]
fn a_delivery_has_the_id_that_stays_the_same() {
    let long = "x".repeat(200);
    for (kind, sent, expected) in [
        ("forgejo", ("X-Forgejo-Delivery", "a-1"), Some("a-1")),
        ("forgejo", ("X-Gitea-Delivery", "a-1"), Some("a-1")),
        ("github", ("X-GitHub-Delivery", "a-1"), Some("a-1")),
        ("gitlab", ("Idempotency-Key", "a-1"), Some("a-1")),
        ("gitlab", ("webhook-id", "a-1"), Some("a-1")),
        // Random for each request, and shared by chained hooks.
        ("gitlab", ("X-Gitlab-Webhook-UUID", "a-1"), None),
        ("gitlab", ("X-Gitlab-Event-UUID", "a-1"), None),
        ("github", ("X-GitHub-Delivery", ""), None),
        ("github", ("X-GitHub-Delivery", "a b"), None),
        ("github", ("X-GitHub-Delivery", &long), None),
    ] {
        let id = row(kind).delivery_id(&headers(&[sent]));
        assert_eq!(id.as_deref(), expected, "{kind} {sent:?}");
    }
}

#[test]
fn a_signed_body_that_is_not_an_event_is_named() {
    let read = |kind: &str, sent: &[(&str, &str)], body: &[u8]| {
        row(kind).read(&headers(sent), body).unwrap_err()
    };
    for forge in FORGES {
        let event = [(forge.event_headers[0], "issues")];
        let not_json = read(forge.kind, &event, b"payload=%7B%7D");
        assert!(matches!(not_json, Unreadable::NotJson(_)), "{not_json}");
        assert_eq!(read(forge.kind, &event, b"[]"), Unreadable::NotAnObject);
        assert!(matches!(
            read(forge.kind, &[], b"{}"),
            Unreadable::NoHeader(_) | Unreadable::Missing(_)
        ));
    }
    let event = [("X-GitHub-Event", "issues")];
    let no_repo = read("github", &event, BODY);
    assert_eq!(no_repo, Unreadable::Missing("repository.full_name"));
    let odd = br#"{"ref":"refs/heads/a\u202eb","after":"1","repository":{"full_name":"a/b"}}"#;
    let odd = read("github", &[("X-GitHub-Event", "push")], odd);
    assert!(matches!(odd, Unreadable::Item(_)), "{odd}");
}

#[test]
fn a_test_delivery_is_genuine_and_nothing_can_come_of_it() {
    let secret = secret("a secret");
    for forge in FORGES {
        let sent = forge.test_delivery(&secret, NOW);
        let headers: Headers = sent
            .headers
            .iter()
            .map(|(name, value)| (name, value))
            .collect();
        let received = Received {
            headers: &headers,
            body: sent.body.as_bytes(),
            now: NOW,
        };
        let kind = forge.kind;
        assert!(
            forge.verify(&received, std::slice::from_ref(&secret)),
            "{kind}"
        );
        assert!(forge.agrees(&headers), "{kind}");
        let read = forge.read(&headers, sent.body.as_bytes());
        assert_eq!(read.unwrap(), None, "{kind}");
        assert!(
            !format!("{:?}", sent.headers).contains("a secret"),
            "{kind}"
        );
    }
}
