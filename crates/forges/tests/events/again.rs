//! Deliveries are kept without their headers and read again.

use tenure_forges::{FORGES, Headers};

const NAMES: &[&str] = &[
    "issues",
    "issue_comment",
    "pull_request",
    "pull_request_comment",
    "pull_request_review",
    "pull_request_review_comment",
    "pull_request_review_approved",
    "pull_request_approved",
    "pull_request_rejected",
    "push",
    "delete",
    "repository",
    "ping",
];

#[test]
#[allow(clippy::disallowed_methods, reason = "a test may touch the machine")]
fn a_body_that_was_kept_without_its_headers_is_read_as_the_same_event() {
    let mut seen = 0;
    for forge in FORGES {
        let kind = forge.kind.replace("gitea", "forgejo");
        let dir = format!("{}/tests/fixtures/{kind}", env!("CARGO_MANIFEST_DIR"));
        for file in std::fs::read_dir(dir).unwrap() {
            let body = std::fs::read(file.unwrap().path()).unwrap();
            for name in NAMES {
                let headers = Headers::from_iter([(forge.event_headers[0], name)]);
                let Ok(Some(event)) = forge.read(&headers, &body) else {
                    continue;
                };
                let again = forge.read_again(event.kind.as_str(), &body);
                assert_eq!(again.unwrap().item, event.item, "{kind} {name}");
                seen += 1;
            }
            assert_eq!(forge.read_again("something.else", &body), None);
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test may touch the machine")]
fn the_headers_that_name_an_event_are_all_that_its_meaning_depends_on() {
    // Forgejo and Gitea send a coarse name and a fine one, and only the latter tells an approval from a comment.
    const FINE: &[&str] = &["pull_request_approved", "pull_request_rejected", ""];
    let (mut seen, mut fine_matters) = (0, 0);
    for forge in FORGES {
        let kind = forge.kind.replace("gitea", "forgejo");
        let dir = format!("{}/tests/fixtures/{kind}", env!("CARGO_MANIFEST_DIR"));
        for file in std::fs::read_dir(dir).unwrap() {
            let body = std::fs::read(file.unwrap().path()).unwrap();
            for (header, name, fine) in forge.event_headers.iter().flat_map(|header| {
                let names = NAMES.iter();
                names.flat_map(move |name| FINE.iter().map(move |fine| (header, name, fine)))
            }) {
                let coarse = Headers::from_iter([(header, name)]);
                let sent = [
                    ((*header).to_owned(), *name),
                    (format!("{header}-type"), *fine),
                    ("content-type".to_owned(), "application/json"),
                ];
                let sent = Headers::from_iter(sent);
                let Ok(Some(event)) = forge.read(&sent, &body) else {
                    continue;
                };
                let kept = Headers::from_iter(forge.naming(&sent).pairs().to_vec());
                assert_eq!(forge.read(&kept, &body).unwrap().as_ref(), Some(&event));
                seen += 1;
                let coarse = forge.read(&coarse, &body).ok().flatten();
                fine_matters += usize::from(coarse != Some(event));
            }
        }
    }
    assert!(seen > 100 && fine_matters > 0, "{seen} {fine_matters}");
}
