//! GitHub's paths and names, and the part that Forgejo shares.

use serde_json::{Value, json};

use super::http::{FakeResponse, Request};
use super::state::{Comment, ForgeState, MadePull, Thread, account};

pub(super) fn answer(state: &mut ForgeState, request: &Request) -> Option<FakeResponse> {
    let (method, parts) = request.route();
    match (method, parts.as_slice()) {
        ("GET", ["repos", "acme", "web", "issues"]) => {
            let open = state.threads.iter().filter(|(_, one)| one.state == "open");
            FakeResponse::ok(open.map(|(number, one)| issue(*number, one)).collect())
        }
        ("PUT", ["repos", "acme", "web", "pulls", number, "merge"]) => {
            let status = state.merge(number.parse().ok()?, request.body["sha"].as_str());
            FakeResponse::refused(status, "Merge")
        }
        ("GET", ["repos", "acme", "web", "hooks"]) => FakeResponse::ok(json!([
            {"id": 1, "config": {"url": "https://ci.example.org/"}},
            {"id": 2, "config": {"url": state.hook}},
        ])),
        ("GET", ["repos", "acme", "web", "hooks", "2", "deliveries"]) => {
            let sent = state.deliveries.iter().rev().map(|one| {
                json!({
                    "id": one.id, "guid": one.guid, "status_code": one.status, "event": one.event,
                    "delivered_at": one.at, "redelivery": false,
                })
            });
            FakeResponse::ok(sent.collect())
        }
        (
            "POST",
            [
                "repos",
                "acme",
                "web",
                "hooks",
                "2",
                "deliveries",
                id,
                "attempts",
            ],
        ) => {
            let id: u64 = id.parse().ok()?;
            let again = state.deliveries.iter().find(|one| one.id == id)?.clone();
            state.again.push(again);
            Some(FakeResponse {
                status: 202,
                body: json!({}),
            })
        }
        ("POST", ["repos", "acme", "web", "pulls", "comments", id, "reactions"]) => {
            eyes(state, request, format!("review {id}"))
        }
        _ => shared(state, request),
    }
}

/// Requests that Forgejo answers in the same way.
pub(super) fn shared(state: &mut ForgeState, request: &Request) -> Option<FakeResponse> {
    let (method, parts) = request.route();
    match (method, parts.as_slice()) {
        ("GET", ["user"]) => FakeResponse::ok(user("bot")),
        ("GET", ["users", login]) if state.permissions.contains_key(*login) => {
            FakeResponse::ok(user(login))
        }
        ("GET", ["repos", "acme", "web", "collaborators", login, "permission"]) => {
            let role = state.permissions.get(*login).copied().unwrap_or("none");
            FakeResponse::ok(json!({"permission": role, "user": user(login)}))
        }
        ("GET", ["repos", "acme", "web"]) => FakeResponse::ok(json!({"default_branch": "main"})),
        ("GET", ["repos", "acme", "web", "pulls"]) => {
            let open = state.threads.iter().filter(|(_, one)| one.state == "open");
            let open = open.filter_map(|(number, _)| pull(state, *number));
            FakeResponse::ok(open.collect())
        }
        ("POST", ["repos", "acme", "web", "pulls"]) => {
            let made = state.open_pull(MadePull {
                branch: request.named("head"),
                base: request.named("base"),
                title: request.named("title"),
                body: request.named("body"),
            });
            match made {
                Some(number) => FakeResponse::made(pull(state, number)?),
                None => FakeResponse::refused(422, "a pull request already exists"),
            }
        }
        ("PATCH", ["repos", "acme", "web", "pulls", number]) => {
            let number = number.parse().ok()?;
            let made = state.pulls.get_mut(&number)?;
            (made.title, made.body) = (request.named("title"), request.named("body"));
            FakeResponse::ok(pull(state, number)?)
        }
        ("GET", ["repos", "acme", "web", "pulls", number]) => {
            let number = number.parse().ok()?;
            FakeResponse::ok(pull(state, number)?)
        }
        ("GET", ["repos", "acme", "web", "issues", number]) => {
            let number = number.parse().ok()?;
            FakeResponse::ok(issue(number, state.threads.get(&number)?))
        }
        ("GET", ["repos", "acme", "web", "branches", name @ ..]) => {
            let name = name.join("/");
            state.branches.get(&name)?;
            FakeResponse::ok(json!({"name": name}))
        }
        ("GET", ["repos", "acme", "web", "issues", number, "comments"]) => {
            let number: u64 = number.parse().ok()?;
            let found = state.comments.iter().filter(|one| one.number == number);
            FakeResponse::ok(found.map(comment).collect())
        }
        ("POST", ["repos", "acme", "web", "issues", number, "comments"]) => {
            let number = number.parse().ok()?;
            state.threads.get(&number)?;
            let id = state.write_comment(number, request.text());
            FakeResponse::made(json!({"id": id, "body": request.text()}))
        }
        ("PATCH", ["repos", "acme", "web", "issues", "comments", id]) => {
            let is_there = state.edit_comment(id.parse().ok()?, request.text());
            is_there.then(|| FakeResponse::ok(json!({"body": request.text()})))?
        }
        (
            "POST",
            [
                "repos",
                "acme",
                "web",
                "issues",
                "comments",
                id,
                "reactions",
            ],
        ) => eyes(state, request, format!("comment {id}")),
        ("POST", ["repos", "acme", "web", "issues", number, "reactions"]) => {
            eyes(state, request, format!("item {number}"))
        }
        _ => None,
    }
}

fn eyes(state: &mut ForgeState, request: &Request, what: String) -> Option<FakeResponse> {
    if request.body["content"] != "eyes" {
        return None;
    }
    if !state.eyes.contains(&what) {
        state.eyes.push(what);
    }
    FakeResponse::made(json!({"content": "eyes"}))
}

fn user(login: &str) -> Value {
    json!({"login": login, "id": account(login), "type": "User"})
}

fn comment(one: &Comment) -> Value {
    json!({
        "id": one.id, "body": one.body, "user": user(&one.login), "created_at": "2026-11-16T06:05:00Z",
    })
}

pub(super) fn issue(number: u64, one: &Thread) -> Value {
    let state = if one.state == "open" {
        "open"
    } else {
        "closed"
    };
    let mut issue = json!({
        "number": number, "state": state, "user": user(&one.author), "title": "Login fails",
        "body": "It answers 500.",
    });
    if one.is_pull {
        let merged = (one.state == "merged").then_some("2026-11-16T06:00:00Z");
        issue["pull_request"] = json!({"merged_at": merged, "merged": merged.is_some()});
    }
    issue
}

fn pull(forge: &ForgeState, number: u64) -> Option<Value> {
    let one = forge.thread(number, true)?;
    let head = forge.heads.get(&number);
    let (commit, repo) = head.map_or(("a1", "acme/web"), |head| (&head.commit, &head.repo));
    let state = if one.state == "open" {
        "open"
    } else {
        "closed"
    };
    let made = forge.pulls.get(&number);
    let branch = made.map_or_else(|| format!("change-{number}"), |made| made.branch.clone());
    Some(json!({
        "number": number, "state": state, "merged": one.state == "merged", "draft": false,
        "user": user(&one.author),
        "head": {"ref": branch, "sha": commit, "repo": {"full_name": repo}},
        "base": {"ref": made.map_or("main", |made| &made.base)},
        "title": made.map_or("", |made| &made.title),
        "body": made.map_or("", |made| &made.body),
        "html_url": format!("https://git.example.org/acme/web/pulls/{number}"),
    }))
}
