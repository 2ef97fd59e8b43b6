//! Errors of a dispatcher, a keeper and a runner that only a race, a full machine or a crash brings about.

use std::io;

use tenure_app::dispatch::clerk::NoThread;
use tenure_app::dispatch::stop::NotStopped;
use tenure_app::keeper::{NotKept, Silent};
use tenure_core::id::JobId;
use tenure_server::CannotListen;
use tenure_service::answer::Problem;
use tenure_service::error::Error;
use tenure_service::{Behind, QueueError};

use crate::error_samples::shown;
use crate::message_page::compare;
use crate::output::CliError;

fn of_the_dispatcher() -> Vec<Problem> {
    let jobs = ["j-k7qd2m4zw9", "j-k7qdwz4m9c"].map(str::to_owned);
    let no_memory = io::Error::from_raw_os_error(11).to_string();
    vec![
        CannotListen::StoreThread.into(),
        NoThread(no_memory).into(),
        NotStopped::Unseen {
            pid: 20_100,
            why: None,
        }
        .into(),
        NotStopped::Dispatcher { pid: 20_100 }.into(),
        NotStopped::Jobs(jobs.into()).into(),
    ]
}

fn of_a_keeper() -> Vec<Problem> {
    vec![
        NotKept::NoLock.into(),
        NotKept::Ended(io::Error::from_raw_os_error(24).to_string()).into(),
        NotKept::StoreThread.into(),
        Silent::Starting.into(),
        Silent::Running.into(),
    ]
}

fn of_a_runner() -> Vec<CliError> {
    let job = |name| JobId::parse(name).expect("an id");
    let first = || job("j-k7qd2m4zw9");
    let waits = [Behind::Running(first()), Behind::Older(first())];
    let error = |behind: Behind| {
        CliError::from(Error::from(QueueError::NotYet {
            job: job("j-k7qdwz4m9c"),
            why: behind.to_string(),
            until: None,
        }))
    };
    waits.map(error).into()
}

#[test]
fn every_rare_error_of_the_dispatcher_is_on_its_page() {
    let of = |problems: Vec<Problem>| problems.into_iter().map(CliError::from).collect();
    let parts: [(&str, Vec<CliError>); 3] = [
        ("A dispatcher", of(of_the_dispatcher())),
        ("A keeper", of(of_a_keeper())),
        ("A runner whose job is not its turn", of_a_runner()),
    ];
    let mut page = String::new();
    for (title, errors) in &parts {
        page += &format!("## {title}\n\n");
        errors.iter().for_each(|error| page += &shown(error));
        page += "\n";
    }
    compare("76-rare-errors", &page);
}
