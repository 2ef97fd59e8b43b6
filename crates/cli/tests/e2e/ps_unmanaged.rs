//! What people see of agents that nobody told tenure of, and how one of them becomes a session.

use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env};

use crate::env;
use crate::support::line::{register, run, text};
use crate::support::person::seeing;

/// What `ps` says of an unmanaged process; other tests' agents are there too.
#[track_caller]
fn unmanaged(env: &Env, pid: u32) -> Option<Value> {
    let listed = env.tenure(&["ps", "--json"]).ok().json();
    let all = listed["unmanaged"].as_array().expect("a list").clone();
    all.into_iter().find(|one| one["pid"] == pid)
}

/// Writes what Claude Code writes about a process of its own.
fn enlist(env: &Env, agent: &Agent, start: u64, conversation: &str) {
    let folder = env.home().join(".claude/sessions");
    std::fs::create_dir_all(&folder).expect("the home is ours");
    let entry = json!({"pid": agent.pid(), "sessionId": conversation, "procStart": start.to_string(),
        "status": "busy", "cwd": "/elsewhere", "kind": "interactive"});
    let file = folder.join(format!("{}.json", agent.pid()));
    std::fs::write(file, entry.to_string()).expect("the home is ours");
}

fn start_of(agent: &Agent) -> u64 {
    agent.stat().expect("it lives").start
}

fn adopt(caller: &Agent, code: i32, pid: u32) -> Value {
    run(caller, code, &format!("adopt {pid}"))
}

#[test]
fn an_agent_that_nobody_registered_is_shown_as_unmanaged() {
    let env = seeing();
    let claude = env.agent("claude");
    let seen = unmanaged(&env, claude.pid()).expect("it is listed");
    assert_eq!(seen["agent"], "claude");
    assert_eq!(seen["dir"], env.work().to_str().unwrap());
    assert_eq!(seen["native_id"], Value::Null);
    let table = env.tenure(&["ps"]).ok().stdout;
    let pid = format!("pid {} ", claude.pid());
    let row = table.lines().find(|line| line.starts_with(&pid));
    let row = row.unwrap_or_else(|| panic!("{table}"));
    assert!(
        row.contains("claude") && row.contains("unmanaged"),
        "{table}"
    );
    assert!(table.contains("tenure adopt "), "{table}");
    // A session is no longer unmanaged, and a process that is not an agent never was.
    register(&claude, "claude", "");
    assert_eq!(unmanaged(&env, claude.pid()), None);
    let other = env.agent("vim");
    assert_eq!(unmanaged(&env, other.pid()), None);
}

#[test]
fn unmanaged_agents_can_be_hidden() {
    let env = env();
    let claude = env.agent("claude");
    let listed = run(&claude, 0, "ps");
    assert_eq!(listed["unmanaged"], json!([]));
}

#[test]
fn a_program_that_only_started_the_real_one_is_not_listed() {
    let env = seeing();
    let wrapper = env.agent("codex");
    let real = wrapper.nest("codex");
    assert_eq!(unmanaged(&env, wrapper.pid()), None);
    assert!(unmanaged(&env, real.pid()).is_some());
    // An agent that another kind of agent started is one of its own.
    let inner = real.nest("gemini");
    assert!(unmanaged(&env, real.pid()).is_some());
    assert!(unmanaged(&env, inner.pid()).is_some());
    // Naming the wrapper means the agent.
    let me = env.agent("me");
    let born = adopt(&me, 0, wrapper.pid());
    assert_eq!(born["session"]["process"]["pid"], real.pid());
    assert_eq!(unmanaged(&env, wrapper.pid()), None);
    assert_eq!(unmanaged(&env, real.pid()), None);
}

#[test]
fn an_adopted_agent_is_a_session_with_the_conversation_that_it_says_itself() {
    let env = seeing();
    let (claude, me) = (env.agent("claude"), env.agent("me"));
    enlist(&env, &claude, start_of(&claude), "c-1");
    let seen = unmanaged(&env, claude.pid()).expect("it is listed");
    assert_eq!(
        (&seen["native_id"], &seen["activity"]),
        (&json!("c-1"), &json!("busy"))
    );
    let born = adopt(&me, 0, claude.pid());
    assert_eq!(born["session"]["registered"], "healed");
    assert_eq!(born["session"]["agent"], "claude");
    assert_eq!(born["session"]["native_id"], "c-1");
    assert_eq!(born["session"]["dir"], env.work().to_str().unwrap());
    // From now on its own calls are that session's.
    let own = run(&claude, 0, "whoami");
    assert_eq!(own["session"]["id"], born["session"]["id"]);
    assert_eq!(unmanaged(&env, claude.pid()), None);
    assert_eq!(adopt(&me, 0, claude.pid())["session"]["registered"], "same");
    claude.kill9();
    let state = run(
        &me,
        0,
        &format!("show {}", text(&born["session"]["handle"])),
    );
    assert_eq!(state["session"]["state"], "dead");
}

#[test]
fn what_the_agent_wrote_about_an_earlier_process_of_that_pid_is_not_believed() {
    let env = seeing();
    let (claude, me) = (env.agent("claude"), env.agent("me"));
    enlist(&env, &claude, start_of(&claude) - 1, "c-old");
    let seen = unmanaged(&env, claude.pid()).expect("it is listed");
    assert_eq!(
        (&seen["native_id"], &seen["activity"]),
        (&Value::Null, &Value::Null)
    );
    let born = adopt(&me, 0, claude.pid());
    assert_eq!(born["session"]["native_id"], Value::Null);
}

#[test]
fn only_a_living_agent_of_ones_own_is_adopted() {
    let env = seeing();
    let me = env.agent("me");
    let sleeper = me.start(Cmd::new("sleep").arg("1000"));
    let refusal = adopt(&me, 6, sleeper.pid);
    assert_eq!(refusal["error"]["kind"], "invalid");
    let hint = refusal["error"]["hints"][0].to_string();
    let names_it = hint.contains("--pid") && hint.contains(&sleeper.pid.to_string());
    assert!(names_it, "{hint}");
    let gone = env.agent("claude");
    gone.kill9();
    let refusal = adopt(&me, 4, gone.pid());
    assert_eq!(refusal["error"]["kind"], "not_found");
    let hint = refusal["error"]["hints"][0].to_string();
    assert!(hint.contains("ps"), "{hint}");
    for odd in ["0", "-1", "x", "99999999"] {
        let refusal = run(&me, 2, &format!("adopt {odd}"));
        assert_eq!(refusal["error"]["kind"], "usage", "{odd}");
    }
    assert_eq!(run(&me, 0, "ps -a")["sessions"], json!([]));
}

#[test]
fn another_users_agent_is_not_adopted() {
    let env = seeing();
    let me = env.agent("me");
    let is_root = me.tenure_shell("test \"$(id -u)\" = 0").code == 0;
    let (pid, _kept) = if is_root {
        let line = [
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "sleep",
            "1000",
        ];
        let other = me.start(Cmd::new("setpriv").args(line));
        tenure_testkit::poll(crate::support::line::SOON, "it is another user's", || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", other.pid)).ok()?;
            let sleeps = status.starts_with("Name:\tsleep");
            (sleeps && status.contains("Uid:\t65534")).then_some(())
        });
        (other.pid, Some(other))
    } else {
        (1, None)
    };
    let refusal = adopt(&me, 6, pid);
    let message = text(&refusal["error"]["message"]);
    assert!(message.contains("another user"), "{message}");
}
