//! The API of GitLab: projects by their encoded path, merge requests, notes and access levels.

use serde_json::{Value, json};
use tenure_core::forge::{
    Permission, Person, Pull, Thread as Told, ThreadComment, issue_item, pull_item,
};
use tenure_core::key::Key;

use super::client::{Client, encoded};
use super::{Access, Thread, is_marked};
use tenure_forges::api::{
    ApiError, CommentId, ForgeApi, ItemNow, NewPull, OpenPull, PullNow, SentDelivery,
};

pub(super) struct GitLabApi {
    client: Client,
}

impl GitLabApi {
    pub fn new(url: &str, access: &Access<'_>) -> Self {
        let base = format!("{}/api/v4", url.trim_end_matches('/'));
        Self {
            client: Client::new(base, "PRIVATE-TOKEN", "", access),
        }
    }

    /// The id of an account: in GitLab's events, but not in the settings.
    fn id_of(&self, person: &Person) -> Result<Option<u64>, ApiError> {
        if person.id.is_some() || person.login.is_empty() {
            return Ok(person.id);
        }
        let path = format!("/users?username={}", encoded(&person.login));
        let found = self.client.get(&path)?.body;
        Ok(found[0]["id"].as_u64())
    }
}

impl GitLabApi {
    fn opened(&self, request: &Value) -> Result<OpenPull, ApiError> {
        let number = request["iid"].as_u64();
        let text = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
        let nameless = || self.client.unreadable("the merge request has no number");
        Ok(OpenPull {
            number: number.ok_or_else(nameless)?,
            body: text("description"),
            url: text("web_url"),
        })
    }
}

fn project(repo: &str) -> String {
    format!("/projects/{}", encoded(repo))
}

/// The path of an issue or a merge request.
fn thread(client: &Client, item: &Key) -> Result<String, ApiError> {
    let thread = Thread::of(client, item)?;
    let kind = if thread.is_pull {
        "merge_requests"
    } else {
        "issues"
    };
    Ok(format!("{}/{kind}/{}", project(thread.repo), thread.number))
}

fn person(user: &Value) -> Option<Person> {
    Some(Person {
        login: user["username"].as_str()?.to_owned(),
        id: user["id"].as_u64(),
        is_bot: user["bot"] == true,
    })
}

impl ForgeApi for GitLabApi {
    fn own_account(&self) -> Result<Person, ApiError> {
        let user = self.client.get("/user")?.body;
        person(&user).ok_or_else(|| self.client.unreadable("it names no account"))
    }

    fn account(&self, login: &str) -> Result<Option<Person>, ApiError> {
        let person = Person::named(login);
        let id = self.id_of(&person)?;
        Ok(id.map(|id| Person {
            id: Some(id),
            ..person
        }))
    }

    fn permission(&self, repo: &str, who: &Person) -> Result<Permission, ApiError> {
        let Some(id) = self.id_of(who)? else {
            return Ok(Permission::Nothing);
        };
        let member = self
            .client
            .find(&format!("{}/members/all/{id}", project(repo)))?;
        let member = member.unwrap_or_default();
        if member.get("state").is_some_and(|state| state != "active") {
            return Ok(Permission::Nothing);
        }
        // Maintainers have 40, developers 30, reporters 20, guests 10.
        Ok(match member["access_level"].as_u64().unwrap_or_default() {
            40.. => Permission::Admin,
            30.. => Permission::Write,
            10.. => Permission::Read,
            _ => Permission::Nothing,
        })
    }

    fn pull(&self, repo: &str, number: u64) -> Result<PullNow, ApiError> {
        let path = format!("{}/merge_requests/{number}", project(repo));
        let found = self.client.get(&path)?.body;
        let text = |name: &str| found[name].as_str().map(str::to_owned);
        let (source, target) = (
            found["source_project_id"].as_u64(),
            found["target_project_id"].as_u64(),
        );
        let is_fork = source.is_none() || source != target;
        let author = person(&found["author"]);
        Ok(PullNow {
            author: author.ok_or_else(|| self.client.unreadable("it names no author"))?,
            is_open: found["state"] == "opened",
            pull: Pull {
                branch: text("source_branch").unwrap_or_default(),
                base: text("target_branch").unwrap_or_default(),
                head: text("sha"),
                head_repo: (!is_fork).then(|| repo.to_owned()),
                is_fork,
                is_draft: found["draft"] == true,
            },
        })
    }

    fn thread(&self, item: &Key) -> Result<Told, ApiError> {
        let path = thread(&self.client, item)?;
        let found = self.client.get(&path)?.body;
        let notes = format!("{path}/notes?sort=asc&order_by=created_at&per_page=100");
        let notes = self.client.list(&notes)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(Told {
            title: text(&found["title"]),
            body: text(&found["description"]),
            author: person(&found["author"]).unwrap_or_default(),
            comments: notes
                .iter()
                .filter(|one| one["system"] != true)
                .map(|one| ThreadComment {
                    author: person(&one["author"]).unwrap_or_default(),
                    at: text(&one["created_at"]),
                    text: text(&one["body"]),
                })
                .collect(),
        })
    }

    fn pull_of(&self, repo: &str, branch: &str) -> Result<Option<OpenPull>, ApiError> {
        let path = format!(
            "{}/merge_requests?state=opened&source_branch={}&per_page=100",
            project(repo),
            encoded(branch)
        );
        let listed = self.client.list(&path)?;
        // A fork can have a branch of the same name.
        let is_it = |one: &&Value| {
            one["source_branch"] == branch && one["source_project_id"] == one["target_project_id"]
        };
        let found = listed.iter().find(is_it);
        found.map(|one| self.opened(one)).transpose()
    }

    fn open_pull(&self, repo: &str, pull: &NewPull<'_>) -> Result<OpenPull, ApiError> {
        let base = match pull.base {
            Some(base) => base.to_owned(),
            None => {
                let found = self.client.get(&project(repo))?.body;
                let name = found["default_branch"].as_str();
                let name =
                    name.ok_or_else(|| self.client.unreadable("it names no default branch"))?;
                name.to_owned()
            }
        };
        let sent = json!({
            "source_branch": pull.branch, "target_branch": base, "title": pull.title,
            "description": pull.body,
        });
        let path = format!("{}/merge_requests", project(repo));
        let made = self.client.send("POST", &path, &sent)?;
        self.opened(&made)
    }

    fn edit_pull(&self, repo: &str, number: u64, title: &str, body: &str) -> Result<(), ApiError> {
        let path = format!("{}/merge_requests/{number}", project(repo));
        let sent = json!({"title": title, "description": body});
        self.client.send("PUT", &path, &sent).map(|_| ())
    }

    fn merge_pull(&self, repo: &str, number: u64, head: &str) -> Result<(), ApiError> {
        let path = format!("{}/merge_requests/{number}/merge", project(repo));
        let sent = self.client.send("PUT", &path, &json!({"sha": head}));
        sent.map(|_| ())
    }

    fn state(&self, item: &Key) -> Result<ItemNow, ApiError> {
        let found = self.client.find(&thread(&self.client, item)?)?;
        let state = found.as_ref().map(|found| found["state"].as_str());
        match state {
            None => Ok(ItemNow::Gone),
            // A merge request is locked while it is being merged.
            Some(Some("opened" | "locked")) => Ok(ItemNow::Open),
            Some(Some("closed")) => Ok(ItemNow::Closed),
            Some(Some("merged")) => Ok(ItemNow::Merged),
            Some(_) => Err(self.client.unreadable("it has no known state")),
        }
    }

    fn open_items(&self, repo: &str) -> Result<Vec<Key>, ApiError> {
        let listed = |kind: &str| {
            let path = format!("{}/{kind}?state=opened&per_page=100", project(repo));
            self.client.list(&path)
        };
        let number = |one: &Value| one["iid"].as_u64();
        let (issues, pulls) = (listed("issues")?, listed("merge_requests")?);
        let issues = issues.iter().filter_map(number);
        let pulls = pulls.iter().filter_map(number);
        let issues = issues.filter_map(|number| issue_item(repo, number).ok());
        Ok(issues
            .chain(pulls.filter_map(|number| pull_item(repo, number).ok()))
            .collect())
    }

    fn has_branch(&self, repo: &str, branch: &str) -> Result<bool, ApiError> {
        let path = format!("{}/repository/branches/{}", project(repo), encoded(branch));
        Ok(self.client.find(&path)?.is_some())
    }

    fn comment(&self, item: &Key, text: &str) -> Result<CommentId, ApiError> {
        let path = format!("{}/notes", thread(&self.client, item)?);
        let written = self.client.send("POST", &path, &json!({"body": text}))?;
        let id = written["id"].as_u64();
        id.map(CommentId)
            .ok_or_else(|| self.client.unreadable("the comment has no id"))
    }

    fn edit_comment(&self, item: &Key, comment: &CommentId, text: &str) -> Result<(), ApiError> {
        let path = format!("{}/notes/{}", thread(&self.client, item)?, comment.0);
        self.client
            .send("PUT", &path, &json!({"body": text}))
            .map(|_| ())
    }

    fn find_comment(
        &self,
        item: &Key,
        own: &Person,
        line: &str,
    ) -> Result<Option<CommentId>, ApiError> {
        let path = format!("{}/notes?per_page=100", thread(&self.client, item)?);
        let listed = self.client.list(&path)?;
        let is_ours = |one: &&Value| {
            let author = person(&one["author"]);
            let body = one["body"].as_str().unwrap_or_default();
            author.is_some_and(|author| is_marked(&author, own, body, line))
        };
        let found = listed.iter().find(is_ours);
        Ok(found.and_then(|one| one["id"].as_u64()).map(CommentId))
    }

    fn react(&self, item: &Key, comment: Option<&CommentId>) -> Result<(), ApiError> {
        let note = comment
            .map(|comment| format!("/notes/{}", comment.0))
            .unwrap_or_default();
        let path = format!("{}{note}/award_emoji", thread(&self.client, item)?);
        let sent = self.client.send("POST", &path, &json!({"name": "eyes"}));
        match sent {
            // GitLab's answer if the account has already reacted.
            Err(ApiError::NotFound { .. }) => Ok(()),
            other => other.map(|_| ()),
        }
    }

    fn deliveries(&self, _: &str, _: &str, _: &str) -> Result<Option<Vec<SentDelivery>>, ApiError> {
        Ok(None)
    }

    fn redeliver(&self, _: &str, _: &SentDelivery) -> Result<(), ApiError> {
        Ok(())
    }
}
