//! The same questions to every forge. Each answers in its own paths and names, as its documentation says; none of the
//! answers is a recording of a real server.

use tenure_core::forge::{Permission, Person};
use tenure_core::key::Key;
use tenure_core::time::Timestamp;
use tenure_dispatch::connect;
use tenure_forges::Secret;
use tenure_forges::api::{ApiError, CommentId, ForgeApi, ItemNow, NewPull};
use tenure_testkit::fake_forge::{Dialect, FakeForge, InjectedFault, Sent, Thread};

fn now() -> Timestamp {
    Timestamp(1_795_000_000_000)
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

/// Runs a case against every forge.
fn each(case: impl Fn(&FakeForge, &dyn ForgeApi, &str)) {
    for (dialect, kind) in Dialect::ALL {
        let forge = FakeForge::start(dialect);
        let token = Secret::new("t0ken").unwrap();
        let api = connect(kind, &forge.url, &token, None, now).unwrap();
        case(&forge, api.as_ref(), kind);
    }
}

fn person(login: &str, id: u64) -> Person {
    Person {
        login: login.to_owned(),
        id: Some(id),
        is_bot: false,
    }
}

fn add_pull(forge: &FakeForge, state: &'static str) {
    let pull = Thread {
        is_pull: true,
        state,
        author: "alice".to_owned(),
    };
    forge.state().threads.insert(9, pull);
}

#[test]
fn the_account_of_the_token_and_what_somebody_may_do_are_told() {
    each(|forge, api, kind| {
        assert_eq!(api.own_account().unwrap().login, "bot", "{kind}");
        let may = |login, id| api.permission("acme/web", &person(login, id)).unwrap();
        assert_eq!(may("alice", 3), Permission::Write, "{kind}");
        assert_eq!(may("mallory", 77), Permission::Nothing, "{kind}");
        assert!(
            forge
                .state()
                .tokens
                .iter()
                .all(|sent| sent.ends_with("t0ken"))
        );
    });
}

#[test]
fn what_is_open_closed_merged_or_gone_is_told() {
    each(|forge, api, kind| {
        add_pull(forge, "open");
        let mut open = api.open_items("acme/web").unwrap();
        open.sort();
        let expected = ["issue:acme/web#6", "issue:acme/web#7", "pr:acme/web#9"];
        assert_eq!(open, expected.map(key), "{kind}");
        let state = |item: &str| api.state(&key(item)).unwrap();
        assert_eq!(state("issue:acme/web#6"), ItemNow::Open, "{kind}");
        assert_eq!(state("pr:acme/web#9"), ItemNow::Open, "{kind}");
        assert!(api.pull("acme/web", 9).unwrap().is_open, "{kind}");
        forge.state().threads.get_mut(&6).unwrap().state = "closed";
        add_pull(forge, "merged");
        assert_eq!(state("issue:acme/web#6"), ItemNow::Closed, "{kind}");
        assert_eq!(state("pr:acme/web#9"), ItemNow::Merged, "{kind}");
        add_pull(forge, "closed");
        assert_eq!(state("pr:acme/web#9"), ItemNow::Closed, "{kind}");
        assert_eq!(state("issue:acme/web#60"), ItemNow::Gone, "{kind}");
        assert_eq!(api.open_items("acme/web").unwrap().len(), 1, "{kind}");
        assert!(api.has_branch("acme/web", "main").unwrap(), "{kind}");
        assert!(!api.has_branch("acme/web", "gone/too").unwrap(), "{kind}");
        assert!(api.open_items("acme/other").is_err(), "{kind}");
    });
}

#[test]
fn a_comment_is_written_found_by_its_line_and_edited() {
    each(|forge, api, kind| {
        let (item, own) = (key("issue:acme/web#6"), Person::named("bot"));
        let mark = "<!-- tenure job j-1 -->";
        assert_eq!(api.find_comment(&item, &own, mark).unwrap(), None);
        // Somebody else quotes it, or writes the same.
        for (login, body) in [("mallory", mark), ("bot", "> <!-- tenure job j-1 -->")] {
            let id = 400 + forge.state().comments.len() as u64;
            forge
                .state()
                .comments
                .push(tenure_testkit::fake_forge::Comment {
                    id,
                    number: 6,
                    login: login.to_owned(),
                    body: body.to_owned(),
                    edits: 0,
                });
        }
        assert_eq!(api.find_comment(&item, &own, mark).unwrap(), None, "{kind}");
        let written = api.comment(&item, &format!("{mark}\nrunning")).unwrap();
        let found = api.find_comment(&item, &own, mark).unwrap();
        assert_eq!(found, Some(written.clone()), "{kind}");
        api.edit_comment(&item, &written, &format!("{mark}\ndone"))
            .unwrap();
        let last = forge.own_comments().pop().unwrap();
        assert_eq!(last.body, format!("{mark}\ndone"), "{kind}");
        let gone = api.edit_comment(&item, &CommentId(1), "x").unwrap_err();
        assert!(matches!(gone, ApiError::NotFound { .. }), "{kind}: {gone}");
        let nowhere = api.comment(&key("issue:acme/web#60"), "x").unwrap_err();
        assert!(matches!(nowhere, ApiError::NotFound { .. }), "{kind}");
    });
}

#[test]
fn a_pull_request_is_opened_found_by_its_branch_edited_and_merged_at_its_head() {
    each(|forge, api, kind| {
        let repo = "acme/web";
        let branch = "tenure/issue-6";
        assert_eq!(api.pull_of(repo, branch).unwrap(), None, "{kind}");
        let new = NewPull {
            branch,
            base: None,
            title: "Login fails (#6)",
            body: "Closes #6",
        };
        let made = api.open_pull(repo, &new).unwrap();
        assert!(made.url.ends_with(&format!("/{}", made.number)), "{kind}");
        let known = forge.state().pulls[&made.number].clone();
        let texts = [&known.branch, &known.base, &known.title, &known.body];
        let expected = [branch, "main", "Login fails (#6)", "Closes #6"];
        assert_eq!(texts, expected, "{kind}");
        assert_eq!(api.pull_of(repo, branch).unwrap(), Some(made.clone()));
        assert_eq!(api.pull_of(repo, "tenure/issue-7").unwrap(), None, "{kind}");
        let again = api.open_pull(repo, &new).unwrap_err();
        assert!(matches!(again, ApiError::Failed { .. }), "{kind}: {again}");
        api.edit_pull(repo, made.number, "New", "Text").unwrap();
        let known = forge.state().pulls[&made.number].clone();
        assert_eq!((known.title, known.body), ("New".into(), "Text".into()));
        let item = key(&format!("pr:acme/web#{}", made.number));
        let other = api.merge_pull(repo, made.number, "b2").unwrap_err();
        assert!(
            matches!(other, ApiError::Failed { status: 409, .. }),
            "{kind}: {other}"
        );
        assert_eq!(api.state(&item).unwrap(), ItemNow::Open, "{kind}");
        api.merge_pull(repo, made.number, "a1").unwrap();
        assert_eq!(api.state(&item).unwrap(), ItemNow::Merged, "{kind}");
        assert_eq!(api.pull_of(repo, branch).unwrap(), None, "{kind}");
        let based = NewPull {
            base: Some("fix-6"),
            ..new
        };
        let made = api.open_pull(repo, &based).unwrap();
        assert_eq!(forge.state().pulls[&made.number].base, "fix-6", "{kind}");
    });
}

#[test]
fn a_thread_is_told_with_its_comments() {
    each(|forge, api, kind| {
        let item = key("issue:acme/web#6");
        api.comment(&item, "First.").unwrap();
        forge.state().comments[0].login = "bob".to_owned();
        api.comment(&item, "Second.").unwrap();
        let told = api.thread(&item).unwrap();
        assert_eq!(
            (
                told.title.as_str(),
                told.body.as_str(),
                told.author.login.as_str()
            ),
            ("Login fails", "It answers 500.", "alice"),
            "{kind}"
        );
        let comments: Vec<(&str, &str)> = told
            .comments
            .iter()
            .map(|one| (one.author.login.as_str(), one.text.as_str()))
            .collect();
        assert_eq!(comments, [("bob", "First."), ("bot", "Second.")], "{kind}");
        assert!(told.comments[0].at.starts_with("2026-11-16T"), "{kind}");
        assert!(api.thread(&key("issue:acme/web#60")).is_err(), "{kind}");
    });
}

#[test]
fn eyes_are_added_once_however_often_they_are_asked_for() {
    each(|forge, api, kind| {
        let item = key("issue:acme/web#6");
        for _ in 0..2 {
            api.react(&item, None).unwrap();
            api.react(&item, Some(&CommentId(8))).unwrap();
        }
        assert_eq!(forge.state().eyes, ["item 6", "comment 8"], "{kind}");
        add_pull(forge, "open");
        api.react_to_review(&key("pr:acme/web#9"), &CommentId(70))
            .unwrap();
        let expected = if kind == "github" {
            "review 70"
        } else {
            "item 9"
        };
        assert_eq!(forge.state().eyes[2], expected);
    });
}

#[test]
fn a_limit_is_heeded_for_every_call_of_the_connection() {
    type Limit = (u16, Vec<(&'static str, String)>, &'static str, i64);
    let at = |seconds: i64| (now().0 / 1000 + seconds).to_string();
    let limits: [Limit; 6] = [
        (429, vec![("Retry-After", "7".into())], "", 7),
        (403, vec![("Retry-After", "8".into())], "", 8),
        (403, vec![], "You have exceeded a secondary rate limit", 60),
        (
            403,
            vec![
                ("X-RateLimit-Remaining", "0".into()),
                ("X-RateLimit-Reset", at(90)),
            ],
            "",
            90,
        ),
        (
            429,
            vec![
                ("RateLimit-Remaining", "0".into()),
                ("RateLimit-Reset", at(91)),
            ],
            "",
            91,
        ),
        // Some say how many seconds are left.
        (
            429,
            vec![
                ("RateLimit-Remaining", "0".into()),
                ("RateLimit-Reset", "30".into()),
            ],
            "",
            30,
        ),
    ];
    each(|_, _, kind| {
        for (status, headers, message, seconds) in &limits {
            let (dialect, _) = Dialect::ALL.into_iter().find(|one| one.1 == kind).unwrap();
            let forge = FakeForge::start(dialect);
            let token = Secret::new("t0ken").unwrap();
            let api = connect(kind, &forge.url, &token, None, now).unwrap();
            let limit = InjectedFault::Status(*status, headers.clone(), message);
            forge.state().fail("GET", 1, limit);
            let until = Timestamp(now().0 + seconds * 1000);
            for error in [
                api.own_account().unwrap_err(),
                api.comment(&key("issue:acme/web#6"), "x").unwrap_err(),
            ] {
                match error {
                    ApiError::Limited { until: told, .. } => assert_eq!(told, until, "{kind}"),
                    other => panic!("{kind}: {other}"),
                }
            }
            assert_eq!(forge.state().requests.len(), 1, "{kind}: one request");
        }
    });
}

#[test]
fn a_refusal_that_is_no_limit_stops_nothing() {
    each(|forge, api, kind| {
        let refusal = InjectedFault::Status(403, Vec::new(), "Must have admin rights");
        forge.state().fail("GET", 1, refusal);
        let refused = api.own_account().unwrap_err();
        assert!(
            matches!(refused, ApiError::Denied { .. }),
            "{kind}: {refused}"
        );
        api.own_account().unwrap();
    });
}

#[test]
fn a_forge_that_breaks_off_is_unreachable() {
    each(|forge, api, kind| {
        for fault in [InjectedFault::Dropped, InjectedFault::DoneUnanswered] {
            forge.state().fail("POST", 1, fault);
            let lost = api.comment(&key("issue:acme/web#6"), "x").unwrap_err();
            assert!(
                matches!(lost, ApiError::Unreachable { .. }),
                "{kind}: {lost}"
            );
        }
        assert_eq!(forge.own_comments().len(), 1, "{kind}: one was carried out");
    });
}

#[test]
fn f_r27_only_github_tells_its_deliveries_and_only_since_a_time() {
    each(|forge, api, kind| {
        let sent = |id: u64, at: &str| Sent {
            id,
            guid: format!("g-{id}"),
            status: if id == 2 { 0 } else { 202 },
            event: "issues".to_owned(),
            at: at.to_owned(),
        };
        forge.state().deliveries = vec![
            sent(1, "2026-11-16T05:00:00Z"),
            sent(2, "2026-11-16T06:00:00Z"),
            sent(3, "2026-11-16T06:01:00Z"),
        ];
        let told = api.deliveries("acme/web", "/hooks/home", "2026-11-16T05:30:00Z");
        let told = told.unwrap();
        if kind == "github" {
            let told = told.unwrap();
            let lost: Vec<&str> = told
                .iter()
                .filter(|one| !one.arrived)
                .map(|one| one.id.as_str())
                .collect();
            assert_eq!((told.len(), lost), (2, vec!["g-2"]));
            let other = api.deliveries("acme/web", "/hooks/elsewhere", "").unwrap();
            assert_eq!(other, Some(Vec::new()));
        } else {
            assert_eq!(told, None, "{kind}");
        }
    });
}
