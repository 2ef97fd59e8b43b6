//! GitLab's paths and names.

use serde_json::{Value, json};

use super::http::{Answer, Request};
use super::state::{Comment, State, Thread, account};

pub(super) fn answer(state: &mut State, request: &Request) -> Option<Answer> {
    let (method, parts) = request.route();
    match (method, parts.as_slice()) {
        ("GET", ["user"]) => Answer::ok(user("bot")),
        ("GET", ["users"]) => {
            let asked = |login: &&String| request.query == format!("username={login}");
            let found = state.permissions.keys().find(asked);
            Answer::ok(found.map(|login| user(login)).into_iter().collect())
        }
        ("GET", ["projects", "acme/web", "members", "all", id]) => {
            let has = |login: &&String| account(login).to_string() == *id;
            let login = state.permissions.keys().find(has)?;
            let level = match state.permissions[login] {
                "admin" => 40,
                "write" => 30,
                _ => 20,
            };
            Answer::ok(json!({"username": login, "state": "active", "access_level": level}))
        }
        ("GET", ["projects", "acme/web", kind @ ("issues" | "merge_requests")]) => {
            let is_pull = *kind == "merge_requests";
            let open = state
                .threads
                .iter()
                .filter(|(_, one)| one.state == "open" && one.is_pull == is_pull);
            Answer::ok(open.map(|(number, one)| thread(*number, one)).collect())
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
            Answer::ok(thread(number, one))
        }
        ("GET", ["projects", "acme/web", "repository", "branches", name]) => {
            state.branches.get(*name)?;
            Answer::ok(json!({"name": name}))
        }
        ("GET", ["projects", "acme/web", _, number, "notes"]) => {
            let number: u64 = number.parse().ok()?;
            let found = state.comments.iter().filter(|one| one.number == number);
            Answer::ok(found.map(note).collect())
        }
        ("POST", ["projects", "acme/web", kind, number, "notes"]) => {
            let number = number.parse().ok()?;
            state.thread(number, *kind == "merge_requests")?;
            let id = state.write_comment(number, request.text());
            Answer::made(json!({"id": id, "body": request.text()}))
        }
        ("PUT", ["projects", "acme/web", _, _, "notes", id]) => {
            let is_there = state.edit_comment(id.parse().ok()?, request.text());
            is_there.then(|| Answer::ok(json!({"body": request.text()})))?
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
fn eyes(state: &mut State, request: &Request, what: String) -> Option<Answer> {
    if request.body["name"] != "eyes" || state.eyes.contains(&what) {
        return None;
    }
    state.eyes.push(what);
    Answer::made(json!({"name": "eyes"}))
}

fn user(login: &str) -> Value {
    json!({"username": login, "id": account(login), "bot": false, "state": "active"})
}

fn note(one: &Comment) -> Value {
    json!({"id": one.id, "body": one.body, "author": user(&one.login), "system": false})
}

fn thread(number: u64, one: &Thread) -> Value {
    let state = if one.state == "open" {
        "opened"
    } else {
        one.state
    };
    json!({
        "iid": number, "state": state, "author": user(&one.author), "sha": "a1", "draft": false,
        "source_branch": format!("change-{number}"), "target_branch": "main",
        "source_project_id": 17, "target_project_id": 17,
    })
}
