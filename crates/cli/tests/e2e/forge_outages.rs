//! The forge and the remote are away, together or in turns, for longer than every retry; comments and pushes go on
//! meanwhile, and dispatchers are killed. Afterwards the ledger must show that every event has its answer, that every run was at the permitted
//! commit, and that nothing waits for a person who was not told.
//!
//! All waits between attempts are scaled by the setting `retry_every`. `TENURE_OUTAGE_MOMENTS` is how many moments of
//! half a second it lasts (the long tier asks for several minutes), `TENURE_STORM_SEED` repeats the choices of a run.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use tenure_testkit::fake_forge::{Dialect, FakeForge, InjectedFault, PullHead, Thread};
use tenure_testkit::{Env, Scripted, poll};

use crate::env;
use crate::support::dispatch::fill_in;
use crate::support::forge_api::{deliveries, jobs, set_up_forge};
use crate::support::line::SOON;
use crate::support::remote::{Remote, each_was_permitted, ledger, opened};
use crate::support::storm::{Dice, number, seed, tell};
use crate::support::webhook::{Dispatcher, comment, issue};

/// It keeps each prompt, and the commit that each run was at.
const SCRIPT: &str = "cat >$dir/prompt-$TENURE_RUN; echo $TENURE_RUN $(git rev-parse HEAD) >>$dir/heads; \
    init ${2:-c-$TENURE_RUN}; done_";
const ISSUES: u64 = 3;
const PULLS: [u64; 2] = [11, 12];
/// Longer than any test.
const ENDLESS: u32 = 1_000_000;
/// What five minutes are here, and in a night: each attempt is a process.
const RETRY_EVERY: (&str, &str) = ("200ms", "2s");
/// A night has more moments than this.
const NIGHT: u64 = 100;
const MOMENT: Duration = Duration::from_millis(500);

/// The forge and its repository.
struct Outside {
    forge: FakeForge,
    remote: Remote,
}

impl Outside {
    fn set_api_away(&self, is_away: bool) {
        let mut state = self.forge.state();
        state.faults.clear();
        if is_away {
            state.fail("", usize::MAX, InjectedFault::Dropped);
        }
    }

    /// Puts another commit in place of a pull request's head, for git and for the API.
    fn force_push(&mut self, number: u64) -> String {
        let commit = self.remote.force_push(number);
        let head = PullHead {
            commit: commit.clone(),
            repo: "acme/web".to_owned(),
        };
        self.forge.state().heads.insert(number, head);
        commit
    }
}

fn set_up(env: &Env) -> Outside {
    let caps = format!("caps = {{ runs_per_hour = {ENDLESS} }}\nreply = \"comment\"");
    let forge = set_up_forge(
        env,
        Dialect::Forgejo,
        &format!("breaker = {ENDLESS}"),
        &caps,
    );
    let more = "\"issue.comment\", \"pr.opened\", \"pr.comment\"]";
    fill_in(env, "\"issue.comment\"]", more);
    for (number, is_pull) in (1..=ISSUES)
        .map(|number| (number, false))
        .chain(PULLS.map(|number| (number, true)))
    {
        let thread = Thread {
            is_pull,
            state: "open",
            author: "alice".to_owned(),
        };
        forge.state().threads.insert(number, thread);
    }
    Outside {
        forge,
        remote: Remote::of(env),
    }
}

/// Something is said about an item, or a pull request is pushed to and opened.
fn happens(door: &Dispatcher, outside: &mut Outside, dice: &mut Dice, number: u64) {
    let said = format!("said-{number}-");
    let id = format!("d-{number}");
    let pull_number = PULLS[usize::from(dice.below(2) == 0)];
    let (event, payload) = match dice.below(8) {
        0 => {
            let head = outside.force_push(pull_number);
            ("pull_request", opened(pull_number, &head, number))
        }
        1 | 2 => {
            let mut payload = comment(pull_number, number, "alice", &said);
            payload["is_pull"] = true.into();
            ("issue_comment", payload)
        }
        3 => {
            outside.force_push(pull_number);
            let mut payload = comment(pull_number, number, "alice", &said);
            payload["is_pull"] = true.into();
            ("issue_comment", payload)
        }
        _ => {
            let item = 1 + dice.below(ISSUES);
            ("issue_comment", comment(item, number, "alice", &said))
        }
    };
    let (status, answer) = door.deliver(event, &id, &payload);
    assert!(matches!(status, 200 | 202), "{status}: {answer}");
}

#[test]
fn an_outage_longer_than_every_retry_loses_nothing_and_runs_nothing_else() {
    let moments = number("TENURE_OUTAGE_MOMENTS").unwrap_or(8);
    let seed = seed();
    tell(format_args!(
        "TENURE_STORM_SEED={seed} TENURE_OUTAGE_MOMENTS={moments}"
    ));
    let mut dice = Dice(seed);
    let mut env = env();
    let is_night = moments > NIGHT;
    let every = if is_night {
        RETRY_EVERY.1
    } else {
        RETRY_EVERY.0
    };
    env.set("TENURE_RETRY_EVERY", every);
    let mine = Scripted::new(&env, "mine", SCRIPT);
    let mut outside = set_up(&env);
    for pull in PULLS {
        outside.force_push(pull);
    }
    let ann = env.agent("ann");
    let mut door = Dispatcher::start(&ann);
    door.deliver("issues", "d-0", &issue(1, "opened"));
    let mut kills = 0;
    // Four times: git, the forge's API, both, and a dispatcher that starts meanwhile. In a long night others are killed too.
    for moment in 0..moments {
        let phase = 4 * moment / moments;
        outside.remote.set_away(phase != 1);
        outside.set_api_away(phase != 0);
        let is_last = phase == 3 && moment == (3 * moments).div_ceil(4);
        if is_last || (is_night && dice.below(20) == 0) {
            door.process.kill9();
            kills += 1;
            door = Dispatcher::start(&ann);
        }
        let until = Instant::now() + MOMENT;
        happens(&door, &mut outside, &mut dice, moment + 1);
        poll(SOON, "the moment is over", || {
            (Instant::now() >= until).then_some(())
        });
    }
    outside.remote.set_away(false);
    outside.set_api_away(false);
    let all = poll(
        SOON * 10,
        "every event is answered and every job is over",
        || {
            let waits = |one: &Value| one["verdict"] == "waits";
            let is_over = |job: &Value| job["state"] == "ended" || job["state"] == "cancelled";
            let jobs = jobs(&env);
            let over = jobs.iter().all(is_over) && !deliveries(&env).iter().any(waits);
            over.then_some(jobs)
        },
    );
    let runs = mine.wrote("heads").unwrap_or_default();
    tell(format_args!(
        "{} events, {kills} kills, {} jobs, {} runs",
        moments + 1,
        all.len(),
        runs.lines().count()
    ));
    check(&env, &outside, &mine, moments, seed);
}

fn check(env: &Env, outside: &Outside, mine: &Scripted, moments: u64, seed: u64) {
    let rows = ledger(env);
    let heads = mine.wrote("heads").expect("it ran");
    each_was_permitted(&rows, &heads, &outside.remote.main(), seed);
    for row in &rows {
        let (id, item) = (&row.id, &row.item);
        let expected = if row.state == "cancelled" {
            assert!(item.starts_with("pr:"), "{item} {id} (seed {seed})");
            "Ask again"
        } else {
            assert_eq!(row.outcome.as_deref(), Some("done"), "{id} (seed {seed})");
            "is done"
        };
        poll(SOON, "the person who asked is told", || {
            let mut comments = outside.forge.own_comments().into_iter();
            let own = comments.find(|one| one.body.contains(&format!("status {id} -->")));
            own.filter(|one| one.body.contains(expected))
        });
    }
    // Every event is in the ledger once, with a job that has an end.
    let sql = "SELECT delivery_id, event, job FROM deliveries";
    let store = rusqlite::Connection::open(env.state().join("tenure.db")).expect("it is there");
    let mut query = store.prepare(sql).expect("the tables are as we think");
    let all = query.query_map([], |row| {
        let (id, event): (String, String) = (row.get(0)?, row.get(1)?);
        Ok((id, (event, row.get::<_, Option<String>>(2)?)))
    });
    let all: Vec<(String, (String, Option<String>))> =
        all.and_then(Iterator::collect).expect("they can be read");
    let count = usize::try_from(moments).expect("a few") + 1;
    assert_eq!(all.len(), count, "each is stored once (seed {seed})");
    let all: BTreeMap<_, _> = all.into_iter().collect();
    let mut prompts = Vec::new();
    for run in heads.lines().filter_map(|line| line.split(' ').next()) {
        prompts.push(mine.wrote(&format!("prompt-{run}")).expect("it was asked"));
    }
    // What was said is heard once, or its author was told above that it was not run.
    for moment in 0..=moments {
        let (event, job) = all
            .get(&format!("d-{moment}"))
            .expect("it is in the ledger");
        let job = job
            .as_ref()
            .and_then(|job| rows.iter().find(|row| row.id == *job));
        let job = job.unwrap_or_else(|| panic!("d-{moment} has no job (seed {seed})"));
        let said = format!("said-{moment}-");
        let heard = prompts.iter().map(|prompt| prompt.matches(&said).count());
        let is_heard = event.ends_with("comment") && job.state == "ended";
        let heard: usize = heard.sum();
        assert_eq!(heard, usize::from(is_heard), "{said} (seed {seed})");
    }
}
