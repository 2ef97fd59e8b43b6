//! Many keepers and one server.
//!
//! Each keeper has a link of its own to the server, which accepts every attempt to connect, also while the server is down.
//! A kernel that refuses connections would hide these attempts from the server's log.

use std::io::Write;
use std::time::{Duration, Instant};

use tenure_testkit::postgres::{Asker, Cut, PostgresServer};
use tenure_testkit::{Agent, Background, Cmd, Env, Signal, poll};

use crate::machine::{kept_at, proxied, signal};

/// How long many processes of a debug build may take to start on a small machine.
const LONG: Duration = Duration::from_secs(200);
/// How often a keeper renews its row.
const BEAT: Duration = Duration::from_secs(10);
/// A keeper whose connection breaks tries again at once, a few times, and for this long if it does not know whether its
/// last commit was stored. Only what comes later is counted.
const AT_ONCE: Duration = Duration::from_secs(5);

/// How slow a server is: a command waits for its keeper for one second.
const SLOW: Duration = Duration::from_millis(1_200);
/// How long a keeper waits for a server that does not answer.
const GIVES_UP: Duration = Duration::from_secs(3);

/// A keeper in the foreground, as a service manager starts it, and its link. It ends with the agent that started it.
struct Kept {
    process: Background,
    link: Cut,
}

impl Kept {
    fn start(server: &PostgresServer, env: &Env, agent: &Agent, number: usize) -> Self {
        let link = Cut::before(server);
        let direct = server.tcp_url(None, "tenure");
        let home = env.dir().join(format!("m{number}")).display().to_string();
        let command = Cmd::new("tenure")
            .arg("keeper")
            .env("TENURE_HOME", home)
            .env("TENURE_STORE", link.url(&direct));
        Self {
            process: agent.start(command),
            link,
        }
    }
}

/// After a restart of the server all keepers are back. Although they found it down at the same moment, they do not try
/// again at the same moment, and they try less and less often.
fn all_come_back(count: usize) {
    let connections = format!("max_connections = {}", count + 60);
    let mut server = PostgresServer::own(&[&connections]);
    trust_all(&server);
    let env = kept_at(&server.url("tenure"), &[]);
    let agent = env.agent("human");
    agent.set_patience(LONG);
    let start = |number| Kept::start(&server, &env, &agent, number);
    let keepers: Vec<Kept> = (0..count).map(start).collect();
    let mut asker = server.asker();
    poll(LONG, "all report", || {
        (reported_since(&mut asker, "0") == count).then_some(())
    });
    say_memory(&keepers);
    in_step(&keepers);
    let newest = asker.ask("SELECT max(seen_at) FROM tenure.keepers");
    drop(asker);
    server.stop(true);
    for keeper in &keepers {
        signal(keeper.process.pid, Signal::CONT);
    }
    let later = Instant::now() + AT_ONCE;
    poll(LONG, "all try again and again", || {
        let later = tries_since(&keepers, later);
        later.iter().all(|of| of.len() >= 2).then_some(())
    });
    let down = tries_since(&keepers, later);
    server.start();
    let up = Instant::now();
    let mut asker = server.asker();
    poll(LONG, "all are back", || {
        (reported_since(&mut asker, &newest[0]) == count).then_some(())
    });
    check_outage(&down);
    check_return(&keepers, up, &mut asker);
}

fn check_outage(down: &[Vec<Instant>]) {
    let count = down.len();
    let bunch = largest_bunch(down.iter().flatten(), BEAT / 20);
    let total: usize = down.iter().map(Vec::len).sum();
    let pause = mean(down.iter().map(|of| of[1].duration_since(of[0])));
    say(&format!(
        "{count} keepers, server down: {total} attempts, at most {bunch} within {:?}, pauses of {pause:?}",
        BEAT / 20
    ));
    // Chance makes a quarter of them at most: the random part of a pause is ten times as long.
    assert!(
        2 * bunch < count,
        "{bunch} of {count} keepers tried at once"
    );
    // The first pause is 3.5 s on average, and the third one, which is about what is seen here, 6.5 s.
    assert!(pause > BEAT / 2, "pauses of {pause:?}");
    assert!(total < 4 * count, "{total} attempts");
}

fn check_return(keepers: &[Kept], up: Instant, asker: &mut Asker) {
    let count = keepers.len();
    let made: usize = tries_since(keepers, up).iter().map(Vec::len).sum();
    let open = asker
        .ask("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tenure'")
        .remove(0);
    say(&format!(
        "server back: {made} attempts, {open} connections open"
    ));
    // The first attempt succeeds; a busy machine may need a second one here and there.
    assert!(made <= count + count / 4, "{made} attempts");
    assert!(open.parse::<usize>().expect("a number") <= count);
    for keeper in keepers {
        assert!(keeper.process.is_alive(), "{}", keeper.process.stderr());
    }
}

/// A debug build takes so long for a password that many of them at once come too late.
fn trust_all(server: &PostgresServer) {
    let rules = "local all all trust\nhost all all 127.0.0.1/32 trust\n";
    fs_err::write(server.dir().join("data/pg_hba.conf"), rules).expect("its rules");
    server.ask("SELECT pg_reload_conf()");
}

/// How many keepers have renewed their row since a moment of the store, whose clock is not the server's.
fn reported_since(asker: &mut Asker, at: &str) -> usize {
    let sql = format!("SELECT count(*) FROM tenure.keepers WHERE seen_at > {at}");
    asker.ask(&sql)[0].parse().expect("a number")
}

/// Stops all keepers until each of them is due. When they continue, all try at the same moment.
fn in_step(keepers: &[Kept]) {
    for keeper in keepers {
        signal(keeper.process.pid, Signal::STOP);
    }
    let stopped = Instant::now();
    poll(LONG, "all are due", || {
        (stopped.elapsed() > BEAT).then_some(())
    });
}

/// When each keeper tried to connect, since a moment.
fn tries_since(keepers: &[Kept], since: Instant) -> Vec<Vec<Instant>> {
    let tries = |one: &Kept| {
        let mut tries = one.link.attempts();
        tries.retain(|at| *at > since);
        tries
    };
    keepers.iter().map(tries).collect()
}

/// The most attempts that came within a span.
fn largest_bunch<'a>(attempts: impl Iterator<Item = &'a Instant>, span: Duration) -> usize {
    let mut attempts: Vec<Instant> = attempts.copied().collect();
    attempts.sort_unstable();
    let within = |from: &Instant| attempts.partition_point(|at| at.duration_since(*from) < span);
    let sizes = attempts.iter().enumerate();
    sizes.map(|(i, from)| within(from) - i).max().unwrap_or(0)
}

fn mean(of: impl ExactSizeIterator<Item = Duration>) -> Duration {
    let count = u32::try_from(of.len()).expect("a few");
    of.sum::<Duration>() / count
}

fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").ok();
}

fn say_memory(keepers: &[Kept]) {
    let kib = keepers.iter().map(|one| resident_kib(one.process.pid));
    let mib = kib.sum::<u64>() / 1024;
    say(&format!("{} keepers use {mib} MiB", keepers.len()));
}

fn resident_kib(pid: u32) -> u64 {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or_default()
}

/// How many, unless TENURE_KEEPERS says otherwise; the long tier has 200.
const COUNT: usize = 64;

#[test]
#[ignore = "needs PostgreSQL"]
fn f_s22_many_keepers_come_back_after_a_restart_of_the_server() {
    let count = std::env::var("TENURE_KEEPERS").ok();
    all_come_back(count.and_then(|count| count.parse().ok()).unwrap_or(COUNT));
}

/// A server that is slow to accept a keeper's connection is not asked for a second one meanwhile.
#[test]
#[ignore = "needs PostgreSQL"]
fn a_keeper_makes_one_connection_also_if_the_server_is_slow_to_accept_it() {
    let server = PostgresServer::own(&["log_connections = on"]);
    trust_all(&server);
    let (proxy, url) = proxied(&server);
    let env = kept_at(&server.url("tenure"), &[]);
    let agent = env.agent("human");
    let received = || {
        let log = fs_err::read_to_string(server.dir().join("log")).expect("its log");
        log.matches("connection received: host=127.0.0.1").count()
    };
    let mut asker = server.asker();
    for number in 0.. {
        let before = received();
        proxy.freeze(true);
        let home = env.dir().join(format!("m{number}")).display().to_string();
        let command = Cmd::new("tenure").arg("keeper");
        let command = command
            .env("TENURE_HOME", home)
            .env("TENURE_STORE", url.clone());
        let keeper = agent.start(command);
        poll(LONG, "it connects", || (received() > before).then_some(()));
        let since = Instant::now();
        poll(LONG, "a command would connect by itself", || {
            (since.elapsed() > SLOW).then_some(())
        });
        proxy.freeze(false);
        let was_in_time = since.elapsed() < GIVES_UP / 2;
        poll(LONG, "it reports", || {
            (reported_since(&mut asker, "0") > number).then_some(())
        });
        assert!(keeper.is_alive(), "{}", keeper.stderr());
        // A machine that is too busy to be slow for this long only is asked again.
        if was_in_time {
            assert_eq!(received(), before + 1);
            return;
        }
    }
}
