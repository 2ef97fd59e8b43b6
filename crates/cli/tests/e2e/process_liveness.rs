//! Whether a recorded process lives: proved, never guessed, with real processes and namespaces.

use serde_json::Value;
use tenure_testkit::pinned::Stat;
use tenure_testkit::{Agent, Background, Cmd, Env, Output, poll};

use crate::env;
use crate::support::answer::{PATIENCE, ask, assert_is, events, held, refused, register, text};
use crate::support::forge::{forge, forge_process};
use crate::support::lease::impatient;
use crate::support::namespace::{Inside, pid_namespace, sandboxed};
use crate::support::skip::skipped;

/// An agent that holds wp:1, and its session's id.
#[track_caller]
fn holder(env: &Env, args: &[&str]) -> (Agent, String) {
    let agent = env.agent("claude");
    let born = register(&agent, args);
    ask(&agent, &["claim", "wp:1"]);
    (agent, text(&born, "/session/id").to_owned())
}

/// An agent without claims.
fn taker(env: &Env) -> Agent {
    let agent = env.agent("codex");
    register(&agent, &[]);
    agent
}

/// What a process says that registers itself and goes on, and the process.
fn registers(agent: &Agent, cmd: Cmd, before: &str) -> (Value, Background) {
    let line = "tenure register --agent inner --pid $$ --json; echo; exec sleep 1000";
    let process = agent.start(cmd.args(["sh", "-c", &format!("{before}; {line}")]));
    let said = poll(PATIENCE, "it has registered", || {
        serde_json::from_str(process.stdout().split_once("\n\n")?.0).ok()
    });
    (said, process)
}

/// wp:1 was granted at once, because its holder is proved dead.
#[track_caller]
fn assert_inherits(taker: &Agent, dead: &str, proof: &str) {
    let claim = ask(taker, &["claim", "wp:1"]);
    assert_eq!(claim["claim"]["epoch"], 2);
    assert_eq!(claim["claim"]["taken_from"]["session"], dead);
    assert_eq!(claim["claim"]["taken_from"]["by"], "death");
    let said = text(&claim, "/claim/taken_from/proof");
    assert!(said.contains(proof), "{said}");
    taker.tenure(&["alive", dead]).fails(1);
}

/// wp:1 is still its first holder's, which nobody has taken for dead.
#[track_caller]
fn assert_kept(env: &Env, holder: &Agent) {
    assert_eq!(
        held(&ask(holder, &["whoami"]), "/session/claims"),
        ["wp:1@1"]
    );
    assert_eq!(events(env, "session.died").len(), 0);
    assert_eq!(events(env, "claim.freed").len(), 0);
}

/// Runs a line as root of namespaces of its own; `None` where that is not allowed.
fn unshared(agent: &Agent, flags: &[&str], set_up: &str, line: &str) -> Option<Output> {
    let unshare = |line: &str| {
        let cmd = Cmd::new("unshare").args(flags.iter().copied());
        agent.run(cmd.args(["sh", "-c", line]))
    };
    let tried = unshare(set_up);
    if tried.code != 0 {
        skipped(&format!(
            "unshare {}: {}",
            flags.join(" "),
            tried.stderr.trim()
        ));
        return None;
    }
    Some(unshare(&format!("{set_up} && {{ {line}; }}")))
}

#[test]
fn the_killed_are_dead_at_once_and_block_nobody() {
    let env = env();
    let (a, dead) = holder(&env, &[]);
    let b = taker(&env);
    refused(&b, 3, &["claim", "wp:1"]);
    env.tenure(&["alive", &dead]).ok();
    a.kill9();
    assert_inherits(&b, &dead, &format!("pid {}", a.pid()));
}

#[test]
fn f_l01_a_reused_pid_does_not_keep_the_dead_alive() {
    let env = env();
    let (a, dead) = holder(&env, &[]);
    let b = taker(&env);
    // As if the holder had died, and the kernel had given its pid to another process.
    forge_process(&env, &dead, "start_ticks = start_ticks - 500");
    assert!(a.is_alive());
    assert_inherits(&b, &dead, "belongs to another process now");
    refused(&a, 4, &["whoami"]);
}

#[test]
fn f_l01_a_pid_that_the_kernel_really_reused_is_dead() {
    let env = env();
    let Some(flags) = pid_namespace(&env) else {
        return;
    };
    let inside = Inside::open(&env, flags, "inside");
    if inside.line("echo 100 >/proc/sys/kernel/ns_last_pid").code != 0 {
        return skipped("the next pid cannot be chosen here");
    }
    inside.line("tenure register --agent taker --pid 1").ok();
    let start = inside.line("sleep 1000 & echo $!").ok();
    let pid = start.stdout.trim();
    let born = inside.ask(&format!("register --agent claude --pid {pid}"));
    let id = text(&born, "/session/id");
    inside.ask(&format!("claim wp:1 --session {id}"));
    inside.line("tenure claim wp:1").fails(3);
    inside
        .line(&format!("kill -9 {pid}; wait {pid}"))
        .fails(137);
    // A tick is a hundredth of a second: the successor must not start in the same one.
    let last = pid.parse::<u32>().unwrap() - 1;
    let reuse = format!("echo {last} >/proc/sys/kernel/ns_last_pid; sleep 1000 & echo $!");
    poll(PATIENCE, "the kernel gives the pid out again", || {
        let line = format!("{reuse}; cut -d ' ' -f 22 /proc/$!/stat");
        let said = inside.line(&line).ok().stdout;
        let old = &born["session"]["process"]["start_ticks"];
        (said.starts_with(&format!("{pid}\n")) && !said.contains(&old.to_string())).then_some(())
    });
    let claim = inside.ask("claim wp:1");
    assert!(text(&claim, "/claim/taken_from/proof").contains("belongs to another process"));
    assert_eq!(claim["claim"]["taken_from"]["session"], id);
}

#[test]
fn f_l02_pid_1_of_the_next_container_is_not_its_predecessor() {
    let env = impatient();
    let Some(flags) = pid_namespace(&env) else {
        return;
    };
    let first = Inside::open(&env, flags, "first");
    let born = first.ask("register --agent openclaw --pid 1 --native-id g1");
    first.ask("claim wp:1");
    first.kill();
    let second = Inside::open(&env, flags, "second");
    let id = text(&born, "/session/id");
    let alive = second.line(&format!("tenure alive {id}"));
    assert!(
        [1, 9].contains(&alive.code),
        "pid 1 is another's here\n{alive}"
    );
    let next = second.ask("register --agent openclaw --pid 1 --native-id g2");
    assert_eq!(next["session"]["process"]["pid"], 1);
    assert_ne!(next["session"]["id"], born["session"]["id"]);
    let got = poll(PATIENCE, "the predecessor's lease is over", || {
        let answer = second.line("tenure claim wp:1 --json");
        (answer.code == 0).then_some(answer)
    });
    assert_eq!(got.json()["claim"]["taken_from"]["session"], id);
}

#[test]
fn f_l03_a_reboot_is_a_death_even_where_pid_and_ticks_repeat() {
    let env = env();
    let (a, dead) = holder(&env, &[]);
    let b = taker(&env);
    forge_process(&env, &dead, "boot_id = 'another'");
    assert_inherits(&b, &dead, "rebooted");
    assert!(a.is_alive());
}

#[test]
fn f_l04_of_another_namespace_the_lease_decides_and_then_the_lock_delay() {
    let env = env();
    let Some(flags) = pid_namespace(&env) else {
        return;
    };
    let inside = Inside::open(&env, flags, "inside");
    let born = inside.ask("register --agent claude --pid 1");
    inside.ask("claim wp:1");
    let b = taker(&env);
    let id = text(&born, "/session/id");
    b.tenure(&["alive", id]).fails(9);
    let claim = |delay: &str| {
        let vars = [("TENURE_LOCK_DELAY", Some(delay))];
        b.tenure_env(&vars, &["claim", "wp:1", "--json"])
    };
    let open = claim("0s").fails(3).json();
    assert_eq!(open["error"]["kind"], "held", "its lease is open");
    assert_eq!(open["error"]["holder"]["state"], "unknown");

    forge(
        &env,
        &format!("UPDATE sessions SET lease_at = lease_at - 605000 WHERE id = '{id}'"),
    );
    let suspect = poll(PATIENCE, "the lease is over", || {
        let answer = claim("1h").fails(3).json();
        (answer["error"]["kind"] == "suspect").then_some(answer)
    });
    let left = suspect["error"]["left_ms"].as_u64().unwrap();
    assert!((1..=3_600_000).contains(&left), "{left}");
    assert_eq!(ask(&b, &["claims"])["claims"][0]["state"], "suspect");

    // A sign of life inside the delay restores it.
    inside.ask("renew");
    assert_eq!(claim("0s").fails(3).json()["error"]["kind"], "held");

    forge(
        &env,
        &format!("UPDATE sessions SET lease_at = lease_at - 605000 WHERE id = '{id}'"),
    );
    let got = poll(PATIENCE, "lease and lock-delay are over", || {
        let answer = claim("1ms");
        (answer.code == 0).then_some(answer)
    });
    assert_eq!(got.json()["claim"]["taken_from"]["by"], "lease");
    assert_eq!(events(&env, "session.died").len(), 0, "nobody saw it die");
    // It lives, and is told.
    let told = inside.line("tenure guard wp:1 --json").fails(5);
    assert_eq!(told.json()["notices"][0]["kind"], "lost");
}

#[test]
fn f_l05_a_zombie_is_dead() {
    let env = env();
    let b = taker(&env);
    // `cat` takes the shell's place and never asks how the child of the shell ended.
    b.run(Cmd::new("mkfifo").arg("never")).ok();
    let careless = b.start(Cmd::shell("sleep 1000 & echo $!; exec cat never"));
    let pid: u32 = poll(PATIENCE, "the child has started", || {
        careless.stdout().trim().parse().ok()
    });
    let born = register(&b, &["--agent", "worker", "--pid", &pid.to_string()]);
    let id = text(&born, "/session/id");
    ask(&b, &["claim", "wp:1", "--session", id]);
    poll(PATIENCE, "the parent is cat", || {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", careless.pid)).ok()?;
        (name == "cat\n").then_some(())
    });
    env.tenure(&["alive", id]).ok();
    b.run(Cmd::shell(&format!("kill -9 {pid}"))).ok();
    poll(PATIENCE, "it is a zombie", || {
        (Stat::read(pid)?.state == 'Z').then_some(())
    });
    assert_inherits(&b, id, "has exited");
    refused(
        &b,
        4,
        &["register", "--agent", "worker", "--pid", &pid.to_string()],
    );
}

#[test]
fn f_l07_what_a_process_looks_like_does_not_decide_whether_it_lives() {
    let env = env();
    let odd = env.agent("night-shift");
    let born = register(
        &odd,
        &["--agent", "claude", "--pid", &odd.pid().to_string()],
    );
    ask(&odd, &["claim", "wp:1"]);
    // Its executable is replaced, as updates do.
    std::fs::remove_file(env.dir().join("agents/night-shift")).unwrap();
    let b = taker(&env);
    refused(&b, 3, &["claim", "wp:1"]);
    env.tenure(&["alive", text(&born, "/session/id")]).ok();
    assert_kept(&env, &odd);
    odd.kill9();
    assert_inherits(
        &b,
        text(&born, "/session/id"),
        &format!("pid {}", odd.pid()),
    );
}

#[test]
fn f_l09_a_name_with_spaces_and_parentheses_is_read_rightly() {
    let env = env();
    for name in ["we ird) (x", "a) Z 1 1 (b", ") S 0 ("] {
        let odd = env.agent(name);
        let born = register(&odd, &["--agent", "odd", "--pid", &odd.pid().to_string()]);
        assert_is(&born, odd.pid());
        let seen = ask(&odd, &["whoami"]);
        assert_eq!(seen["session"]["id"], born["session"]["id"], "{name}");
        assert_eq!(seen["resolved"]["by"], "ancestry");
        env.tenure(&["alive", text(&born, "/session/id")]).ok();
        odd.kill9();
        env.tenure(&["alive", text(&born, "/session/id")]).fails(1);
    }
}

#[test]
fn f_l10_a_stopped_holder_is_not_robbed_however_long_it_is_silent() {
    let mut env = env();
    for timer in ["TENURE_LEASE", "TENURE_LOCK_DELAY", "TENURE_STALLED_AFTER"] {
        env.set(timer, "1ms");
    }
    let (a, id) = holder(&env, &[]);
    let b = taker(&env);
    a.stop();
    assert_eq!(a.stat().unwrap().state, 'T');
    poll(PATIENCE, "every timer has run out", || {
        let shown = ask(&b, &["show", &id]);
        let now = ask(&b, &["renew"]);
        let over = text(&shown, "/session/lease_until") < text(&now, "/session/last_seen_at");
        over.then_some(())
    });
    for _ in 0..3 {
        let error = refused(&b, 3, &["claim", "wp:1"]);
        assert_eq!(
            (&error["kind"], &error["holder"]["state"]),
            (&"held".into(), &"live".into())
        );
    }
    a.cont();
    ask(&a, &["guard", "wp:1", "--epoch", "1"]);
    assert_kept(&env, &a);
}

#[test]
fn f_l11_no_wall_clock_time_in_a_record_decides_anything() {
    let env = env();
    let (a, living) = holder(&env, &[]);
    let dead = env.agent("claude");
    let born = register(&dead, &[]);
    ask(&dead, &["claim", "wp:2"]);
    let (b, id) = (taker(&env), text(&born, "/session/id"));
    dead.kill9();
    // One heartbeat lies a year ahead, the other at the beginning of time.
    forge(
        &env,
        &format!(
            "UPDATE sessions SET seen_at = seen_at + 31536000000 WHERE id = '{id}';
             UPDATE sessions SET seen_at = 0, started_at = 0 WHERE id = '{living}';"
        ),
    );
    assert_eq!(
        ask(&b, &["claim", "wp:2"])["claim"]["taken_from"]["session"],
        id
    );
    refused(&b, 3, &["claim", "wp:1"]);
    assert_eq!(held(&ask(&a, &["whoami"]), "/session/claims"), ["wp:1@1"]);
}

#[test]
fn f_l12_an_error_of_the_store_is_an_error_and_releases_nothing() {
    let env = env();
    let (a, id) = holder(&env, &[]);
    let handle = text(&ask(&a, &["whoami"]), "/session/handle").to_owned();
    let b = taker(&env);
    let calls: [&[&str]; 6] = [
        &["ps"],
        &["claims"],
        &["claim", "wp:1"],
        &["who", "--exit-code"],
        &["alive", &id],
        &["guard", "wp:1"],
    ];
    let all_fail = |how: &str| {
        for call in calls {
            let answer = b.tenure(&[call, &["--json"]].concat());
            assert_eq!(answer.code, 8, "{how}: {call:?}\n{answer}");
            assert!(text(&answer.json(), "/error/kind").starts_with("store_"));
        }
    };
    forge(&env, "ALTER TABLE sessions RENAME TO elsewhere");
    all_fail("no table");
    forge(&env, "ALTER TABLE elsewhere RENAME TO sessions");
    assert_kept(&env, &a);

    forge(
        &env,
        &format!("UPDATE sessions SET handle = '' WHERE id = '{id}'"),
    );
    for call in [&["ps"][..], &["claims"], &["claim", "wp:1"]] {
        b.tenure(call).fails(8);
    }
    forge(
        &env,
        &format!("UPDATE sessions SET handle = '{handle}' WHERE id = '{id}'"),
    );
    assert_kept(&env, &a);

    let store = env.state().join("tenure.db");
    let aside = env.dir().join("aside.db");
    std::fs::rename(&store, &aside).unwrap();
    std::fs::write(
        &store,
        "this is no database, and it is long enough to be read as one",
    )
    .unwrap();
    all_fail("no database");
    std::fs::rename(&aside, &store).unwrap();
    assert_kept(&env, &a);
    refused(&b, 3, &["claim", "wp:1"]);
}

#[test]
fn f_l13_a_survivor_with_the_variable_does_not_keep_the_dead_alive() {
    let env = env();
    let a = env.agent("claude");
    let born = register(&a, &[]);
    ask(&a, &["claim", "wp:1"]);
    let (id, token) = (text(&born, "/session/id"), text(&born, "/token"));
    a.run(Cmd::new("mkfifo").arg("go")).ok();
    let line = "cat go >go.seen; tenure renew --json; echo \"code $?\"; exec sleep 1000";
    let survivor = a.start(Cmd::shell(line).env("TENURE_SESSION", token));
    let b = taker(&env);
    a.kill9();
    b.run(Cmd::shell("echo >go")).ok();
    let said = poll(PATIENCE, "the survivor has beaten", || {
        let said = survivor.stdout();
        said.contains("code ").then_some(said)
    });
    assert!(said.ends_with("code 4\n"), "{said}");
    assert!(survivor.is_alive());
    assert_inherits(&b, id, &format!("pid {}", a.pid()));
}

#[test]
fn f_l15_a_time_namespace_does_not_change_who_a_process_is() {
    let env = env();
    let (a, id) = holder(&env, &[]);
    let flags = ["-Tf", "--kill-child", "--boottime=100000"];
    let Some(seen) = unshared(&a, &flags, "true", "tenure whoami --json") else {
        return;
    };
    let seen = seen.ok().json();
    assert_eq!(seen["session"]["id"], id.as_str());
    assert_eq!(seen["resolved"]["by"], "ancestry");
    let b = taker(&env);
    let answer = unshared(&b, &flags, "true", "tenure claim wp:1").unwrap();
    assert_eq!(answer.code, 3, "{answer}");
    assert_kept(&env, &a);
    // One that was registered inside is the same process outside.
    let (born, _inner) = registers(&b, Cmd::new("unshare").args(flags), "true");
    let pid = u32::try_from(born["session"]["process"]["pid"].as_u64().unwrap()).unwrap();
    let ticks = born["session"]["process"]["start_ticks"].as_u64().unwrap();
    assert!(Stat::read(pid).unwrap().start.abs_diff(ticks) <= 1);
    env.tenure(&["alive", text(&born, "/session/id")]).ok();
}

#[test]
fn f_l16_a_process_that_proc_hides_is_not_dead() {
    let env = env();
    let (a, id) = holder(&env, &[]);
    let b = env.agent("helper");
    let drop = "setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace";
    let pid = a.pid();
    let hide = format!(
        "mount -t proc -o hidepid=2,gid=54321 proc /proc && ! {drop} test -e /proc/{pid} && {drop} true"
    );
    let alive = format!("{drop} tenure alive {id}; echo $?; {drop} tenure claims --json >claims");
    let Some(answer) = unshared(&b, &["-m"], &hide, &alive) else {
        return;
    };
    assert_eq!(answer.ok().stdout.trim(), "9");
    assert_kept(&env, &a);
    a.kill9();
    poll(PATIENCE, "it is reaped", || {
        a.stat().is_none().then_some(())
    });
    let answer = unshared(&b, &["-m"], &hide, &format!("{drop} tenure alive {id}")).unwrap();
    assert_eq!(
        answer.code, 1,
        "what is gone is gone for every observer\n{answer}"
    );
}

#[test]
fn f_l17_a_process_whose_main_thread_has_exited_lives_while_others_run() {
    let env = env();
    let b = taker(&env);
    let python = "import ctypes, threading, time\n\
                  threading.Thread(target=time.sleep, args=(1000,)).start()\n\
                  ctypes.CDLL(None).pthread_exit(None)";
    if b.run(Cmd::new("/usr/bin/python3").args(["-c", "import ctypes"]))
        .code
        != 0
    {
        return skipped("there is no python3 with ctypes");
    }
    let odd = b.start(Cmd::new("/usr/bin/python3").args(["-c", python]));
    poll(PATIENCE, "its main thread has exited", || {
        (Stat::read(odd.pid)?.state == 'Z').then_some(())
    });
    assert!(odd.is_alive());
    let born = register(&b, &["--agent", "odd", "--pid", &odd.pid.to_string()]);
    let id = text(&born, "/session/id");
    ask(&b, &["claim", "wp:1", "--session", id]);
    env.tenure(&["alive", id]).ok();
    refused(&b, 3, &["claim", "wp:1"]);
    odd.kill9();
    assert_inherits(&b, id, &format!("pid {}", odd.pid));
}

#[test]
fn f_l18_a_proc_of_another_namespace_proves_nothing() {
    let env = env();
    let (a, id) = holder(&env, &[]);
    let b = env.agent("codex");
    let token = text(&register(&b, &[]), "/token").to_owned();
    let line = format!(
        "tenure alive {id}; echo $?; TENURE_SESSION={token} tenure claim wp:1 >/dev/null; echo $?"
    );
    let Some(answer) = unshared(&b, &["-pf"], "true", &line) else {
        return;
    };
    assert_eq!(answer.ok().stdout, "9\n9\n");
    assert_kept(&env, &a);
}

#[test]
fn f_l20_a_boot_id_of_a_containers_own_proves_nothing() {
    let env = env();
    let (a, id) = holder(&env, &[]);
    let b = taker(&env);
    let own = env.dir().join("boot_id");
    std::fs::write(&own, "11111111-2222-3333-4444-555555555555\n").unwrap();
    let bind = format!(
        "mount --bind {} /proc/sys/kernel/random/boot_id",
        own.display()
    );
    let line = format!("tenure alive {id}; echo $?; tenure ps --json >ps; tenure claims >claims");
    let Some(answer) = unshared(&b, &["-m"], &bind, &line) else {
        return;
    };
    assert_eq!(answer.ok().stdout, "9\n");
    assert_kept(&env, &a);
    // And the other way: a session of such a container is not dead to the host.
    let (born, _boxed) = registers(&b, Cmd::new("unshare").arg("-m"), &bind);
    env.tenure(&["alive", text(&born, "/session/id")]).fails(9);
}

#[test]
fn f_i23_a_sandboxed_tool_takes_nothing_from_a_silent_holder() {
    let env = impatient();
    let Some(flags) = pid_namespace(&env) else {
        return;
    };
    let (silent, id) = holder(&env, &[]);
    let a = env.agent("codex");
    let asker = register(&a, &["--native-id", "t1"]);
    let variable = [("TENURE_SESSION", text(&asker, "/token"))];
    let why = || {
        sandboxed(&a, flags, &variable, &["why", "wp:1"])
            .ok()
            .json()
    };
    poll(PATIENCE, "lease and lock-delay are over", || {
        let state = text(&why(), "/claim/holder/why").to_owned();
        state.ends_with("lease expired").then_some(())
    });
    let refuse = || {
        sandboxed(&a, flags, &variable, &["claim", "wp:1"])
            .fails(9)
            .json()
    };
    let answer = refuse();
    assert_eq!(answer["error"]["kind"], "cannot_tell");
    assert_eq!(text(&why(), "/why/answer"), "refused: cannot tell");
    // A call outside that finds the holder alive frees nothing.
    ask(&a, &["whoami"]);
    assert_kept(&env, &silent);
    refuse();
    silent.kill9();
    refuse();
    ask(&a, &["whoami"]);
    let died = events(&env, "session.died");
    assert_eq!(died.len(), 1);
    assert_eq!(died[0]["session"]["id"], id.as_str());
    let got = sandboxed(&a, flags, &variable, &["claim", "wp:1"])
        .ok()
        .json();
    assert_eq!(got["claim"]["epoch"], 2);
    assert_eq!(got["claim"]["taken_from"]["session"], id.as_str());
}
