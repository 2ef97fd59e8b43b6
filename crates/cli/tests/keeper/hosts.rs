//! Two hosts that see no process of each other: a death, a host that vanishes, a link that is cut, a store that is away.

use std::time::{Duration, Instant};

use tenure_testkit::postgres::{Bouncer, PoolMode, PostgresServer};
use tenure_testkit::{Env, Scripted, Signal, poll};

use crate::machine::{Machine, SOON, kept, kept_at, proxied, skewed_clock, two_hosts};

/// On a shared store the lock delay is twice what is set.
const QUICK: &[(&str, &str)] = &[("TENURE_HOST_LEASE", "6s"), ("TENURE_LOCK_DELAY", "500ms")];
const LEASE_AND_DELAY_MS: i64 = 6_000 + 2 * 500;

fn a_killed_agents_claim_goes_to_a_waiter_on_another_host(env: &Env) {
    let Some((a, b)) = two_hosts(env) else {
        return;
    };
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    let codex = b.session("codex");
    let held = b.run(&codex, 3, "claim wp:1");
    let holder = &held["error"]["holder"];
    assert_eq!(holder["state"], "live", "{held}");
    let why = holder["why"].as_str().unwrap();
    assert!(why.contains("runs on a"), "{why}");
    let waits = codex.start(b.command("claim wp:1 --wait 60s"));
    poll(SOON, "it waits", || {
        let shown = b.person(0, "why wp:1");
        let waiters = shown["why"]["waiters"].as_array().map(Vec::len);
        (waiters == Some(1)).then_some(())
    });
    claude.kill9();
    // The lease of that host is five minutes: only its keeper's report can have freed it.
    let granted = waits.wait();
    assert_eq!(granted.code, 0, "{granted}");
    assert_eq!(granted.json()["claim"]["epoch"], 2, "{granted}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_killed_agents_claim_goes_to_a_waiter_on_another_host_directly() {
    let (_server, env) = kept(&[]);
    a_killed_agents_claim_goes_to_a_waiter_on_another_host(&env);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_killed_agents_claim_goes_to_a_waiter_on_another_host_through_a_pooler() {
    let server = PostgresServer::own(&[]);
    let pooler = Bouncer::start(&server, PoolMode::Transaction, 3);
    let env = kept_at(&pooler.url("tenure"), &[]);
    a_killed_agents_claim_goes_to_a_waiter_on_another_host(&env);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_host_that_vanishes_keeps_its_claims_for_its_lease_and_the_lock_delay() {
    let (server, env) = kept(QUICK);
    let Some((a, b)) = two_hosts(&env) else {
        return;
    };
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    let codex = b.session("codex");
    a.vanish();
    let renewed = server.ask("SELECT renewed FROM tenure.keepers WHERE host_name = 'a'");
    let renewed: i64 = renewed[0].parse().unwrap();
    let granted = codex.start(b.command("claim wp:1 --wait 60s")).wait();
    assert_eq!(granted.code, 0, "{granted}");
    let from = &granted.json()["claim"]["taken_from"];
    assert_eq!(from["by"], "lease", "{granted}");
    // Both moments are the server's.
    let at = server.ask("SELECT granted_at FROM tenure.holds WHERE epoch = 2");
    let at: i64 = at[0].parse().unwrap();
    let after = at - renewed;
    assert!(
        after >= LEASE_AND_DELAY_MS,
        "{after} ms after the last report"
    );
}

#[test]
#[ignore = "needs PostgreSQL"]
fn f_s07_a_host_without_its_link_stops_writing_before_another_is_granted_its_claim() {
    let server = PostgresServer::own(&[]);
    // A guard may take seconds to find out that the link is cut, and must still find the list good.
    let slower = [("TENURE_HOST_LEASE", "15s"), ("TENURE_LOCK_DELAY", "500ms")];
    let lease = Duration::from_secs(15);
    let env = kept_at(&server.url("tenure"), &slower);
    let (proxy, through) = proxied(&server);
    let Some((a, b)) = two_hosts(&env) else {
        return;
    };
    let a = a.through(through);
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    a.lists(1);
    let codex = b.session("codex");
    let waits = codex.start(b.command("claim wp:1 --wait 60s"));
    proxy.freeze(true);
    proxy.cut();
    let cut = Instant::now();
    let (mut last_yes, mut granted, mut first_no) = (None, None, None);
    while granted.is_none() || cut.elapsed() < lease * 2 {
        if granted.is_none() && !waits.is_alive() {
            granted = Some(Instant::now());
        }
        let asked = Instant::now();
        match a.ask(&claude, "guard wp:1").code {
            0 if first_no.is_some() => panic!("a yes after a no"),
            0 => last_yes = Some(asked),
            9 => first_no = first_no.or(Some(asked)),
            other => panic!("guard ended with {other}"),
        }
    }
    assert_eq!(waits.wait().code, 0);
    let last_yes = last_yes.expect("a guard while the link was cut is answered from memory");
    assert!(last_yes < granted.unwrap(), "a yes after the grant");
    assert!(claude.is_alive(), "nothing is killed");
    proxy.freeze(false);
    poll(SOON, "the link is back", || {
        match a.ask(&claude, "guard wp:1").code {
            9 => None,
            5 => Some(()),
            other => panic!("guard ended with {other}"),
        }
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn f_s08_a_store_that_is_away_for_six_tenths_of_a_lease_costs_nothing() {
    let (mut server, env) = kept(&[("TENURE_HOST_LEASE", "15s"), ("TENURE_LOCK_DELAY", "1s")]);
    let Some((a, b)) = two_hosts(&env) else {
        return;
    };
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    a.lists(1);
    let codex = b.session("codex");
    server.stop(true);
    let stopped = Instant::now();
    while stopped.elapsed() < Duration::from_secs(9) {
        a.run(&claude, 0, "guard wp:1");
    }
    server.start();
    poll(SOON, "the store is back", || {
        match b.ask(&codex, "claim wp:1").code {
            8 => None,
            3 => Some(()),
            other => panic!("claim ended with {other}"),
        }
    });
    let still = a.run(&claude, 0, "guard wp:1");
    assert_eq!(still["claim"]["epoch"], 1, "{still}");
    let notices = still["notices"].as_array().map(Vec::len);
    assert_eq!(notices, Some(0), "{still}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_server_that_was_down_for_three_leases_expires_nobody() {
    let (mut server, env) = kept(&[("TENURE_HOST_LEASE", "30s"), ("TENURE_LOCK_DELAY", "1s")]);
    let Some((a, b)) = two_hosts(&env) else {
        return;
    };
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    a.lists(1);
    let codex = b.session("codex");
    server.stop(true);
    // The store's clock follows the server's by 20 s at most, so a lease must be longer than that, and three of them
    // are too long for a test. Instead the server's own clock is that much later when it starts.
    let library = skewed_clock(server.dir());
    server.start_with(&[("LD_PRELOAD", &library), ("TENURE_TEST_SKEW", "90")]);
    let ahead = "SELECT (extract(epoch FROM clock_timestamp()) * 1000 - last > 60000)::text FROM tenure.clock";
    assert_eq!(server.ask(ahead), ["true"]);
    poll(SOON, "the store is back", || {
        match b.ask(&codex, "claim wp:1").code {
            8 => None,
            3 => Some(()),
            other => panic!("claim ended with {other}"),
        }
    });
    let still = a.run(&claude, 0, "guard wp:1");
    assert_eq!(still["claim"]["epoch"], 1, "{still}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn f_s17_a_keeper_and_its_agent_that_were_frozen_ask_the_store_first() {
    let (_server, env) = kept(QUICK);
    let Some((a, b)) = two_hosts(&env) else {
        return;
    };
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    a.lists(1);
    let keeper = a.keeper_pid();
    a.signal(keeper, Signal::STOP);
    claude.stop();
    let codex = b.session("codex");
    let granted = codex.start(b.command("claim wp:1 --wait 60s")).wait();
    assert_eq!(granted.code, 0, "{granted}");
    // The agent is faster than the keeper, whose list still has the claim.
    claude.cont();
    a.run(&claude, 5, "guard wp:1");
    a.signal(keeper, Signal::CONT);
    a.run(&claude, 5, "guard wp:1");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn f_r26_a_run_whose_host_is_gone_is_ended_at_once_from_another_host() {
    let (_server, env) = kept(QUICK);
    let mine = Scripted::new(&env, "mine", "init; ready $dir/on; hold $dir/flag; done_");
    mine.keep("flag");
    let Some((a, b)) = two_hosts(&env) else {
        return;
    };
    let ann = a.env_agent("ann");
    let run = a.command("run mine wp:1 --prompt go");
    let _window = ann.start(run);
    poll(SOON, "the agent works", || mine.wrote("on"));
    let run = poll(SOON, "it is recorded", || {
        let runs = b.person(0, "runs");
        let run = runs["runs"].get(0)?.clone();
        (run["native_id"] == "c-1").then_some(run)
    });
    let id = run["id"].as_str().unwrap();
    a.vanish();
    let abandon = format!("runs stop {id} --abandon --reason gone");
    let ended = poll(SOON, "it can be given up", || {
        let said = b.ask(&b.env_agent("bob"), &abandon);
        (said.code == 0).then(|| said.json())
    });
    assert_eq!(ended["run"]["outcome"], "stopped", "{ended}");
    assert_eq!(ended["run"]["why"], "abandoned: gone", "{ended}");
    let shown = b.person(0, "runs");
    assert_eq!(shown["runs"][0]["state"], "ended", "{shown}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_clone_of_a_machine_takes_nothing_from_it() {
    let (server, env) = kept(&[("TENURE_HOST_LEASE", "30s")]);
    let Some(a) = Machine::host(&env, "a") else {
        return;
    };
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    a.lists(1);
    let renewed = || server.ask("SELECT renewed FROM tenure.keepers WHERE host_name = 'a'");
    let before = renewed();
    // Its disk, with its host id and all that it remembers, under another boot.
    let (from, to) = (env.dir().join("a"), env.dir().join("clone"));
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([&from, &to])
        .status();
    assert!(copied.unwrap().success());
    poll(SOON, "it goes on", || (renewed() != before).then_some(()));
    let Some(clone) = Machine::booted(&env, "c", "clone") else {
        return;
    };
    let codex = clone.env_agent("codex");
    let register = format!("register --agent codex --pid {}", codex.pid());
    let first = clone.ask(&codex, &register);
    assert_eq!(first.code, 0, "{first}");
    let words = "this machine (c) is a copy of a, which uses the same store under the same host id";
    assert!(first.stderr.contains(words), "{first}");
    let own = host_id(&to);
    assert_ne!(own, host_id(&from));
    poll(SOON, "its own keeper watches it", || {
        (clone.watched() == Some(1)).then_some(())
    });
    let held = clone.run(&codex, 3, "claim wp:1");
    assert_ne!(held["error"]["holder"]["state"], "dead", "{held}");
    assert_eq!(a.watched(), Some(1));
    a.run(&claude, 0, "guard wp:1");
    claude.kill9();
    let granted = codex.start(clone.command("claim wp:1 --wait 60s")).wait();
    assert_eq!(granted.code, 0, "{granted}");
    assert!(
        !granted.stderr.contains("is a copy"),
        "said once: {granted}"
    );
    let hosts = server.ask("SELECT count(DISTINCT host_id) FROM tenure.keepers");
    assert_eq!(hosts, ["2"]);
    // It stays that host after a reboot, and is told nothing again.
    clone.person(0, "keeper stop");
    clone.vanish();
    let Some(again) = Machine::booted(&env, "d", "clone") else {
        return;
    };
    let said = again.said("ps");
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said}");
    assert_eq!(host_id(&to), own);
}

fn host_id(dir: &std::path::Path) -> String {
    fs_err::read_to_string(dir.join("host-id")).unwrap()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn containers_that_share_a_state_directory_stay_one_host() {
    let (server, env) = kept(&[]);
    let Some((a, b)) = Machine::host(&env, "a").zip(Machine::booted(&env, "b", "a")) else {
        return;
    };
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    a.lists(1);
    let own = host_id(&env.dir().join("a"));
    let codex = b.session("codex");
    b.run(&codex, 3, "claim wp:1");
    assert_eq!(host_id(&env.dir().join("a")), own);
    let hosts = server.ask("SELECT count(DISTINCT host_id) FROM tenure.keepers");
    assert_eq!(hosts, ["1"]);
    a.run(&claude, 0, "guard wp:1");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_claim_is_handed_to_a_session_that_another_host_reports_and_to_no_silent_one() {
    let (_server, env) = kept(QUICK);
    let Some((a, b)) = two_hosts(&env) else {
        return;
    };
    let (claude, codex) = (a.session("claude"), b.session("codex"));
    a.run(&claude, 0, "claim wp:1");
    a.run(&claude, 0, "claim wp:2");
    let to = b.run(&codex, 0, "whoami");
    let to = to["session"]["handle"].as_str().unwrap();
    let handed = a.run(&claude, 0, &format!("handoff wp:1 --to {to}"));
    assert_eq!(handed["claim"]["epoch"], 2, "{handed}");
    b.run(&codex, 0, "guard wp:1");
    a.run(&claude, 3, "guard wp:1");
    b.vanish();
    let handoff = format!("handoff wp:2 --to {to}");
    // While its host counts as alive, nobody can know; then it is refused.
    let refused = poll(SOON, "its host is silent", || {
        let said = a.ask(&claude, &handoff);
        match said.code {
            0 => a.run(&claude, 0, "takeover wp:2 --reason back"),
            _ => return Some(said),
        };
        None
    });
    assert_eq!(refused.code, 9, "{refused}");
}
