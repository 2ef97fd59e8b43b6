//! What people read, and what programs get: text as it is shown, JSON as it is documented.

use std::collections::BTreeSet;
use std::fs;

use insta::assert_snapshot;
use serde_json::Value;
use tenure_testkit::{Agent, Cmd, Env, Scripted, poll, scratch_git};

use crate::env;
use crate::support::line::{SOON, crew, events, handle, register, run, session, take, text};
use crate::support::output::{one_object, settings, verbs};
use crate::support::shape;

/// Three in one repository (one of them dead), and one whose state is unknown.
struct Scene {
    env: Env,
    ann: Agent,
    bob: Agent,
}

fn scene() -> Scene {
    let env = env();
    let repo = env.dir().join("repo");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| env.agent(name));
    let dir = format!("--dir {}", repo.display());
    register(
        &ann,
        "ann",
        &format!("{dir} --native-id n1 --title login --meta team=blue"),
    );
    register(&bob, "bob", &dir);
    register(&eve, "eve", &dir);
    run(
        &env.agent("plain"),
        0,
        &format!("register --unverified --agent cron {dir}"),
    );
    ann.tenure(&["claim", "issue:acme/web#42", "--note", "fix login"])
        .ok();
    take(&eve, "wp:7");
    eve.kill9();
    Scene { env, ann, bob }
}

#[test]
fn sessions_are_shown_with_what_is_known_of_them() {
    let Scene { env, ann, bob } = scene();
    let _bound = settings(&env).bind_to_scope();
    assert_snapshot!(bob.tenure(&["ps"]), @r"
    exit code: 0
    --- stdout
    HANDLE  STATE  TITLE  WHERE  PLACE  AGE  HOLDS
    eve-XXXX  cut off now  -  acme/web (main)  -  [span]  held wp:7
    cron-XXXX  unknown: its process was never identified; lease expires in [span]  -  acme/web (main)  -  [span]  -
    bob-XXXX  live  -  acme/web (main)  -  [span]  -
    ann-XXXX  live  login  acme/web (main)  -  [span]  issue:acme/web#42
    eve-XXXX was cut off and cannot be resumed: it has no conversation to resume; run `tenure dismiss eve-XXXX` to drop it
    --- stderr
    ");
    assert_snapshot!(bob.tenure(&["ps", "-a"]), @r"
    exit code: 0
    --- stdout
    HANDLE  STATE  TITLE  WHERE  PLACE  AGE  HOLDS
    eve-XXXX  cut off now  -  acme/web (main)  -  [span]  held wp:7
    cron-XXXX  unknown: its process was never identified; lease expires in [span]  -  acme/web (main)  -  [span]  -
    bob-XXXX  live  -  acme/web (main)  -  [span]  -
    ann-XXXX  live  login  acme/web (main)  -  [span]  issue:acme/web#42
    eve-XXXX was cut off and cannot be resumed: it has no conversation to resume; run `tenure dismiss eve-XXXX` to drop it
    --- stderr
    ");
    assert_snapshot!(ann.tenure(&["whoami"]), @r"
    exit code: 0
    --- stdout
    ann-XXXX  live
      why  pid [pid] is running
      id  [id]
      agent  ann
      title  login
      where  acme/web (main)
      dir  [dir]/repo
      conversation  n1
      process  pid [pid]
      started  [span]
      last seen  [span]
      holds  issue:acme/web#42 (epoch 1)
      meta  team=blue
      found by  ancestry: pid [pid], the parent of this process
      store  [dir]/state/tenure.db
    --- stderr
    ");
    assert_snapshot!(bob.tenure(&["show", "cron"]), @r"
    exit code: 0
    --- stdout
    cron-XXXX  unknown
      why  its process was never identified; lease expires in [span]
      id  [id]
      agent  cron
      where  acme/web (main)
      dir  [dir]/repo
      started  [span]
      last seen  [span]
    --- stderr
    ");
    assert_snapshot!(bob.tenure(&["alive", "cron"]), @r"
    exit code: 9
    --- stdout

    --- stderr
    error: cannot tell whether cron-XXXX is alive: its process was never identified
    hint: run `tenure show cron-XXXX` to see what tenure knows about it
    ");
}

#[test]
fn a_session_sees_where_it_stands_and_who_else_is_there() {
    let Scene { env, ann, bob } = scene();
    let _bound = settings(&env).bind_to_scope();
    let repo = env.dir().join("repo");
    run(&bob, 0, "takeover issue:acme/web#42 --reason stuck");
    take(&ann, "wp:1");
    assert_snapshot!(bob.tenure_in(&repo, &["status"]), @r#"
    exit code: 0
    --- stdout
    you are bob-XXXX in acme/web (main)
    you hold issue:acme/web#42 (epoch 2)
    eve-XXXX was cut off in acme/web (main), held wp:7, and cannot be resumed: it has no conversation to resume; run `tenure dismiss eve-XXXX` to drop it
    cron-XXXX may be alive in acme/web (main)
    ann-XXXX "login" is live in acme/web (main), holds wp:1
    --- stderr
    "#);
    assert_snapshot!(bob.tenure_in(&repo, &["who"]), @r"
    exit code: 0
    --- stdout
    HANDLE  STATE  TITLE  WHERE  PLACE  AGE  HOLDS
    cron-XXXX  unknown: its process was never identified; lease expires in [span]  -  acme/web (main)  -  [span]  -
    ann-XXXX  live  login  acme/web (main)  -  [span]  wp:1
    --- stderr
    ");
    assert_snapshot!(env.tenure(&["status"]), @r"
    exit code: 0
    --- stdout
    no session here
    run `tenure register` to register this shell or agent, or `tenure install` to register agents automatically
    1 cut off elsewhere; run `tenure ps` to see them
    no other sessions here
    --- stderr
    ");
    assert_snapshot!(env.tenure(&["whoami"]), @r#"
    exit code: 4
    --- stdout

    --- stderr
    error: not running inside a tenure session
    store: [dir]/state/tenure.db
    hint: run `tenure register` to make this shell or agent a session
    hint: run `tenure register --agent NAME --pid PID` in a script, where PID is $$
    hint: add --session NAME --reason REASON to act for an existing session
    "#);
}

#[test]
fn claims_are_shown_with_who_has_them_and_what_can_be_done() {
    let Scene { env, ann, bob } = scene();
    let _bound = settings(&env).bind_to_scope();
    let item = "issue:acme/web#42";
    assert_snapshot!(bob.tenure(&["claim", item]), @r#"
    exit code: 3
    --- stdout

    --- stderr
    error: issue:acme/web#42 is held by ann-XXXX (live in [dir]/repo, [span]): "fix login"
    hint: run `tenure claim issue:acme/web#42 --wait [span]` to wait for it
    hint: run `tenure why issue:acme/web#42` for details
    "#);
    assert_snapshot!(bob.tenure(&["why", item]), @r"
    exit code: 0
    --- stdout
    issue:acme/web#42 is held
      you cannot claim it now: ann-XXXX holds it
      ann-XXXX claimed it [span] (epoch 1)
      ann-XXXX is live: pid [pid] is running
      run `tenure claim issue:acme/web#42 --wait [span]` to wait for it
      run `tenure tell ann-XXXX MESSAGE` to ask its holder
    --- stderr
    ");
    assert_snapshot!(bob.tenure(&["why", "wp:new"]), @r"
    exit code: 0
    --- stdout
    wp:new is free
      you can claim it now
      it has never been claimed
      run `tenure claim wp:new` to claim it
    --- stderr
    ");
    assert_snapshot!(bob.tenure(&["claim", "wp:7"]), @r"
    exit code: 0
    --- stdout
    claimed wp:7 (epoch 2)
      previous holder: eve-XXXX (pid [pid] is gone)
      check [dir]/repo (branch main) for unfinished work
    --- stderr
    ");
    assert_snapshot!(bob.tenure(&["takeover", item, "--reason", "stuck"]), @r"
    exit code: 0
    --- stdout
    claimed issue:acme/web#42 (epoch 2)
      taken over from ann-XXXX: stuck
      check [dir]/repo (branch main) for unfinished work
    --- stderr
    ");
    assert_snapshot!(ann.tenure(&["guard", item]), @r#"
    exit code: 5
    --- stdout

    --- stderr
    notice: bob-XXXX took over issue:acme/web#42 (epoch 1→2). Reason: "stuck"
    error: this session lost issue:acme/web#42: bob-XXXX holds it now (epoch 2)
    hint: stop working on it; further changes may conflict with the new holder
    hint: run `tenure log issue:acme/web#42` to see what happened
    "#);
    assert_snapshot!(bob.tenure(&["release", item, "--done"]), @r"
    exit code: 0
    --- stdout
    issue:acme/web#42 done (epoch 2)
    --- stderr
    ");
    assert_snapshot!(ann.tenure(&["why", item]), @r"
    exit code: 0
    --- stdout
    issue:acme/web#42 is done
      you cannot claim it now: it is done
      bob-XXXX took it over [span] (epoch 2)
      previously held by ann-XXXX (epoch 1): stuck
      marked done [span]
    --- stderr
    ");
    assert_snapshot!(ann.tenure(&["claims", "--all"]), @r"
    exit code: 0
    --- stdout
    KEY  STATE  HOLDER  SINCE  EPOCH  NOTE
    issue:acme/web#42  done  -  -  2  -
    wp:7  held  bob-XXXX  [span]  2  -
    --- stderr
    ");
    assert_snapshot!(ann.tenure(&["log", item]), @r#"
    exit code: 0
    --- stdout
      5  [time]  claim.granted  ann-XXXX  issue:acme/web#42 (epoch 1)  claim: never held before
      11  [time]  claim.freed  ann-XXXX  issue:acme/web#42 (epoch 1)  taken: bob-XXXX took it over: stuck
      12  [time]  claim.taken_over  bob-XXXX  issue:acme/web#42 (epoch 2)  takeover: previous holder ann-XXXX: stuck; reason: "stuck"
      13  [time]  claim.done  bob-XXXX  issue:acme/web#42 (epoch 2)  done: released by its holder
    --- stderr
    "#);
    assert_snapshot!(env.tenure(&["why", item]), @r"
    exit code: 0
    --- stdout
    issue:acme/web#42 is done
      you cannot claim it now: it is done
      bob-XXXX took it over [span] (epoch 2)
      previously held by ann-XXXX (epoch 1): stuck
      marked done [span]
      run `tenure register` first: you are not in a session
    --- stderr
    ");
}

#[test]
fn settings_are_shown_with_where_they_came_from() {
    let env = env();
    let mut shown = insta::Settings::clone_current();
    shown.add_filter(&env.dir().display().to_string(), "[dir]");
    shown.add_filter("   +", "  ");
    let _bound = shown.bind_to_scope();
    let ann = env.agent("ann");
    assert_snapshot!(ann.tenure_env(&[("TENURE_LEASE", Some("5m"))], &["config"]), @r"
    exit code: 0
    --- stdout
    SETTING  VALUE  FROM  MEANING
    store  [dir]/state/tenure.db  TENURE_HOME  database file; by default tenure.db in the state directory
    lease  5m  TENURE_LEASE  how long a session is presumed alive when its process can't be checked
    lock_delay  15s  default  how long the claims of a session stay held after its lease expires
    host_lease  5m  default  on a shared store: how long a machine counts as alive after its keeper's last report
    hook_wait  150ms  default  on a shared store: how long a hook waits for it, unless it starts or ends a session or may block a write
    keeper.start  false  TENURE_KEEPER_START  on a shared store: whether commands start the keeper of this machine when it is not running
    stalled_after  15m  default  a busy session that is silent for this long is shown as stalled
    agent.brief  true  default  whether a model is told at its start which session it is and who else works here
    ps.unmanaged  false  TENURE_PS_UNMANAGED  whether agents that run without hooks are listed
    privacy.titles  true  default  whether a session is titled after its first prompt; false keeps prompts, and the commands, files and questions it asks about, out of the store
    goto.command  default  command that focuses a window outside tmux; may use {handle} {pid} {tty} {pane}
    guard.mode  default  what to do about a tool call that conflicts with another session: observe, warn or block; by default as installed
    guard.require_claim  default  allow writes only to sessions with a claim that matches this pattern, such as issue:*
    guard.on_error  open  default  when the store is unavailable: open allows writes, closed blocks them
    guard.recent_writes  1h  default  how long other sessions are warned about a file after it was written
    openclaw.heal  true  default  whether a session id that another key took over is given back to its owner in OpenClaw's database, after a copy of it
    grace  7d  default  how long the conversation of a closed item can come back, and its worktree stays
    retry_every  5m  default  the longest wait before another attempt while a remote, a forge or a disk is away
    budget.run  default  what one run may cost, in US dollars; only claude and opencode can be limited
    budget.item_day  default  what the runs of one item may cost within a day, in US dollars; then none of it begins
    budget.day  default  what all runs may cost within a day, in US dollars; then none begins
    budget.day_tokens  0  default  how many tokens the runs that report no money may use within a day, and sessions without a warning; 0 for any number
    answers.agents  default  agents whose questions a person may answer from elsewhere with `tenure answer`, after `tenure install AGENT --answers`
    answers.wait  9m  default  how long a question can be answered from elsewhere, at most 570s; after that only in the agent's own window
    run.stop_grace  10s  default  how long the agent of a run may take to stop before it is killed
    run.keep_for  30d  default  how long the log, the prompt and the other files of a run are kept after its end
    run.keep_last  1000  default  how many runs keep their files at most; the oldest lose theirs first
    retention  0s  default  how long events, and ended sessions that nothing needs, are kept; 0s keeps them for ever, but events on a server for 90 days
    wake.agents  default  agents in whose idle sessions a message starts a turn, such as claude; none if none is listed
    wake.from_agents  false  default  whether messages of agents' sessions start turns too, not only those of people and tokens
    missions.roles  default  roles that a participant may have; any if none is listed
    --- stderr
    ");
}

/// A call of each verb that succeeds; the session `ann` runs them in the order of the help.
fn valid_call(verb: &str, bob: &str, gone: &str, stranger: u32) -> String {
    let more = match verb {
        "resume" => "--all --print",
        "adopt" => &stranger.to_string(),
        "statusline" => "claude",
        "show" | "alive" | "goto" => bob,
        "rename" => &format!("{bob} Login --reason test"),
        "wait" => gone,
        "dismiss" => &format!("{gone} --reason test"),
        "claim" | "release" => "wp:new",
        "guard" | "why" => "wp:own",
        "handoff" => &format!("wp:given --to {bob}"),
        "takeover" => "wp:bobs --reason test",
        // `end` has ended the other one by then.
        "tell" => "ann hello",
        "meta" => "set team blue",
        "mission" => "join m --role developer",
        "conversation" => "set claude wp:own ses_own",
        "completions" => "bash",
        "transcript" => "show ann",
        "skill" | "notify" => "list",
        "store" | "keeper" => "status",
        "token" => "list",
        "import" => "claude-hooks SESSIONS",
        "export" => "all.jsonl",
        "dispatch" => "init",
        "run" => "mine wp:run --prompt hello",
        "lock" => "one --json -- true",
        "install" => "claude",
        "uninstall" => "--all",
        "hook" => "claude",
        _ => "",
    };
    format!("{verb} {more}")
}

#[test]
fn every_verb_answers_with_exactly_one_json_object() {
    let (env, [ann, bob, eve]) = crew(["ann", "bob", "eve"]);
    for (agent, key) in [(&ann, "wp:own"), (&ann, "wp:given"), (&bob, "wp:bobs")] {
        take(agent, key);
    }
    let (other, gone) = (handle(&bob), handle(&eve));
    eve.kill9();
    let stranger = env.agent("gemini");
    let schema = env.tenure(&["schema"]).ok().json();
    Scripted::new(&env, "mine", "init; done_");
    fs::write(env.home().join("sessions.json"), "{}").unwrap();
    for verb in verbs(&env) {
        if matches!(verb.as_str(), "hook" | "mcp" | "watch" | "serve") {
            // They answer in the format of the agent or of the protocol, or never end by themselves.
            continue;
        }
        let sessions = env.home().join("sessions.json");
        let call = valid_call(&verb, &other, &gone, stranger.pid())
            .replace("SESSIONS", sessions.to_str().unwrap());
        let caller = if verb == "end" { &bob } else { &ann };
        let mut words: Vec<&str> = call.split_whitespace().collect();
        if verb == "lock" {
            // Stdout belongs to the command that it runs.
            let output = caller.tenure(&words).ok();
            let own = output.stderr.lines().last().expect("an object on stderr");
            let own: Value = serde_json::from_str(own).expect(own);
            assert_eq!((&own["v"], output.stdout.as_str()), (&Value::from(1), ""));
            says_its_part(&schema, &verb, &own);
            continue;
        }
        words.push("--json");
        let output = caller.tenure(&words);
        if verb == "run" {
            // A stream: one object on each line.
            for line in output.ok().stdout.lines() {
                let line: Value = serde_json::from_str(line).expect(line);
                shape::assert_fits(&schema, "streamed", &line);
            }
            continue;
        }
        let expected = match verb.as_str() {
            // An agent of no known kind has no transcript.
            "transcript" => 4,
            // This one has no window.
            "goto" => 1,
            // Only a person at a terminal can.
            "answer" => 1,
            // The dispatch.toml of `dispatch init` is to be filled in.
            "doctor" => 6,
            _ => 0,
        };
        assert_eq!(
            output.code, expected,
            "give {verb} a call that succeeds in valid_call of crates/cli/tests/e2e/output.rs\n{output}"
        );
        let json = one_object(&output);
        if output.code == 0 || verb == "doctor" {
            says_its_part(&schema, &verb, &json);
        }
    }
}

/// An answer has a part that the schema names for its verb.
fn says_its_part(schema: &Value, verb: &str, answer: &Value) {
    let named = schema["answers"][verb].as_str().unwrap_or_default();
    assert!(
        named.split('|').any(|part| answer.get(part).is_some()),
        "{verb} answers with {:?}: name its part in its row of crates/cli/src/verbs/mod.rs, which has \
         {named:?}, and its shape in schema.rs",
        parts(answer)
    );
    shape::assert_fits(schema, &format!("{verb}.answer"), answer);
}

/// The names of an object's parts.
fn parts(object: &Value) -> BTreeSet<String> {
    let object = object
        .as_object()
        .unwrap_or_else(|| panic!("{object} is no object"));
    object.keys().cloned().collect()
}

/// The parts that DESIGN §12 promises.
const SESSION: &str = "id handle agent native_id native_ids state activity twin_of parent title dir repo \
    branch process started_at last_seen_at lease_until ended_at end_reason claims";

/// The holder of a claim is shown without what it holds and had (docs/decisions/0001).
const HOLDER: &str = "id handle agent native_id state activity twin_of parent title dir repo \
    branch process started_at last_seen_at lease_until ended_at end_reason";

const PROCESS: &str = "host_id boot_id pid_ns pid start_ticks life verified";

const CLAIM: &str = "key epoch holder state acquired_at freed_by lease_until note";

#[test]
fn the_schema_says_what_answers_have() {
    let Scene { env, ann, bob } = scene();
    let schema = env.tenure(&["schema"]).ok().json();
    let granted = run(&bob, 0, "claim wp:7");
    let listed = run(&ann, 0, "ps -a");
    let mut answers = vec![
        ("claim", &granted["claim"], CLAIM),
        ("session", &granted["claim"]["holder"], HOLDER),
    ];
    for one in listed["sessions"].as_array().expect("a list") {
        answers.push(("session", one, SESSION));
        for part in PROCESS.split_whitespace() {
            assert!(
                parts(&one["process"]).contains(part),
                "process.{part}: {one}"
            );
        }
    }
    let registered = register(&ann, "ann", "--native-id n1");
    answers.push(("session", &registered["session"], "registered"));
    answers.push(("claim", &granted["claim"], "already_held taken_from"));
    for (name, answer, promised) in answers {
        let known = parts(&schema["$defs"][name]["properties"]);
        assert!(
            parts(answer).is_subset(&known),
            "{name} has more than the schema: {answer}"
        );
        for part in promised.split_whitespace() {
            assert!(parts(answer).contains(part), "{name}.{part}: {answer}");
        }
        for part in schema["$defs"][name]["required"]
            .as_array()
            .expect("a list")
        {
            assert!(
                parts(answer).contains(&text(part)),
                "{name}.{part}: {answer}"
            );
        }
    }
    assert_eq!(schema["exit_codes"].as_array().map(Vec::len), Some(14));
}

/// The commands that `why` names.
fn remedies(agent: &Agent, key: &str) -> Vec<String> {
    let told = agent.tenure(&["why", key]).ok().stdout;
    let command = |line: &str| {
        let (command, _) = line.trim().strip_prefix("run `")?.rsplit_once("` ")?;
        Some(command.to_owned())
    };
    told.lines().filter_map(command).collect()
}

#[test]
fn every_command_that_why_names_works_as_it_is_printed() {
    for key in [
        "issue:acme/web#42",
        "doc:two words",
        "doc:it's \"$HOME\" `x`",
        "doc:a;b&c|d>e*(f)",
    ] {
        let env = env();
        let (ann, bob) = (session(&env, "ann"), session(&env, "human"));
        let obey = |state: &str, holder: Option<&Agent>| {
            let mut lines = remedies(&bob, key);
            assert!(!lines.is_empty(), "{state}: no command");
            // The holder would not release it within the test.
            lines.retain(|line| !line.contains("--wait"));
            for line in lines {
                let output = bob.tenure_shell(&line);
                assert_eq!(output.code, 0, "{state}: {line}\n{output}");
            }
            let now = bob.tenure(&["why", key, "--json"]).ok().json();
            let expected = holder.map(handle);
            assert_eq!(
                now["claim"]["holder"]["handle"].as_str(),
                expected.as_deref(),
                "{state}"
            );
        };
        obey("free", Some(&bob));
        obey("mine", None);
        ann.tenure(&["claim", key]).ok();
        obey("held by another", Some(&bob));
        bob.tenure(&["release", key, "--done"]).ok();
        obey("done", Some(&bob));
    }
}

#[test]
fn what_why_names_makes_a_stranger_a_holder() {
    let env = env();
    let claude = env.agent("claude");
    for line in remedies(&claude, "wp:1") {
        let output = claude.tenure_shell(&line);
        assert_eq!(output.code, 0, "{line}\n{output}");
    }
    run(&claude, 0, "guard wp:1");
}

#[test]
fn a_refusal_says_who_has_it_since_when_where_and_for_what() {
    let Scene { env, ann, bob } = scene();
    let refused = bob.tenure(&["claim", "issue:acme/web#42"]).fails(3).stderr;
    let dir = env.dir().join("repo").display().to_string();
    for word in [&handle(&ann), &dir, "fix login"] {
        assert!(refused.contains(word), "{word} is missing\n{refused}");
    }
    let time = [" since ", " for ", " ago"];
    let says_when = time.iter().any(|word| refused.contains(word));
    assert!(says_when, "since when?\n{refused}");
}

#[test]
fn the_log_goes_on_after_a_cursor_and_since_a_time() {
    let (_env, [ann]) = crew(["ann"]);
    take(&ann, "wp:1");
    let cursor = run(&ann, 0, "log")["cursor"].to_string();
    assert_eq!(events(&ann, &format!("--after {cursor}")).len(), 0);
    take(&ann, "wp:2");
    let rest = events(&ann, &format!("--after {cursor}"));
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0]["key"], "wp:2");
    assert_eq!(
        events(&ann, "--after 0 --limit 1")[0]["kind"],
        "session.registered"
    );
    assert_eq!(events(&ann, "--limit 1")[0]["key"], "wp:2");
    assert_eq!(events(&ann, "--since 1h").len(), 3);
    let exactly = events(&ann, &format!("--since {}", text(&rest[0]["at"])));
    assert_eq!(exactly.last().expect("it is included")["key"], "wp:2");
    assert_eq!(events(&ann, "--since 2100-01-01T00:00:00Z").len(), 0);
    run(&ann, 2, "log --since yesterday");
}

#[test]
fn a_followed_log_shows_what_happens_as_it_happens() {
    let (_env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:before");
    let follow = |args: &[&str]| bob.start(Cmd::new("tenure").args(args.iter().copied()));
    let (plain, lines) = (follow(&["log", "-f"]), follow(&["log", "-f", "--json"]));
    let shows = |what: &str| {
        let both = || plain.stdout().contains(what) && lines.stdout().contains(what);
        poll(SOON, what, || both().then_some(()));
    };
    shows("wp:before");
    take(&ann, "wp:new");
    shows("wp:new");
    let printed = lines.stdout();
    let cursor = |line: &str| {
        let object: Value = serde_json::from_str(line).expect("one object on each line");
        object["event"]["cursor"]
            .as_u64()
            .expect("a cursor for --after")
    };
    let cursors: Vec<u64> = printed.lines().map(cursor).collect();
    assert!(cursors.is_sorted_by(|a, b| a < b), "{cursors:?}");
    for follower in [plain, lines] {
        follower.kill9();
    }
}
