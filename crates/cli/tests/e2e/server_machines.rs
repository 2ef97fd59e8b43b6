//! The page of what a machine may lack for a keeper, and for a store on a server.

use tenure_testkit::postgres::Server;
use tenure_testkit::{Cmd, poll};

use crate::messages::page::Page;
use crate::support::line::SOON;
use crate::support::refusing::refusing;
use crate::support::server::on;

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_page_shows_a_machine_that_lacks_what_a_keeper_needs() {
    let server = Server::own(&[]);
    let mut env = on(&server.url("work"));
    env.set("TENURE_HOST_LEASE", "30s");
    let mut page = Page::new("95-machines-on-server", &env);
    let boot = |number: u32| format!("00000000-0000-4000-8000-{number:012}");
    let hosts = env.host("a", &boot(1)).zip(env.host("c", &boot(2)));
    let Some((a, c)) = hosts else {
        return;
    };
    page.title("A keeper that can start no thread");
    let claude = a.agent("claude");
    let line = "exec tenure keeper";
    let said = claude.run(refusing(&env, &["clone:11", "clone3:11"], line));
    page.show(claude.pid(), "tenure keeper", said, Some("internal"));
    page.title("A copy of a machine, whose state directory cannot be written");
    let (first, copy) = (env.dir().join("a"), env.dir().join("clone"));
    let home = first.display().to_string();
    let keeper = claude.start(Cmd::new("tenure").arg("keeper").env("TENURE_HOME", &home));
    let pid = claude.pid().to_string();
    let register = ["register", "--agent", "claude", "--pid", &pid];
    claude
        .run(Cmd::new("tenure").args(register).env("TENURE_HOME", &home))
        .ok();
    let renewed = || server.ask("SELECT renewed FROM work.keepers");
    poll(SOON, "its keeper has an answer", || {
        let remembers = std::fs::read_dir(first.join("keeper")).ok()?.count() > 2;
        (remembers && !renewed().is_empty()).then_some(())
    });
    let before = renewed();
    poll(SOON, "it goes on", || (renewed() != before).then_some(()));
    let before = renewed();
    claude
        .run(Cmd::new("cp").args(["-a", &home, &copy.display().to_string()]))
        .ok();
    poll(SOON, "it goes on", || (renewed() != before).then_some(()));
    let boots = copy.join("keeper/boots");
    std::fs::remove_file(&boots).ok();
    std::fs::create_dir(&boots).expect("the environment is ours");
    page.replace(&copy.display().to_string(), "/home/dev/.tenure");
    let codex = c.agent("codex");
    let said = codex.run(
        Cmd::new("tenure")
            .arg("register")
            .env("TENURE_HOME", copy.display().to_string()),
    );
    let code = said.stderr.split(".boots.").nth(1);
    let code = code.and_then(|rest| rest.split('.').next());
    page.replace(code.expect("it is named"), "1a2b3c4d5");
    page.show(
        codex.pid(),
        "tenure register",
        said,
        Some("store_unavailable"),
    );
    claude
        .run(
            Cmd::new("tenure")
                .args(["keeper", "stop"])
                .env("TENURE_HOME", &home),
        )
        .ok();
    keeper.wait().ok();
    page.check_without_sessions();
}
