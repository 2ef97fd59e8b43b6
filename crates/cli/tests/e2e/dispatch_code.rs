//! The code that a dispatched run works on: fetched, permitted, in a place of its own, taken.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_testkit::{Env, Scripted, poll};

use crate::env;
use crate::support::cloned::{pull, rule, set_up};
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

/// The commit of the newest run of an item, as its agent saw it.
fn seen(mine: &Scripted, item: &str) -> Vec<String> {
    let heads = mine.wrote("heads").unwrap_or_default();
    let of = |line: &&str| line.contains(&format!("/{item}-"));
    let lines = heads.lines().filter(of);
    lines
        .filter_map(|line| Some(line.split_once(' ')?.0.to_owned()))
        .collect()
}

#[test]
fn each_item_has_a_place_where_its_code_is() {
    let env = env();
    let mine = Scripted::new(&env, "mine", LOOKS);
    let host = GitHost::start(&env.dir().join("host"));
    let first = host.commit("refs/heads/main", "a", "1");
    set_up(&env, &host, "", "", &rule(""));
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(1, "opened"));
    door.deliver("issues", "d-2", &issue(2, "opened"));
    all_done(&env, 2);
    let second = host.commit("refs/heads/main", "a", "2");
    let head = host.push_pull(9, "theirs");
    door.deliver("issues", "d-3", &issue(3, "opened"));
    door.deliver("pull_request", "d-4", &pull(9, &head));
    all_done(&env, 4);
    for (item, commit) in [
        ("issue-acme-web-1", &first),
        ("issue-acme-web-2", &first),
        ("issue-acme-web-3", &second),
        ("pr-acme-web-9", &head),
    ] {
        assert_eq!(seen(&mine, item), [commit.as_str()], "{item}");
    }
    // A place is a repository of its own, and the dispatcher's have a directory that is theirs alone.
    let dir = text(&all(&env)[0]["dir"]);
    assert!(Path::new(&dir).join(".git/objects").is_dir());
    assert!(
        !Path::new(&dir)
            .join(".git/objects/info/alternates")
            .exists()
    );
}

/// Commits, then notes where it is and what it finds.
const COMMITS: &str = "echo $(git rev-parse HEAD) $PWD >>$dir/heads; git rev-parse --verify -q tenure/last >>$dir/last; \
     echo x >>file; git add file; git -c user.name=a -c user.email=a@example.invalid commit -qm mine; \
     git rev-parse HEAD >>$dir/made; echo unfinished >>left; cat >>$dir/prompts; init; done_";

#[test]
fn after_a_force_push_a_run_is_at_the_permitted_commit_and_says_so() {
    let env = env();
    let mine = Scripted::new(&env, "mine", COMMITS);
    let host = GitHost::start(&env.dir().join("host"));
    host.commit("refs/heads/main", "a", "1");
    set_up(&env, &host, "", "", &rule(""));
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let old = host.push_pull(9, "first");
    door.deliver("pull_request", "d-1", &pull(9, &old));
    all_done(&env, 1);
    let made = mine.wrote("made").expect("it committed").trim().to_owned();
    // Another commit in place of the first, while the place has work that was not committed.
    let new = host.push_pull(9, "second");
    assert_ne!(old, new);
    let mut more = comment(9, 1, "alice", "again");
    more["is_pull"] = true.into();
    host.tell_head(9, &new);
    let (status, answer) = door.deliver("issue_comment", "d-2", &more);
    assert_eq!(status, 202, "{answer}");
    all_done(&env, 2);
    assert_eq!(seen(&mine, "pr-acme-web-9"), [old, new.clone()]);
    assert_eq!(mine.wrote("last").expect("it looked").trim(), made);
    let prompts = mine.wrote("prompts").expect("it was asked");
    let said = format!("The working copy was made anew at {}", &new[..12]);
    assert!(prompts.contains(&said), "{prompts}");
    assert!(
        prompts.contains("What was not committed was set aside"),
        "{prompts}"
    );
    let runs = all(&env);
    assert_eq!(runs[0]["dir"], runs[1]["dir"], "at the same path");
    let run = env.state().join("runs").join(text(&runs[0]["id"]));
    assert!(has(&run.join("end.json"), &said), "the answer says it too");
    let dir = text(&runs[0]["dir"]);
    let parent = Path::new(&dir).parent().expect("it has one");
    let aside = std::fs::read_dir(parent).expect("it is ours").flatten();
    let aside: Vec<_> = aside
        .filter(|entry| entry.file_name().to_string_lossy().contains(".aside-"))
        .collect();
    assert_eq!(aside.len(), 1);
    assert!(aside[0].path().join("left").exists());
}

#[test]
fn a_conversation_goes_on_where_its_last_run_left_off() {
    let env = env();
    let mine = Scripted::new(&env, "mine", COMMITS);
    let host = GitHost::start(&env.dir().join("host"));
    host.commit("refs/heads/main", "a", "1");
    set_up(&env, &host, "", "", &rule(""));
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(1, "opened"));
    all_done(&env, 1);
    host.commit("refs/heads/main", "a", "2");
    door.deliver("issue_comment", "d-2", &comment(1, 1, "alice", "go on"));
    all_done(&env, 2);
    let made = mine.wrote("made").expect("it committed");
    let made: Vec<&str> = made.lines().collect();
    assert_eq!(seen(&mine, "issue-acme-web-1")[1], made[0]);
    let dir = text(&all(&env)[0]["dir"]);
    let left = std::fs::read_to_string(Path::new(&dir).join("left")).expect("it is there");
    assert_eq!(left, "unfinished\nunfinished\n");
    // Both results are with the dispatcher.
    let results = results(&env);
    for run in all(&env) {
        let name = format!("refs/runs/{}", text(&run["id"]));
        let result = git(&results, &["rev-parse", &name]);
        assert!(made.contains(&result.as_str()), "{result} of {made:?}");
    }
}

/// The only repository of results.
fn results(env: &Env) -> PathBuf {
    let repositories = std::fs::read_dir(env.state().join("repositories")).expect("it is made");
    let mut found = repositories.map(|entry| entry.expect("it is ours").path());
    found.next().expect("there is one").join("results.git")
}

/// The repository of a place names programs by every name; none of them runs for the dispatcher.
#[test]
fn what_a_place_names_runs_nothing_of_the_dispatchers() {
    let env = env();
    let plants = "for k in core.fsmonitor core.sshCommand filter.e.smudge filter.e.clean filter.e.process core.pager diff.external \
       uploadpack.packObjectsHook credential.helper; do git config $k \"touch $dir/canary-$k; cat\"; done; \
       git config url.ext::sh.insteadOf https://; git config http.proxy http://127.0.0.1:9; \
       mkdir -p .git/hooks; for h in post-checkout pre-push reference-transaction; do \
       printf '#!/bin/sh\\ntouch %s/canary-%s\\n' $dir $h >.git/hooks/$h; chmod +x .git/hooks/$h; done; \
       echo x >>$dir/ran; cat >/dev/null; init; done_";
    let mine = Scripted::new(&env, "mine", plants);
    let host = GitHost::start(&env.dir().join("host"));
    host.commit("refs/heads/main", "a", "1");
    set_up(&env, &host, "", "", &rule(""));
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(1, "opened"));
    all_done(&env, 1);
    door.deliver("issue_comment", "d-2", &comment(1, 1, "alice", "go on"));
    door.deliver("issues", "d-3", &issue(2, "opened"));
    all_done(&env, 3);
    assert_eq!(mine.wrote("ran").expect("it ran"), "x\nx\nx\n");
    let ours = |file: &PathBuf| file.to_string_lossy().contains("canary-");
    let found: Vec<PathBuf> = files(env.dir()).into_iter().filter(ours).collect();
    assert_eq!(found, Vec::<PathBuf>::new());
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
        calls.contains("fetch") && calls.contains("__credential"),
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
fn a_head_that_is_the_conversations_own_result_is_run() {
    let env = env();
    let mine = Scripted::new(&env, "mine", COMMITS);
    let host = GitHost::start(&env.dir().join("host"));
    host.commit("refs/heads/main", "a", "1");
    set_up(&env, &host, "", "", &rule(""));
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let head = host.push_pull(9, "theirs");
    door.deliver("pull_request", "d-1", &pull(9, &head));
    all_done(&env, 1);
    let made = mine.wrote("made").expect("it committed").trim().to_owned();
    // A person asks for more about the old head; meanwhile the result is pushed.
    let dir = text(&all(&env)[0]["dir"]);
    let to = host.repo.to_str().expect("text").to_owned();
    git(
        Path::new(&dir),
        &["push", "--quiet", "--force", &to, "HEAD:refs/pull/9/head"],
    );
    host.tell_head(9, &made);
    let mut more = comment(9, 1, "alice", "and the docs");
    more["is_pull"] = true.into();
    let (status, answer) = door.deliver("issue_comment", "d-2", &more);
    assert_eq!(status, 202, "{answer}");
    all_done(&env, 2);
    assert_eq!(seen(&mine, "pr-acme-web-9"), [head, made]);
    let prompts = mine.wrote("prompts").expect("it was asked");
    assert!(
        !prompts.contains("made anew"),
        "the place goes on: {prompts}"
    );
}

#[test]
fn a_place_that_was_not_finished_is_made_again() {
    let env = env();
    let mine = Scripted::new(&env, "mine", LOOKS);
    let host = GitHost::start(&env.dir().join("host"));
    let head = host.commit("refs/heads/main", "a", "1");
    set_up(&env, &host, "", "", &rule(""));
    let flag = env.dir().join("flag");
    std::fs::write(&flag, "").expect("the environment is ours");
    // Half a place: what there is when git is killed.
    let stands_still = format!(
        "case \"$*\" in *' reset '*)\n  if [ -e {flag} ]; then\n    \
         echo $$ >{pid}; while [ -e {flag} ]; do sleep 0.02; done; exit 1\n  fi\nesac",
        flag = flag.display(),
        pid = env.dir().join("pid").display()
    );
    watched_git(&env, &stands_still);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(1, "opened"));
    let pid: u32 = poll(SOON, "it checks out", || {
        let text = std::fs::read_to_string(env.dir().join("pid")).ok()?;
        text.trim().parse().ok()
    });
    let taken = jobs(&env).remove(0);
    let runner = u32::try_from(taken["pid"].as_u64().expect("it is taken")).expect("a pid");
    kill9(&ann, runner);
    kill9(&ann, pid);
    std::fs::remove_file(&flag).expect("it was kept");
    let job = poll(SOON, "the job is queued again", || {
        let job = jobs(&env).remove(0);
        (job["state"] == "queued").then_some(job)
    });
    env.tenure(&["queue", "retry", &text(&job["id"])]).ok();
    all_done(&env, 1);
    assert_eq!(seen(&mine, "issue-acme-web-1"), [head]);
}

#[test]
fn while_the_remote_is_away_a_job_is_tried_without_end_and_runs_when_it_is_back() {
    let mut env = env();
    env.set("TENURE_RETRY_EVERY", "50ms");
    let mine = Scripted::new(&env, "mine", LOOKS);
    let host = GitHost::start(&env.dir().join("host"));
    let head = host.commit("refs/heads/main", "a", "1");
    set_up(&env, &host, "", "", &rule(""));
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    host.set_git_away(true);
    door.deliver("issues", "d-1", &issue(1, "opened"));
    // More often than a fault of the job itself would be tried.
    poll(SOON * 5, "it was tried often", || {
        let job = jobs(&env).remove(0);
        assert_ne!(job["state"], "parked", "{job:#}");
        (job["attempt"].as_u64()? > 6).then_some(())
    });
    door.deliver("issue_comment", "d-2", &comment(1, 1, "alice", "hello?"));
    host.set_git_away(false);
    poll(SOON, "all of it runs", || {
        let jobs = jobs(&env);
        assert!(jobs.iter().all(|job| job["state"] != "parked"), "{jobs:#?}");
        jobs.iter()
            .all(|job| job["outcome"] == "done")
            .then_some(())
    });
    let seen = seen(&mine, "issue-acme-web-1");
    assert!(seen.iter().all(|commit| *commit == head), "{seen:?}");
}

#[test]
fn a_result_is_pushed_by_the_dispatcher_and_the_agent_has_no_token() {
    let env = env();
    let pushes = "git push --quiet origin HEAD:refs/heads/mine 2>$dir/no; echo $? >>$dir/codes; env >>$dir/env; ";
    let mine = Scripted::new(&env, "mine", &format!("{pushes}{COMMITS}"));
    let host = GitHost::start(&env.dir().join("host"));
    host.commit("refs/heads/main", "a", "1");
    let with = rule("push = true");
    let repo = "push_credential = \"push.token\"";
    set_up(&env, &host, "", repo, &with);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(1, "opened"));
    all_done(&env, 1);
    assert_eq!(mine.wrote("codes").expect("it tried"), "128\n");
    let made = mine.wrote("made").expect("it committed").trim().to_owned();
    let branch = ["rev-parse", "--verify", "refs/heads/tenure/issue-1"];
    let pushed = git_maybe(&host.repo, &branch);
    let shown = env
        .tenure(&["runs", "show", &text(&all(&env)[0]["id"]), "--json"])
        .ok();
    assert_eq!(pushed, Some(made), "{shown}");
    let variables = mine.wrote("env").expect("it looked");
    assert!(!variables.contains(PUSH.0) && !variables.contains(FETCH.0));
    let token = env.home().join(".config/tenure/push.token");
    let found: Vec<PathBuf> = files(env.dir())
        .into_iter()
        .filter(|file| *file != token && has(file, PUSH.0))
        .collect();
    assert_eq!(found, Vec::<PathBuf>::new());
}

#[test]
fn of_a_directory_only_the_address_is_read() {
    let env = env();
    let mine = Scripted::new(&env, "mine", LOOKS);
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
    let before = git(&dir, &["for-each-ref"]);
    set_up(&env, &host, "", &format!("dir = {dir:?}"), &rule(""));
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let newer = host.commit("refs/heads/main", "a", "2");
    door.deliver("issues", "d-1", &issue(1, "opened"));
    all_done(&env, 1);
    assert_eq!(seen(&mine, "issue-acme-web-1"), [newer]);
    assert_eq!(git(&dir, &["for-each-ref"]), before);
    assert!(!dir.join(".git/worktrees").exists());
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
