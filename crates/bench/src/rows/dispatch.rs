//! What the dispatcher costs: deliveries that it accepts, its memory, and a long queue.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use rusqlite::Connection;
use serde_json::{Value, json};
use tenure_core::id::{AgentName, JobId, WorkerRole};
use tenure_core::ignore::Ignore;
use tenure_core::key::Key;
use tenure_core::queue::Trust;
use tenure_core::queue::choose::Limits;
use tenure_core::queue::step::Retry;
use tenure_host::process;
use tenure_service::{GiveBack, LookForJobs, NewJob, TakeJob};
use tenure_store::sqlite::SqliteStore;
use tenure_testkit::conformance::sample;

use super::Bench;
use crate::Failed;
use crate::place::{BenchStore, answered};
use crate::program::Surroundings;
use crate::report::{Budget, Measurement, Unit, divide};
use crate::sample::Sample;
use crate::seeded::cut_log;

const GROUP: &str = "dispatch";
/// Deliveries that are accepted, beside the bare listener: docs/decisions/0058 says why it is not more.
const ACCEPTED: Budget = Budget::AtLeast(0.5);
const MAX_MEBIBYTES: Budget = Budget::AtMost(30.0);
/// How much slower a long queue may make the taking of a job.
const QUEUE: Budget = Budget::AtMost(1.3);
const FEW: u32 = 10;
const MANY: u32 = 10_000;
/// Connections that deliver at once.
const SENDERS: u32 = 8;
const SECRET: &str = "a secret of the bench";
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn rows(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let mut rows = accepted(bench)?;
    rows.push(long_queue(bench)?);
    Ok(rows)
}

/// A process that is ended with this.
struct DispatcherChild {
    child: Child,
    address: String,
}

impl Drop for DispatcherChild {
    fn drop(&mut self) {
        if self.child.kill().is_ok() {
            self.child.wait().ignore("it was killed");
        }
    }
}

/// A dispatcher whose one agent works for as long as a file is there, so that all other jobs wait.
struct DispatchBench {
    dir: PathBuf,
    around: Surroundings,
    hold: PathBuf,
    database: PathBuf,
}

impl DispatchBench {
    fn make(bench: &Bench) -> Result<Self, Failed> {
        let dir = bench.dir("dispatch")?;
        let place = BenchStore::open(&dir.join("state"))?;
        let around = Surroundings::make(&dir, place.dir())?;
        let database = place.database();
        let hold = dir.join("hold");
        fs_err::write(&hold, "")?;
        let script = dir.join("agent.sh");
        fs_err::write(
            &script,
            format!(
                "echo '{{\"session_id\":\"c-1\"}}'; while [ -e {} ]; do sleep 0.1; done; \
                 echo '{{\"result\":\"ok\"}}'\n",
                hold.display()
            ),
        )?;
        let settings = dir.join("home/.config/tenure");
        fs_err::create_dir_all(settings.join("skills"))?;
        fs_err::write(settings.join("skills/fix.md"), "{{ news | fenced }}")?;
        let secret = settings.join("home.secret");
        fs_err::write(&secret, SECRET)?;
        fs_err::set_permissions(&secret, std::fs::Permissions::from_mode(0o600))?;
        let script = script.to_string_lossy();
        fs_err::write(
            settings.join("config.toml"),
            format!(
                "[agents.mine]\ncommand = [\"/bin/sh\", {script:?}]\n\
                 resume = [\"/bin/sh\", {script:?}, \"{{id}}\"]\nid = \"/session_id\"\ndone = \"/result\"\n"
            ),
        )?;
        let work = dir.join("work");
        tenure_testkit::scratch_git(&work, None);
        fs_err::write(
            settings.join("dispatch.toml"),
            format!(
                "listen = \"127.0.0.1:0\"\nconcurrency = 1\n\
                 [forge.home]\nkind = \"forgejo\"\nsecret_files = [\"home.secret\"]\n\
                 [repo.\"acme/web\"]\nforge = \"home\"\nurl = {work:?}\n\
                 [[rule]]\nname = \"fix\"\nrepo = \"acme/web\"\non = [\"issue.comment\"]\n\
                 authors = [\"alice\"]\nagent = \"mine\"\nskill = \"fix\"\n"
            ),
        )?;
        Ok(Self {
            dir,
            around,
            hold,
            database,
        })
    }

    fn dispatcher(&self, bench: &Bench) -> Result<DispatcherChild, Failed> {
        let call = self
            .around
            .call(&bench.programs.tenure, ["dispatch", "--json"]);
        let mut child = call.command()?.stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().ok_or("it has no output")?;
        let mut running = DispatcherChild {
            child,
            address: String::new(),
        };
        let mut lines = BufReader::new(out).lines();
        for line in lines.by_ref() {
            let said: Value = serde_json::from_str(&line?)?;
            if said["event"] == "listening" {
                let address = said["address"].as_str().ok_or("it names no address")?;
                running.address = address.to_owned();
                break;
            }
        }
        // What it says later is read, so that it never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        if running.address.is_empty() {
            return Err("the dispatcher does not listen".into());
        }
        Ok(running)
    }

    /// Waits until all accepted deliveries have jobs; returns how long that took.
    fn all_decided(&self, accepted: u32) -> Result<Duration, Failed> {
        let conn = Connection::open(&self.database)?;
        let began = Instant::now();
        let with_job = "SELECT count(*) FROM deliveries WHERE verdict IN ('queued', 'joined')";
        let undecided = "SELECT count(*) FROM undecided_deliveries";
        loop {
            let count = |sql| conn.query_row(sql, [], |row| row.get::<_, u32>(0));
            if count(undecided)? == 0 && count(with_job)? == accepted {
                return Ok(began.elapsed());
            }
            if began.elapsed() > PATIENCE {
                let (left, decided) = (count(undecided)?, count(with_job)?);
                let of = format!("{decided} of {accepted} are decided, {left} are not");
                return Err(format!("accepted deliveries are left: {of}").into());
            }
            tenure_host::pause::sleep(Duration::from_millis(10));
        }
    }

    fn bare(&self, bench: &Bench) -> Result<DispatcherChild, Failed> {
        let database = self.dir.join("bare.db").to_string_lossy().into_owned();
        let call = self.around.call(&bench.programs.listener, [database]);
        let mut child = call.command()?.stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().ok_or("it has no output")?;
        let mut address = String::new();
        BufReader::new(out).read_line(&mut address)?;
        Ok(DispatcherChild {
            child,
            address: address.trim().to_owned(),
        })
    }
}

/// Deliveries in a second, and the memory of a dispatcher that has nothing to do.
fn accepted(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let field = DispatchBench::make(bench)?;
    let idle = field.dispatcher(bench)?;
    // A first delivery, so that its job keeps all others waiting.
    Sender::new(&idle.address, 0)?.deliver(0)?;
    let memory = memory(&field.dispatcher(bench)?)?;
    let bare = field.bare(bench)?;
    let length = Duration::from_millis(if bench.quick { 500 } else { 2_000 });
    let (mut ours, mut baseline) = (Vec::new(), Vec::new());
    let (mut decided, mut accepted) = (Vec::new(), 1);
    let rounds = (bench.times(100) / 20).max(3);
    for round in 1..=rounds {
        bench.say(&format!("dispatch: deliveries, round {round} of {rounds}"));
        let first = u64::try_from(round)? * 1_000_000;
        let (count, span) = deliver_for(length, &bare.address, first)?;
        baseline.push(per_second(count, span));
        let (count, span) = deliver_for(length, &idle.address, first)?;
        ours.push(per_second(count, span));
        // Only what is decided in the end was accepted. It also takes no time from the next round.
        accepted += count;
        let rest = field.all_decided(accepted)?;
        bench.say(&format!(
            "dispatch: {count} accepted in {span:.2?}, all of them decided {rest:.2?} later"
        ));
        decided.push(per_second(count, span + rest));
    }
    drop(idle);
    fs_err::remove_file(&field.hold)?;
    let (ours, baseline, decided) = (middle(ours), middle(baseline), middle(decided));
    let mut row = Measurement {
        group: GROUP,
        what: "deliveries accepted, 8 senders : axum with one durable insert".to_owned(),
        ours: format!("{ours:.0}/s"),
        baseline: format!("{baseline:.0}/s"),
        number: divide(ours, baseline),
        unit: Unit::Times,
        budget: ACCEPTED,
        more: Default::default(),
    };
    row.add("ours_per_second", ours);
    row.add("baseline_per_second", baseline);
    row.add("accepted_and_decided_per_second", decided);
    Ok(vec![row, memory])
}

fn middle(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

fn memory(idle: &DispatcherChild) -> Result<Measurement, Failed> {
    let mut sender = Sender::new(&idle.address, 0)?;
    // It answers, so it has opened all that it needs.
    sender.deliver(0)?;
    let status = fs_err::read_to_string(format!("/proc/{}/status", idle.child.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: f64 = kib.ok_or("it has no memory")?.parse()?;
    Ok(Measurement {
        group: GROUP,
        what: "memory of an idle dispatcher".to_owned(),
        ours: format!("{kib} KiB"),
        baseline: String::new(),
        number: kib / 1024.0,
        unit: Unit::Mebibytes,
        budget: MAX_MEBIBYTES,
        more: Default::default(),
    })
}

fn per_second(count: u32, span: Duration) -> f64 {
    f64::from(count) / span.as_secs_f64()
}

/// How many deliveries were accepted, in what time.
fn deliver_for(length: Duration, address: &str, first: u64) -> Result<(u32, Duration), Failed> {
    let began = Instant::now();
    let send = |sender: u32| {
        let address = address.to_owned();
        std::thread::spawn(move || -> Result<u32, Failed> {
            let mut sender = Sender::new(&address, first + u64::from(sender) * 100_000)?;
            let mut count = 0;
            while began.elapsed() < length {
                count += 1;
                sender.deliver(u64::from(count))?;
            }
            Ok(count)
        })
    };
    let senders: Vec<_> = (0..SENDERS).map(send).collect();
    let mut count = 0;
    for sender in senders {
        count += sender.join().map_err(|_| "a sender failed")??;
    }
    Ok((count, began.elapsed()))
}

/// A connection on which deliveries are sent one after the other.
struct Sender {
    stream: BufReader<TcpStream>,
    first: u64,
}

impl Sender {
    fn new(address: &str, first: u64) -> Result<Self, Failed> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream: BufReader::new(stream),
            first,
        })
    }

    fn deliver(&mut self, number: u64) -> Result<(), Failed> {
        let number = self.first + number;
        let body = comment(number).to_string();
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SECRET.as_bytes())?;
        mac.update(body.as_bytes());
        let signature: String = mac
            .finalize()
            .into_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let request = format!(
            "POST /hooks/home HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             X-Forgejo-Event: issue_comment\r\nX-Forgejo-Delivery: d-{number}\r\n\
             X-Forgejo-Signature: {signature}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            if line.trim().is_empty() {
                break;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut rest = vec![0; length];
        self.stream.read_exact(&mut rest)?;
        if status.starts_with("20") {
            return Ok(());
        }
        Err(format!("{status}: {}", String::from_utf8_lossy(&rest)).into())
    }
}

fn comment(number: u64) -> Value {
    let person = |id: u64, login: &str| json!({"id": id, "login": login, "username": login});
    json!({
        "action": "created",
        "issue": {
            "id": 100 + number, "number": 1 + number, "title": "Login fails", "body": "It answers 500. ".repeat(40),
            "state": "open", "user": person(3, "alice"), "labels": [], "assignees": [],
            "html_url": format!("https://git.example.org/acme/web/issues/{number}"),
            "created_at": "2026-11-16T06:00:00Z", "updated_at": "2026-11-16T06:00:00Z", "pull_request": null,
        },
        "comment": {
            "id": 10_000 + number, "user": person(3, "alice"), "body": "Please look at this. ".repeat(20),
            "html_url": format!("https://git.example.org/acme/web/issues/{number}#issuecomment-1"),
            "created_at": "2026-11-16T06:05:00Z", "updated_at": "2026-11-16T06:05:00Z",
        },
        "repository": {
            "id": 17, "name": "web", "full_name": "acme/web", "private": false,
            "html_url": "https://git.example.org/acme/web", "default_branch": "main", "owner": person(2, "acme"),
        },
        "sender": person(3, "alice"), "is_pull": false,
    })
}

/// Looking at the queue, taking the next job and returning it, in a long queue and in a short one.
fn long_queue(bench: &Bench) -> Result<Measurement, Failed> {
    let queue = |name: &str, count: u32| -> Result<(BenchStore, SqliteStore), Failed> {
        let place = BenchStore::open(&bench.dir(name)?.join("state"))?;
        let mut store = place.store()?;
        answered(place.service(&mut store).enqueue(&job()?))?;
        copy_jobs(&place, count - 1)?;
        cut_log(&place)?;
        Ok((place, store))
    };
    let mut few = queue("queue-few", FEW)?;
    let mut many = queue("queue-many", MANY)?;
    let (mut ours, mut baseline) = (Vec::new(), Vec::new());
    for _ in 0..bench.times(300) {
        ours.push(take(&mut many)?);
        baseline.push(take(&mut few)?);
    }
    let (ours, baseline) = (Sample::of(ours), Sample::of(baseline));
    let what = "take the next job and return it, 10,000 queued : 10 queued";
    Ok(Measurement::ratio(GROUP, what, &ours, &baseline, QUEUE))
}

fn take((place, store): &mut (BenchStore, SqliteStore)) -> Result<Duration, Failed> {
    let limits = Limits { concurrency: 4 };
    let own = process::identify(std::process::id(), place.observer())?;
    let began = Instant::now();
    let mut service = place.service(store);
    let waiting = answered(service.waiting_jobs(&LookForJobs::within(limits)))?;
    let job = waiting.jobs.into_iter().next().ok_or("no job waits")?;
    let request = TakeJob {
        job,
        runner: own.clone(),
        limits,
    };
    let taken = answered(service.take_job(&request))?;
    answered(service.give_back_job(&GiveBack {
        of: taken.of,
        runner: own,
        why: "measured".to_owned(),
        retry: Retry::Again,
    }))?;
    Ok(began.elapsed())
}

fn job() -> Result<NewJob, Failed> {
    Ok(NewJob {
        role: WorkerRole::default(),
        id: JobId::mint([1; 16]),
        agent: AgentName::known("mine"),
        item: Key::parse("issue:bench/queue#0")?,
        rule: Some("fix".to_owned()),
        trust: Trust::Trusted,
        repo: Some("bench/queue".to_owned()),
        spec: sample::job_spec(),
        summary: "issue.comment by alice".to_owned(),
        data: "{}".to_owned(),
        reply: None,
    })
}

/// Fills a queue that has one job with copies of it, each for an item of its own.
fn copy_jobs(place: &BenchStore, count: u32) -> Result<(), Failed> {
    let conn = Connection::open(place.database())?;
    let mut statement = conn.prepare("SELECT name FROM pragma_table_info('jobs')")?;
    let names: Result<Vec<String>, _> = statement.query_map([], |row| row.get(0))?.collect();
    let copied = |name: &String| match name.as_str() {
        "id" => "'j-' || replace(replace(printf('%010d', i), '0', 'z'), '1', 'b')".to_owned(),
        "item" | "root" => "'issue:bench/queue#' || i".to_owned(),
        "created_at" => "created_at + i".to_owned(),
        _ => name.clone(),
    };
    let names = names?;
    let values: Vec<String> = names.iter().map(copied).collect();
    let sql = format!(
        "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < {count}) \
         INSERT INTO jobs ({}) SELECT {} FROM n, jobs",
        names.join(", "),
        values.join(", ")
    );
    conn.execute(&sql, [])?;
    Ok(())
}
