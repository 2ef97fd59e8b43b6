//! The code of a job that cannot be fetched, must not be run, or cannot be pushed.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env, Output, Scripted, poll, scratch_git};

use super::page::Page;
use crate::env;
use crate::support::cloned::{clones, pull, rule, set_up};
use crate::support::forge::forge;
use crate::support::git_host::{GitHost, before_git, git};
use crate::support::installed::put;
use crate::support::line::{SOON, text};
use crate::support::run::{all, newest};
use crate::support::webhook::{Dispatcher, comment, issue};

const REMOTE: &str = "https://git.example.org/acme/web";
const OTHER: &str = "https://git.example.org/acme/api";

/// A dispatcher's machine, and the page of what it says.
struct Shop<'a> {
    page: Page,
    env: &'a Env,
    ann: Agent,
    host: GitHost,
    mine: Scripted,
}

impl Shop<'_> {
    /// The id of the newest job of an item.
    fn job_of(&self, item: &str) -> String {
        poll(SOON, "it is queued", || {
            let answer = self.env.tenure(&["queue", "--all", "--json"]).ok().json();
            let jobs = answer["jobs"].as_array().expect("a list").clone();
            let job = jobs.into_iter().find(|job| job["item"] == item);
            job.map(|job| text(&job["id"]))
        })
    }

    /// Shows the last line that a dispatcher prints of a job that it does not start, once it says this.
    fn shows(&mut self, door: &Dispatcher, item: &str, says: &str) {
        let job = self.job_of(item);
        let line = poll(SOON, says, || {
            let said = door.process.stdout();
            let of_job = |line: &&str| line.contains("job.refused") && line.contains(&job);
            let told = said.lines().rfind(of_job)?.to_owned();
            told.contains(says).then_some(told)
        });
        self.page.learn(self.env);
        if let Some((_, run)) = line.split_once("/runs/") {
            // It was never recorded.
            self.page.replace(&run[..12], "r-t6rb");
        }
        let output = Output {
            code: 0,
            stdout: line,
            stderr: String::new(),
        };
        let typed = "tenure dispatch --json";
        self.page.show(self.ann.pid(), typed, output, None);
    }

    /// Delivers an issue, shows why no agent is started for it, and gives it up.
    fn refuses(&mut self, door: &Dispatcher, number: u64, says: &str) {
        let id = format!("d-{number}");
        door.deliver("issues", &id, &issue(number, "opened"));
        let item = format!("issue:acme/web#{number}");
        self.shows(door, &item, says);
        self.cancel(&item);
    }

    fn cancel(&self, item: &str) {
        let job = self.job_of(item);
        self.env.tenure(&["queue", "cancel", &job]).ok();
    }

    /// Lets a job be tried again at once.
    fn again(&self, item: &str, more: &str) {
        let sql = format!("UPDATE jobs SET not_before = NULL{more} WHERE item = '{item}'");
        forge(self.env, &sql);
    }

    fn clones(&mut self, door: &Dispatcher) {
        self.page.title("A clone that cannot be made");
        let clone = clones(self.env).join("acme/web");
        let remove = || std::fs::remove_dir_all(&clone).expect("the environment is ours");
        scratch_git(&clone, Some(OTHER));
        self.refuses(door, 1, "is a clone of");
        remove();
        let makes_a_folder =
            "dir=.; last=; for word; do [ \"$last\" = -C ] && dir=$word; last=$word; done
            mkdir -p \"$dir/$last\"; exit 0";
        let lines = format!("case \" $* \" in *' clone '*) {makes_a_folder};; esac");
        before_git(self.env, &lines);
        self.refuses(door, 2, "did not create");
        self.plain_git();
        remove();
        put(&clone.join("notes.txt"), "");
        door.deliver("issues", "d-3", &issue(3, "opened"));
        self.shows(door, "issue:acme/web#3", "not a git repository");
        self.page.title("Code that is not permitted");
        self.again("issue:acme/web#3", ", trust = 'outside'");
        self.shows(door, "issue:acme/web#3", "not one of the authors");
        remove();
        let head = self.host.commit("refs/pull/9/head", "change", "theirs");
        door.deliver("pull_request", "d-9", &pull(9, &head));
        self.shows(door, "pr:acme/web#9", "no longer exists");
    }

    fn plain_git(&self) {
        std::fs::remove_file(self.env.dir().join("bin/git")).expect("it was just made");
    }

    fn forges(&mut self, door: &Dispatcher) {
        self.page.title("A forge that cannot be asked");
        let token = self.env.home().join(".config/tenure/home.token");
        let mode = |mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&token, mode).expect("it is ours");
        };
        mode(0o644);
        let (head, item) = (self.host.push_pull(10, "theirs"), "pr:acme/web#10");
        door.deliver("pull_request", "d-10", &pull(10, &head));
        self.shows(door, item, "did not report");
        mode(0o600);
        door.process.kill9();
        self.again(item, "");
        let files = self.env.state().join("runs/r-0123456789");
        let order = json!({"run": "r-0123456789", "job": self.job_of(item), "concurrency": 9});
        put(&files.join("job.json"), &order.to_string());
        self.runner(&files);
        self.cancel(item);
    }

    /// A runner that is started by hand.
    fn runner(&mut self, files: &Path) {
        let line = format!("tenure __runner --dir {}", files.display());
        self.page.run_once(&self.ann, &line, None);
    }

    fn credentials(&mut self) {
        self.page.title("A clone that is used as it is");
        let local = self.env.dir().join("local");
        scratch_git(&local, Some(REMOTE));
        let to_host = format!("url.{}.insteadOf", self.host.repo.display());
        git(&local, &["config", "--add", &to_host, REMOTE]);
        git(&local, &["fetch", "--quiet", "origin"]);
        let dir = format!("dir = {local:?}\nworktree = true");
        set_up(self.env, &self.host, "", &dir, &pushes());
        let door = Dispatcher::start(&self.ann);
        git(&local, &["config", "--add", &to_host, OTHER]);
        git(&local, &["remote", "set-url", "origin", OTHER]);
        let head = self.host.push_pull(11, "theirs");
        door.deliver("pull_request", "d-11", &pull(11, &head));
        self.shows(&door, "pr:acme/web#11", "another repository");
        self.cancel("pr:acme/web#11");
        self.page.title("A credential that cannot be given");
        git(&local, &["remote", "set-url", "origin", REMOTE]);
        let own = local.display().to_string();
        git(&local, &["config", "core.worktree", &own]);
        self.refuses(&door, 12, "core.worktree");
        git(&local, &["config", "--unset", "core.worktree"]);
        self.refuses(&door, 13, "https");
        git(&local, &["remote", "remove", "origin"]);
        self.refuses(&door, 14, "no remote");
        door.process.kill9();
    }

    /// A run that is stopped, and whose worktree is none any more when it goes on.
    fn goes_on(&mut self, door: &Dispatcher) {
        let (env, mine) = (self.env, &self.mine);
        mine.does("cat >/dev/null; init; ready $dir/on; hold $dir/flag; done_");
        mine.keep("flag");
        door.deliver("issues", "d-15", &issue(15, "opened"));
        let run = poll(SOON, "the agent works", || {
            mine.wrote("on")?;
            let run = all(env).into_iter().next()?;
            let is_it = run["item"] == "issue:acme/web#15" && run["native_id"].is_string();
            is_it.then(|| text(&run["id"]))
        });
        env.tenure(&["runs", "stop", &run]).ok();
        poll(SOON, "it is stopped", || {
            (newest(env)["outcome"] == "stopped").then_some(())
        });
        let dir = text(&newest(env)["dir"]);
        let dir = Path::new(&dir);
        std::fs::remove_file(dir.join(".git")).expect("it is a worktree");
        let folder = dir.parent().and_then(Path::file_name);
        let folder = folder.expect("it has a folder").to_string_lossy();
        self.page.replace(&folder, "acme-web-1a2b3c4d");
        self.page.learn(env);
        let line = format!("tenure runs resume {run}");
        self.page.run_once(&self.ann, &line, Some("push"));
        self.page.learn(env);
        let line = format!("tenure runs show {}", text(&newest(env)["id"]));
        self.page.run(&self.ann, &line);
    }

    fn instructions(&mut self, door: &Dispatcher) {
        self.page.title("A run whose instructions cannot be kept");
        let runs = self.env.state().join("runs");
        let lines = format!(
            "for run in {}/r-*; do mkdir $run/order.json 2>/dev/null; done",
            runs.display()
        );
        before_git(self.env, &lines);
        self.refuses(door, 16, "instructions");
        self.plain_git();
        let files = self.env.dir().join("r-none");
        put(&files.join("order.json"), "{");
        self.runner(&files);
    }

    fn prompt(&mut self, door: &Dispatcher) {
        self.page.title("The prompt after a run that failed");
        self.mine.does("cat >/dev/null; init c-17; exit 1");
        door.deliver("issues", "d-17", &issue(17, "opened"));
        let env = self.env;
        let ended = |outcome: &str| {
            poll(SOON, "the run is over", || {
                let of_item = |run: &Value| run["item"] == "issue:acme/web#17";
                let run = all(env).into_iter().find(of_item)?;
                (run["outcome"] == outcome).then(|| text(&run["id"]))
            })
        };
        ended("failed");
        self.mine.does("cat >/dev/null; init; done_");
        let more = comment(17, 1, "alice", "again");
        door.deliver("issue_comment", "d-18", &more);
        let prompt = env.state().join("runs").join(ended("done")).join("prompt");
        self.page.learn(env);
        let cat = format!("cat {}", prompt.display());
        let said = self.ann.run(Cmd::shell(&cat));
        self.page.show(self.ann.pid(), &cat, said, None);
    }
}

/// A rule whose agent may push.
fn pushes() -> String {
    rule("name = \"fix\"\npush = \"push.token\"")
}

#[test]
fn job_code() {
    let env = env();
    let mut shop = Shop {
        page: Page::new("68-job-code", &env),
        env: &env,
        ann: env.agent("ann"),
        host: GitHost::start(&env.dir().join("host")),
        mine: Scripted::new(&env, "mine", "cat >/dev/null; init; done_"),
    };
    shop.page.replace(&shop.host.url, "https://git.example.org");
    shop.host.commit("refs/heads/main", "a", "1");
    set_up(&env, &shop.host, "", "", &rule(""));
    let door = Dispatcher::start(&shop.ann);
    shop.clones(&door);
    shop.forges(&door);
    shop.credentials();
    set_up(&env, &shop.host, "", "", &pushes());
    let door = Dispatcher::start(&shop.ann);
    shop.goes_on(&door);
    shop.instructions(&door);
    shop.prompt(&door);
    shop.page.check(&env);
}
