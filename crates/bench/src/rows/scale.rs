//! Single-key verbs in a store of a million sessions and keys, beside a store of a thousand.
//!
//! As processes the verbs are given any key: SQLite finds every page anew on either side. In process they
//! are given one of a few keys, so that either side has its pages at hand. Beside that stands what any
//! key costs in process, which compares pages that must be fetched with pages that are at hand: it informs.
//! The file is in the kernel's memory; what a cold disk costs is not measured.

use std::time::{Duration, Instant};

use tenure_core::claim::{EndedBy, Hold, HoldEnd, Means};
use tenure_core::id::{Epoch, Life, SessionId};
use tenure_core::key::Key;
use tenure_core::store::{Store, TxMode};
use tenure_core::time::Timestamp;
use tenure_service::error::Error;
use tenure_service::{ActFor, GuardRequest, ReleaseRequest, Reply};
use tenure_store::sqlite::SqliteStore;
use tenure_testkit::seed;

use super::process::{counts_row, register};
use super::{Bench, Dice};
use crate::Failed;
use crate::counts::Counts;
use crate::place::{BenchStore, answered};
use crate::program::{ProgramCall, Surroundings};
use crate::report::{Budget, Measurement};
use crate::sample::Sample;
use crate::seeded::{LARGE, SMALL, Seeded, cut_log, renew_events};
use crate::worker::request;

const BUDGET: Budget = Budget::AtMost(1.3);

/// The key that this process holds.
const HELD: &str = "issue:bench/held#1";

/// Where the files lie that this process's session claimed and gave back before.
const PAST: &str = "path:bench/past:src/";

/// How many keys a long-lived process has to do with.
const FEW: u32 = 16;

struct Side {
    place: BenchStore,
    size: u32,
    dice: Dice,
    /// The few numbers that are picked from, if not all.
    few: Option<Vec<u32>>,
    around: Surroundings,
}

impl Side {
    fn new(bench: &Bench, size: u32) -> Result<Self, Failed> {
        let dir = bench.dir(&format!("scale-{size}"))?;
        let state = dir.join("state");
        let seeded = match size {
            SMALL => Seeded::fresh(&state, size)?,
            _ => Seeded::copied(&bench.kept, &state, size)?,
        };
        renew_events(&seeded.place)?;
        register(&seeded.place)?;
        let place = seeded.place;
        let mut store = place.store()?;
        let held = request(Key::parse(HELD)?);
        answered(place.service(&mut store).claim(&ActFor::default(), &held))?;
        age(&place, &mut store, size / 10)?;
        drop(store);
        let around = Surroundings::make(&dir, place.dir())?;
        Ok(Self {
            place,
            size,
            dice: Dice::new(),
            few: None,
            around,
        })
    }

    /// From now on picks from a few numbers, or from all.
    fn pick_from(&mut self, few: bool) {
        self.few = None;
        if few {
            self.few = Some((0..FEW).map(|_| self.pick()).collect());
        }
    }

    /// A number whose session ended long ago, and whose key is free, not done and no path.
    fn pick(&mut self) -> u32 {
        if let Some(few) = &self.few {
            let place = usize::try_from(self.dice.below(FEW)).unwrap_or(0);
            return few[place];
        }
        loop {
            let n = self.dice.below(self.size - 400);
            if n % 10 != 9 && n % 64 != 7 {
                return n;
            }
        }
    }

    fn free_key(&mut self) -> Result<Key, Failed> {
        let n = self.pick();
        Ok(seed::key(n)?)
    }

    fn path_key(&mut self) -> Result<Key, Failed> {
        loop {
            let n = self.dice.below((self.size - 400) / 64) * 64 + 7;
            if n % 10 != 9 {
                return Ok(seed::key(n)?);
            }
        }
    }
}

/// Gives the caller's session a past: keys that it took and gave back, one after the other.
fn age(place: &BenchStore, store: &mut SqliteStore, keys: u32) -> Result<(), Failed> {
    let me = answered(place.service(store).own_session(&ActFor::default()))?;
    let session = SessionId::parse(&me.session.id)?;
    let mut tx = store.begin(TxMode::Write)?;
    for n in 0..keys {
        let at = Timestamp(1_600_000_000_000 + i64::from(n));
        let by = EndedBy::Release;
        let hold = Hold {
            key: Key::parse(&format!("{PAST}{n}.rs"))?,
            epoch: Epoch(1),
            session,
            life: Life::FIRST,
            request: None,
            means: Means::Claim,
            note: None,
            granted_at: at,
            taken_from: None,
            home: None,
            ended: Some(HoldEnd { at, by }),
        };
        tx.insert_hold(&hold, Epoch::NONE)?;
    }
    tx.commit()?;
    Ok(())
}

/// A verb in process: it prepares, and returns how long the use case itself took.
type InProcess = fn(&mut Side, &mut SqliteStore) -> Result<Duration, Failed>;

fn claim_release(side: &Side, store: &mut SqliteStore, key: Key) -> Result<Duration, Failed> {
    let wanted = request(key.clone());
    let back = ReleaseRequest {
        key,
        epoch: None,
        done: false,
    };
    let act_for = ActFor::default();
    let mut service = side.place.service(store);
    let began = Instant::now();
    let granted = service.claim(&act_for, &wanted);
    let released = service.release(&act_for, &back);
    let took = began.elapsed();
    answered(granted)?;
    answered(released)?;
    Ok(took)
}

fn guard(side: &Side, store: &mut SqliteStore, key: Key) -> (Duration, Reply<()>) {
    let asked = GuardRequest { key, epoch: None };
    let mut service = side.place.service(store);
    let began = Instant::now();
    let answer = service.guard(&ActFor::default(), &asked);
    let took = began.elapsed();
    let answer = answer.map(|answer| tenure_service::Answer {
        value: (),
        notices: answer.notices,
        damaged: answer.damaged,
    });
    (took, answer)
}

/// A verb: its name, how often, whether it is given a key or name, and itself.
const IN_PROCESS: &[(&str, usize, bool, InProcess)] = &[
    ("claim+release", 200, true, |side, store| {
        let key = side.free_key()?;
        claim_release(side, store, key)
    }),
    ("claim+release of a path", 200, false, |side, store| {
        let key = side.path_key()?;
        claim_release(side, store, key)
    }),
    ("whoami", 3000, false, |side, store| {
        let mut service = side.place.service(store);
        let began = Instant::now();
        let answer = service.own_session(&ActFor::default());
        let took = began.elapsed();
        answered(answer)?;
        Ok(took)
    }),
    ("guard, own key", 3000, false, |side, store| {
        let (took, answer) = guard(side, store, Key::parse(HELD)?);
        answered(answer)?;
        Ok(took)
    }),
    ("guard, free key", 3000, true, |side, store| {
        let key = side.free_key()?;
        let (took, answer) = guard(side, store, key);
        match answer {
            Err(failure) if matches!(failure.error, Error::Free { .. }) => Ok(took),
            other => Err(format!("a free key is not free: {other:?}").into()),
        }
    }),
    (
        "guard, a path in an old session",
        3000,
        false,
        |side, store| {
            let (took, answer) = guard(side, store, Key::parse(&format!("{PAST}new.rs"))?);
            match answer {
                Err(failure) if matches!(failure.error, Error::Free { .. }) => Ok(took),
                other => Err(format!("a free path is not free: {other:?}").into()),
            }
        },
    ),
    (
        "guard --lost in an old session",
        3000,
        false,
        |side, store| {
            let mut service = side.place.service(store);
            let began = Instant::now();
            let answer = service.guard_lost(&ActFor::default());
            let took = began.elapsed();
            answered(answer)?;
            Ok(took)
        },
    ),
    ("why, free key", 3000, true, |side, store| {
        let key = side.free_key()?;
        let mut service = side.place.service(store);
        let began = Instant::now();
        let answer = service.why(&key);
        let took = began.elapsed();
        answered(answer)?;
        Ok(took)
    }),
    ("show, by handle", 3000, true, |side, store| {
        let name = seed::handle(side.pick())?.to_string();
        show(side, store, &name)
    }),
    ("show, by code", 3000, true, |side, store| {
        let handle = seed::handle(side.pick())?.to_string();
        let code = handle.rsplit('-').next().unwrap_or_default();
        show(side, store, code)
    }),
];

fn show(side: &Side, store: &mut SqliteStore, name: &str) -> Result<Duration, Failed> {
    let mut service = side.place.service(store);
    let began = Instant::now();
    let answer = service.show(name);
    let took = began.elapsed();
    answered(answer)?;
    Ok(took)
}

pub(super) fn rows(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    bench.say("scale: a store of a million sessions and keys (made once, then copied)");
    let mut small = Side::new(bench, SMALL)?;
    let mut large = Side::new(bench, LARGE)?;
    let mut rows = in_process(bench, &mut small, &mut large)?;
    rows.extend(no_such_name(bench, &small, &large)?);
    rows.extend(as_processes(bench, &mut small, &mut large)?);
    Ok(rows)
}

fn in_process(
    bench: &Bench,
    small: &mut Side,
    large: &mut Side,
) -> Result<Vec<Measurement>, Failed> {
    let mut rows = Vec::new();
    let mut small_store = small.place.store()?;
    let mut large_store = large.place.store()?;
    let mut measure = |name: String, count: usize, few: bool, verb: InProcess, budget: Budget| {
        bench.say(&format!("scale: {name}, in process"));
        small.pick_from(few);
        large.pick_from(few);
        let mut times = (Vec::new(), Vec::new());
        for _ in 0..bench.times(count) {
            times.0.push(verb(large, &mut large_store)?);
            times.1.push(verb(small, &mut small_store)?);
        }
        let what = format!("{name}, in process: 1,000,000 : 1,000");
        let (ours, baseline) = (Sample::of(times.0), Sample::of(times.1));
        rows.push(Measurement::ratio("scale", what, &ours, &baseline, budget));
        Ok::<(), Failed>(())
    };
    for (name, count, picks, verb) in IN_PROCESS {
        let shown = if *picks {
            format!("{name}, one of {FEW}")
        } else {
            (*name).to_owned()
        };
        measure(shown, *count, true, *verb, BUDGET)?;
    }
    for (name, count, picks, verb) in IN_PROCESS {
        if *picks {
            let shown = format!("{name}, any of all");
            measure(shown, *count, false, *verb, Budget::None)?;
        }
    }
    small.pick_from(false);
    large.pick_from(false);
    Ok(rows)
}

/// A name that nobody has must be looked for everywhere.
fn no_such_name(bench: &Bench, small: &Side, large: &Side) -> Result<Vec<Measurement>, Failed> {
    let mut times = (Vec::new(), Vec::new());
    for _ in 0..bench.times(30) {
        for (side, times) in [(large, &mut times.0), (small, &mut times.1)] {
            let mut store = side.place.store()?;
            let mut service = side.place.service(&mut store);
            let began = Instant::now();
            let answer = service.show("nobody");
            times.push(began.elapsed());
            if answer.is_ok() {
                return Err("nobody is somebody".into());
            }
        }
    }
    let (ours, baseline) = (Sample::of(times.0), Sample::of(times.1));
    let what = "show, a name that nobody has, in process: 1,000,000 : 1,000";
    Ok(vec![Measurement::ratio(
        "scale",
        what,
        &ours,
        &baseline,
        Budget::None,
    )])
}

fn as_processes(
    bench: &Bench,
    small: &mut Side,
    large: &mut Side,
) -> Result<Vec<Measurement>, Failed> {
    type Words = fn(&mut Side) -> Result<Vec<String>, Failed>;
    let verbs: [(&str, Words); 5] = [
        ("guard", |_| Ok(vec!["guard".into(), HELD.into()])),
        ("whoami", |_| Ok(vec!["whoami".into()])),
        ("why", |side| {
            Ok(vec!["why".into(), side.free_key()?.to_string()])
        }),
        ("show", |side| {
            let handle = seed::handle(side.pick())?;
            Ok(vec!["show".into(), handle.to_string()])
        }),
        ("claim", |side| {
            Ok(vec!["claim".into(), side.free_key()?.to_string()])
        }),
    ];
    let call = |side: &Side, words: Vec<String>| side.around.call(&bench.programs.tenure, words);
    let mut rows = Vec::new();
    for (name, words) in verbs {
        bench.say(&format!("scale: tenure {name}, as a process"));
        let mut times = (Vec::new(), Vec::new());
        for _ in 0..bench.times(200) {
            for (side, times) in [(&mut *large, &mut times.0), (&mut *small, &mut times.1)] {
                let words = words(side)?;
                times.push(call(side, words.clone()).timed()?);
                release(bench, side, &words)?;
            }
        }
        let (ours, baseline) = (Sample::of(times.0), Sample::of(times.1));
        let what = format!("tenure {name}: 1,000,000 : 1,000");
        let mut row = Measurement::ratio("scale", what, &ours, &baseline, BUDGET);
        row.add("as", "process");
        rows.push(row);
        let large_counts = counts(bench, large, words)?;
        let small_counts = counts(bench, small, words)?;
        let what = format!("tenure {name}, counts: 1,000,000 : 1,000");
        rows.push(counts_row(
            "scale",
            &what,
            large_counts,
            small_counts,
            BUDGET,
        ));
    }
    Ok(rows)
}

fn counts(
    bench: &Bench,
    side: &mut Side,
    words: fn(&mut Side) -> Result<Vec<String>, Failed>,
) -> Result<Counts, Failed> {
    let words = words(side)?;
    let call: ProgramCall = side.around.call(&bench.programs.tenure, words.clone());
    let scratch = bench.dir("counts")?;
    let counted = Counts::of(&call, &scratch, || {
        // The first time there is nothing to undo.
        drop(release(bench, side, &words));
        // Or else some runs would find a heartbeat due, and others not.
        let renew = ["renew".to_owned()];
        side.around.call(&bench.programs.tenure, renew).run()?;
        cut_log(&side.place)
    })?;
    release(bench, side, &words)?;
    Ok(counted)
}

/// Gives back what a claim got.
fn release(bench: &Bench, side: &Side, words: &[String]) -> Result<(), Failed> {
    match words {
        [verb, key] if verb == "claim" => {
            let args = ["release".to_owned(), key.clone()];
            side.around.call(&bench.programs.tenure, args).run()
        }
        _ => Ok(()),
    }
}
