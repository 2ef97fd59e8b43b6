//! The API of GitHub, and the part that Forgejo shares.

use serde_json::{Value, json};
use tenure_core::forge::{
    Permission, Person, Pull, Thread as Told, ThreadComment, issue_item, pull_item,
};
use tenure_core::key::Key;
use tenure_core::spelling;

use super::client::{Client, encoded, repo_path};
use super::{Access, Thread, is_marked};
use tenure_forges::api::{
    ApiError, CommentId, ForgeApi, ItemNow, NewPull, OpenPull, PullNow, SentDelivery,
};

pub(super) struct GitHubApi {
    client: Client,
}

impl GitHubApi {
    pub fn new(url: &str, access: &Access<'_>) -> Self {
        Self {
            client: Client::new(base(url), "Authorization", "Bearer ", access),
        }
    }
}

/// github.com has a separate host for its API; a self-hosted server has a path.
fn base(url: &str) -> String {
    let url = url.trim_end_matches('/');
    match url {
        "https://github.com" | "https://www.github.com" => "https://api.github.com".to_owned(),
        "https://api.github.com" => url.to_owned(),
        own if own.ends_with("/api/v3") => own.to_owned(),
        own => format!("{own}/api/v3"),
    }
}

impl ForgeApi for GitHubApi {
    fn own_account(&self) -> Result<Person, ApiError> {
        own_account(&self.client)
    }

    fn account(&self, login: &str) -> Result<Option<Person>, ApiError> {
        account(&self.client, login)
    }

    fn permission(&self, repo: &str, person: &Person) -> Result<Permission, ApiError> {
        permission(&self.client, repo, person)
    }

    fn pull(&self, repo: &str, number: u64) -> Result<PullNow, ApiError> {
        pull(&self.client, repo, number)
    }

    fn thread(&self, item: &Key) -> Result<Told, ApiError> {
        thread(&self.client, item)
    }

    fn pull_of(&self, repo: &str, branch: &str) -> Result<Option<OpenPull>, ApiError> {
        let owner = repo.split('/').next().unwrap_or_default();
        let path = format!(
            "{}/pulls?state=open&per_page=100&head={}:{}",
            repo_path(repo),
            encoded(owner),
            encoded(branch)
        );
        pull_of(&self.client, repo, branch, &path)
    }

    fn open_pull(&self, repo: &str, pull: &NewPull<'_>) -> Result<OpenPull, ApiError> {
        open_pull(&self.client, repo, pull)
    }

    fn edit_pull(&self, repo: &str, number: u64, title: &str, body: &str) -> Result<(), ApiError> {
        edit_pull(&self.client, repo, number, (title, body))
    }

    fn merge_pull(&self, repo: &str, number: u64, head: &str) -> Result<(), ApiError> {
        let path = format!("{}/pulls/{number}/merge", repo_path(repo));
        let sent = self.client.send("PUT", &path, &json!({"sha": head}));
        sent.map(|_| ())
    }

    fn state(&self, item: &Key) -> Result<ItemNow, ApiError> {
        state(&self.client, item)
    }

    fn open_items(&self, repo: &str) -> Result<Vec<Key>, ApiError> {
        let path = format!("{}/issues?state=open&per_page=100", repo_path(repo));
        let listed = self.client.list(&path)?;
        Ok(listed.iter().filter_map(|one| item(repo, one)).collect())
    }

    fn has_branch(&self, repo: &str, branch: &str) -> Result<bool, ApiError> {
        has_branch(&self.client, repo, branch)
    }

    fn comment(&self, item: &Key, text: &str) -> Result<CommentId, ApiError> {
        comment(&self.client, item, text)
    }

    fn edit_comment(&self, item: &Key, comment: &CommentId, text: &str) -> Result<(), ApiError> {
        edit_comment(&self.client, item, comment, text)
    }

    fn find_comment(
        &self,
        item: &Key,
        own: &Person,
        line: &str,
    ) -> Result<Option<CommentId>, ApiError> {
        find_comment(&self.client, item, own, line)
    }

    fn react(&self, item: &Key, comment: Option<&CommentId>) -> Result<(), ApiError> {
        react(&self.client, item, comment)
    }

    fn react_to_review(&self, item: &Key, comment: &CommentId) -> Result<(), ApiError> {
        let repo = repo_path(Thread::of(&self.client, item)?.repo);
        let path = format!("{repo}/pulls/comments/{}/reactions", comment.0);
        let eyes = json!({"content": "eyes"});
        self.client.send("POST", &path, &eyes).map(|_| ())
    }

    fn deliveries(
        &self,
        repo: &str,
        path: &str,
        since: &str,
    ) -> Result<Option<Vec<SentDelivery>>, ApiError> {
        let repo = repo_path(repo);
        let mut found = Vec::new();
        for hook in self.client.list(&format!("{repo}/hooks?per_page=100"))? {
            let url = hook["config"]["url"].as_str().unwrap_or_default();
            let Some(id) = hook["id"].as_u64().filter(|_| url.ends_with(path)) else {
                continue;
            };
            let path = format!("{repo}/hooks/{id}/deliveries?per_page=100");
            // Newest first. Times in the same format sort as texts.
            let is_new = |one: &Value| one["delivered_at"].as_str() >= Some(since);
            let sent = self.client.list_while(&path, is_new)?;
            found.extend(sent.iter().filter_map(|one| delivery(id, one)));
        }
        Ok(Some(found))
    }

    fn redeliver(&self, repo: &str, delivery: &SentDelivery) -> Result<(), ApiError> {
        let (repo, hook, attempt) = (repo_path(repo), delivery.hook, delivery.attempt);
        let path = format!("{repo}/hooks/{hook}/deliveries/{attempt}/attempts");
        self.client.send("POST", &path, &json!({})).map(|_| ())
    }
}

fn delivery(hook: u64, sent: &Value) -> Option<SentDelivery> {
    let text = |name: &str| sent[name].as_str().unwrap_or_default().to_owned();
    let status = sent["status_code"].as_u64().unwrap_or_default();
    Some(SentDelivery {
        hook,
        attempt: sent["id"].as_u64()?,
        id: sent["guid"].as_str()?.to_owned(),
        event: text("event"),
        at: text("delivered_at"),
        arrived: (200..300).contains(&status),
    })
}

/// An issue, or a pull request that is listed as one.
fn item(repo: &str, listed: &Value) -> Option<Key> {
    let number = listed["number"].as_u64()?;
    if listed["pull_request"].is_object() {
        pull_item(repo, number).ok()
    } else {
        issue_item(repo, number).ok()
    }
}

pub(super) fn own_account(client: &Client) -> Result<Person, ApiError> {
    let user = client.get("/user")?.body;
    person(&user).ok_or_else(|| client.unreadable("it names no account"))
}

pub(super) fn account(client: &Client, login: &str) -> Result<Option<Person>, ApiError> {
    let found = client.find(&format!("/users/{}", encoded(login)))?;
    Ok(found.as_ref().and_then(person))
}

fn person(user: &Value) -> Option<Person> {
    Some(Person {
        login: user["login"].as_str()?.to_owned(),
        id: user["id"].as_u64(),
        is_bot: user["type"] == "Bot",
    })
}

pub(super) fn permission(
    client: &Client,
    repo: &str,
    person: &Person,
) -> Result<Permission, ApiError> {
    let login = encoded(&person.login);
    if login.is_empty() {
        return Ok(Permission::Nothing);
    }
    let path = format!("{}/collaborators/{login}/permission", repo_path(repo));
    let answer = client.find(&path)?;
    let told = answer
        .as_ref()
        .and_then(|answer| answer["permission"].as_str());
    Ok(match told {
        Some("admin" | "owner") => Permission::Admin,
        Some("write" | "maintain") => Permission::Write,
        Some("read" | "triage") => Permission::Read,
        _ => Permission::Nothing,
    })
}

pub(super) fn pull(client: &Client, repo: &str, number: u64) -> Result<PullNow, ApiError> {
    let found = client
        .get(&format!("{}/pulls/{number}", repo_path(repo)))?
        .body;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let branch = text(&found["head"]["ref"]).unwrap_or_default();
    let head_repo = text(&found["head"]["repo"]["full_name"]);
    let head_repo = head_repo.map(|name| spelling::repository_name(&name));
    let by_push = found["flow"].as_u64() == Some(1) || branch.starts_with("refs/");
    let author = person(&found["user"]).ok_or_else(|| client.unreadable("it names no author"))?;
    Ok(PullNow {
        author,
        is_open: found["state"] == "open",
        pull: Pull {
            base: text(&found["base"]["ref"]).unwrap_or_default(),
            head: text(&found["head"]["sha"]),
            is_fork: by_push || head_repo.as_deref() != Some(repo),
            is_draft: found["draft"] == true,
            branch,
            head_repo,
        },
    })
}

pub(super) fn thread(client: &Client, item: &Key) -> Result<Told, ApiError> {
    let thread = Thread::of(client, item)?;
    let path = format!("{}/issues/{}", repo_path(thread.repo), thread.number);
    let found = client.get(&path)?.body;
    let comments = client.list(&format!("{path}/comments?per_page=100"))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(Told {
        title: text(&found["title"]),
        body: text(&found["body"]),
        author: person(&found["user"]).unwrap_or_default(),
        comments: comments
            .iter()
            .map(|one| ThreadComment {
                author: person(&one["user"]).unwrap_or_default(),
                at: text(&one["created_at"]),
                text: text(&one["body"]),
            })
            .collect(),
    })
}

/// The open pull request for a branch, from a list of open ones.
pub(super) fn pull_of(
    client: &Client,
    repo: &str,
    branch: &str,
    path: &str,
) -> Result<Option<OpenPull>, ApiError> {
    // A fork can have a branch of the same name.
    let is_it = |one: &&Value| {
        let head_repo = one["head"]["repo"]["full_name"].as_str();
        let head_repo = head_repo.map(spelling::repository_name);
        one["head"]["ref"] == branch && head_repo.as_deref() == Some(repo)
    };
    let listed = client.list(path)?;
    listed
        .iter()
        .find(is_it)
        .map(|one| opened(client, one))
        .transpose()
}

fn opened(client: &Client, pull: &Value) -> Result<OpenPull, ApiError> {
    let number = pull["number"].as_u64();
    let text = |name: &str| pull[name].as_str().unwrap_or_default().to_owned();
    Ok(OpenPull {
        number: number.ok_or_else(|| client.unreadable("the pull request has no number"))?,
        body: text("body"),
        url: text("html_url"),
    })
}

pub(super) fn open_pull(
    client: &Client,
    repo: &str,
    pull: &NewPull<'_>,
) -> Result<OpenPull, ApiError> {
    let base = match pull.base {
        Some(base) => base.to_owned(),
        None => {
            let found = client.get(&repo_path(repo))?.body;
            let name = found["default_branch"].as_str();
            let name = name.ok_or_else(|| client.unreadable("it names no default branch"))?;
            name.to_owned()
        }
    };
    let sent = json!({
        "head": pull.branch, "base": base, "title": pull.title, "body": pull.body,
    });
    let made = client.send("POST", &format!("{}/pulls", repo_path(repo)), &sent)?;
    opened(client, &made)
}

pub(super) fn edit_pull(
    client: &Client,
    repo: &str,
    number: u64,
    (title, body): (&str, &str),
) -> Result<(), ApiError> {
    let path = format!("{}/pulls/{number}", repo_path(repo));
    let sent = json!({"title": title, "body": body});
    client.send("PATCH", &path, &sent).map(|_| ())
}

pub(super) fn state(client: &Client, item: &Key) -> Result<ItemNow, ApiError> {
    let thread = Thread::of(client, item)?;
    let kind = if thread.is_pull { "pulls" } else { "issues" };
    let path = format!("{}/{kind}/{}", repo_path(thread.repo), thread.number);
    let Some(found) = client.find(&path)? else {
        return Ok(ItemNow::Gone);
    };
    match found["state"].as_str() {
        Some("open") => Ok(ItemNow::Open),
        Some("closed") if found["merged"] == true => Ok(ItemNow::Merged),
        Some("closed") => Ok(ItemNow::Closed),
        _ => Err(client.unreadable("it has no known state")),
    }
}

pub(super) fn find_comment(
    client: &Client,
    item: &Key,
    own: &Person,
    line: &str,
) -> Result<Option<CommentId>, ApiError> {
    let thread = Thread::of(client, item)?;
    let (repo, number) = (repo_path(thread.repo), thread.number);
    let listed = client.list(&format!("{repo}/issues/{number}/comments?per_page=100"))?;
    let is_ours = |one: &&Value| {
        let body = one["body"].as_str().unwrap_or_default();
        person(&one["user"]).is_some_and(|author| is_marked(&author, own, body, line))
    };
    let found = listed.iter().find(is_ours);
    Ok(found.and_then(|one| one["id"].as_u64()).map(CommentId))
}

pub(super) fn has_branch(client: &Client, repo: &str, branch: &str) -> Result<bool, ApiError> {
    let parts: Vec<String> = branch.split('/').map(encoded).collect();
    let path = format!("{}/branches/{}", repo_path(repo), parts.join("/"));
    Ok(client.find(&path)?.is_some())
}

pub(super) fn comment(client: &Client, item: &Key, text: &str) -> Result<CommentId, ApiError> {
    let thread = Thread::of(client, item)?;
    let path = format!(
        "{}/issues/{}/comments",
        repo_path(thread.repo),
        thread.number
    );
    let written = client.send("POST", &path, &json!({"body": text}))?;
    let id = written["id"].as_u64();
    id.map(CommentId)
        .ok_or_else(|| client.unreadable("the comment has no id"))
}

pub(super) fn edit_comment(
    client: &Client,
    item: &Key,
    comment: &CommentId,
    text: &str,
) -> Result<(), ApiError> {
    let thread = Thread::of(client, item)?;
    let path = format!("{}/issues/comments/{}", repo_path(thread.repo), comment.0);
    client
        .send("PATCH", &path, &json!({"body": text}))
        .map(|_| ())
}

pub(super) fn react(
    client: &Client,
    item: &Key,
    comment: Option<&CommentId>,
) -> Result<(), ApiError> {
    let thread = Thread::of(client, item)?;
    let repo = repo_path(thread.repo);
    let path = match comment {
        Some(comment) => format!("{repo}/issues/comments/{}/reactions", comment.0),
        None => format!("{repo}/issues/{}/reactions", thread.number),
    };
    client
        .send("POST", &path, &json!({"content": "eyes"}))
        .map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_the_api_follows_from_that_of_the_forge() {
        for (url, expected) in [
            ("https://github.com", "https://api.github.com"),
            ("https://github.com/", "https://api.github.com"),
            ("https://api.github.com", "https://api.github.com"),
            ("https://git.acme.org", "https://git.acme.org/api/v3"),
            (
                "https://git.acme.org/api/v3/",
                "https://git.acme.org/api/v3",
            ),
        ] {
            assert_eq!(base(url), expected);
        }
    }
}
