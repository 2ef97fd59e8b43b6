//! The API of Forgejo and Gitea: GitHub's paths below `/api/v1`, different lists, and no list of
//! deliveries.

use serde_json::{Value, json};
use tenure_core::forge::{Permission, Person, Thread as Told, issue_item, pull_item};
use tenure_core::key::Key;

use super::Access;
use super::client::{Client, repo_path};
use super::github;
use tenure_forges::api::{
    ApiError, CommentId, ForgeApi, ItemNow, NewPull, OpenPull, PullNow, SentDelivery,
};

pub(super) struct ForgejoApi {
    client: Client,
}

impl ForgejoApi {
    pub fn new(url: &str, access: &Access<'_>) -> Self {
        let base = format!("{}/api/v1", url.trim_end_matches('/'));
        Self {
            client: Client::new(base, "Authorization", "token ", access),
        }
    }
}

impl ForgeApi for ForgejoApi {
    fn own_account(&self) -> Result<Person, ApiError> {
        github::own_account(&self.client)
    }

    fn account(&self, login: &str) -> Result<Option<Person>, ApiError> {
        github::account(&self.client, login)
    }

    fn permission(&self, repo: &str, person: &Person) -> Result<Permission, ApiError> {
        github::permission(&self.client, repo, person)
    }

    fn pull(&self, repo: &str, number: u64) -> Result<PullNow, ApiError> {
        github::pull(&self.client, repo, number)
    }

    fn thread(&self, item: &Key) -> Result<Told, ApiError> {
        github::thread(&self.client, item)
    }

    fn pull_of(&self, repo: &str, branch: &str) -> Result<Option<OpenPull>, ApiError> {
        // It has no filter for branches.
        let path = format!("{}/pulls?state=open&limit=50", repo_path(repo));
        github::pull_of(&self.client, repo, branch, &path)
    }

    fn open_pull(&self, repo: &str, pull: &NewPull<'_>) -> Result<OpenPull, ApiError> {
        github::open_pull(&self.client, repo, pull)
    }

    fn edit_pull(&self, repo: &str, number: u64, title: &str, body: &str) -> Result<(), ApiError> {
        github::edit_pull(&self.client, repo, number, (title, body))
    }

    fn merge_pull(&self, repo: &str, number: u64, head: &str) -> Result<(), ApiError> {
        let path = format!("{}/pulls/{number}/merge", repo_path(repo));
        let merge = json!({"Do": "merge", "head_commit_id": head});
        self.client.send("POST", &path, &merge).map(|_| ())
    }

    fn state(&self, item: &Key) -> Result<ItemNow, ApiError> {
        github::state(&self.client, item)
    }

    fn open_items(&self, repo: &str) -> Result<Vec<Key>, ApiError> {
        let listed = |kind: &str| {
            let path = format!("{}/issues?state=open&type={kind}&limit=50", repo_path(repo));
            self.client.list(&path)
        };
        let number = |one: &Value| one["number"].as_u64();
        let issues = listed("issues")?;
        let pulls = listed("pulls")?;
        let issues = issues.iter().filter_map(number);
        let pulls = pulls.iter().filter_map(number);
        let issues = issues.filter_map(|number| issue_item(repo, number).ok());
        Ok(issues
            .chain(pulls.filter_map(|number| pull_item(repo, number).ok()))
            .collect())
    }

    fn has_branch(&self, repo: &str, branch: &str) -> Result<bool, ApiError> {
        github::has_branch(&self.client, repo, branch)
    }

    fn comment(&self, item: &Key, text: &str) -> Result<CommentId, ApiError> {
        github::comment(&self.client, item, text)
    }

    fn edit_comment(&self, item: &Key, comment: &CommentId, text: &str) -> Result<(), ApiError> {
        github::edit_comment(&self.client, item, comment, text)
    }

    fn find_comment(
        &self,
        item: &Key,
        own: &Person,
        line: &str,
    ) -> Result<Option<CommentId>, ApiError> {
        github::find_comment(&self.client, item, own, line)
    }

    fn react(&self, item: &Key, comment: Option<&CommentId>) -> Result<(), ApiError> {
        github::react(&self.client, item, comment)
    }

    fn deliveries(&self, _: &str, _: &str, _: &str) -> Result<Option<Vec<SentDelivery>>, ApiError> {
        Ok(None)
    }

    fn redeliver(&self, _: &str, _: &SentDelivery) -> Result<(), ApiError> {
        Ok(())
    }
}
