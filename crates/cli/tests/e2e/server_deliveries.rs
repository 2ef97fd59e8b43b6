//! Deliveries while the team's server is away.

use serde_json::{Value, json};
use tenure_testkit::postgres::PostgresServer;
use tenure_testkit::{Scripted, poll};

use crate::support::line::SOON;
use crate::support::server::on;
use crate::support::webhook::{Dispatcher, issue, set_up};

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_delivery_while_the_server_is_away_is_answered_503_and_accepted_when_it_comes_again() {
    let mut server = PostgresServer::own(&[]);
    let env = on(&server.url("work"));
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let jobs = || {
        let answer = env.tenure(&["queue", "--all", "--json"]).ok().json();
        answer["jobs"].as_array().expect("a list").clone()
    };
    let (status, answer) = door.deliver("issues", "d-1", &issue(6, "opened"));
    assert_eq!(status, 202, "{answer}");

    server.stop(true);
    let (status, answer) = door.deliver("issues", "d-2", &issue(7, "opened"));
    assert_eq!(status, 503, "{answer}");
    assert!(answer["error"].is_string(), "{answer}");
    assert!(door.process.is_alive(), "{}", door.process.stderr());

    server.start();
    let again = poll(SOON, "it is accepted", || {
        let (status, answer) = door.deliver("issues", "d-2", &issue(7, "opened"));
        (status == 202).then_some(answer)
    });
    assert_eq!(again["duplicate"], false, "{again}");
    let jobs = poll(SOON, "both jobs end", || {
        let jobs = jobs();
        let over = |job: &Value| job["state"] == "ended";
        (jobs.len() == 2 && jobs.iter().all(over)).then_some(jobs)
    });
    let of = |number: u64| {
        let ends = format!("#{number}");
        let is_its = |job: &&Value| {
            job["item"]
                .as_str()
                .is_some_and(|item| item.ends_with(&ends))
        };
        jobs.iter().filter(is_its).count()
    };
    assert_eq!((of(6), of(7)), (1, 1), "{}", json!(jobs));
}
