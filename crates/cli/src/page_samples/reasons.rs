//! One of each reason that messages of the dispatcher and of runs end with, and the page that shows them.

use tenure_core::dispatch::{Never, No};
use tenure_core::forge::{Association, EventKind};
use tenure_core::key::Key;

use crate::message_page::compare;

#[test]
fn every_reason_is_on_its_page() {
    let mut page = "## Why an event starts nothing, or a rule does not match it\n\n".to_owned();
    let mut add = |line: String| page += &format!("{line}\n");
    let reasons = nos();
    let kinds: Vec<&str> = reasons.iter().map(No::kind).collect();
    assert_eq!(kinds.len(), 26, "one of each: {kinds:?}");
    for no in &reasons {
        add(format!("{no} ({})", no.kind()));
    }
    add("\n\n## Why a rule in dispatch.toml never matches\n".to_owned());
    for never in nevers() {
        add(format!("{}: {never}", never.key()));
    }
    add("\n\n## Why a key is not valid\n".to_owned());
    for key in BAD_KEYS {
        let parsed = Key::parse(key);
        add(parsed.map_or_else(|why| why.to_string(), |valid| format!("{valid} is valid")));
    }
    compare("97-reasons", &page);
}

const BAD_KEYS: &[&str] = &[
    "",
    "42",
    "issue:#7",
    "path:src/a.rs",
    "path:web:",
    "path:web:a\u{7}",
    "path:web:a]",
    "path:web:a}",
    "path:web:a\\/b",
    "path:web:[z-a]",
    "path:web:[ab",
    "path:web:[a[b]]",
    "path:web:[a/b]",
    "path:web:{a,b",
    "path:web:{{{{{{{{{a}}}}}}}}}",
];

/// A new reason has a kind, which the compiler asks for; it belongs here, too.
fn nos() -> Vec<No> {
    let login = || "mallory".to_owned();
    let label = || "agent".to_owned();
    vec![
        No::UnknownRepository {
            repo: "acme/api".into(),
            forge: "home".into(),
        },
        No::NoItem(EventKind::Push),
        No::OwnAccount {
            login: "bot".into(),
        },
        No::OwnText,
        No::EditedByOther {
            actor: login(),
            author: "alice".into(),
        },
        No::EditedAfterTrigger,
        No::NoRule,
        No::ResetRefused { login: login() },
        No::OtherRepository("acme/web".into()),
        No::OtherEvent(vec![EventKind::IssueOpened, EventKind::IssueComment]),
        No::NotAnAuthor { login: login() },
        No::OtherAssociation {
            login: login(),
            found: Association::Contributor,
            wanted: vec![Association::Owner, Association::Member],
        },
        No::NotPermitted {
            login: login(),
            wanted: vec![Association::Collaborator],
        },
        No::AssociationUnknown { login: login() },
        No::NoLabel(label()),
        No::OtherLabel(label()),
        No::LabelBefore(label()),
        No::NoMention("@bot".into()),
        No::NoAssignee("bot".into()),
        No::NoReviewer("bot".into()),
        No::OtherBranch {
            found: "main".into(),
            wanted: "fix/*".into(),
        },
        No::NoBranch("fix/*".into()),
        No::Fork("mallory/web".into()),
        No::ForeignCode { author: login() },
        No::UnknownCode {
            item: Key::parse("pr:acme/web#43").expect("a key"),
        },
        No::Earlier("fix".into()),
    ]
}

fn nevers() -> Vec<Never> {
    vec![
        Never::NoRepository("acme/api".into()),
        Never::NoRepositories,
        Never::NoEvent,
        Never::NoItem(EventKind::Push),
        Never::NeverSent {
            kind: EventKind::IssueOpened,
            forge: "work".into(),
        },
        Never::Nobody,
        Never::OnlyOwnAccount("bot".into()),
        Never::NoAssociations("home".into()),
        Never::NotCarried("labels"),
        Never::Shadowed("fix".into()),
    ]
}
