//! Commits and pushes of sessions while the store is away.

use std::path::PathBuf;

use tenure_testkit::{Agent, Cmd, Env, Output, poll, scratch_git};

use crate::machine::{Machine, SOON, kept};

/// A machine with a repository whose commits and pushes are guarded.
struct Published<'a> {
    machine: Machine<'a>,
    env: &'a Env,
    repo: PathBuf,
    /// Where pushes go.
    bare: PathBuf,
    human: Agent,
}

impl<'a> Published<'a> {
    fn new(env: &'a Env) -> Self {
        let machine = Machine::new(env, "a");
        let repo = env.dir().join("repo");
        scratch_git(&repo, Some("git@github.com:acme/web.git"));
        let human = machine.env_agent("human");
        let made = Self {
            bare: env.dir().join("bare.git"),
            machine,
            env,
            repo,
            human,
        };
        let bare = made.bare.display().to_string();
        let init = made.git(&made.human, "open", &["init", "-q", "--bare", &bare]);
        assert_eq!(init.code, 0, "{init}");
        let install = made.machine.command("install git").dir(&made.repo);
        let installed = made.human.run(install);
        assert_eq!(installed.code, 0, "{installed}");
        made
    }

    fn git(&self, agent: &Agent, on_error: &str, words: &[&str]) -> Output {
        let home = self.env.dir().join("a").display().to_string();
        let git = Cmd::new("git").args(words.iter().copied()).dir(&self.repo);
        agent.run(
            git.env("TENURE_HOME", home)
                .env("TENURE_GUARD_ON_ERROR", on_error),
        )
    }

    fn commit(&self, agent: &Agent, on_error: &str) -> Output {
        self.git(agent, on_error, &["commit", "--allow-empty", "-qm", "work"])
    }

    fn push(&self, agent: &Agent, on_error: &str) -> Output {
        let bare = self.bare.display().to_string();
        self.git(
            agent,
            on_error,
            &["push", "-q", &bare, "HEAD:refs/heads/work"],
        )
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn on_error_closed_stops_commits_and_pushes_of_a_session_that_may_have_lost_its_claim() {
    let quick = [("TENURE_HOST_LEASE", "3s"), ("TENURE_LOCK_DELAY", "100ms")];
    let (mut server, env) = kept(&quick);
    let work = Published::new(&env);
    let a = &work.machine;
    let (claude, codex) = (a.session("claude"), a.session("codex"));
    a.run(&claude, 0, "claim issue:acme/web#1");
    a.run(&codex, 0, "claim issue:acme/api#1");
    a.lists(2);
    assert_eq!(work.commit(&claude, "closed").code, 0);
    assert_eq!(work.push(&claude, "closed").code, 0);
    server.stop(true);
    // Once the last answer is too old, nobody can say.
    poll(SOON, "the commit is refused", || {
        (work.commit(&claude, "closed").code != 0).then_some(())
    });
    assert_eq!(work.commit(&claude, "open").code, 0);
    let pushed = work.push(&claude, "closed");
    assert_ne!(pushed.code, 0, "{pushed}");
    assert!(pushed.stderr.contains("cannot tell"), "{pushed}");
    for (agent, why) in [
        (&codex, "its claim is of another repository"),
        (&work.human, "it is not a session"),
    ] {
        assert_eq!(work.commit(agent, "closed").code, 0, "{why}");
        assert_eq!(work.push(agent, "closed").code, 0, "{why}");
    }
    assert_eq!(work.commit(&claude, "open").code, 0);
    assert_eq!(work.push(&claude, "open").code, 0);
    server.start();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn on_error_closed_stops_a_session_that_had_lost_its_claim_before_the_store_was_away() {
    let (mut server, env) = kept(&[]);
    let work = Published::new(&env);
    let a = &work.machine;
    let (claude, codex) = (a.session("claude"), a.session("codex"));
    a.run(&claude, 0, "claim issue:acme/web#1");
    a.lists(1);
    a.run(&codex, 0, "claim wp:1");
    a.lists(2);
    a.run(&codex, 0, "takeover issue:acme/web#1 --reason urgent");
    // The list still has two claims, both of the other session.
    poll(SOON, "the keeper lists the loss", || {
        let memory = fs_err::read_to_string(a.file(".memory")).ok()?;
        let memory: serde_json::Value = serde_json::from_str(&memory).ok()?;
        let lost = memory["lost"].as_array()?;
        (lost.len() == 1).then_some(())
    });
    server.stop(true);
    for refused in [work.commit(&claude, "closed"), work.push(&claude, "closed")] {
        assert_ne!(refused.code, 0, "{refused}");
        let says = "this session lost issue:acme/web#1";
        assert!(refused.stderr.contains(says), "{refused}");
    }
    // The other one holds it, and that is remembered.
    assert_eq!(work.commit(&codex, "closed").code, 0);
    assert_eq!(work.push(&codex, "closed").code, 0);
    assert_eq!(work.commit(&claude, "open").code, 0);
    server.start();
}
