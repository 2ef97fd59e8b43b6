//! An environment whose store is on a server that the test may stop and break.

use tenure_testkit::Env;
use tenure_testkit::postgres::PostgresServer;

/// A server for one test, and an environment with a new store on it.
pub fn own(settings: &[&str]) -> (PostgresServer, Env) {
    let server = PostgresServer::own(settings);
    let env = on(&server.url("tenure"));
    (server, env)
}

/// An environment with a new store at this URL.
pub fn on(url: &str) -> Env {
    let mut env = super::env();
    env.set("TENURE_STORE", url);
    env.tenure(&["store", "migrate"]).ok();
    env
}
