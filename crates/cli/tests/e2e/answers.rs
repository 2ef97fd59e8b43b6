//! Questions of agents that a person answers from elsewhere: real hooks that wait, a real shell at a terminal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_testkit::{Agent, Background, Cmd, Env, Output, Shell, Signal, poll};

use crate::env;
use crate::support::answer::{PATIENCE, asked_by_nobody, register};
use crate::support::hook::sleeps;
use crate::support::hooked::Hooked;

/// Agents whose questions may be answered, for as long as a test needs.
fn answering(wait: &str) -> Env {
    let mut env = env();
    env.set("TENURE_ANSWERS_AGENTS", "claude");
    env.set("TENURE_ANSWERS_WAIT", wait);
    env
}

fn session(env: &Env, conversation: &str) -> Hooked {
    Hooked::start(env, "claude", conversation, &env.work())
}

fn shell_call(command: &str) -> Value {
    json!({"tool_name": "Bash", "tool_input": {"command": command},
        "permission_suggestions": [{"type": "addRules", "behavior": "allow",
            "rules": [{"toolName": "Bash", "ruleContent": "touch *"}]}]})
}

fn colours() -> Value {
    json!({"tool_name": "AskUserQuestion", "tool_input": {"questions": [{"question": "Which colour?",
        "header": "Colour", "multiSelect": false,
        "options": [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]}]}})
}

/// The agent asks: its hook, as its settings run it.
fn starts_asking(hooked: &Hooked, what: &Value) -> Background {
    starts_asking_with(hooked, "", what)
}

fn starts_asking_with(hooked: &Hooked, variable: &str, what: &Value) -> Background {
    let mut event = json!({"hook_event_name": "PermissionRequest",
        "session_id": hooked.conversation, "cwd": hooked.dir});
    let more = what.as_object().expect("it is there").clone();
    event.as_object_mut().expect("it is there").extend(more);
    let line = format!("{variable}exec tenure hook claude --answers");
    hooked
        .agent
        .start(Cmd::shell(&line).stdin(event.to_string()))
}

/// The ids of the questions that no file closes yet.
fn open(env: &Env) -> Vec<String> {
    let files = fs::read_dir(env.state().join("questions"))
        .into_iter()
        .flatten();
    let names = files.map(|file| {
        file.expect("it is there")
            .file_name()
            .into_string()
            .expect("it is there")
    });
    let mut ids: Vec<String> = names
        .filter_map(|name| Some(name.strip_suffix(".json")?.to_owned()))
        .filter(|id| !closing(env, id).exists())
        .collect();
    ids.sort();
    ids
}

fn closing(env: &Env, id: &str) -> PathBuf {
    env.state().join("questions").join(format!("{id}.answer"))
}

/// The same once the question is open; its id.
fn asks(env: &Env, hooked: &Hooked, what: &Value) -> (Background, String) {
    asks_with(env, hooked, "", what)
}

fn asks_with(env: &Env, hooked: &Hooked, variable: &str, what: &Value) -> (Background, String) {
    let before = open(env);
    let hook = starts_asking_with(hooked, variable, what);
    let id = poll(PATIENCE, "the question is open", || {
        open(env).into_iter().find(|id| !before.contains(id))
    });
    (hook, id)
}

/// A person's answer; its messages go to the terminal.
fn answer(shell: &Shell, words: &str) -> Output {
    shell.line(&format!("tenure answer {words} --json 2>/dev/tty"))
}

/// Waits for a hook that must print nothing.
#[track_caller]
fn says_nothing(hook: Background) {
    let said = hook.wait();
    assert_eq!((said.code, said.stdout.as_str()), (0, ""), "{said}");
}

#[track_caller]
fn refused(said: Output, kind: &str) -> String {
    let error = said.fails(1).json()["error"].clone();
    assert_eq!(error["kind"], kind, "{error:#}");
    error["message"].as_str().expect("it is there").to_owned()
}

fn log(env: &Env) -> Vec<Value> {
    let log = asked_by_nobody(env, &["log", "--kind", "session.answered"]);
    log["events"].as_array().expect("it is there").clone()
}

#[test]
fn a_person_elsewhere_allows_one_call_and_nothing_else_comes_along() {
    let env = answering("5m");
    let (hooked, shell) = (session(&env, "c-1"), env.shell_at_terminal());
    let handle = hooked.handle();
    let (hook, id) = asks(&env, &hooked, &shell_call("touch a\nrm -rf \u{1b}[2Kb"));
    let listed = shell.line("tenure answer 2>/dev/tty").ok().stdout;
    for part in [
        format!("{handle} asks for permission for Bash, for one call ({id})"),
        format!("  in {}", env.work().display()),
        "  | touch a\n  | rm -rf \\u{1b}[2Kb\n".to_owned(),
        format!("tenure answer {handle} {id} allow|deny"),
    ] {
        assert!(listed.contains(&part), "{part:?} is not in\n{listed}");
    }
    let sent = answer(&shell, &format!("{handle} {id} allow")).ok().json();
    assert_eq!(sent["sent"]["answer"], "allow", "{sent:#}");
    let said = hook.wait().ok();
    let decision = json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest",
        "decision": {"behavior": "allow"}}});
    assert_eq!(said.json(), decision);
    let log = log(&env);
    assert_eq!(log.len(), 1, "{log:#?}");
    let evidence = log[0]["evidence"].as_str().unwrap();
    for part in ["allow to q-", "Bash: touch a", "; by uid ", " at pts/"] {
        assert!(evidence.contains(part), "{part} is not in {evidence}");
    }
    let late = refused(answer(&shell, &format!("{handle} {id} deny")), "not_open");
    assert!(
        late.contains("was answered already: allow by uid "),
        "{late}"
    );
}

#[test]
fn a_hook_that_waits_holds_no_store_open() {
    let env = answering("5m");
    let hooked = session(&env, "c-1");
    let (hook, _) = asks(&env, &hooked, &shell_call("ls"));
    let held = || {
        let files = fs::read_dir(format!("/proc/{}/fd", hook.pid)).unwrap();
        let names = files.filter_map(|file| fs::read_link(file.unwrap().path()).ok());
        names.filter(|name| name.starts_with(env.state())).count()
    };
    // It waits as soon as its event is recorded.
    poll(PATIENCE, "it has let go of the store", || {
        (held() == 0).then_some(())
    });
    assert!(hook.is_alive());
}

#[test]
fn a_denial_has_a_message_and_a_question_takes_a_text() {
    let env = answering("5m");
    let (hooked, shell) = (session(&env, "c-1"), env.shell_at_terminal());
    let handle = hooked.handle();
    let (hook, id) = asks(&env, &hooked, &shell_call("rm -rf /"));
    let said = answer(&shell, &format!("{handle} {id} 'rm -rf /tmp'")).fails(2);
    assert!(said.stdout.contains("not with a text"), "{said}");
    answer(&shell, &format!("{handle} {id} allow --message 'for ever'")).fails(2);
    assert_eq!(
        open(&env),
        std::slice::from_ref(&id),
        "nothing was answered"
    );
    answer(&shell, &format!("{handle} {id} deny --message 'not here'")).ok();
    let decision = &hook.wait().ok().json()["hookSpecificOutput"]["decision"];
    assert_eq!(
        *decision,
        json!({"behavior": "deny", "message": "not here"})
    );
    let (hook, id) = asks(&env, &hooked, &colours());
    answer(&shell, &format!("{handle} {id} allow")).fails(2);
    answer(&shell, &format!("{handle} {id} Blue")).ok();
    let decision = &hook.wait().ok().json()["hookSpecificOutput"]["decision"];
    let mut input = colours()["tool_input"].clone();
    input["answers"] = json!({"Which colour?": "Blue"});
    assert_eq!(
        *decision,
        json!({"behavior": "allow", "updatedInput": input})
    );
}

#[test]
fn the_first_answer_is_the_persons_own_and_a_late_one_is_refused() {
    let env = answering("5m");
    let (hooked, shell) = (session(&env, "c-1"), env.shell_at_terminal());
    for event in ["PostToolUse", "Stop", "UserPromptSubmit", "StopFailure"] {
        let (hook, id) = asks(&env, &hooked, &shell_call("ls"));
        hooked.event(&[], event, json!({"tool_name": "Bash", "prompt": "go on"}));
        says_nothing(hook);
        let late = answer(&shell, &format!("{} {id} allow", hooked.handle()));
        let why = refused(late, "not_open");
        assert!(why.contains(&format!("went on ({event})")), "{why}");
    }
    // What does not show that it went on leaves it open.
    let (hook, id) = asks(&env, &hooked, &shell_call("ls"));
    let told = json!({"notification_type": "permission_prompt", "message": "Claude needs you"});
    hooked.event(&[], "Notification", told);
    hooked.event(
        &[],
        "PostToolUse",
        json!({"agent_id": "a1", "tool_name": "Read"}),
    );
    let other = session(&env, "c-2");
    other.event(&[], "Stop", json!({}));
    answer(&shell, &format!("{} {id} allow", hooked.handle())).ok();
    assert_ne!(hook.wait().ok().stdout, "");
    assert_eq!(log(&env).len(), 1);
}

#[test]
fn if_nobody_answers_the_agents_own_dialog_decides() {
    let env = answering("300ms");
    let hooked = session(&env, "c-1");
    says_nothing(starts_asking(&hooked, &shell_call("ls")));
    assert_eq!(open(&env), [""; 0]);
    assert_eq!(log(&env), [Value::Null; 0]);
}

#[test]
fn it_is_off_until_the_user_switches_it_on() {
    let mut env = env();
    let hooked = session(&env, "c-1");
    says_nothing(starts_asking(&hooked, &shell_call("ls")));
    env.set("TENURE_ANSWERS_AGENTS", "claude");
    // Without its own switch a hook has no time to wait.
    let other = session(&env, "c-2");
    assert_eq!(
        other.event(&[], "PermissionRequest", shell_call("ls")),
        Value::Null
    );
    // Of what decides more than a call, only the agent's own window asks.
    let plan = json!({"tool_name": "ExitPlanMode", "tool_input": {"plan": "x"}});
    says_nothing(starts_asking(&other, &plan));
    assert!(!env.state().join("questions").exists());
}

#[test]
fn a_hook_that_was_killed_offers_nothing() {
    let env = answering("5m");
    let (hooked, shell) = (session(&env, "c-1"), env.shell_at_terminal());
    let (hook, id) = asks(&env, &hooked, &shell_call("ls"));
    hook.kill9();
    let listed = answer(&shell, "").ok().json();
    assert_eq!(listed["questions"], json!([]));
    let why = refused(
        answer(&shell, &format!("{} {id} allow", hooked.handle())),
        "not_open",
    );
    assert!(why.contains("its hook is gone"), "{why}");
    assert!(!closing(&env, &id).exists());
    assert_eq!(log(&env), [Value::Null; 0]);
}

#[test]
fn of_two_answers_at_once_exactly_one_counts() {
    let env = answering("5m");
    let hooked = session(&env, "c-1");
    let handle = hooked.handle();
    let shells = [env.shell_at_terminal(), env.shell_at_terminal()];
    for _ in 0..8 {
        let (hook, id) = asks(&env, &hooked, &shell_call("ls"));
        let said: Vec<Output> = std::thread::scope(|scope| {
            let each = shells.iter().zip(["allow", "deny"]).map(|(shell, word)| {
                let words = format!("{handle} {id} {word}");
                scope.spawn(move || answer(shell, &words))
            });
            let started: Vec<_> = each.collect();
            started.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let codes: Vec<i32> = said.iter().map(|one| one.code).collect();
        let winner = match codes[..] {
            [0, 1] => "allow",
            [1, 0] => "deny",
            _ => panic!("{said:#?}"),
        };
        let decision = &hook.wait().ok().json()["hookSpecificOutput"]["decision"];
        assert_eq!(decision["behavior"], winner);
    }
    assert_eq!(log(&env).len(), 8, "only the first answer is logged");
}

#[test]
fn a_question_is_replaced_by_another_of_its_session() {
    let env = answering("5m");
    let (hooked, shell) = (session(&env, "c-1"), env.shell_at_terminal());
    let (first, old) = asks(&env, &hooked, &shell_call("one"));
    let (second, new) = asks(&env, &hooked, &shell_call("two"));
    says_nothing(first);
    let why = refused(
        answer(&shell, &format!("{} {old} allow", hooked.handle())),
        "not_open",
    );
    assert!(why.contains("asks something else now"), "{why}");
    answer(&shell, &format!("{} {new} deny", hooked.handle())).ok();
    assert_ne!(second.wait().ok().stdout, "");
}

#[test]
fn a_question_ends_with_its_agent_and_its_hook_is_no_survivor() {
    let env = answering("5m");
    let (hooked, shell) = (session(&env, "c-1"), env.shell_at_terminal());
    let handle = hooked.handle();
    hooked.agent.tenure(&["claim", "wp:1"]).ok();
    // As Claude Code starts it: with its id variable, by which what a session left is found.
    let variable = "CLAUDE_CODE_SESSION_ID=c-1 ";
    let (hook, id) = asks_with(&env, &hooked, variable, &shell_call("ls"));
    // It cannot end yet when it is looked for.
    assert!(hook.signal(Signal::STOP));
    hooked.agent.kill9();
    let bob = env.agent("bob");
    register(&bob, &["--agent", "bob", "--pid", &bob.pid().to_string()]);
    bob.tenure(&["claim", "--any", "wp:1"]).ok();
    assert!(hook.is_alive());
    assert!(hook.signal(Signal::CONT));
    poll(PATIENCE, "the hook ended by itself", || {
        (!hook.is_alive()).then_some(())
    });
    refused(answer(&shell, &format!("{handle} {id} allow")), "not_open");
    assert_eq!(log(&env), [Value::Null; 0]);
}

#[test]
fn without_an_id_the_whole_question_is_shown_and_asked_back() {
    let env = answering("5m");
    let (hooked, shell) = (session(&env, "c-1"), env.shell_at_terminal());
    let handle = hooked.handle();
    let confirm = |keys: &str, id: &str| {
        let question = format!("answer {id} with allow? [y/N]");
        std::thread::scope(|scope| {
            let said = scope.spawn(|| answer(&shell, &format!("{handle} allow")));
            poll(PATIENCE, "it asks back", || {
                let shown = shell.shown();
                (shown.contains("  | touch a") && shown.contains(&question)).then_some(())
            });
            shell.press(keys);
            said.join().unwrap()
        })
    };
    let (hook, id) = asks(&env, &hooked, &shell_call("touch a"));
    let said = confirm("\r", &id).ok().json();
    assert_eq!(said["sent"], Value::Null);
    assert_eq!(open(&env), [id], "nothing was sent");
    hooked.event(&[], "Stop", json!({}));
    says_nothing(hook);
    let (hook, id) = asks(&env, &hooked, &shell_call("touch a"));
    let said = confirm("y\r", &id).ok().json();
    assert_eq!(said["sent"]["question"]["id"], id.as_str());
    assert_ne!(hook.wait().ok().stdout, "");
}

/// Checks that a line answered nothing; returns its message.
#[track_caller]
fn cannot(env: &Env, id: &str, said: &Output) -> String {
    assert_eq!(said.code, 1, "{said}");
    assert!(!closing(env, id).exists(), "{said}");
    said.json()["error"]["message"]
        .as_str()
        .expect("it is there")
        .to_owned()
}

#[test]
fn no_agent_can_answer_however_it_calls() {
    let env = answering("5m");
    let (hooked, other) = (session(&env, "c-1"), session(&env, "c-2"));
    let (hook, id) = asks(&env, &hooked, &shell_call("ls"));
    let words = ["answer", &hooked.handle(), &id, "allow", "--json"];
    for agent in [&hooked.agent, &other.agent] {
        let why = cannot(&env, &id, &agent.tenure(&words));
        assert!(why.contains("only a person"), "{why}");
    }
    // An agent that is no session, and what it starts.
    let stranger = env.agent("codex");
    cannot(&env, &id, &stranger.tenure(&words));
    cannot(
        &env,
        &id,
        &stranger.run(Cmd::shell(&format!("sh -c 'tenure {}'", words.join(" ")))),
    );
    // A program without a terminal.
    let why = cannot(&env, &id, &env.tenure(&words));
    assert!(why.contains("no controlling terminal"), "{why}");
    assert!(hook.is_alive() && log(&env).is_empty());
}

#[test]
fn what_an_agent_left_in_a_terminal_cannot_answer() {
    let env = answering("5m");
    let hooked = session(&env, "c-1");
    let (_hook, id) = asks(&env, &hooked, &shell_call("ls"));
    let at_terminal = env.agent_at_terminal("claude");
    let done = env.dir().join("answered");
    let line = format!(
        "tenure answer {} {id} allow --json </dev/tty >{out} 2>/dev/tty; echo code $? >>{out}; mv {out} {done}",
        hooked.handle(),
        out = env.dir().join("answering").display(),
        done = done.display(),
    );
    // Its parent is gone and no variable names anybody, but it is in the agent's terminal.
    let detached = Cmd::shell(&line)
        .unset("TENURE_SESSION")
        .unset("TENURE_RUN");
    at_terminal.orphan(detached);
    let said = poll(PATIENCE, "it was refused", || {
        fs::read_to_string(&done).ok()
    });
    assert!(
        said.contains("code 1") && said.contains("person_only"),
        "{said}"
    );
    assert!(!closing(&env, &id).exists());
}

#[test]
fn a_persons_session_that_an_agent_registers_for_its_shell_cannot_answer() {
    let env = answering("5m");
    let hooked = session(&env, "c-1");
    let (_hook, id) = asks(&env, &hooked, &shell_call("ls"));
    let line = format!(
        "tenure register --agent human --pid $$ >/dev/null && \
         tenure answer {} {id} allow --json </dev/tty 2>/dev/tty; exit $?",
        hooked.handle()
    );
    let said = env
        .agent_at_terminal("codex")
        .run(Cmd::shell(&line).unset("TENURE_SESSION"));
    let why = cannot(&env, &id, &said);
    assert!(why.contains("codex runs it"), "{why}");
}

#[test]
fn a_terminal_is_a_persons_only_in_its_foreground_and_without_an_agents_variables() {
    let env = answering("5m");
    let (hooked, shell) = (session(&env, "c-1"), env.shell_at_terminal());
    let (_hook, id) = asks(&env, &hooked, &shell_call("ls"));
    let line = format!("tenure answer {} {id} allow --json", hooked.handle());
    for (before, after, why) in [
        ("TENURE_SESSION=x", "2>/dev/tty", "only a person can"),
        ("TENURE_RUN=r-1", "2>/dev/tty", "TENURE_RUN is set"),
        (
            "CLAUDE_CODE_SESSION_ID=x",
            "2>/dev/tty",
            "only a person can",
        ),
        ("", "</dev/null 2>/dev/tty", "are not the terminal"),
        ("", "2>/dev/null", "are not the terminal"),
        ("setsid -w", "2>/dev/tty", "no controlling terminal"),
        ("", "2>/dev/tty & wait $!", "in the background"),
    ] {
        let said = shell.line(&format!("{before} {line} {after}"));
        let told = cannot(&env, &id, &said);
        assert!(told.contains(why), "{before} {after}: {told}");
    }
}

/// Puts a whole private file in its place, as tenure does.
fn write_whole(path: &Path, content: &Value) {
    let new = path.with_extension("new");
    fs::write(&new, content.to_string()).expect("the directory is ours");
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).expect("the file is ours");
    fs::rename(new, path).expect("the directory is ours");
}

#[test]
fn a_hook_that_does_not_react_is_not_called_gone() {
    let env = answering("5m");
    let (hooked, shell) = (session(&env, "c-1"), env.shell_at_terminal());
    let (hook, id) = asks(&env, &hooked, &shell_call("ls"));
    // Before that it still has the time limit of any hook.
    poll(PATIENCE, "it waits", || sleeps(hook.pid).then_some(()));
    assert!(hook.signal(Signal::STOP));
    let line = format!("{} {id} allow", hooked.handle());
    let why = refused(answer(&shell, &line), "not_open");
    assert!(why.contains("may still send the answer"), "{why}");
    let late = refused(answer(&shell, &line), "not_open");
    assert!(late.contains("is not sent yet, allow by uid "), "{late}");
    assert!(hook.signal(Signal::CONT));
    assert_ne!(hook.wait().ok().stdout, "", "it was logged");
    let late = refused(answer(&shell, &line), "not_open");
    assert!(late.contains("was answered already"), "{late}");
}

#[test]
fn the_log_has_only_kinds_where_the_project_says_so() {
    let env = answering("5m");
    fs::write(
        env.work().join(".tenure.toml"),
        "[privacy]\ntitles = false\n",
    )
    .unwrap();
    let git = env.agent("git").run(Cmd::shell("git init --quiet ."));
    assert_eq!(git.code, 0, "{git}");
    let (hooked, shell) = (session(&env, "c-1"), env.shell_at_terminal());
    let (hook, id) = asks(&env, &hooked, &shell_call("curl secret.example"));
    // A person elsewhere is in no directory of the project.
    let line = format!(
        "cd / && tenure answer {} {id} deny --message no-secrets --json 2>/dev/tty",
        hooked.handle()
    );
    shell.line(&line).ok();
    assert_ne!(hook.wait().ok().stdout, "");
    let log = log(&env);
    let evidence = log[0]["evidence"].as_str().unwrap();
    assert!(
        evidence.starts_with(&format!("deny {id}, Bash; by uid ")),
        "{evidence}"
    );
}

#[test]
fn an_answer_file_written_by_hand_sends_nothing_that_is_not_logged() {
    let env = answering("5m");
    let (hooked, shell) = (session(&env, "c-1"), env.shell_at_terminal());
    let (hook, id) = asks(&env, &hooked, &shell_call("ls"));
    let forged =
        json!({"how": "answered", "answer": "allow", "by": "me", "at": "2026-11-15T08:00:00Z"});
    write_whole(&closing(&env, &id), &forged);
    says_nothing(hook);
    refused(
        answer(&shell, &format!("{} {id} allow", hooked.handle())),
        "not_open",
    );
    assert_eq!(log(&env), [Value::Null; 0]);
}

#[test]
fn an_answer_file_that_does_not_fit_the_question_sends_nothing() {
    let env = answering("5m");
    let hooked = session(&env, "c-1");
    let (hook, id) = asks(&env, &hooked, &shell_call("ls"));
    let recorded = closing(&env, &id).with_extension("recorded");
    write_whole(&recorded, &json!(null));
    let forged = json!({"how": "answered", "answer": {"texts": ["ls -a"]}, "by": "me",
        "at": "2026-11-15T08:00:00Z"});
    write_whole(&closing(&env, &id), &forged);
    says_nothing(hook);
}

#[test]
fn a_session_that_asks_on_another_machine_is_answered_there() {
    let env = answering("5m");
    let (hooked, shell) = (session(&env, "c-1"), env.shell_at_terminal());
    let (hook, id) = asks(&env, &hooked, &shell_call("ls"));
    // The same store, from a state directory without the question.
    fs::rename(
        env.state().join("questions"),
        env.state().join("of-another"),
    )
    .unwrap();
    let why = refused(
        answer(&shell, &format!("{} {id} allow", hooked.handle())),
        "not_open",
    );
    assert!(why.contains("asks no question"), "{why}");
    drop(hook);
}

#[test]
fn a_question_of_one_session_is_not_answered_as_another_ones() {
    let env = answering("5m");
    let (hooked, shell) = (session(&env, "c-1"), env.shell_at_terminal());
    let other: Agent = env.agent("bob");
    let pid = other.pid().to_string();
    register(&other, &["--agent", "bob", "--pid", &pid]);
    let (hook, id) = asks(&env, &hooked, &shell_call("ls"));
    let bob = other.tenure(&["whoami", "--json"]).ok().json();
    let bob = bob["session"]["handle"].as_str().unwrap().to_owned();
    refused(answer(&shell, &format!("{bob} {id} allow")), "not_open");
    assert!(hook.is_alive());
    assert_eq!(open(&env), [id]);
}

/// The hooks of an event in Claude Code's settings.
fn installed(env: &Env, event: &str) -> Value {
    let text = fs::read_to_string(env.home().join(".claude/settings.json")).expect("it is there");
    let settings: Value = serde_json::from_str(&text).expect("it is there");
    settings["hooks"][event].clone()
}

#[test]
fn only_the_hook_for_permissions_may_wait_and_only_as_long_as_the_switch_is_given() {
    let env = env();
    let file = env.home().join(".claude/settings.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let before = "{\n  \"model\": \"opus\"\n}\n";
    fs::write(&file, before).unwrap();
    let install = |more: &[&str]| env.tenure(&[&["install", "claude"], more].concat()).ok();
    let hook = |event: &str| {
        let groups = installed(&env, event);
        assert_eq!(groups.as_array().unwrap().len(), 1, "{groups:#}");
        let hook = &groups[0]["hooks"][0];
        let waits = hook["command"]
            .as_str()
            .unwrap()
            .ends_with(" hook claude --answers");
        (waits, hook["timeout"].as_u64().unwrap())
    };
    let _plain = install(&[]);
    assert_eq!(hook("PermissionRequest"), (false, 5));
    let _with = install(&["--answers"]);
    assert_eq!(hook("PermissionRequest"), (true, 580));
    assert_eq!(hook("PreToolUse"), (false, 5));
    let text = fs::read_to_string(&file).unwrap();
    let _again = install(&["--answers"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    env.tenure(&["install", "claude", "--check"]).ok();
    let _without = install(&[]);
    assert_eq!(hook("PermissionRequest"), (false, 5));
    let _with = install(&["--answers"]);
    env.tenure(&["uninstall", "claude"]).ok();
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
}
