//! docs/team.md, as a new user follows it.

use tenure_testkit::postgres::PostgresServer;
use tenure_testkit::{Cmd, Env, poll};

use crate::machine::SOON;

const URL: &str =
    "postgres://owner@db.example/work?sslmode=verify-full&sslrootcert=/etc/ssl/team-ca.pem";

fn blocks() -> Vec<String> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/team.md");
    let text = fs_err::read_to_string(file).expect("it is part of the project");
    let blocks = text.split("```sh\n").skip(1);
    let ends = blocks.map(|block| block.split("\n```").next().unwrap_or_default());
    ends.map(str::to_owned).collect()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_guide_works_in_its_order() {
    let server = PostgresServer::own(&[]);
    let mut env = Env::new(std::path::Path::new(env!("CARGO_BIN_EXE_tenure")));
    env.set("TENURE_KEEPER_START", "true");
    let blocks = blocks();
    assert_eq!(blocks.len(), 1, "{blocks:?}");
    assert!(blocks[0].contains(URL), "{blocks:?}");
    // Only the name of the server is another one here.
    let script = blocks[0].replace(URL, &server.url("tenure"));
    let person = env.agent("human");
    let run = |more: &str| {
        let script = format!("set -eu\n{script}\n{more}\n");
        person
            .run(Cmd::new("bash").args(["-c", &script]))
            .ok()
            .stdout
    };
    let said = run("");
    assert!(said.contains("no keeper runs here"), "{said}");
    run("tenure register --agent claude --pid $PPID; tenure claim wp:1");
    poll(SOON, "the keeper watches it", || {
        run("")
            .contains("watches 1 session with 1 claim")
            .then_some(())
    });
    let ended = run("tenure keeper stop");
    assert!(ended.contains("stopped the keeper"), "{ended}");
}
