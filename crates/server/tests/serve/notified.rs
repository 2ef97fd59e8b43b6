//! Notifications of what a server sees that nobody looks at.

use tenure_testkit::poll;

use crate::{SOON, Server, env, session};

#[test]
fn a_server_notifies_of_a_death_and_its_watch_ends_with_it() {
    let env = env();
    let told = env.dir().join("told");
    let config = env.home().join(".config/tenure");
    std::fs::create_dir_all(&config).unwrap();
    let channel = format!(
        "[[notify]]\nchannel = \"command\"\ncommand = \"cat >>{}\"\n",
        told.display()
    );
    std::fs::write(config.join("config.toml"), channel).unwrap();
    let (ann, handle) = session(&env, "ann");
    ann.tenure(&["claim", "wp:1"]).ok();
    let server = Server::start(&env);
    let watch = poll(SOON, "the process beside the server", || {
        children(server.process.pid).into_iter().find(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == b"stand")
        })
    });
    ann.kill9();
    let said = poll(SOON, "the notification", || {
        let told = std::fs::read_to_string(&told).ok()?;
        told.contains("\"event\":\"died\"").then_some(told)
    });
    assert!(said.contains(&handle) && said.contains("wp:1"), "{said}");
    server.process.kill9();
    poll(SOON, "its watch ends", || {
        let gone = !std::path::Path::new(&format!("/proc/{watch}")).exists();
        gone.then_some(())
    });
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter();
    let tasks = tasks.flatten().flatten();
    let texts = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let pids: Vec<u32> = texts
        .flat_map(|text| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .filter_map(|pid| pid.parse().ok())
        .collect();
    pids
}
