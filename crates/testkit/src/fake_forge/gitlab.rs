//! GitLab's paths and names.

use serde_json::{Value, json};

use super::http::{FakeResponse, Request};
use super::state::{Comment, ForgeState, MadePull, Thread, account};

pub(super) fn answer(state: &mut ForgeState, request: &Request) -> Option<FakeResponse> {
    let (method, parts) = request.route();
    match (method, parts.as_slice()) {
        ("GET", ["user"]) => FakeResponse::ok(user("bot")),
        ("GET", ["users"]) => {
            let asked = |login: &&String| request.query == format!("username={login}");
            let found = state.permissions.keys().find(asked);
            FakeResponse::ok(found.map(|login| user(login)).into_iter().collect())
        }
        ("GET", ["projects", "acme/web", "members", "all", id]) => {
            let has = |login: &&String| account(login).to_string() == *id;
            let login = state.permissions.keys().find(has)?;
            let level = match state.permissions[login] {
                "admin" => 40,
                "write" => 30,
                _ => 20,
            };
            FakeResponse::ok(json!({"username": login, "state": "active", "access_level": level}))
        }
        ("GET", ["projects", "acme/web", kind @ ("issues" | "merge_requests")]) => {
            let is_pull = *kind == "merge_requests";
            let open = state
                .threads
                .iter()
                .filter(|(_, one)| one.state == "open" && one.is_pull == is_pull);
            let open = open.filter(|(number, _)| {
                let branch = state.pulls.get(number).map(|made| made.branch.as_str());
                let wanted = request.query.split('&');
                let mut wanted = wanted.filter_map(|one| one.strip_prefix("source_branch="));
                wanted
                    .next()
                    .is_none_or(|wanted| branch == Some(&wanted.replace("%2F", "/")))
            });
            FakeResponse::ok(
                open.map(|(number, one)| thread(state, *number, one))
                    .collect(),
            )
        }
        (
            "GET",
            [
                "projects",
                "acme/web",
                kind @ ("issues" | "merge_requests"),
                number,
            ],
        ) => {
            let number = number.parse().ok()?;
            let one = state.thread(number, *kind == "merge_requests")?;
            FakeResponse::ok(thread(state, number, one))
        }
        ("GET", ["projects", "acme/web"]) => FakeResponse::ok(json!({"default_branch": "main"})),
        ("POST", ["projects", "acme/web", "merge_requests"]) => {
            let made = state.open_pull(MadePull {
                branch: request.named("source_branch"),
                base: request.named("target_branch"),
                title: request.named("title"),
                body: request.named("description"),
            });
            match made {
                Some(number) => {
                    let one = state.thread(number, true)?;
                    FakeResponse::made(thread(state, number, one))
                }
                None => FakeResponse::refused(409, "Another open merge request already exists"),
            }
        }
        ("PUT", ["projects", "acme/web", "merge_requests", number]) => {
            let number = number.parse().ok()?;
            let made = state.pulls.get_mut(&number)?;
            (made.title, made.body) = (request.named("title"), request.named("description"));
            let one = state.thread(number, true)?;
            FakeResponse::ok(thread(state, number, one))
        }
        ("PUT", ["projects", "acme/web", "merge_requests", number, "merge"]) => {
            let status = state.merge(number.parse().ok()?, request.body["sha"].as_str());
            FakeResponse::refused(status, "merge")
        }
        ("GET", ["projects", "acme/web", "repository", "branches", name]) => {
            state.branches.get(*name)?;
            FakeResponse::ok(json!({"name": name}))
        }
        ("GET", ["projects", "acme/web", _, number, "notes"]) => {
            let number: u64 = number.parse().ok()?;
            let found = state.comments.iter().filter(|one| one.number == number);
            FakeResponse::ok(found.map(note).collect())
        }
        ("POST", ["projects", "acme/web", kind, number, "notes"]) => {
            let number = number.parse().ok()?;
            state.thread(number, *kind == "merge_requests")?;
            let id = state.write_comment(number, request.text());
            FakeResponse::made(json!({"id": id, "body": request.text()}))
        }
        ("PUT", ["projects", "acme/web", _, _, "notes", id]) => {
            let is_there = state.edit_comment(id.parse().ok()?, request.text());
            is_there.then(|| FakeResponse::ok(json!({"body": request.text()})))?
        }
        ("POST", ["projects", "acme/web", _, number, "award_emoji"]) => {
            eyes(state, request, format!("item {number}"))
        }
        ("POST", ["projects", "acme/web", _, _, "notes", id, "award_emoji"]) => {
            eyes(state, request, format!("comment {id}"))
        }
        _ => None,
    }
}

/// GitLab refuses a second reaction by the same account.
fn eyes(state: &mut ForgeState, request: &Request, what: String) -> Option<FakeResponse> {
    if request.body["name"] != "eyes" || state.eyes.contains(&what) {
        return None;
    }
    state.eyes.push(what);
    FakeResponse::made(json!({"name": "eyes"}))
}

fn user(login: &str) -> Value {
    json!({"username": login, "id": account(login), "bot": false, "state": "active"})
}

fn note(one: &Comment) -> Value {
    json!({
        "id": one.id, "body": one.body, "author": user(&one.login), "system": false,
        "created_at": "2026-11-16T06:05:00Z",
    })
}

fn thread(forge: &ForgeState, number: u64, one: &Thread) -> Value {
    let state = if one.state == "open" {
        "opened"
    } else {
        one.state
    };
    let made = forge.pulls.get(&number);
    let branch = made.map_or_else(|| format!("change-{number}"), |made| made.branch.clone());
    json!({
        "iid": number, "state": state, "author": user(&one.author), "draft": false,
        "sha": forge.heads.get(&number).map_or("a1", |head| &head.commit),
        "source_branch": branch, "target_branch": made.map_or("main", |made| &made.base),
        "source_project_id": 17, "target_project_id": 17,
        "title": made.map_or("Login fails", |made| &made.title),
        "description": made.map_or("It answers 500.", |made| &made.body),
        "web_url": format!("https://git.example.org/acme/web/-/merge_requests/{number}"),
    })
}
