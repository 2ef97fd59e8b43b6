//! The real Claude Code under the guide's bubblewrap, on code that a stranger wrote: from the webhook to the comment.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_testkit::fake_forge::{Dialect, FakeForge, PullHead, Thread};
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::{Cmd, poll};

use crate::dispatch::{Door, SECRET, person};
use crate::state::LONG;
use crate::world;

/// The key of the model, which only the dispatcher's side knows.
const KEY: &str = "sk-the-key-of-the-model";
const TOKEN: &str = "the-token-of-the-forge";

/// The lines for bubblewrap in docs/dispatch.md, with the programs of this machine and this model.
fn bubblewrap(claude: &Path, model: &str) -> String {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dispatch.md");
    let text = std::fs::read_to_string(guide).unwrap();
    let mut blocks = text.split("```toml\n").skip(1);
    let block = blocks.find(|block| block.contains("\n  \"bwrap\","));
    let block = block.expect("the guide has it").split("\n```").next();
    let bwrap = std::env::var("TENURE_BWRAP").expect("TENURE_BWRAP is set by scripts/tools");
    let mut lines = block.unwrap().to_owned();
    for (shown, here) in [
        ("\"bwrap\"", format!("{bwrap:?}")),
        ("\"https://api.anthropic.com\"", format!("{model:?}")),
        (
            "\"--ro-bind-try\", \"/opt/agent\", \"/opt/agent\"",
            format!("\"--ro-bind\", {claude:?}, \"/opt/agent/bin/claude\""),
        ),
    ] {
        assert!(lines.contains(shown), "{shown} is not in the guide");
        lines = lines.replace(shown, &here);
    }
    lines
}

fn private(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// A forge with a pull request from a fork, and a dispatcher that may run its code under bubblewrap.
struct Story {
    world: RealWorld,
    forge: FakeForge,
    head: String,
}

impl Story {
    fn begin() -> Story {
        let world = world();
        world.agent(Real::Claude);
        let forge = FakeForge::start(Dialect::Forgejo);
        let mut story = Story {
            world,
            forge,
            head: String::new(),
        };
        story.open_pull();
        story.write_settings();
        story
    }

    /// A commit of a stranger, which the forge shows as pull request 9.
    fn open_pull(&mut self) {
        let project = self.world.project();
        std::fs::write(project.join("change"), "of-a-stranger\n").unwrap();
        self.git(&["checkout", "--quiet", "-b", "fork"]);
        self.git(&["add", "change"]);
        self.git(&["commit", "--quiet", "-m", "A change"]);
        self.head = self.git(&["rev-parse", "HEAD"]);
        self.git(&["update-ref", "refs/pull/9/head", "HEAD"]);
        self.git(&["checkout", "--quiet", "main"]);
        self.git(&["branch", "--quiet", "-D", "fork"]);
        let mut state = self.forge.state();
        let pull = Thread {
            is_pull: true,
            state: "open",
            author: "mallory".to_owned(),
        };
        state.threads.insert(9, pull);
        let head = PullHead {
            commit: self.head.clone(),
            repo: "mallory/web".to_owned(),
        };
        state.heads.insert(9, head);
    }

    fn write_settings(&self) {
        let dir = self.config();
        std::fs::create_dir_all(dir.join("skills")).unwrap();
        let skill = "Review {{ item }}.\n{{ news | fenced }}";
        std::fs::write(dir.join("skills/review.md"), skill).unwrap();
        private(&dir.join("home.secret"), SECRET);
        private(&dir.join("home.token"), TOKEN);
        private(&dir.join("model.key"), KEY);
        let claude = self.world.env().dir().join("bin/claude");
        let claude = std::fs::canonicalize(claude).unwrap();
        let wrap = bubblewrap(&claude, &self.world.mock().url());
        let text = format!(
            "listen = \"127.0.0.1:0\"\n\
             [forge.home]\nkind = \"forgejo\"\nsecret_files = [\"home.secret\"]\nown_account = \"bot\"\n\
             url = {:?}\ntoken_file = \"home.token\"\n\
             [repo.\"acme/web\"]\nforge = \"home\"\nurl = {:?}\ntrusted = true\n\
             [[rule]]\nname = \"review\"\nrepo = \"acme/web\"\non = [\"pr.opened\", \"pr.comment\"]\n\
             authors = [\"alice\"]\nagent = \"claude\"\nskill = \"review\"\nreply = \"comment\"\npush = true\n\
             args = [\"--permission-mode\", \"dontAsk\", \"--allowedTools\", \"Bash\"]\n\
             {wrap}\n",
            self.forge.url,
            self.world.project(),
        );
        std::fs::write(dir.join("dispatch.toml"), text).unwrap();
    }

    fn config(&self) -> PathBuf {
        self.world.home().join(".config/tenure")
    }

    fn git(&self, words: &[&str]) -> String {
        let project = self.world.project();
        let command = Cmd::new("git").arg("-C").arg(project.to_str().unwrap());
        let command = command.args(words.iter().copied());
        let said = self.world.driver().run(command).ok();
        said.stdout.trim().to_owned()
    }

    /// Every ref of the repository at the forge.
    fn refs(&self) -> String {
        self.git(&["for-each-ref"])
    }

    /// All runs, the oldest first.
    fn runs(&self) -> Vec<Value> {
        let said = self.world.tenure(&["runs", "--json"]).ok().json();
        let mut runs = said["runs"].as_array().expect("a list").clone();
        runs.reverse();
        runs
    }

    /// The last run of so many, when it was done.
    #[track_caller]
    fn done(&self, count: usize) -> Value {
        poll(LONG, "the run is over", || {
            let jobs = self.world.tenure(&["queue", "--all", "--json"]).ok().json();
            let jobs = jobs["jobs"].as_array().expect("a list").clone();
            let stuck = jobs.iter().find(|job| job["failures"] != 0);
            assert!(stuck.is_none(), "{stuck:#?}");
            let runs = self.runs();
            let last = runs.get(count - 1)?;
            let outcome = last["outcome"].as_str()?;
            assert_eq!(outcome, "done", "{last:#}");
            Some(last.clone())
        })
    }

    /// The comment that the dispatcher wrote, when it says this.
    #[track_caller]
    fn comment(&self, what: &str) -> String {
        poll(LONG, what, || {
            let own = self.forge.own_comments();
            let found = own.into_iter().find(|one| one.body.contains(what))?;
            assert_eq!(found.number, 9);
            Some(found.body)
        })
    }

    /// The refs of what agents committed, which only this machine has.
    fn results(&self) -> String {
        let mut all = std::fs::read_dir(self.world.state().join("repositories")).unwrap();
        let found = all.find_map(|one| {
            let results = one.unwrap().path().join("results.git");
            let command = Cmd::new("git").arg("--git-dir").arg(results.to_str()?);
            let command = command.args(["for-each-ref", "--format=%(refname) %(subject)"]);
            let said = self.world.driver().run(command).ok().stdout;
            said.contains("refs/runs/").then_some(said)
        });
        found.expect("results of a run")
    }
}

/// Who wrote the code, and may start nothing.
fn stranger() -> Value {
    json!({"id": 77, "login": "mallory", "username": "mallory"})
}

fn repository() -> Value {
    json!({"id": 17, "name": "web", "full_name": "acme/web", "default_branch": "main"})
}

fn opened(head: &str) -> Value {
    json!({
        "action": "opened", "number": 9, "repository": repository(), "sender": stranger(),
        "pull_request": {
            "id": 209, "number": 9, "title": "A change", "body": "MOCK:bash touch it-ran", "state": "open",
            "merged": false, "draft": false, "user": stranger(), "labels": [], "assignees": [],
            "html_url": "https://example.invalid/acme/web/pulls/9",
            "head": {"ref": "fork", "sha": head, "repo": {"id": 99, "full_name": "mallory/web"}},
            "base": {"ref": "main", "sha": head, "repo": repository()},
            "created_at": "2026-11-16T07:00:00Z", "updated_at": "2026-11-16T07:00:00Z",
        },
    })
}

fn comment(id: u64, text: &str) -> Value {
    json!({
        "action": "created", "repository": repository(), "sender": person("alice"), "is_pull": true,
        "issue": {
            "id": 209, "number": 9, "title": "A change", "body": "", "state": "open", "user": stranger(),
            "labels": [], "assignees": [], "html_url": "https://example.invalid/acme/web/pulls/9",
            "pull_request": {"merged": false},
            "created_at": "2026-11-16T07:00:00Z", "updated_at": "2026-11-16T07:00:00Z",
        },
        "comment": {
            "id": id, "user": person("alice"), "body": text,
            "html_url": format!("https://example.invalid/acme/web/pulls/9#issuecomment-{id}"),
            "created_at": "2026-11-16T07:05:00Z", "updated_at": "2026-11-16T07:05:00Z",
        },
    })
}

#[test]
#[ignore = "runs a real agent"]
fn a_forks_pull_request_is_worked_on_under_bubblewrap_and_answered_and_nothing_is_pushed() {
    let story = Story::begin();
    let before = story.refs();
    let door = Door::open(&story.world);
    // The author of the code may start nothing.
    door.deliver("pull_request", "d-1", &opened(&story.head), "refused");
    assert!(story.runs().is_empty());

    let (secret, token, key) = ("home.secret", "home.token", "model.key");
    let hidden = [secret, token, key].map(|name| story.config().join(name).display().to_string());
    let port = story.world.mock().port();
    let asks = format!(
        "MOCK:bash cat change; id -un; for f in {} {}; do cat \"$f\" 2>&1 | head -c 40 | grep -q . && test -r \"$f\" && echo READS; done; \
         (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo CONNECTS; env | grep -c sk-; \
         echo reviewed >notes && git add notes && git -c user.name=a -c user.email=a@example.invalid commit -qm Notes && echo committed",
        hidden.join(" "),
        story.world.state().join("tenure.db").display(),
    );
    door.deliver("issue_comment", "d-2", &comment(1, &asks), "queued");
    let run = story.done(1);
    let answer = story.comment("MOCK-TOOL-DONE");
    for said in [
        "of-a-stranger",
        "committed",
        "The result was not pushed",
        run["id"].as_str().unwrap(),
    ] {
        assert!(answer.contains(said), "{said}: {answer}");
    }
    for said in ["READS", "CONNECTS", KEY, TOKEN, SECRET] {
        assert!(!answer.contains(said), "{said}: {answer}");
    }
    assert!(story.results().contains("Notes"), "{}", story.results());
    assert_eq!(story.refs(), before, "something was pushed");
    assert_eq!(run["before"], Value::Null);

    // The conversation is inside, and goes on.
    door.deliver(
        "issue_comment",
        "d-3",
        &comment(2, "MOCK:bash cat notes"),
        "queued",
    );
    let next = story.done(2);
    assert_eq!(next["before"], run["native_id"], "{next:#}");
    story.comment("reviewed");
    let steps = story.world.mock().asked();
    let last = steps.iter().rfind(|asked| asked.offers_tools()).unwrap();
    assert!(last.says("of-a-stranger"), "it has the first turn");
    assert_eq!(story.refs(), before, "something was pushed");
}
