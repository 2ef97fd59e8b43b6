//! What is asked of a forge, and how its answers are read. The answers are written from its documentation.

use serde_json::json;
use tenure_core::forge::{Permission, Person};
use tenure_core::key::Key;
use tenure_core::time::Timestamp;
use tenure_dispatch::connect;
use tenure_forges::Secret;
use tenure_forges::api::{ApiError, CommentId, ForgeApi};

use crate::server::{Exchange, Server, answers, fails};

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn now() -> Timestamp {
    NOW
}

fn start(kind: &str, script: Vec<Exchange>) -> (Server, Box<dyn ForgeApi>) {
    let server = Server::start(script);
    let token = Secret::new("t0ken").unwrap();
    let api = connect(kind, &server.url, &token, None, now).unwrap();
    (server, api)
}

fn item(text: &str) -> Key {
    Key::parse(text).unwrap()
}

/// One call that succeeds, and its request.
#[track_caller]
fn ask<T>(kind: &str, script: Exchange, call: impl Fn(&dyn ForgeApi) -> Result<T, ApiError>) -> T {
    let (server, api) = start(kind, vec![script]);
    let answer = call(api.as_ref()).unwrap();
    let seen = server.seen();
    let lower = seen[0].head.to_ascii_lowercase();
    let expected = match kind {
        "github" => "authorization: bearer t0ken",
        "gitlab" => "private-token: t0ken",
        _ => "authorization: token t0ken",
    };
    assert!(lower.contains(expected), "{lower}");
    answer
}

#[test]
fn each_forge_says_what_somebody_may_do() {
    let alice = Person {
        login: "alice".into(),
        id: Some(3),
        is_bot: false,
    };
    for (kind, path, body, expected) in [
        (
            "github",
            "GET /api/v3/repos/acme/web/collaborators/alice/permission",
            json!({"permission": "write"}),
            Permission::Write,
        ),
        (
            "forgejo",
            "GET /api/v1/repos/acme/web/collaborators/alice/permission",
            json!({"permission": "owner"}),
            Permission::Admin,
        ),
        (
            "gitea",
            "GET /api/v1/repos/acme/web/collaborators/alice/permission",
            json!({"permission": "read"}),
            Permission::Read,
        ),
        (
            "gitlab",
            "GET /api/v4/projects/acme%2Fweb/members/all/3",
            json!({"access_level": 30, "state": "active"}),
            Permission::Write,
        ),
        (
            "gitlab",
            "GET /api/v4/projects/acme%2Fweb/members/all/3",
            json!({"access_level": 50, "state": "blocked"}),
            Permission::Nothing,
        ),
    ] {
        let found = ask(kind, answers(path, body), |api| {
            api.permission("acme/web", &alice)
        });
        assert_eq!(found, expected, "{kind}");
    }
    for kind in ["github", "forgejo", "gitlab"] {
        let (server, api) = start(kind, vec![fails("GET", 404, &[])]);
        assert_eq!(
            api.permission("acme/web", &alice).unwrap(),
            Permission::Nothing,
            "{kind}"
        );
        server.seen();
    }
}

#[test]
fn gitlab_finds_the_id_of_a_login() {
    let script = vec![
        answers(
            "GET /api/v4/users?username=alice",
            json!([{"id": 3, "username": "alice"}]),
        ),
        answers(
            "GET /api/v4/projects/acme%2Fweb/members/all/3",
            json!({"access_level": 40}),
        ),
    ];
    let (server, api) = start("gitlab", script);
    let found = api.permission("acme/web", &Person::named("alice")).unwrap();
    assert_eq!(found, Permission::Admin);
    server.seen();
}

#[test]
fn open_items_come_page_by_page() {
    let mut first = answers(
        "GET /api/v3/repos/acme/web/issues?state=open&per_page=100",
        json!([{"number": 6}, {"number": 9, "pull_request": {}}]),
    );
    let link = "<{url}/api/v3/repos/acme/web/issues?page=2>; rel=\"next\"".to_owned();
    first.headers.push(("Link", link));
    let second = answers(
        "GET /api/v3/repos/acme/web/issues?page=2",
        json!([{"number": 11}]),
    );
    let (server, api) = start("github", vec![first, second]);
    let items = api.open_items("acme/web").unwrap();
    let items: Vec<&str> = items.iter().map(Key::as_str).collect();
    assert_eq!(
        items,
        ["issue:acme/web#6", "pr:acme/web#9", "issue:acme/web#11"]
    );
    server.seen();

    for (kind, issues, pulls, number) in [
        (
            "forgejo",
            "GET /api/v1/repos/acme/web/issues?state=open&type=issues&limit=50",
            "GET /api/v1/repos/acme/web/issues?state=open&type=pulls&limit=50",
            "number",
        ),
        (
            "gitlab",
            "GET /api/v4/projects/acme%2Fweb/issues?state=opened&per_page=100",
            "GET /api/v4/projects/acme%2Fweb/merge_requests?state=opened&per_page=100",
            "iid",
        ),
    ] {
        let script = vec![
            answers(issues, json!([{number: 6}])),
            answers(pulls, json!([{number: 9}])),
        ];
        let (server, api) = start(kind, script);
        let items = api.open_items("acme/web").unwrap();
        assert_eq!(
            items,
            [item("issue:acme/web#6"), item("pr:acme/web#9")],
            "{kind}"
        );
        server.seen();
    }
}

#[test]
fn a_link_to_another_host_is_not_given_the_token() {
    let mut first = answers("GET", json!([{"number": 6}]));
    first
        .headers
        .push(("Link", "<http://127.0.0.1:1/x>; rel=\"next\"".to_owned()));
    let (server, api) = start("github", vec![first]);
    assert_eq!(api.open_items("acme/web").unwrap().len(), 1);
    server.seen();
    // Nor is a redirect followed.
    let moved = fails("GET", 302, &[("Location", "http://127.0.0.1:1/x")]);
    let (server, api) = start("github", vec![moved]);
    let error = api.own_account().unwrap_err();
    assert!(
        matches!(error, ApiError::Failed { status: 302, .. }),
        "{error}"
    );
    server.seen();
}

#[test]
fn a_pull_request_says_where_its_code_is_now() {
    let hub = |repo: &str, branch: &str| {
        json!({
            "state": "open", "draft": false, "user": {"login": "alice", "id": 3},
            "head": {"ref": branch, "sha": "a1", "repo": {"full_name": repo}}, "base": {"ref": "main"},
        })
    };
    let lab = |source: u64| {
        json!({
            "state": "opened", "draft": false, "author": {"username": "alice", "id": 3}, "sha": "a1",
            "source_branch": "fix-6", "target_branch": "main", "source_project_id": source, "target_project_id": 17,
        })
    };
    for (kind, path, body, is_fork) in [
        (
            "github",
            "GET /api/v3/repos/acme/web/pulls/9",
            hub("Acme/Web", "fix-6"),
            false,
        ),
        (
            "github",
            "GET /api/v3/repos/acme/web/pulls/9",
            hub("mallory/web", "fix-6"),
            true,
        ),
        (
            "forgejo",
            "GET /api/v1/repos/acme/web/pulls/9",
            hub("Acme/Web", "refs/pull/9/head"),
            true,
        ),
        (
            "gitlab",
            "GET /api/v4/projects/acme%2Fweb/merge_requests/9",
            lab(17),
            false,
        ),
        (
            "gitlab",
            "GET /api/v4/projects/acme%2Fweb/merge_requests/9",
            lab(18),
            true,
        ),
    ] {
        let found = ask(kind, answers(path, body), |api| api.pull("acme/web", 9));
        assert_eq!(
            (found.pull.is_fork, found.is_open),
            (is_fork, true),
            "{kind}"
        );
        assert_eq!(
            (found.author.login.as_str(), found.pull.head.as_deref()),
            ("alice", Some("a1"))
        );
    }
}

#[test]
fn a_comment_is_written_edited_and_reacted_to() {
    for (kind, written, edited, on_item, on_comment) in [
        (
            "github",
            "POST /api/v3/repos/acme/web/issues/9/comments",
            "PATCH /api/v3/repos/acme/web/issues/comments/7",
            "POST /api/v3/repos/acme/web/issues/9/reactions",
            "POST /api/v3/repos/acme/web/issues/comments/7/reactions",
        ),
        (
            "forgejo",
            "POST /api/v1/repos/acme/web/issues/9/comments",
            "PATCH /api/v1/repos/acme/web/issues/comments/7",
            "POST /api/v1/repos/acme/web/issues/9/reactions",
            "POST /api/v1/repos/acme/web/issues/comments/7/reactions",
        ),
        (
            "gitlab",
            "POST /api/v4/projects/acme%2Fweb/merge_requests/9/notes",
            "PUT /api/v4/projects/acme%2Fweb/merge_requests/9/notes/7",
            "POST /api/v4/projects/acme%2Fweb/merge_requests/9/award_emoji",
            "POST /api/v4/projects/acme%2Fweb/merge_requests/9/notes/7/award_emoji",
        ),
    ] {
        let script = vec![
            answers(written, json!({"id": 7})),
            answers(edited, json!({})),
            answers(on_item, json!({})),
            answers(on_comment, json!({})),
        ];
        let (server, api) = start(kind, script);
        let pull = item("pr:acme/web#9");
        let id = api.comment(&pull, "running \"it\"").unwrap();
        assert_eq!(id, CommentId(7));
        api.edit_comment(&pull, &id, "done").unwrap();
        api.react(&pull, None).unwrap();
        api.react(&pull, Some(&id)).unwrap();
        let bodies: Vec<String> = server.seen().into_iter().map(|seen| seen.body).collect();
        assert_eq!(bodies[0], r#"{"body":"running \"it\""}"#, "{kind}");
        assert!(bodies[3].contains("eyes"), "{kind}");
    }
    let (_server, api) = start("github", Vec::new());
    let error = api.comment(&item("branch:acme/web:x"), "no").unwrap_err();
    assert!(matches!(error, ApiError::NotFound { .. }));
}

#[test]
fn f_r27_github_tells_which_deliveries_did_not_arrive() {
    let script = vec![
        answers(
            "GET /api/v3/repos/acme/web/hooks?per_page=100",
            json!([
                {"id": 1, "config": {"url": "https://ci.example.org/"}},
                {"id": 2, "config": {"url": "https://me.example.org/hooks/home"}},
            ]),
        ),
        answers(
            "GET /api/v3/repos/acme/web/hooks/2/deliveries?per_page=100",
            json!([
                {"id": 50, "guid": "g-1", "status_code": 202, "event": "issues", "delivered_at": "2026-11-16T06:00:00Z"},
                {"id": 51, "guid": "g-2", "status_code": 0, "event": "issues", "delivered_at": "2026-11-16T06:01:00Z"},
            ]),
        ),
        answers(
            "POST /api/v3/repos/acme/web/hooks/2/deliveries/51/attempts",
            json!({}),
        ),
    ];
    let (server, api) = start("github", script);
    let sent = api
        .deliveries("acme/web", "/hooks/home", "")
        .unwrap()
        .unwrap();
    let lost: Vec<&str> = sent
        .iter()
        .filter(|one| !one.arrived)
        .map(|one| one.id.as_str())
        .collect();
    assert_eq!(lost, ["g-2"]);
    api.redeliver("acme/web", &sent[1]).unwrap();
    server.seen();
    let (_server, api) = start("forgejo", Vec::new());
    assert_eq!(api.deliveries("acme/web", "/hooks/home", "").unwrap(), None);
}

#[test]
fn a_branch_is_there_or_not() {
    for (kind, path) in [
        ("github", "GET /api/v3/repos/acme/web/branches/fix/6"),
        ("forgejo", "GET /api/v1/repos/acme/web/branches/fix/6"),
        (
            "gitlab",
            "GET /api/v4/projects/acme%2Fweb/repository/branches/fix%2F6",
        ),
    ] {
        assert!(ask(kind, answers(path, json!({})), |api| api
            .has_branch("acme/web", "fix/6")));
        let (server, api) = start(kind, vec![fails(path, 404, &[])]);
        assert!(!api.has_branch("acme/web", "fix/6").unwrap());
        server.seen();
    }
}

#[test]
fn while_a_forge_limits_requests_none_is_made() {
    let until = |seconds: i64| Timestamp(NOW.0 + seconds * 1000);
    let reset = (NOW.0 / 1000 + 90).to_string();
    for (answer, expected) in [
        (fails("GET", 429, &[("Retry-After", "30")]), until(30)),
        (fails("GET", 429, &[]), until(60)),
        (fails("GET", 403, &[("Retry-After", "5")]), until(5)),
        (
            fails(
                "GET",
                403,
                &[
                    ("X-RateLimit-Remaining", "0"),
                    ("X-RateLimit-Reset", &reset),
                ],
            ),
            until(90),
        ),
        (
            fails("GET", 429, &[("Retry-After", "99999999")]),
            until(3600),
        ),
    ] {
        // The second call makes no request, which this server would not answer.
        let (server, api) = start("github", vec![answer]);
        for _ in 0..2 {
            match api.own_account().unwrap_err() {
                ApiError::Limited { until, .. } => assert_eq!(until, expected),
                other => panic!("{other}"),
            }
        }
        server.seen();
    }
    // The last answer before a limit counts, and stops the next request.
    let mut last = answers("GET /api/v4/user", json!({"id": 1, "username": "bot"}));
    last.headers = vec![
        ("RateLimit-Remaining", "0".into()),
        ("RateLimit-Reset", reset),
    ];
    let (server, api) = start("gitlab", vec![last]);
    assert_eq!(api.own_account().unwrap().login, "bot");
    assert!(matches!(
        api.own_account().unwrap_err(),
        ApiError::Limited { .. }
    ));
    server.seen();
}

#[test]
fn what_goes_wrong_is_told_apart_and_the_token_is_never_shown() {
    let (server, api) = start("forgejo", vec![fails("GET", 401, &[])]);
    let denied = api.own_account().unwrap_err();
    assert!(matches!(denied, ApiError::Denied { status: 401, .. }));
    let url = server.url.clone();
    server.seen();
    let gone = connect("forgejo", &url, &Secret::new("t0ken").unwrap(), None, now).unwrap();
    let unreachable = gone.own_account().unwrap_err();
    assert!(
        matches!(unreachable, ApiError::Unreachable { .. }),
        "{unreachable}"
    );
    let (server, api) = start("forgejo", vec![fails("GET", 500, &[])]);
    let failed = api.own_account().unwrap_err();
    assert!(
        failed
            .to_string()
            .ends_with("answered with status 500: because"),
        "{failed}"
    );
    server.seen();
    let (server, api) = start("forgejo", vec![answers("GET", json!("odd"))]);
    let odd = api.own_account().unwrap_err();
    assert!(matches!(odd, ApiError::Unreadable { .. }));
    server.seen();
    for error in [denied, unreachable, failed, odd] {
        assert!(!format!("{error} {error:?}").contains("t0ken"));
    }
    let is_known = |kind| connect(kind, &url, &Secret::new("x").unwrap(), None, now).is_some();
    assert!(!is_known("svn"));
    assert!(
        tenure_forges::FORGES
            .iter()
            .all(|forge| is_known(forge.kind))
    );
}
