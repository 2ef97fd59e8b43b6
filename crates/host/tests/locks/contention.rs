//! Many processes that want one lock, some of which are killed while they hold it.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use tenure_host::kernel_lock::{LockDir, Patience, Sharing};

use crate::worker::{Place, Process, SOON, Worker, plain, say, until, wait_for_test};

const SLOTS: usize = 8;
const SECTIONS: u64 = 2000;

/// A stream of numbers, different in every process.
struct Dice(u64);

impl Dice {
    fn new() -> Dice {
        Dice(RandomState::new().hash_one(std::process::id()) | 1)
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Numbers in a plain file, read and written in one call.
fn numbers<const N: usize>(file: &File) -> [u64; N] {
    let mut bytes = vec![0; N * 8];
    file.read_exact_at(&mut bytes, 0).unwrap();
    std::array::from_fn(|n| u64::from_le_bytes(bytes[n * 8..n * 8 + 8].try_into().unwrap()))
}

fn put_numbers(file: &File, numbers: &[u64]) {
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    assert_eq!(file.write_at(&bytes, 0).unwrap(), bytes.len());
}

fn open(path: &Path) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path).unwrap()
}

/// Adds one to the common count and to the slot's own until that reaches the quota.
///
/// The file has the sum and each slot's count, written in one call. So the work of a killed worker is known
/// although it never reported it, and overlapping sections show as a count that went back. Now and then a
/// worker stops inside its section, until it is killed there.
pub fn count(dir: &Path, locks: &LockDir, slot: usize, quota: u64) {
    let (name, mut dice) = (plain("count"), Dice::new());
    let (counts, entries) = (open(&dir.join("counts")), open(&dir.join("entries")));
    let mut log = OpenOptions::new()
        .append(true)
        .create(true)
        .open(dir.join(format!("log{slot}")));
    let mut mine = None;
    loop {
        let began = Instant::now();
        let held = locks
            .lock(&name, Sharing::Exclusive, Patience::Endless)
            .unwrap();
        let waited = began.elapsed().as_micros();
        put_numbers(&entries, &[numbers::<1>(&entries)[0] + 1]);
        let mut all: [u64; SLOTS + 1] = numbers(&counts);
        let before = all[slot + 1];
        assert_eq!(all[0], all[1..].iter().sum::<u64>(), "a section overlapped");
        assert_eq!(mine.unwrap_or(before), before, "a section was lost");
        if before == quota {
            break;
        }
        let fate = dice.roll(400);
        if fate == 0 {
            say("stands");
            wait_for_test();
        }
        all[0] += 1;
        all[slot + 1] += 1;
        put_numbers(&counts, &all);
        if fate == 1 {
            say("stands");
            wait_for_test();
        }
        held.unlock();
        mine = Some(before + 1);
        let line = format!("{} {waited}\n", all[0]);
        log.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }
    say("done");
}

#[test]
fn f_k01_counts_stay_exact_while_holders_are_killed_and_nobody_waits_for_the_dead() {
    let place = Place::new();
    let dir = place.dir.path().to_str().unwrap().to_owned();
    let (counts, entries) = (open(&place.path("counts")), open(&place.path("entries")));
    put_numbers(&counts, &[0; SLOTS + 1]);
    put_numbers(&entries, &[0]);
    let (send, receive) = channel();
    let mut tag = 0;
    let mut start = |slot: usize| {
        tag += 1;
        let task = format!("{dir} count {slot} {SECTIONS}");
        (tag, Process::start(&task, tag, &send))
    };
    let mut workers: Vec<Option<(usize, Process)>> =
        (0..SLOTS).map(|slot| Some(start(slot))).collect();
    let (mut dice, began) = (Dice::new(), Instant::now());
    let (mut inside, mut anywhere, mut longest) = (0, 0, Duration::ZERO);
    while workers.iter().any(Option::is_some) {
        assert!(began.elapsed() < 4 * SOON, "it does not end");
        match receive.recv_timeout(Duration::from_millis(30)) {
            Ok((tag, said)) => {
                // Output of a killed one may still arrive.
                let is_it = |worker: &Option<(usize, Process)>| {
                    worker.as_ref().is_some_and(|it| it.0 == tag)
                };
                let Some(slot) = workers.iter().position(is_it) else {
                    continue;
                };
                if said.as_deref() == Some("done") {
                    workers[slot] = None;
                    continue;
                }
                assert_eq!(said.as_deref(), Some("stands"), "a worker failed");
                let entered = numbers::<1>(&entries);
                let all: [u64; SLOTS + 1] = numbers(&counts);
                workers[slot].as_mut().unwrap().1.kill9();
                let killed = Instant::now();
                if (0..SLOTS).any(|other| other != slot && all[other + 1] < SECTIONS) {
                    until("another enters", || {
                        (numbers::<1>(&entries) != entered).then_some(())
                    });
                    longest = longest.max(killed.elapsed());
                }
                inside += 1;
                workers[slot] = Some(start(slot));
            }
            Err(RecvTimeoutError::Timeout) => {
                let slot = usize::try_from(dice.roll(SLOTS as u64)).unwrap();
                if let Some((_, process)) = &mut workers[slot] {
                    process.kill9();
                    anywhere += 1;
                    workers[slot] = Some(start(slot));
                }
            }
            Err(RecvTimeoutError::Disconnected) => unreachable!("we could speak ourselves"),
        }
    }
    let all: [u64; SLOTS + 1] = numbers(&counts);
    assert_eq!(all[0], SLOTS as u64 * SECTIONS);
    assert_eq!(all[1..], [SECTIONS; SLOTS]);
    let logs =
        (0..SLOTS).map(|slot| std::fs::read_to_string(place.path(&format!("log{slot}"))).unwrap());
    let lines: Vec<String> = logs
        .flat_map(|log| log.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let word = |line: &str, n| line.split(' ').nth(n).unwrap().parse::<u64>().unwrap();
    let mut acknowledged: Vec<u64> = lines.iter().map(|line| word(line, 0)).collect();
    acknowledged.sort_unstable();
    acknowledged.dedup();
    assert_eq!(
        acknowledged.len(),
        lines.len(),
        "two sections had one number"
    );
    let unsaid = usize::try_from(all[0]).unwrap() - acknowledged.len();
    assert!(
        unsaid <= inside + anywhere,
        "{unsaid} sections were never said"
    );
    assert!(inside > 0, "no holder was killed");
    let wait = lines.iter().map(|line| word(line, 1)).max().unwrap();
    println!(
        "{} sections in {:?}, {inside} holders and {anywhere} others killed, {unsaid} unsaid; next entry after a kill \
         within {longest:?}; longest wait of a section {wait} µs",
        all[0],
        began.elapsed()
    );
}

/// Takes the lock again and again, and reports how often and its longest wait.
pub fn turns(dir: &Path, locks: &LockDir, slot: u64) {
    let own = open(&dir.join(format!("turns{slot}")));
    let (mut longest, mut count) = (0, 0);
    while !dir.join("over").exists() {
        let began = Instant::now();
        let held = locks
            .lock(&plain("a"), Sharing::Exclusive, Patience::Endless)
            .unwrap();
        // The first wait began while the test held it.
        if count > 0 {
            longest = longest.max(u64::try_from(began.elapsed().as_micros()).unwrap());
        }
        count += 1;
        put_numbers(&own, &[count, longest]);
        held.unlock();
    }
}

#[test]
fn none_of_32_who_take_the_lock_again_and_again_starves() {
    let place = Place::new();
    for slot in 0..32 {
        put_numbers(&open(&place.path(&format!("turns{slot}"))), &[0, 0]);
    }
    let held = place.try_lock("a").unwrap();
    let workers: Vec<Worker> = (0..32)
        .map(|slot| place.start(&format!("turns {slot}")))
        .collect();
    until("all wait", || (place.waiting("a") == 32).then_some(()));
    held.unlock();
    let began = Instant::now();
    let all = || (0..32).map(|slot| numbers::<2>(&open(&place.path(&format!("turns{slot}")))));
    until("each had 20 turns", || {
        all().all(|[turns, _]| turns >= 20).then_some(())
    });
    std::fs::write(place.path("over"), "").unwrap();
    let took = began.elapsed();
    workers.into_iter().for_each(Worker::finish);
    let most = all().map(|[turns, _]| turns).max().unwrap();
    let least = all().map(|[turns, _]| turns).min().unwrap();
    let longest = all().map(|[_, wait]| wait).max().unwrap();
    println!("32 contenders, {took:?}: {least} to {most} turns each, longest wait {longest} µs");
}
