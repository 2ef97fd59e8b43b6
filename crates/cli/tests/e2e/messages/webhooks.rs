//! What a forge is told about its deliveries, and what becomes of those that wait.

use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc;

use serde_json::{Value, json};
use tenure_testkit::fake_forge::{Dialect, Fault};
use tenure_testkit::{Env, Output, Scripted, poll};

use super::page::Page;
use crate::env;
use crate::support::dispatch::fill_in;
use crate::support::forge::forge as change;
use crate::support::forge_api::{deliveries, jobs, set_up_forge};
use crate::support::line::{SOON, session, text};
use crate::support::webhook::{Dispatcher, comment, deliver_to, issue, read_answer, set_up};

const BY_PERMISSION: &str = "associations = [\"collaborator\"]";
const QUESTION: &str = "GET /repos/acme/web/collaborators";

/// Shows an answer over HTTP.
fn told(page: &mut Page, pid: u32, body: &str, (status, mut answer): (u16, Value)) {
    // Which of several that arrive at once is the first, differs from run to run.
    if answer["delivery"].is_number() {
        answer["delivery"] = json!(7);
    }
    let output = Output {
        code: 0,
        stdout: format!("HTTP {status}\n{answer}\n"),
        stderr: String::new(),
    };
    let signed = match body {
        "unsigned.json" => "",
        _ => "-H @signature ",
    };
    let typed = format!("curl {signed}-d @{body} http://127.0.0.1:7421/hooks/home");
    page.show(pid, &typed, output, None);
}

/// Says that a long body follows, sends only the beginning of it, and waits for the answer.
fn half(address: &str, length: usize) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let head = format!(
        "POST /hooks/home HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).expect("it reads");
    read_answer(&mut stream)
}

#[test]
fn webhooks() {
    let env = env();
    let mut page = Page::new("75-webhooks", &env);
    let human = session(&env, "human");
    let pid = human.pid();
    let mine = Scripted::new(&env, "mine", "cat >$dir/prompt; init; done_");
    let forge = set_up_forge(&env, Dialect::Forgejo, "", BY_PERMISSION);
    let door = Dispatcher::start(&human);
    let slow = {
        let address = door.address.clone();
        std::thread::spawn(move || half(&address, 100))
    };
    page.title("A delivery that is accepted, and done again");
    let answer = door.deliver("issues", "d-1", &issue(6, "opened"));
    all_end(&env, 1);
    page.learn(&env);
    told(&mut page, pid, "issue.json", answer);
    page.run_once(&human, "tenure dispatch replay 1", None);
    all_end(&env, 2);
    page.title("A comment that is too long for a prompt");
    let long: String = (0..20_000).map(|line| format!("line {line}\n")).collect();
    door.deliver("issue_comment", "d-2", &comment(6, 1, "alice", &long));
    all_end(&env, 3);
    let prompt = mine.wrote("prompt").expect("it ran");
    let last: Vec<&str> = prompt.trim_end().lines().rev().take(3).collect();
    let shown = Output {
        code: 0,
        stdout: last.iter().rev().map(|line| format!("{line}\n")).collect(),
        stderr: String::new(),
    };
    page.show(pid, "tail -n 3 prompt", shown, None);
    page.title("Requests that are not deliveries");
    let unsigned = door.send("POST", "/hooks/home", &[], b"{}");
    told(&mut page, pid, "unsigned.json", unsigned);
    told(&mut page, pid, "huge.json", half(&door.address, 1 << 30));
    let late = slow.join().expect("it is answered");
    told(&mut page, pid, "endless.json", late);
    page.title("A forge that does not answer questions");
    forge.state().fail(QUESTION, usize::MAX, Fault::Hang);
    let asks = |number: u64| {
        let address = door.address.clone();
        let said = comment(6, 10 + number, "carol", "do it");
        let id = format!("d-1{number}");
        std::thread::spawn(move || deliver_to(&address, "issue_comment", &id, &said))
    };
    // Alone: those that are stored with others are decided later, and say that.
    let first = asks(0).join().expect("it is answered");
    told(&mut page, pid, "comment.json", first);
    // The first question may still be open; one of these is then refused at once.
    let others: Vec<_> = (1..=8).map(asks).collect();
    poll(SOON, "all questions are open", || {
        (forge.state().hanging >= 8).then_some(())
    });
    let ninth = comment(6, 20, "carol", "do it");
    let ninth = door.deliver("issue_comment", "d-20", &ninth);
    for one in others {
        one.join().expect("it is answered");
    }
    told(&mut page, pid, "ninth.json", ninth);
    forge.state().faults.clear();
    page.title("A store that is busy");
    busy(&mut page, pid);
    page.check(&env);
}

#[track_caller]
fn all_end(env: &Env, count: usize) {
    poll(SOON, "all jobs end", || {
        let jobs = jobs(env);
        let over = |job: &Value| job["state"] == "ended";
        (jobs.len() == count && jobs.iter().all(over)).then_some(())
    });
}

/// More deliveries at once than may wait, while another program has the store.
fn busy(page: &mut Page, pid: u32) {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let store = rusqlite::Connection::open(env.state().join("tenure.db")).expect("it is there");
    store.execute_batch("BEGIN IMMEDIATE").expect("it is free");
    let (tell, answers) = mpsc::channel();
    let senders: Vec<_> = (0..120)
        .map(|number| {
            let (address, tell) = (door.address.clone(), tell.clone());
            let said = comment(6, number, "alice", "do it");
            std::thread::spawn(move || {
                let id = format!("d-{number}");
                let answer = deliver_to(&address, "issue_comment", &id, &said);
                tell.send(answer).ok();
            })
        })
        .collect();
    drop(tell);
    // A store thread that gave up waiting says something else.
    let is_full = |(status, answer): &(u16, Value)| {
        *status == 503 && answer.to_string().contains("deliver it again")
    };
    let refused = answers.iter().find(is_full);
    told(
        page,
        pid,
        "comment.json",
        refused.expect("some are refused"),
    );
    store.execute_batch("ROLLBACK").expect("it is ours");
    let waits = |(_, answer): &(u16, Value)| answer["verdict"] == "waits";
    let stored = answers.iter().find(waits).expect("some are stored first");
    told(page, pid, "earlier.json", stored);
    for sender in senders {
        sender.join().expect("it is answered");
    }
    poll(SOON, "all are decided and end", || {
        let waits = |one: &Value| one["verdict"] == "waits";
        let over = |job: &Value| job["state"] == "ended";
        let decided = !deliveries(&env).iter().any(waits);
        (decided && jobs(&env).iter().all(over)).then_some(())
    });
}

/// A comment on a pull request, which does not name the commit.
fn on_pull(id: u64, login: &str) -> Value {
    let mut asks = comment(9, id, login, "do it");
    asks["is_pull"] = json!(true);
    asks["issue"]["pull_request"] = json!({"merged": false});
    asks
}

#[test]
fn waiting() {
    let env = env();
    let mut page = Page::new("75-waiting-deliveries", &env);
    let human = session(&env, "human");
    Scripted::new(&env, "mine", "init c-$TENURE_RUN; done_");
    let forge = set_up_forge(&env, Dialect::Forgejo, "", BY_PERMISSION);
    page.replace(forge.url.trim_start_matches("http://"), "git.example.org");
    fill_in(
        &env,
        "\"issue.comment\"]",
        "\"issue.comment\", \"pr.comment\"]",
    );
    for login in ["carol", "dave"] {
        let mut state = forge.state();
        state.permissions.insert(login.to_owned(), "write");
    }
    let away = || Fault::Status(502, Vec::new(), "Bad Gateway");
    forge.state().fail("GET /repos", usize::MAX, away());
    let door = Dispatcher::start(&human);
    page.title("Deliveries whose forge cannot be asked");
    let said = [
        comment(6, 1, "carol", "do it"),
        comment(6, 1, "carol", "do it"),
        on_pull(2, "carol"),
        comment(7, 3, "carol", "do it"),
        comment(7, 4, "dave", "do it"),
    ];
    for (number, said) in said.iter().enumerate() {
        let (status, answer) = door.deliver("issue_comment", &format!("d-{number}"), said);
        assert_eq!(
            (status, &answer["verdict"]),
            (202, &json!("waits")),
            "{answer}"
        );
    }
    human.tenure(&["dispatch", "stop"]).ok();
    door.process.wait().ok();
    page.run(&human, "tenure queue deliveries");
    page.title("The same when it answers");
    change(
        &env,
        "UPDATE waiting_deliveries SET next_at = 0; \
         UPDATE waiting_deliveries SET event = 'x' WHERE delivery = 4; \
         UPDATE deliveries SET received_at = received_at - 172800000 WHERE id = 5",
    );
    forge.state().faults.clear();
    forge
        .state()
        .fail(&format!("{QUESTION}/dave"), usize::MAX, away());
    let door = Dispatcher::start(&human);
    poll(SOON, "all are decided", || {
        let waits = |one: &Value| one["verdict"] == "waits";
        (!deliveries(&env).iter().any(waits)).then_some(())
    });
    all_end(&env, 1);
    human.tenure(&["dispatch", "stop"]).ok();
    door.process.wait().ok();
    page.learn(&env);
    let verdicts: Vec<String> = deliveries(&env)
        .iter()
        .map(|one| text(&one["verdict"]))
        .collect();
    assert_eq!(
        verdicts,
        ["refused", "refused", "refused", "ignored", "queued"]
    );
    page.run(&human, "tenure queue deliveries");
    page.check(&env);
}
