//! Who and what a dispatched run may be started by, and what it may reach.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::{Cmd, Env, Scripted, poll};

use crate::env;
use crate::support::cloned::{self, pull, rule};
use crate::support::dispatch::fill_in;
use crate::support::git_host::GitHost;
use crate::support::line::{SOON, text};
use crate::support::mount::as_root;
use crate::support::run::{all, fake_claude, outcome};
use crate::support::skip::skipped;
use crate::support::webhook::{Dispatcher, SECRET, comment, issue, person, set_up, sign};

fn jobs(env: &Env) -> Vec<Value> {
    let answer = env.tenure(&["queue", "--all", "--json"]).ok().json();
    answer["jobs"].as_array().expect("a list").clone()
}

/// Waits until no job waits to be taken or runs.
#[track_caller]
fn rest(env: &Env) -> Vec<Value> {
    poll(SOON, "the queue rests", || {
        let jobs = jobs(env);
        let rests = |job: &Value| {
            matches!(
                text(&job["state"]).as_str(),
                "ended" | "cancelled" | "parked"
            )
        };
        jobs.iter().all(rests).then_some(jobs)
    })
}

/// Forgejo and GitLab mark no bots; the settings name them.
#[test]
fn f_r15_a_bot_that_the_settings_name_is_parked_and_only_a_person_goes_on() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo ran >>$dir/calls; cat >/dev/null; init; done_",
    );
    set_up(&env, "");
    fill_in(&env, "listen", "breaker = 2\nlisten");
    fill_in(&env, "own_account", "bots = [\"Bob\"]\nown_account");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    for number in 0..5 {
        let pong = comment(6, 100 + number, "bob", "ping");
        let (status, answer) = door.deliver("issue_comment", &format!("d-{number}"), &pong);
        assert_eq!(status, 202, "{answer}");
        rest(&env);
    }
    assert_eq!(mine.wrote("calls").expect("it ran"), "ran\nran\n");
    assert_eq!(rest(&env)[0]["parked"]["reason"], "breaker");
    let go_on = comment(6, 1, "alice", "@bot go on");
    door.deliver("issue_comment", "alice", &go_on);
    let jobs = poll(SOON, "a person lifts it", || {
        let jobs = jobs(&env);
        jobs.iter()
            .all(|job| job["state"] == "ended")
            .then_some(jobs)
    });
    assert_eq!(jobs.len(), 3);
}

#[test]
fn f_r15_the_own_account_is_known_by_its_id_after_it_was_renamed() {
    let env = env();
    Scripted::new(&env, "mine", "cat >/dev/null; init; done_");
    let host = GitHost::start(&env.dir().join("host"));
    host.commit("refs/heads/main", "a", "1");
    cloned::set_up(
        &env,
        &host,
        "",
        "",
        &rule("").replace("\"alice\"", "\"robot\""),
    );
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let mut renamed = comment(6, 1, "robot", "do it");
    renamed["sender"]["id"] = json!(9);
    renamed["comment"]["user"]["id"] = json!(9);
    let (status, answer) = door.deliver("issue_comment", "d-1", &renamed);
    assert_eq!(
        (status, &answer["verdict"]),
        (200, &json!("ignored")),
        "{answer}"
    );
    let why = "robot is the account that tenure writes as";
    assert_eq!(text(&answer["why"]), why);
    let other = comment(6, 2, "robot", "do it");
    assert_eq!(
        door.deliver("issue_comment", "d-2", &other).0,
        202,
        "another account"
    );
    rest(&env);
}

/// A comment as each forge sends it: who wrote it, who acts now, and whether it is new.
struct Said<'a> {
    id: u64,
    author: (&'a str, u64),
    actor: (&'a str, u64),
    is_new: bool,
    text: &'a str,
    at: &'a str,
}

fn hub_comment(said: &Said<'_>) -> Value {
    let mut sent = comment(6, said.id, said.actor.0, said.text);
    sent["action"] = json!(if said.is_new { "created" } else { "edited" });
    sent["sender"] = person(said.actor.0, said.actor.1);
    sent["comment"]["user"] = person(said.author.0, said.author.1);
    sent["comment"]["updated_at"] = json!(said.at);
    sent
}

fn lab_comment(said: &Said<'_>) -> Value {
    json!({
        "object_kind": "note",
        "user": {"id": said.actor.1, "username": said.actor.0, "name": "x"},
        "project": {"id": 17, "path_with_namespace": "acme/web"},
        "object_attributes": {
            "id": said.id, "note": said.text, "noteable_type": "Issue", "system": false,
            "author_id": said.author.1, "action": if said.is_new { "create" } else { "update" },
            "updated_at": said.at, "url": "https://git.example.org/acme/web/-/issues/6",
        },
        "issue": {"id": 106, "iid": 6, "title": "Login fails", "description": "", "author_id": 3},
    })
}

fn deliver_as(door: &Dispatcher, kind: &str, id: &str, said: &Said<'_>) -> (u16, Value) {
    let json_type = ("Content-Type", "application/json");
    if kind == "gitlab" {
        let body = lab_comment(said).to_string();
        let headers = [
            ("X-Gitlab-Event", "Note Hook"),
            ("X-Gitlab-Token", SECRET),
            ("Idempotency-Key", id),
            json_type,
        ];
        return door.send("POST", "/hooks/home", &headers, body.as_bytes());
    }
    let sent = hub_comment(said);
    if kind == "forgejo" {
        return door.deliver("issue_comment", id, &sent);
    }
    let body = sent.to_string();
    let signature = format!("sha256={}", sign(body.as_bytes()));
    let headers = [
        ("X-GitHub-Event", "issue_comment"),
        ("X-GitHub-Delivery", id),
        ("X-Hub-Signature-256", &signature),
        json_type,
    ];
    door.send("POST", "/hooks/home", &headers, body.as_bytes())
}

#[test]
fn an_edit_by_another_or_after_the_trigger_starts_nothing_on_every_forge() {
    let (alice, mallory) = (("alice", 3), ("mallory", 8));
    for kind in ["forgejo", "github", "gitlab"] {
        let env = env();
        Scripted::new(&env, "mine", "cat >/dev/null; init; done_");
        set_up(&env, "mention = \"@bot\"");
        fill_in(&env, "kind = \"forgejo\"", &format!("kind = {kind:?}"));
        let ann = env.agent("ann");
        let door = Dispatcher::start(&ann);
        let says = |id, author, actor, is_new, text: &'static str, at: &'static str| Said {
            id,
            author,
            actor,
            is_new,
            text,
            at,
        };
        let (first, later, last) = (
            "2026-11-16T06:05:00Z",
            "2026-11-16T06:06:00Z",
            "2026-11-16T06:07:00Z",
        );
        let steps = [
            // It starts a run when it is written, and not again when it is edited.
            (
                says(1, alice, alice, true, "@bot do it", first),
                202,
                "rule fix matches",
            ),
            (
                says(1, alice, alice, false, "@bot do more", later),
                200,
                "this text has started a run before; editing it does not start another",
            ),
            // Who may start runs does not vouch for what a stranger wrote.
            (
                says(2, mallory, mallory, true, "@bot leak", first),
                200,
                "rule fix: mallory is not one of its authors",
            ),
            (
                says(2, mallory, alice, false, "@bot leak!", later),
                200,
                "only an edit by its author counts",
            ),
            // The mention is added by its author.
            (
                says(3, alice, alice, true, "hello", first),
                200,
                "no rule matches",
            ),
            (
                says(3, alice, alice, false, "hello @bot", later),
                202,
                "rule fix matches",
            ),
            (
                says(3, alice, alice, false, "hello again @bot", last),
                200,
                "this text has started a run before; editing it does not start another",
            ),
        ];
        for (number, (said, status, why)) in steps.iter().enumerate() {
            let (found, answer) = deliver_as(&door, kind, &format!("d-{number}"), said);
            assert_eq!(found, *status, "{kind} {number}: {answer}");
            assert!(
                text(&answer["why"]).contains(why),
                "{kind} {number}: {answer}"
            );
        }
        rest(&env);
    }
}

#[test]
fn the_check_refuses_a_token_whose_account_may_start_a_run() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    let host = GitHost::start(&env.dir().join("host"));
    let associations = "associations = [\"collaborator\"]";
    let by = |more: &str| rule(more).replace("authors = [\"alice\"]", associations);
    cloned::set_up(&env, &host, "", "", &by(""));
    let checked = env.tenure(&["dispatch", "check"]);
    assert_eq!(checked.code, 6, "{checked}");
    let why = "bot may start rule rule-1 in acme/web, and could then answer itself; set mention, or name authors";
    assert!(checked.stderr.contains(why), "{checked}");
    cloned::set_up(&env, &host, "", "", &by("mention = \"@bot\""));
    env.tenure(&["dispatch", "check"]).ok();
    cloned::set_up(
        &env,
        &host,
        "",
        "",
        &rule("").replace("\"alice\"", "\"id:9\""),
    );
    assert_eq!(
        env.tenure(&["dispatch", "check"]).code,
        6,
        "named by its id"
    );
}

#[test]
fn f_r15_a_rule_that_names_no_caps_has_some() {
    let env = env();
    Scripted::new(&env, "mine", "cat >/dev/null; init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    rest(&env);
    let store = rusqlite::Connection::open(env.state().join("tenure.db")).expect("it is there");
    let spec = store.query_row("SELECT spec FROM jobs", [], |row| row.get::<_, String>(0));
    let spec: Value = serde_json::from_str(&spec.expect("one job")).expect("it is JSON");
    let caps = &spec["caps"];
    assert_eq!(
        (&caps["runs_per_hour"], &caps["breaker"]),
        (&json!(10), &json!(10)),
        "{spec:#}"
    );
}

#[test]
fn an_item_over_its_cap_for_an_hour_waits_and_that_is_said_once() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo ran >>$dir/calls; cat >/dev/null; init; done_",
    );
    set_up(&env, "caps = { runs_per_hour = 1 }");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    for number in 0..3 {
        let asks = comment(6, number, "alice", "do it");
        door.deliver("issue_comment", &format!("d-{number}"), &asks);
        rest(&env);
    }
    let parked = rest(&env).remove(0);
    assert_eq!(parked["parked"]["reason"], "cap", "{parked:#}");
    assert!(parked["parked"]["until"].is_string());
    assert_eq!(
        parked["events"].as_array().expect("a list").len(),
        2,
        "they joined it"
    );
    let (status, answer) = door.deliver("issues", "other", &issue(7, "opened"));
    assert_eq!(status, 202, "{answer}");
    poll(SOON, "another item runs", || {
        (mine.wrote("calls")? == "ran\nran\n").then_some(())
    });
    let said = door.process.stdout();
    let times = said
        .lines()
        .filter(|line| line.contains("job.parked"))
        .count();
    assert_eq!(times, 1, "{said}");
    let explained = env.tenure(&["queue", "explain", &text(&parked["id"])]).ok();
    assert!(explained.stdout.contains("within an hour"), "{explained}");
}

#[test]
fn an_item_over_its_budget_for_a_day_waits_and_a_run_gets_what_is_left() {
    let env = env();
    let calls = fake_claude(
        &env,
        "tr '\\0' ' ' </proc/$$/cmdline >>$dir/args; echo >>$dir/args; init; keeps; reply hi; cost=0.75; [ $mode = fresh ] || cost=1.5; \
         say \"{\\\"type\\\":\\\"result\\\",\\\"subtype\\\":\\\"success\\\",\\\"is_error\\\":false,\\\"num_turns\\\":1,\\\"result\\\":\\\"hi\\\",\\\"total_cost_usd\\\":$cost,\\\"session_id\\\":\\\"$id\\\"}\"",
    );
    set_up(&env, "caps = { usd_per_day = 1.0 }");
    fill_in(&env, "agent = \"mine\"", "agent = \"claude\"");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    for number in 0..3 {
        let asks = comment(6, number, "alice", "do it");
        door.deliver("issue_comment", &format!("d-{number}"), &asks);
        rest(&env);
    }
    let parked = rest(&env).remove(0);
    assert_eq!(parked["parked"]["reason"], "budget", "{parked:#}");
    let why = "runs of issue:acme/web#6 cost $1.50 within a day; the budget is $1.00";
    assert_eq!(text(&parked["parked"]["why"]), why);
    let said = door.process.stdout();
    let times = said
        .lines()
        .filter(|line| line.contains("job.parked"))
        .count();
    assert_eq!(times, 1, "{said}");
    let args = std::fs::read_to_string(calls.join("args")).expect("it ran");
    let budgets: Vec<&str> = args
        .lines()
        .filter_map(|line| line.split("--max-budget-usd ").nth(1)?.split(' ').next())
        .collect();
    assert_eq!(budgets, ["1", "0.25"], "{args}");
}

/// A wrap that hides everything of this user but the place.
fn hides(env: &Env, bwrap: &str, shown: &Path) -> String {
    let hidden = [env.home(), env.state()].map(|dir| format!("\"--tmpfs\", {dir:?}"));
    format!(
        "wrap = [{bwrap:?}, \"--unshare-all\", \"--die-with-parent\", \"--ro-bind\", \"/\", \"/\", \"--proc\", \"/proc\", \
         \"--dev\", \"/dev\", {}, \"--bind\", {shown:?}, {shown:?}, \"--bind\", \"{{home}}\", \"{{home}}\", \
         \"--bind\", \"{{dir}}\", \"{{dir}}\", \"--setenv\", \"HOME\", \"{{home}}\"]",
        hidden.join(", ")
    )
}

fn open_to_all(path: &Path) {
    let mode = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(path, mode).expect("it is ours");
}

#[test]
fn f_r29_code_of_a_stranger_runs_only_under_a_wrap_and_reaches_nothing_else() {
    let env = env();
    let ann = env.agent("ann");
    let Ok(bwrap) = std::env::var("TENURE_BWRAP") else {
        skipped("there is no bubblewrap");
        return;
    };
    let (home, state) = (env.home(), env.state());
    let (home, state) = (home.display(), state.display());
    let mine = Scripted::new(
        &env,
        "mine",
        &format!(
            "cat change >$dir/code; cat >/dev/null; init; \
             for path in {home}/.config/tenure/home.secret {home}/.config/tenure/home.token {state}/tenure.db \
             {state}/repositories/*/base.git/config; do cat $path >>$dir/reached 2>>$dir/denied; done; \
             ls -A {home} >>$dir/reached; done_"
        ),
    );
    let host = GitHost::start(&env.dir().join("host"));
    host.commit("refs/heads/main", "a", "1");
    let head = host.push_pull(9, "of a stranger");
    let mut fork = pull(9, &head);
    fork["pull_request"]["user"] = person("mallory", 8);
    fork["pull_request"]["head"]["repo"] = json!({"id": 99, "full_name": "mallory/web"});
    cloned::set_up(&env, &host, "", "", &rule(""));
    let door = Dispatcher::start(&ann);
    let (status, answer) = door.deliver("pull_request", "d-1", &fork);
    assert_eq!(
        (status, &answer["verdict"]),
        (200, &json!("refused")),
        "{answer}"
    );
    let why = "rule rule-1: its code is from the fork mallory/web, and the rule has no wrap to run it under";
    assert_eq!(text(&answer["why"]), why);
    assert!(jobs(&env).is_empty());
    door.process.kill9();
    cloned::set_up(&env, &host, "", "", &rule(&hides(&env, &bwrap, mine.dir())));
    let door = Dispatcher::start(&ann);
    let (status, answer) = door.deliver("pull_request", "d-2", &fork);
    assert_eq!(
        (status, &answer["verdict"]),
        (202, &json!("queued")),
        "{answer}"
    );
    let job = rest(&env).remove(0);
    assert_eq!(
        (&job["outcome"], &job["trust"]),
        (&json!("done"), &json!("outside")),
        "{job:#}"
    );
    assert_eq!(
        mine.wrote("code").expect("it has the worktree"),
        "of a stranger"
    );
    assert_eq!(mine.wrote("reached").expect("it tried"), "");
    let denied = mine.wrote("denied").expect("it tried");
    assert_eq!(denied.lines().count(), 4, "{denied}");
}

#[test]
fn f_r29_a_dispatched_agent_finds_no_secret_of_the_dispatcher() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "env >$dir/env; read -r stat </proc/$PPID/stat; set -- ${stat##*) }; \
         cat /proc/$PPID/environ /proc/$2/environ >$dir/above 2>$dir/denied; cat >/dev/null; init; done_",
    );
    set_up(&env, "env = [\"DEPLOY\", \"LEVEL=2\"]");
    let ann = env.agent("ann");
    let mut words = vec!["tenure", "dispatch", "--json"];
    if as_root() {
        // Without capabilities root is a user like any other.
        let less = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
        if ann
            .run(Cmd::new(less[0]).args([less[1], less[2], "true"]))
            .code
            != 0
        {
            skipped("there is no setpriv here");
            return;
        }
        words.splice(0..0, less);
    }
    let command = Cmd::new(words[0])
        .args(words[1..].iter().copied())
        .env("FORGE_TOKEN", "hidden-value")
        .env("DEPLOY", "staging");
    let door = Dispatcher::start_as(&ann, command);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    let job = rest(&env).remove(0);
    assert_eq!(job["outcome"], "done", "{job:#}");
    let given = mine.wrote("env").expect("it looked");
    let expected = [
        "CLAUDE_CODE_DISABLE_ATTACHMENTS",
        "CLAUDE_CODE_DISABLE_FILE_MENTIONS",
        "DEPLOY",
        "HOME",
        "LANG",
        "LEVEL",
        "PATH",
        "TENURE_HOME",
        "TENURE_RUN",
        "TENURE_SESSION",
        "TERM",
        "TMPDIR",
        // The shell's own.
        "OLDPWD",
        "PWD",
        "SHLVL",
        "_",
    ];
    for line in given.lines() {
        let name = line.split('=').next().unwrap_or_default();
        assert!(expected.contains(&name), "{line}");
    }
    assert!(given.contains("DEPLOY=staging\n") && given.contains("LEVEL=2\n"));
    assert_eq!(
        mine.wrote("above").expect("it tried"),
        "",
        "{:?}",
        mine.wrote("denied")
    );
    assert_eq!(mine.wrote("denied").expect("it tried").lines().count(), 2);
    drop(door);
}

const WORKS: &str = "echo $mode $id >>$dir/calls; cat >/dev/null; init c-$$; ready $dir/on; hold $dir/flag; \
                     tenure status --json >$dir/status; done_";

#[test]
fn a_run_is_stopped_when_a_person_closes_its_item_but_not_by_its_own_merge() {
    for (closer, id, expected) in [("alice", 3, "stopped"), ("bot", 9, "done")] {
        let env = env();
        let mine = Scripted::new(&env, "mine", WORKS);
        mine.keep("flag");
        set_up(&env, "on_close = \"stop\"");
        let ann = env.agent("ann");
        let door = Dispatcher::start(&ann);
        door.deliver("issues", "d-1", &issue(6, "opened"));
        poll(SOON, "the agent works", || mine.wrote("on"));
        let mut closed = issue(6, "closed");
        closed["sender"] = person(closer, id);
        let (status, answer) = door.deliver("issues", "d-2", &closed);
        assert_eq!(
            (status, &answer["verdict"]),
            (202, &json!("acted")),
            "{answer}"
        );
        let is_asked = !all(&env)[0]["stop_asked"].is_null();
        assert_eq!(is_asked, expected == "stopped", "{closer}");
        if expected == "done" {
            std::fs::remove_file(mine.file("flag")).expect("it was kept");
        }
        assert_eq!(outcome(&env), expected, "{closer}");
        assert_eq!(jobs(&env)[0]["outcome"], expected);
    }
}

#[test]
fn a_run_that_goes_on_is_told_that_its_item_was_closed() {
    let env = env();
    let mine = Scripted::new(&env, "mine", WORKS);
    mine.keep("flag");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    poll(SOON, "the agent works", || mine.wrote("on"));
    for _ in 0..2 {
        door.deliver("issues", "d-2", &issue(6, "closed"));
    }
    std::fs::remove_file(mine.file("flag")).expect("it was kept");
    assert_eq!(outcome(&env), "done");
    let status: Value =
        serde_json::from_str(&mine.wrote("status").expect("it asked")).expect("JSON");
    let notices: Vec<String> = status["notices"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|notice| text(&notice["message"]))
        .collect();
    assert_eq!(notices, ["issue:acme/web#6 was closed"], "once");
}

#[test]
fn f_r18_a_comment_after_a_stop_goes_on_in_the_same_conversation() {
    let env = env();
    let mine = Scripted::new(&env, "mine", WORKS);
    mine.keep("flag");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    poll(SOON, "the agent works", || mine.wrote("on"));
    env.tenure(&["runs", "stop", &text(&all(&env)[0]["id"])])
        .ok();
    assert_eq!(outcome(&env), "stopped");
    std::fs::remove_file(mine.file("flag")).expect("it was kept");
    mine.does("echo $mode $id >>$dir/calls; cat >/dev/null; init; done_");
    door.deliver("issue_comment", "d-2", &comment(6, 1, "bob", "go on"));
    poll(SOON, "the second job is over", || {
        let jobs = jobs(&env);
        (jobs.len() == 2 && jobs[0]["outcome"] == "done").then_some(())
    });
    let runs = all(&env);
    assert_eq!(runs[0]["native_id"], runs[1]["native_id"]);
    let calls = mine.wrote("calls").expect("it ran twice");
    let again = format!("resume {}", text(&runs[1]["native_id"]));
    assert_eq!(calls.lines().nth(1), Some(again.as_str()), "{calls}");
}

/// The private files of the settings stay private to the user.
#[test]
fn a_credential_that_others_can_read_is_refused() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    let host = GitHost::start(&env.dir().join("host"));
    let repo = "push_credential = \"push.token\"";
    cloned::set_up(&env, &host, "", repo, &rule("push = true"));
    env.tenure(&["dispatch", "check", "--offline"]).ok();
    let file = env.home().join(".config/tenure/push.token");
    open_to_all(&file);
    let checked = env.tenure(&["dispatch", "check", "--offline"]);
    assert!(
        checked.code == 6 && checked.stderr.contains("others can read"),
        "{checked}"
    );
}
