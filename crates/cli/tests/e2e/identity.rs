//! Who a caller is: found by processes, never by a guess.

use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env, Output, Scripted, poll};

use crate::env;
use crate::support::answer::{
    PATIENCE, ask, asked_by_nobody, assert_is, count, events, held, refused, register, text,
};
use crate::support::crowd::at_once;
use crate::support::namespace::{pid_namespace, sandboxed};

/// The id of the session that this agent's tools are.
#[track_caller]
fn me(agent: &Agent) -> String {
    text(&ask(agent, &["whoami"]), "/session/id").to_owned()
}

/// A caller with neither an agent above it nor a terminal, but with this variable.
fn with_variable(env: &Env, token: &str, args: &[&str]) -> Output {
    let helper = env.agent("helper");
    helper.tenure_env(&[("TENURE_SESSION", Some(token))], args)
}

/// A run's agent makes no token of its own, and what it was given is worth nothing when the run is over.
#[test]
fn the_variable_of_a_run_names_nobody_once_the_run_is_over() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "init; printf '%s\n' \"$TENURE_SESSION\" >$dir/variable; tenure token new own --json >$dir/token; \
         tenure claim wp:2 --json >$dir/claim; done_",
    );
    let ann = env.agent("ann");
    ann.tenure(&["run", "mine", "wp:1", "--prompt", "x"]).ok();
    let wrote = |name: &str| -> Value {
        let text = mine.line(name).expect("it was written");
        serde_json::from_str(&text).expect("it is JSON")
    };
    assert_eq!(wrote("token")["error"]["kind"], "person_only");
    let claimed = wrote("claim");
    assert_eq!(claimed["claim"]["key"], "wp:2", "{claimed}");

    let variable = mine.line("variable").expect("it was written");
    let late = with_variable(&env, variable.trim(), &["claim", "wp:3", "--json"]);
    assert_eq!(late.code, 4, "{late}");
    assert_eq!(late.json()["error"]["kind"], "no_session", "{late}");
    let claims = asked_by_nobody(&env, &["claims", "--all"]);
    assert!(!claims.to_string().contains("wp:3"), "{claims}");
}

/// The JSON in a file of the directory that agents work in.
#[track_caller]
fn left_in(env: &Env, name: &str) -> Value {
    let text = std::fs::read_to_string(env.work().join(name)).expect("it was written");
    serde_json::from_str(&text).expect("it is JSON")
}

/// How many sessions there ever were.
#[track_caller]
fn sessions(env: &Env) -> usize {
    count(&asked_by_nobody(env, &["ps", "-a"]), "/sessions")
}

#[test]
fn f_i01_a_new_conversation_on_a_dead_ones_terminal_inherits_nothing() {
    let env = env();
    let shell = env.shell_at_terminal();
    let start = |id: &str, rest: &str| {
        let register = format!("tenure register --agent claude --pid $$ --native-id {id} --json");
        shell.line(&format!("sh -c '{register}; {rest}'"))
    };
    let dead = start("a1", "tenure claim wp:1 -q; kill -9 $$").fails(137);
    let dead = dead.json();
    let next = start(
        "b1",
        "tenure claims --mine --json >mine; tenure claim wp:1 --json >claim",
    );
    let next = next.ok().json();
    assert_eq!(next["session"]["registered"], "new");
    assert_ne!(next["session"]["id"], dead["session"]["id"]);
    assert_eq!(next["session"]["dir"], dead["session"]["dir"]);
    assert_eq!(count(&left_in(&env, "mine"), "/claims"), 0);
    let claim = left_in(&env, "claim");
    assert_eq!(claim["claim"]["epoch"], 2);
    assert_eq!(claim["claim"]["already_held"], false);
    assert_eq!(
        claim["claim"]["taken_from"]["session"],
        dead["session"]["id"]
    );
}

#[test]
fn f_i02_two_conversations_in_one_window_are_two_sessions() {
    let mut env = env();
    env.set("CLAUDE_CODE_SSE_PORT", "41234");
    let window = env.agent_at_terminal("editor");
    let (a, b) = (window.nest("claude"), window.nest("claude"));
    let first = register(&a, &["--native-id", "a1"]);
    let second = register(&b, &["--native-id", "b1"]);
    assert_eq!(second["session"]["registered"], "new");
    assert_ne!(first["session"]["id"], second["session"]["id"]);
    assert_eq!(me(&a), text(&first, "/session/id"));
    assert_eq!(me(&b), text(&second, "/session/id"));
    ask(&a, &["claim", "wp:1"]);
    refused(&b, 3, &["claim", "wp:1"]);
}

#[test]
fn f_i04_nobody_is_taken_for_the_newest_session() {
    let env = env();
    let a = env.agent("claude");
    register(&a, &["--native-id", "a1"]);
    ask(&a, &["claim", "wp:1"]);
    ask(&a, &["renew"]);
    for call in [
        &["whoami"][..],
        &["claim", "wp:2"],
        &["release", "wp:1"],
        &["end"],
        &["renew"],
    ] {
        let answer = env.tenure(&[call, &["--json"]].concat()).fails(4).json();
        assert_eq!(answer["error"]["kind"], "no_session", "{call:?}");
        assert!(count(&answer, "/error/hints") > 0);
    }
    assert_eq!(held(&ask(&a, &["whoami"]), "/session/claims"), ["wp:1@1"]);
}

#[test]
fn f_i05_twelve_agents_whose_tools_ask_at_once_each_get_their_own_answer() {
    let env = env();
    let agents: Vec<Agent> = (0..12).map(|_| env.agent("claude")).collect();
    let ids = at_once(&agents, |agent| {
        let born = register(agent, &[]);
        assert_is(&born, agent.pid());
        let ask = |_| agent.start(Cmd::shell("tenure whoami --json"));
        for tool in (0..4).map(ask).collect::<Vec<_>>() {
            let answer = tool.wait().ok().json();
            assert_eq!(answer["session"]["id"], born["session"]["id"]);
            assert_eq!(answer["resolved"]["by"], "ancestry");
        }
        text(&born, "/session/id").to_owned()
    });
    let different: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(different.len(), 12);
    assert_eq!(sessions(&env), 12);
}

#[test]
fn f_i07_ancestry_beats_an_inherited_variable_and_the_disagreement_is_shown() {
    let env = env();
    let outer = env.agent("claude");
    let inner = outer.nest("claude");
    let theirs = register(&outer, &["--native-id", "a1"]);
    let own = register(&inner, &["--native-id", "b1"]);
    let inherited = [
        ("TENURE_SESSION", Some(text(&theirs, "/token"))),
        ("CLAUDE_CODE_SESSION_ID", Some("a1")),
    ];
    let answer = inner
        .tenure_env(&inherited, &["whoami", "--json"])
        .ok()
        .json();
    assert_eq!(answer["session"]["id"], own["session"]["id"]);
    assert_eq!(answer["resolved"]["by"], "ancestry");
    assert!(text(&answer, "/resolved/evidence").contains(&inner.pid().to_string()));
    assert_eq!(count(&answer, "/resolved/disagreements"), 2);
    assert!(text(&answer, "/resolved/disagreements/0").contains(text(&theirs, "/token")));
    inner.tenure_env(&inherited, &["claim", "wp:1"]).ok();
    assert_eq!(
        held(&ask(&inner, &["whoami"]), "/session/claims"),
        ["wp:1@1"]
    );
    assert_eq!(count(&ask(&outer, &["whoami"]), "/session/claims"), 0);
}

#[test]
fn f_i10_registering_never_ends_a_live_session_on_the_same_terminal() {
    let env = env();
    let shell = env.shell_at_terminal();
    let human = shell.tenure(&["register", "--json"]).ok().json();
    shell.tenure(&["claim", "wp:1"]).ok();
    let script = "tenure register --agent claude --pid $$ --json; tenure claim wp:2 -q";
    let second = shell.line(&format!(
        "sh -c '{script}; tenure alive {} -q'",
        text(&human, "/session/id")
    ));
    let second = second.ok().json();
    assert_eq!(second["session"]["registered"], "new");
    assert_eq!(second["session"]["parent"], human["session"]["id"]);
    let after = shell.tenure(&["whoami", "--json"]).ok().json();
    assert_eq!(after["session"]["id"], human["session"]["id"]);
    assert_eq!(after["session"]["state"], "live");
    assert_eq!(held(&after, "/session/claims"), ["wp:1@1"]);
    assert_eq!(events(&env, "session.ended").len(), 0);
}

#[test]
fn f_i11_an_own_helper_script_acts_for_the_session_that_runs_it() {
    let env = env();
    let a = env.agent("claude");
    let born = register(&a, &[]);
    let nested = "sh -c 'sh -c \"tenure claim wp:1 --json; true\"; true'";
    let claim = a.tenure_shell(nested).ok().json();
    assert_eq!(claim["claim"]["holder"]["id"], born["session"]["id"]);
    let again = a
        .tenure_shell("sh -c 'tenure register --json; true'")
        .ok()
        .json();
    assert_eq!(again["session"]["id"], born["session"]["id"]);
    assert_eq!(sessions(&env), 1);
}

#[test]
fn f_i12_of_agents_with_one_name_one_gets_the_item() {
    let env = env();
    let agents: Vec<Agent> = (0..6).map(|_| env.agent("claude")).collect();
    let codes = at_once(&agents, |agent| {
        register(agent, &["--agent", "claude", "--title", "claude"]);
        agent.tenure(&["claim", "wp:1"]).code
    });
    assert_eq!(
        codes.iter().filter(|code| **code == 0).count(),
        1,
        "{codes:?}"
    );
    assert_eq!(
        codes.iter().filter(|code| **code == 3).count(),
        5,
        "{codes:?}"
    );
    let winner = codes.iter().position(|code| *code == 0).unwrap();
    let claims = asked_by_nobody(&env, &["claims"]);
    assert_eq!(
        claims["claims"][0]["holder"]["process"]["pid"],
        agents[winner].pid()
    );
}

#[test]
fn f_i14_where_another_home_hides_the_session_the_answer_names_the_store() {
    let env = env();
    let a = env.agent("claude");
    register(&a, &[]);
    let seen = ask(&a, &["whoami"]);
    let store = env.state().join("tenure.db");
    assert_eq!(text(&seen, "/resolved/store"), store.to_str().unwrap());
    let home = env.dir().join("shadow");
    std::fs::create_dir(&home).unwrap();
    let vars = [
        ("HOME", home.to_str()),
        ("TENURE_HOME", None),
        ("TENURE_TEST", None),
    ];
    let answer = a.tenure_env(&vars, &["whoami", "--json"]).fails(4);
    let shadow = home.join(".local/state/tenure/tenure.db");
    assert!(answer.stdout.contains(shadow.to_str().unwrap()), "{answer}");
    let answer = a.tenure_env(&vars, &["claim", "wp:1"]).fails(4);
    assert!(answer.stderr.contains(shadow.to_str().unwrap()), "{answer}");
}

#[test]
fn f_i15_what_could_be_a_path_or_a_placeholder_is_no_id() {
    let env = env();
    let a = env.agent("claude");
    let bad = [
        "../../x",
        "/etc/x",
        "a/b",
        "unknown",
        "null",
        "",
        "  ",
        "a\nb",
        "a\u{1b}[2J",
        "..",
    ];
    for id in bad {
        let error = refused(&a, 2, &["register", "--native-id", id]);
        assert_eq!(error["kind"], "malformed", "{id:?}");
        if !["unknown", "null"].contains(&id) {
            refused(&a, 2, &["register", "--agent", id]);
        }
        let answer = a.tenure(&["whoami", "--session", id, "--json"]);
        assert!([2, 4].contains(&answer.code), "{id:?}: {answer}");
    }
    refused(&a, 4, &["whoami"]);
    assert_eq!(sessions(&env), 0);
}

#[test]
fn f_i17_a_survivor_with_the_variable_of_an_earlier_life_is_nobody() {
    let env = env();
    let a = env.agent("claude");
    let first = register(&a, &["--native-id", "a1"]);
    ask(&a, &["claim", "wp:1"]);
    let token = text(&first, "/token");
    a.run(Cmd::new("mkfifo").arg("go")).ok();
    let line = "cat go >go.seen; tenure release wp:1 --json; echo \"code $?\"";
    let survivor = a.start(Cmd::shell(line).env("TENURE_SESSION", token));
    let live = with_variable(&env, token, &["whoami", "--json"])
        .ok()
        .json();
    assert_eq!(live["resolved"]["by"], "variable");
    a.kill9();
    assert!(survivor.is_alive());
    let b = env.agent("claude");
    let back = register(&b, &["--native-id", "a1"]);
    assert_eq!(back["session"]["id"], first["session"]["id"]);
    b.run(Cmd::shell("echo >go")).ok();
    let said = poll(PATIENCE, "the survivor has spoken", || {
        let said = survivor.stdout();
        said.contains("code ").then_some(said)
    });
    assert!(said.ends_with("code 4\n"), "{said}");
    assert_eq!(held(&ask(&b, &["whoami"]), "/session/claims"), ["wp:1@2"]);
    with_variable(&env, text(&back, "/token"), &["whoami"]).ok();
}

#[test]
fn f_i18_a_variable_does_not_count_at_a_terminal() {
    let mut env = env();
    let a = env.agent_at_terminal("claude");
    let born = register(&a, &[]);
    let token = text(&born, "/token").to_owned();
    let by = with_variable(&env, &token, &["whoami", "--json"])
        .ok()
        .json();
    assert_eq!(by["resolved"]["by"], "variable");
    env.set("TENURE_SESSION", &token);
    let pane = env.shell_at_terminal();
    let answer = pane.tenure(&["whoami", "--json"]).fails(4).json();
    assert!(
        text(&answer, "/error/message").contains("terminal"),
        "{answer:#}"
    );
    pane.tenure(&["claim", "wp:1"]).fails(4);
    assert_eq!(me(&a), text(&born, "/session/id"), "its own tools");
}

#[test]
fn f_i19_a_sandboxed_tool_is_found_by_the_variables() {
    let env = env();
    let Some(flags) = pid_namespace(&env) else {
        return;
    };
    let (a, twin) = (env.agent("codex"), env.agent("codex"));
    let born = register(&a, &["--native-id", "t1"]);
    sandboxed(&a, flags, &[], &["whoami"]).fails(4);
    for variable in [
        ("TENURE_SESSION", text(&born, "/token")),
        ("CODEX_THREAD_ID", "t1"),
    ] {
        let answer = sandboxed(&a, flags, &[variable], &["whoami"]).ok().json();
        assert_eq!(answer["session"]["id"], born["session"]["id"]);
        assert_eq!(
            answer["session"]["state"], "live",
            "its own session counts as live"
        );
        assert_eq!(answer["resolved"]["by"], "namespace");
        assert!(text(&answer, "/resolved/evidence").contains(variable.0));
    }
    sandboxed(&a, flags, &[("CODEX_THREAD_ID", "t1")], &["claim", "wp:1"]).ok();
    assert_eq!(held(&ask(&a, &["whoami"]), "/session/claims"), ["wp:1@1"]);
    register(&twin, &["--native-id", "t1"]);
    let answer = sandboxed(&a, flags, &[("CODEX_THREAD_ID", "t1")], &["whoami"]).fails(6);
    assert_eq!(count(&answer.json(), "/error/candidates"), 2);
    // Outside of a sandbox an agent's variable finds nobody.
    let nobody = env.agent("helper");
    nobody
        .tenure_env(&[("CODEX_THREAD_ID", Some("t1"))], &["whoami"])
        .fails(4);
}

#[test]
fn f_i21_registering_from_a_tool_call_means_the_agent() {
    let env = env();
    let a = env.agent("claude");
    let born = a
        .tenure_shell("sh -c 'tenure register --json; true'; true")
        .ok()
        .json();
    assert_is(&born, a.pid());
    assert_eq!(born["session"]["agent"], "claude");
}

#[test]
fn f_i21_a_script_is_asked_for_its_pid() {
    let env = env();
    let answer = env
        .tenure(&["register", "--agent", "nightly", "--json"])
        .fails(2)
        .json();
    let hints = answer["error"]["hints"].to_string();
    assert!(hints.contains("--pid"), "{answer:#}");
    assert_eq!(sessions(&env), 0);
    let script = env.agent("runner");
    let line = "tenure register --agent nightly --pid $$ --json; tenure whoami --json >me; true";
    let born = script.tenure_shell(line).ok().json();
    assert_eq!(born["session"]["agent"], "nightly");
    assert_ne!(born["session"]["process"]["pid"], script.pid());
    let seen = left_in(&env, "me");
    assert_eq!(seen["session"]["id"], born["session"]["id"]);
}

#[test]
fn a_person_who_claims_at_a_prompt_is_registered_first() {
    let env = env();
    let shell = env.shell_at_terminal();
    let said = shell.line("tenure claim wp:1 2>&1 >/dev/tty | cat").stdout;
    assert!(
        !said.contains("registered"),
        "not typed at a terminal: {said}"
    );
    let born = shell
        .line("tenure claim wp:1 --json 2>/dev/tty")
        .ok()
        .json();
    assert_eq!(born["claim"]["holder"]["agent"], "human");
    assert_is(&json!({"session": born["claim"]["holder"]}), shell.pid());
    assert_eq!(sessions(&env), 1);
    shell.line("tenure claim wp:2 2>/dev/tty").ok();
    assert_eq!(sessions(&env), 1, "it is the same session");
    // An agent's shell is not a person's.
    let agent = env.agent_at_terminal("claude");
    agent.tenure(&["claim", "wp:3"]).fails(4);
    assert_eq!(sessions(&env), 1);
}

#[test]
fn a_person_registers_as_the_interactive_shell() {
    let env = env();
    let shell = env.shell_at_terminal();
    let born = shell
        .line("sh -c 'tenure register --json; true'")
        .ok()
        .json();
    assert_eq!(born["session"]["agent"], "human");
    assert_is(&born, shell.pid());
    let seen = shell.tenure(&["whoami", "--json"]).ok().json();
    assert_eq!(seen["session"]["id"], born["session"]["id"]);
    shell.kill9();
    env.tenure(&["alive", text(&born, "/session/id")]).fails(1);
}
