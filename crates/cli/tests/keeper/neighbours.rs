//! What one locked row, one stalled link, one restart of the server or many waiters cost a machine and its neighbours.

use std::time::{Duration, Instant};

use tenure_testkit::postgres::PostgresServer;
use tenure_testkit::{Agent, Background, poll, scratch_git};

use crate::machine::{Machine, SOON, kept, kept_at, proxied};

/// How long a command may take over a link that carries nothing.
const STALLED: Duration = Duration::from_secs(5);

/// How long a command may take on a row that stays locked: a use case has 5 s, and a command is a process besides.
const LOCKED: Duration = Duration::from_secs(7);

/// Longer than a call and the questions what became of it may take together.
const USE_CASES: Duration = Duration::from_secs(9);

/// Locks the row of a key until it is told to stop.
fn locked<T>(server: &PostgresServer, key: &str, act: impl FnOnce() -> T) -> T {
    let (dir, port) = (server.socket_dir().display().to_string(), server.port());
    let sql = format!(
        "BEGIN; SELECT 1 FROM tenure.claims WHERE key = '{key}' FOR UPDATE; SELECT pg_sleep(600)"
    );
    let holder = std::thread::spawn(move || PostgresServer::hold_at(&dir, port, &sql));
    let mut asker = server.asker();
    let sleeping = "SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' \
                    AND state = 'active' AND pid <> pg_backend_pid() AND wait_event = 'PgSleep'";
    poll(SOON, "the row is locked", || {
        (!asker.ask(sleeping).is_empty()).then_some(())
    });
    let done = act();
    asker.ask(&format!(
        "SELECT pg_terminate_backend(pid) FROM ({sleeping}) one"
    ));
    holder.join().unwrap();
    done
}

fn renewed(server: &PostgresServer) -> i64 {
    let found = server.ask("SELECT max(renewed) FROM tenure.keepers");
    found[0].parse().unwrap()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn f_s12_one_locked_row_and_one_spooled_release_delay_no_other_session() {
    let quick = [("TENURE_HOST_LEASE", "6s"), ("TENURE_LOCK_DELAY", "500ms")];
    let (server, env) = kept(&quick);
    let (a, b) = (Machine::new(&env, "a"), Machine::new(&env, "b"));
    let (claude, codex) = (a.session("claude"), a.session("codex"));
    a.run(&claude, 0, "claim wp:1");
    a.run(&codex, 0, "claim wp:2");
    a.lists(2);
    let gemini = b.session("gemini");
    locked(&server, "wp:1", || {
        let released = a.run(&claude, 0, "release wp:1");
        assert!(released["spooled"].is_object(), "{released}");
        let (began, mut last, mut seen) = (Instant::now(), renewed(&server), 0);
        // Longer than the lease of the machine and the lock delay.
        while began.elapsed() < Duration::from_secs(9) {
            b.run(&gemini, 3, "claim wp:2");
            let asked = Instant::now();
            a.run(&codex, 0, "guard wp:2");
            a.run(&codex, 0, "claim wp:3");
            assert!(asked.elapsed() < STALLED, "{:?}", asked.elapsed());
            let now = renewed(&server);
            seen += u32::from(now > last);
            last = last.max(now);
        }
        assert!(seen >= 3, "{seen} renewals");
        // The session itself waits for its release.
        let asked = Instant::now();
        a.run(&claude, 8, "claim wp:1");
        assert!(asked.elapsed() < LOCKED, "{:?}", asked.elapsed());
    });
    poll(SOON, "the release arrives", || {
        (b.ask(&gemini, "claim wp:1").code == 0).then_some(())
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn guard_and_claim_over_a_stalled_link_end_in_time() {
    let server = PostgresServer::own(&[]);
    let env = kept_at(&server.url("tenure"), &[]);
    let (proxy, through) = proxied(&server);
    let a = Machine::new(&env, "a").through(through);
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    a.lists(1);
    proxy.freeze(true);
    for (code, line) in [(0, "guard wp:1"), (8, "claim wp:2"), (0, "guard wp:1")] {
        let asked = Instant::now();
        a.run(&claude, code, line);
        let took = asked.elapsed();
        assert!(took < STALLED, "{line} took {took:?}");
    }
    proxy.freeze(false);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_command_on_a_row_that_stays_locked_ends_in_time() {
    let (server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    a.run(&claude, 0, "claim wp:2");
    a.run(&claude, 0, "release wp:2");
    a.lists(1);
    for (key, code, line) in [("wp:2", 8, "claim wp:2"), ("wp:1", 0, "release wp:1")] {
        let took = locked(&server, key, || {
            let asked = Instant::now();
            a.run(&claude, code, line);
            asked.elapsed()
        });
        assert!(took < LOCKED, "{line} took {took:?}");
    }
}

/// A waiter that is in line.
fn waits(machine: &Machine<'_>, agent: &Agent, server: &PostgresServer) -> Background {
    let count = || server.ask("SELECT count(*) FROM tenure.waiters")[0].clone();
    let before = count();
    let job = agent.start(machine.command("claim wp:1 --wait 120s"));
    poll(SOON, "it waits", || (count() != before).then_some(()));
    job
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_waiter_outlasts_a_restart_and_a_cut_link_and_keeps_its_place() {
    let mut server = PostgresServer::own(&[]);
    let env = kept_at(&server.url("tenure"), &[]);
    let (proxy, through) = proxied(&server);
    let (a, b) = (
        Machine::new(&env, "a"),
        Machine::new(&env, "b").through(through),
    );
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    let (codex, gemini) = (b.session("codex"), b.session("gemini"));
    let first = waits(&b, &codex, &server);
    let second = waits(&b, &gemini, &server);
    let line = "SELECT ticket FROM tenure.waiters ORDER BY ticket";
    let before = server.ask(line);
    server.stop(true);
    server.start();
    proxy.cut();
    for waiter in [&first, &second] {
        assert!(waiter.is_alive(), "{}{}", waiter.stdout(), waiter.stderr());
    }
    poll(SOON, "the holder reaches the store again", || {
        (a.ask(&claude, "guard wp:1").code == 0).then_some(())
    });
    assert_eq!(server.ask(line), before, "they keep their places");
    a.run(&claude, 0, "release wp:1");
    let granted = first.wait();
    assert_eq!(granted.code, 0, "{granted}");
    assert!(second.is_alive(), "it is behind the other");
    b.run(&codex, 0, "release wp:1");
    assert_eq!(second.wait().code, 0);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_waiter_whose_grant_is_not_confirmed_finds_it_when_the_link_is_back() {
    let server = PostgresServer::own(&[]);
    let env = kept_at(&server.url("tenure"), &[]);
    let (proxy, through) = proxied(&server);
    let (a, b) = (
        Machine::new(&env, "a"),
        Machine::new(&env, "b").through(through),
    );
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    let codex = b.session("codex");
    let waiter = waits(&b, &codex, &server);
    // Slow enough that the link is frozen before anybody can ask what came of the commit.
    proxy.delay(Duration::from_millis(60));
    proxy.leave_commits_unanswered(1);
    a.run(&claude, 0, "release wp:1");
    poll(SOON, "the grant is not confirmed", || {
        (proxy.unanswered_left() == 0).then_some(())
    });
    proxy.freeze(true);
    let granted = "SELECT epoch FROM tenure.holds WHERE ended_at IS NULL";
    poll(SOON, "it is granted", || {
        (server.ask(granted) == ["2"]).then_some(())
    });
    lasts("the link carries nothing", &waiter);
    proxy.delay(Duration::ZERO);
    proxy.freeze(false);
    let told = waiter.wait();
    assert_eq!(told.code, 0, "{told}");
    assert_eq!(told.json()["claim"]["already_held"], false, "{told}");
    assert_eq!(server.ask(granted), ["2"], "it is granted once");
}

/// Waits for longer than one use case may take; the waiter goes on meanwhile.
fn lasts(outage: &str, waiter: &Background) {
    let began = Instant::now();
    poll(SOON, outage, || {
        assert!(waiter.is_alive(), "{}{}", waiter.stdout(), waiter.stderr());
        (began.elapsed() > USE_CASES).then_some(())
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_waiter_is_woken_soon_after_an_outage() {
    let mut server = PostgresServer::own(&[]);
    let env = kept_at(&server.url("tenure"), &[]);
    let (proxy, through) = proxied(&server);
    let (a, b) = (
        Machine::new(&env, "a"),
        Machine::new(&env, "b").through(through),
    );
    let (claude, codex) = (a.session("claude"), b.session("codex"));
    for is_down in [true, false] {
        a.run(&claude, 0, "claim wp:1");
        let waiter = waits(&b, &codex, &server);
        if is_down {
            server.stop(true);
            lasts("the server is down", &waiter);
            server.start();
            poll(SOON, "the holder reaches the store again", || {
                let guard = a.ask(&claude, "guard wp:1");
                (guard.code == 0 && guard.json()["permitted"].is_null()).then_some(())
            });
        } else {
            proxy.freeze(true);
            lasts("the link carries nothing", &waiter);
            proxy.freeze(false);
        }
        let released = a.run(&claude, 0, "release wp:1");
        assert!(released["spooled"].is_null(), "{released}");
        let began = Instant::now();
        let granted = waiter.wait();
        assert_eq!(granted.code, 0, "{granted}");
        let took = began.elapsed();
        assert!(took < STALLED, "the grant took {took:?}");
        b.run(&codex, 0, "release wp:1");
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn waiters_of_two_machines_cost_one_look_each_and_are_granted_in_order() {
    const EACH: usize = 4;
    let (server, env) = kept(&[]);
    let (a, b) = (Machine::new(&env, "a"), Machine::new(&env, "b"));
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    let names = ["codex", "gemini", "qwen", "opencode"];
    let mut agents = Vec::new();
    let mut jobs = Vec::new();
    for name in names.iter().take(EACH) {
        for machine in [&a, &b] {
            let agent = machine.session(name);
            jobs.push(waits(machine, &agent, &server));
            agents.push((machine, agent));
        }
    }
    let mut asker = server.asker();
    let mut commits = || -> i64 {
        let sql = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
        asker.ask(sql)[0].parse().unwrap()
    };
    // The counters of the server are a moment behind.
    let (began, before) = (Instant::now(), commits());
    poll(SOON, "some time passes", || {
        (began.elapsed() > Duration::from_secs(5)).then_some(())
    });
    let rate = (commits() - before) as f64 / began.elapsed().as_secs_f64();
    // Two machines look four times a second each, and the poll of this test asks too.
    assert!(rate < 20.0, "{rate} transactions a second");
    let mut last = (&a, &claude);
    for (job, (machine, agent)) in jobs.into_iter().zip(&agents) {
        assert!(job.is_alive(), "it is behind the others");
        last.0.run(last.1, 0, "release wp:1");
        let granted = job.wait();
        assert_eq!(granted.code, 0, "{granted}");
        last = (machine, agent);
    }
    // From each release to the next grant, by the server's clock.
    let took = server.ask(
        "SELECT max(next.granted_at - one.ended_at) FROM tenure.holds one \
         JOIN tenure.holds next ON next.key = one.key AND next.epoch = one.epoch + 1",
    );
    let took: i64 = took[0].parse().unwrap();
    assert!(took < 2_000, "a grant took {took} ms");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_same_directory_on_two_machines_is_two_places() {
    let (_server, env) = kept(&[]);
    let (a, b) = (Machine::new(&env, "a"), Machine::new(&env, "b"));
    let repo = env.dir().join("workspace");
    scratch_git(&repo, None);
    let (claude, codex) = (a.session("claude"), b.session("codex"));
    let claim = |machine: &Machine<'_>, agent: &Agent| {
        agent.run(machine.command("claim path:src/a.rs").dir(&repo))
    };
    let (one, two) = (claim(&a, &claude), claim(&b, &codex));
    assert_eq!((one.code, two.code), (0, 0), "{one}\n{two}");
    assert_ne!(one.json()["claim"]["key"], two.json()["claim"]["key"]);
    let guard = codex.run(b.command("guard path:src/a.rs").dir(&repo));
    assert_eq!(guard.code, 0, "{guard}");
    let second = b.session("gemini");
    assert_eq!(claim(&b, &second).code, 3, "on one machine it is one place");
}
