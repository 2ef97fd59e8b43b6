//! Which process a program is that has no looks of its own: what is certain, or none.

use serde_json::Value;
use tenure_testkit::pinned::Stat;
use tenure_testkit::{Agent, Background, Cmd, poll};

use crate::env;
use crate::support::answer::{PATIENCE, ask, assert_is, refused, text};
use crate::support::hook::{only, sessions};

/// What a shell does to wait by itself: a program that it waited for would outlive it.
const WAITS: &str = "mkfifo wait.$$; exec 3<>wait.$$; read -r _ <&3";

/// A command line of a shell that reports one event and then says that it has.
fn reports(event: &str) -> String {
    format!("echo '{event}' | tenure hook generic; echo reported; {WAITS}; :")
}

/// Starts a command, and waits until it has reported.
fn reporting(agent: &Agent, cmd: Cmd) -> Background {
    let job = agent.start(cmd);
    poll(PATIENCE, "it has reported", || {
        assert!(job.is_alive(), "{}", job.stderr());
        job.stdout().contains("reported\n").then_some(())
    });
    job
}

/// A shell that does more than to report.
fn job(line: &str) -> Cmd {
    Cmd::new("sh").args(["-c", line])
}

fn verified(session: &Value) -> bool {
    session["process"]["verified"] == true
}

#[test]
fn two_jobs_of_one_parent_are_two_sessions_and_neither_is_the_parent() {
    let env = env();
    let parent = env.agent("orchestrator");
    let start = |id: &str| {
        let event = format!(r#"{{"event":"start","agent":"job","session_id":"{id}"}}"#);
        reporting(&parent, job(&reports(&event)))
    };
    let (one, two) = (start("j1"), start("j2"));
    let all = sessions(&env);
    assert_eq!(all.len(), 2, "{all:#?}");
    assert!(!all.iter().any(verified), "{all:#?}");
    for job in [&one, &two] {
        assert!(
            job.stderr().contains("only its lease keeps job-"),
            "{}",
            job.stderr()
        );
    }
    refused(&parent, 4, &["whoami"]);
    // Each holds by itself what its own variable names.
    let token = |job: &Background| {
        let said = job.stdout();
        let answer: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
        text(&answer, "/env/TENURE_SESSION").to_owned()
    };
    let claim = |job: &Background| {
        parent.tenure_env(&[("TENURE_SESSION", Some(&token(job)))], &["claim", "wp:1"])
    };
    claim(&one).ok();
    claim(&two).fails(3);
}

#[test]
fn an_unclear_program_that_names_no_conversation_is_not_recorded() {
    let env = env();
    let parent = env.agent("orchestrator");
    for event in [r#"{"event":"start","agent":"job"}"#, r#"{"event":"busy"}"#] {
        let job = reporting(&parent, job(&reports(event)));
        assert!(
            job.stderr().contains("nothing was recorded"),
            "{}",
            job.stderr()
        );
    }
    assert_eq!(sessions(&env).len(), 0);
}

#[test]
fn shells_that_read_their_commands_are_never_passed_over() {
    let env = env();
    // At a terminal.
    let shell = env.shell_at_terminal();
    let event = r#"{"event":"start","agent":"typed","session_id":"t1"}"#;
    shell
        .line(&format!("echo '{event}' | tenure hook generic"))
        .ok();
    let me = only(&env);
    assert!(!verified(&me), "{me:#}");
    // From a pipe.
    let parent = env.agent("orchestrator");
    let event = r#"{"event":"start","agent":"piped","session_id":"p1"}"#;
    let line = format!("echo '{event}' | tenure hook generic\n");
    parent.run(Cmd::new("sh").stdin(line)).ok();
    let all = sessions(&env);
    assert_eq!(all.len(), 2);
    assert!(!all.iter().any(verified), "{all:#?}");
    refused(&parent, 4, &["whoami"]);
}

#[test]
fn a_script_is_the_program_itself_also_from_its_subshells() {
    let env = env();
    let parent = env.agent("orchestrator");
    let script = env.dir().join("nightly");
    let head = "for what in start busy; do\n\
                (echo \"{\\\"event\\\":\\\"$what\\\",\\\"agent\\\":\\\"nightly\\\",\\\"session_id\\\":\\\"n1\\\"}\" | (tenure hook generic; :))\n\
                done\necho reported\n";
    let text = format!("{head}{WAITS}\n:\n");
    std::fs::write(&script, text).expect("the environment's directory is writable");
    let path = script.display().to_string();
    let shell = ["/bin/bash", "/usr/bin/bash"]
        .into_iter()
        .find(|path| std::path::Path::new(path).exists());
    let cmd = match shell {
        Some(bash) => Cmd::new(bash).args(["--norc", &path]),
        None => Cmd::new("sh").arg(&path),
    };
    let job = reporting(&parent, cmd);
    let me = only(&env);
    assert_eq!(me["process"]["pid"], job.pid, "{me:#}\n{}", job.stderr());
    assert_eq!(me["activity"], "busy");
    job.kill9();
    assert_eq!(only(&env)["state"], "dead");
}

#[test]
fn a_shell_that_registered_itself_is_the_session_of_its_later_events() {
    let env = env();
    let parent = env.agent("orchestrator");
    let line = format!(
        "tenure register --agent nightly --pid $$ && {}",
        reports(r#"{"event":"busy"}"#)
    );
    let job = reporting(&parent, job(&line));
    let me = only(&env);
    assert_eq!(me["process"]["pid"], job.pid, "{me:#}");
    assert_eq!(me["activity"], "busy");
    refused(&parent, 4, &["whoami"]);
}

#[test]
fn an_event_may_name_its_process_if_that_is_above_the_hook() {
    let env = env();
    let (parent, stranger) = (env.agent("orchestrator"), env.agent("stranger"));
    let event = |pid: &str, id: &str| {
        format!(
            "echo \"{{\\\"event\\\":\\\"start\\\",\\\"agent\\\":\\\"job\\\",\\\"pid\\\":{pid},\\\"session_id\\\":\\\"{id}\\\"}}\" \
             | tenure hook generic; echo reported; {WAITS}; :"
        )
    };
    let own = reporting(&parent, job(&event("$$", "j1")));
    let me = only(&env);
    assert_eq!(me["process"]["pid"], own.pid);
    assert_eq!(
        me["process"]["start_ticks"],
        Stat::read(own.pid).unwrap().start
    );
    let quoted = reporting(&parent, job(&event("\\\"$$\\\"", "j2")));
    let has_pid = |pid: u32| {
        sessions(&env)
            .iter()
            .any(|one| one["process"]["pid"] == pid)
    };
    assert!(has_pid(quoted.pid));
    let above = reporting(&parent, job(&event("$PPID", "j3")));
    assert_is(&ask(&parent, &["whoami"]), parent.pid());
    drop(above);
    for pid in [
        stranger.pid().to_string(),
        "0".into(),
        "1.5".into(),
        "true".into(),
    ] {
        let job = reporting(&parent, job(&event(&pid, &format!("x{pid}"))));
        assert!(job.stderr().contains("pid"), "{pid}: {}", job.stderr());
    }
    assert!(!has_pid(stranger.pid()));
    assert_eq!(sessions(&env).iter().filter(|one| verified(one)).count(), 3);
}

#[test]
fn a_program_that_only_starts_others_is_not_the_worker() {
    let env = env();
    let parent = env.agent("orchestrator");
    let event = r#"{"event":"start","agent":"job","session_id":"w1"}"#;
    let cmd = Cmd::new("timeout").args(["60", "tenure", "hook", "generic"]);
    parent.run(cmd.stdin(event.to_owned())).ok();
    assert!(!verified(&only(&env)));
}
