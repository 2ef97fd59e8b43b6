//! The code that a dispatched run works on: cloned, fetched, permitted, pushed.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_testkit::{Env, Scripted, poll};

use crate::env;
use crate::support::cloned::{clones, private, pull, rule, set_up};
use crate::support::git_host::{FETCH, GitHost, PUSH, git, git_maybe};
use crate::support::line::{SOON, text};
use crate::support::run::{all, kill9};
use crate::support::webhook::{Dispatcher, comment, issue};

fn jobs(env: &Env) -> Vec<Value> {
    let answer = env.tenure(&["queue", "--all", "--json"]).ok().json();
    answer["jobs"].as_array().expect("a list").clone()
}

/// Waits until this many jobs are over; the newest first.
#[track_caller]
fn all_over(env: &Env, count: usize) -> Vec<Value> {
    poll(SOON, "all jobs are over", || {
        let jobs = jobs(env);
        let over = |job: &Value| job["state"] == "ended" || job["state"] == "cancelled";
        (jobs.len() == count && jobs.iter().all(over)).then_some(jobs)
    })
}

#[track_caller]
fn all_done(env: &Env, count: usize) {
    let jobs = all_over(env, count);
    let done = |job: &Value| job["outcome"] == "done";
    assert!(jobs.iter().all(done), "{jobs:#?}");
}

/// Notes what is checked out where it works.
const LOOKS: &str = "echo $(git rev-parse HEAD) $PWD >>$dir/heads; cat >/dev/null; init; done_";

#[test]
fn a_repository_is_cloned_once_and_each_item_begins_where_its_code_is() {
    let env = env();
    let mine = Scripted::new(&env, "mine", LOOKS);
    let host = GitHost::start(&env.dir().join("host"));
    let first = host.commit("refs/heads/main", "a", "1");
    set_up(&env, &host, "", "", &rule(""));
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    // Two at once: one clones, the other waits for it.
    door.deliver("issues", "d-1", &issue(1, "opened"));
    door.deliver("issues", "d-2", &issue(2, "opened"));
    all_done(&env, 2);
    let clone = clones(&env).join("acme/web");
    let place = std::fs::metadata(clone.join(".git")).expect("it is cloned");
    let second = host.commit("refs/heads/main", "a", "2");
    let head = host.push_pull(9, "theirs");
    door.deliver("issues", "d-3", &issue(3, "opened"));
    door.deliver("pull_request", "d-4", &pull(9, &head));
    all_done(&env, 4);
    let heads = mine.wrote("heads").expect("it looked");
    for (item, commit) in [
        ("issue-1", &first),
        ("issue-2", &first),
        ("issue-3", &second),
        ("pr-9", &head),
    ] {
        let line = heads.lines().find(|line| line.ends_with(item));
        let line = line.unwrap_or_else(|| panic!("{item} in {heads}"));
        assert!(line.starts_with(commit.as_str()), "{item}: {line}");
    }
    use std::os::unix::fs::MetadataExt;
    let after = std::fs::metadata(clone.join(".git")).expect("it is still there");
    assert_eq!(place.ino(), after.ino(), "it was cloned once");
    let left: Vec<PathBuf> = std::fs::read_dir(clones(&env).join("acme"))
        .expect("it is ours")
        .map(|entry| entry.expect("it is ours").path())
        .collect();
    assert_eq!(left, [clone]);
}

/// Every file below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("it is ours") {
        let path = entry.expect("it is ours").path();
        match std::fs::symlink_metadata(&path) {
            Ok(at) if at.is_dir() => found.extend(files(&path)),
            Ok(at) if at.is_file() => found.push(path),
            _ => {}
        }
    }
    found
}

fn has(file: &Path, text: &str) -> bool {
    let bytes = std::fs::read(file).unwrap_or_default();
    bytes.windows(text.len()).any(|at| at == text.as_bytes())
}

/// A program `git` that notes how it and everything below it is started, and then is git.
fn watched_git(env: &Env, then: &str) {
    use std::os::unix::fs::PermissionsExt;
    let program = env.dir().join("bin/git");
    let real = std::env::var("PATH").expect("there is one");
    let notes = env.dir().join("git-calls");
    let text = format!(
        "#!/bin/sh\n{{ echo \"$@\"; env; tr '\\0' ' ' </proc/$PPID/cmdline; }} >>{}\n{then}\nPATH={real} exec git \"$@\"\n",
        notes.display()
    );
    std::fs::write(&program, text).expect("the environment is ours");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("it was just made");
}

#[test]
fn git_gets_the_token_and_nobody_else_finds_it() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "env >$dir/env; git config --list --show-origin >$dir/config; git fetch origin 2>$dir/no; \
         echo $? >$dir/code; cat >/dev/null; init; done_",
    );
    let host = GitHost::start(&env.dir().join("host"));
    host.commit("refs/heads/main", "a", "1");
    set_up(&env, &host, "", "", &rule(""));
    watched_git(&env, "");
    // What the user told git to keep passwords with must not get this one.
    std::fs::write(
        env.home().join(".gitconfig"),
        "[credential]\n\thelper = store\n",
    )
    .expect("the home is ours");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(1, "opened"));
    all_done(&env, 1);
    let asked = host.asked();
    let with = |credential: &str| asked.iter().filter(|(_, own)| own == credential).count();
    assert!(with(FETCH.1) > 0 && with("") > 0, "{asked:?}");
    assert_ne!(
        mine.wrote("code").expect("it fetched").trim(),
        "0",
        "the agent has no token"
    );
    let token = env.home().join(".config/tenure/home.token");
    let found: Vec<PathBuf> = files(env.dir())
        .into_iter()
        .filter(|file| *file != token && has(file, FETCH.0))
        .collect();
    assert_eq!(found, Vec::<PathBuf>::new());
    let calls = std::fs::read_to_string(env.dir().join("git-calls")).expect("git ran");
    assert!(
        calls.contains("clone") && calls.contains("__credential"),
        "{calls}"
    );
    assert!(!env.home().join(".git-credentials").exists());
}

/// The agent of the first job, which keeps the only place until the test lets it go.
const HOLDS: &str = "echo $(git rev-parse HEAD) >>$dir/heads; cat >/dev/null; init; ready $dir/on; hold $dir/flag; done_";

#[test]
fn f_r29_a_push_after_the_permission_is_not_run() {
    let env = env();
    let mine = Scripted::new(&env, "mine", HOLDS);
    mine.keep("flag");
    let host = GitHost::start(&env.dir().join("host"));
    host.commit("refs/heads/main", "a", "1");
    set_up(&env, &host, "concurrency = 1", "", &rule(""));
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(1, "opened"));
    poll(SOON, "the agent works", || mine.wrote("on"));
    let permitted = host.push_pull(9, "as it was read");
    let (status, answer) = door.deliver("pull_request", "d-2", &pull(9, &permitted));
    assert_eq!(status, 202, "{answer}");
    // One that only git shows, one that only the forge tells, and one that stays.
    let newer = host.commit("refs/pull/9/head", "change", "rm -rf");
    let other = host.push_pull(10, "as it was read");
    door.deliver("pull_request", "d-3", &pull(10, &other));
    host.tell_head(10, &newer);
    let same = host.push_pull(11, "as it was read");
    door.deliver("pull_request", "d-4", &pull(11, &same));
    std::fs::remove_file(mine.file("flag")).expect("it was kept");
    let jobs = all_over(&env, 4);
    let of = |item: &str| jobs.iter().find(|job| job["item"] == item).expect("a job");
    for (item, permitted) in [("pr:acme/web#9", &permitted), ("pr:acme/web#10", &other)] {
        let job = of(item);
        assert_eq!(
            (&job["state"], &job["run"]),
            (&"cancelled".into(), &Value::Null),
            "{job:#}"
        );
        let why = format!(
            "{item} is not run: the head moved from {} to {} after the run was permitted",
            &permitted[..12],
            &newer[..12]
        );
        assert_eq!(text(&job["why"]), why);
        let explained = env.tenure(&["queue", "explain", &text(&job["id"])]).ok();
        assert!(explained.stdout.contains(&why), "{explained}");
        let retried = env.tenure(&["queue", "retry", &text(&job["id"]), "--json"]);
        assert_eq!(retried.code, 1, "{retried}");
    }
    assert_eq!(of("pr:acme/web#11")["outcome"], "done");
    let heads = mine.wrote("heads").expect("it looked");
    assert!(!heads.contains(&newer) && heads.contains(&same), "{heads}");
}

#[test]
fn a_head_that_the_agent_pushed_itself_is_run() {
    let env = env();
    let commit =
        "git -c user.name=a -c user.email=a@example.invalid commit -q --allow-empty -m mine";
    let mine = Scripted::new(
        &env,
        "mine",
        &format!(
            "{commit}; git rev-parse HEAD >$dir/head; cat >/dev/null; init; ready $dir/on; hold $dir/flag; done_"
        ),
    );
    mine.keep("flag");
    let host = GitHost::start(&env.dir().join("host"));
    host.commit("refs/heads/main", "a", "1");
    set_up(&env, &host, "", "", &rule(""));
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let head = host.push_pull(9, "theirs");
    door.deliver("pull_request", "d-1", &pull(9, &head));
    poll(SOON, "the agent works", || mine.wrote("on"));
    // A person asks for more; then the agent pushes what it did.
    let mut more = comment(9, 1, "alice", "and the docs");
    more["is_pull"] = true.into();
    let (status, answer) = door.deliver("issue_comment", "d-2", &more);
    assert_eq!(status, 202, "{answer}");
    let made = text(&Value::from(
        mine.wrote("head").expect("it committed").trim(),
    ));
    let worktree = all(&env)[0]["dir"]
        .as_str()
        .expect("a directory")
        .to_owned();
    let to = host.repo.to_str().expect("text").to_owned();
    git(
        Path::new(&worktree),
        &["push", "--quiet", &to, "HEAD:refs/pull/9/head"],
    );
    host.tell_head(9, &made);
    std::fs::remove_file(mine.file("flag")).expect("it was kept");
    all_done(&env, 2);
}

#[test]
fn a_clone_that_is_killed_is_no_clone() {
    let env = env();
    Scripted::new(&env, "mine", LOOKS);
    let host = GitHost::start(&env.dir().join("host"));
    host.commit("refs/heads/main", "a", "1");
    set_up(&env, &host, "", "", &rule(""));
    let flag = env.dir().join("flag");
    std::fs::write(&flag, "").expect("the environment is ours");
    // Half a clone: what git has made when it is killed.
    let stands_still = format!(
        "for word; do last=$word; done\ncase \"$*\" in *' clone '*)\n  if [ -e {flag} ]; then\n    \
         cd \"$3\" 2>/dev/null || cd \"$2\"; mkdir -p \"$last/.git\"; echo $$ >{pid}; while [ -e {flag} ]; do sleep 0.02; done; exit 1\n  fi\nesac",
        flag = flag.display(),
        pid = env.dir().join("pid").display()
    );
    watched_git(&env, &stands_still);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(1, "opened"));
    let pid: u32 = poll(SOON, "it clones", || {
        let text = std::fs::read_to_string(env.dir().join("pid")).ok()?;
        text.trim().parse().ok()
    });
    let taken = jobs(&env).remove(0);
    let runner = u32::try_from(taken["pid"].as_u64().expect("it is taken")).expect("a pid");
    kill9(&ann, runner);
    assert!(!clones(&env).join("acme/web").exists());
    kill9(&ann, pid);
    std::fs::remove_file(&flag).expect("it was kept");
    let job = poll(SOON, "the job is queued again", || {
        let job = jobs(&env).remove(0);
        (job["state"] == "queued").then_some(job)
    });
    env.tenure(&["queue", "retry", &text(&job["id"])]).ok();
    all_done(&env, 1);
    let clone = clones(&env).join("acme/web");
    assert_eq!(git(&clone, &["fsck"]), "");
}

#[test]
fn an_agent_pushes_with_what_its_rule_names_and_only_in_its_worktree() {
    let env = env();
    let push = "git -c user.name=a -c user.email=a@example.invalid commit -q --allow-empty -m mine; \
                git push --quiet origin HEAD:refs/heads/$(basename $PWD) 2>$dir/no; echo $? >>$dir/codes; \
                env >>$dir/env; ";
    let rest = "cat >/dev/null; init; done_";
    let mine = Scripted::new(&env, "mine", &format!("{push}{rest}"));
    let host = GitHost::start(&env.dir().join("host"));
    host.commit("refs/heads/main", "a", "1");
    let with = rule("label = \"push\"\npush = \"push.token\"");
    set_up(&env, &host, "", "", &format!("{with}{}", rule("")));
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let mut labelled = issue(1, "opened");
    labelled["issue"]["labels"] = serde_json::json!([{"name": "push"}]);
    door.deliver("issues", "d-1", &labelled);
    all_done(&env, 1);
    assert_eq!(
        mine.wrote("codes").expect("it pushed"),
        "0\n",
        "{:?}",
        mine.wrote("no")
    );
    assert!(git_maybe(&host.repo, &["rev-parse", "--verify", "refs/heads/issue-1"]).is_some());
    // The same worktree, by a rule without it; and another one.
    door.deliver("issue_comment", "d-2", &comment(1, 1, "alice", "go on"));
    door.deliver("issues", "d-3", &issue(2, "opened"));
    all_done(&env, 3);
    assert_eq!(mine.wrote("codes").expect("it tried"), "0\n128\n128\n");
    let variables = mine.wrote("env").expect("it looked");
    assert!(!variables.contains(PUSH.0) && !variables.contains(FETCH.0));
    let token = env.home().join(".config/tenure/push.token");
    let found: Vec<PathBuf> = files(env.dir())
        .into_iter()
        .filter(|file| *file != token && (has(file, PUSH.0) || has(file, "__credential")))
        .filter(|file| !file.ends_with("tenure.db") && !file.ends_with("tenure.db-wal"))
        .collect();
    assert_eq!(
        found,
        Vec::<PathBuf>::new(),
        "the settings are gone with the run"
    );
}

#[test]
fn a_directory_of_its_own_is_fetched_before_each_run() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "git rev-parse origin/main >>$dir/seen; cat >/dev/null; init; done_",
    );
    let host = GitHost::start(&env.dir().join("host"));
    host.commit("refs/heads/main", "a", "1");
    let dir = env.dir().join("mine");
    let from = host.repo.to_str().expect("text");
    git(
        env.dir(),
        &["clone", "--quiet", from, dir.to_str().expect("text")],
    );
    let url = format!("{}/acme/web.git", host.url);
    git(&dir, &["remote", "set-url", "origin", &url]);
    set_up(&env, &host, "", &format!("dir = {dir:?}"), &rule(""));
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let newer = host.commit("refs/heads/main", "a", "2");
    door.deliver("issues", "d-1", &issue(1, "opened"));
    all_done(&env, 1);
    assert_eq!(mine.wrote("seen").expect("it looked").trim(), newer);
    // What it works with does not depend on the fetch: it runs while the forge is away.
    private(&env.home().join(".config/tenure/home.token"), "wrong");
    door.deliver("issues", "d-2", &issue(2, "opened"));
    all_done(&env, 2);
}

#[test]
fn a_repository_gives_its_skill_where_the_dispatcher_trusts_it() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "cat >$dir/prompt; init; done_");
    let host = GitHost::start(&env.dir().join("host"));
    let skill = "Use the repository's own words for {{ item }}.";
    host.commit("refs/heads/main", "a", "1");
    host.commit_below("refs/heads/main", ".tenure/skills", "own.md", skill);
    let own = rule("").replace("\"fix\"", "\"own\"");
    set_up(&env, &host, "", "trusted = true", &own);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(1, "opened"));
    all_done(&env, 1);
    let prompt = mine.wrote("prompt").expect("it was asked");
    assert!(
        prompt.contains("own words for issue:acme/web#1"),
        "{prompt}"
    );
}
