//! What a role's own settings cannot weaken.

use tenure_core::store::{Store, TxMode};
use tenure_core::time::Timestamp;
use tenure_testkit::conformance::sample::{EPOCH, event};
use tenure_testkit::postgres::PostgresServer;

use super::support::{made, open};

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_commit_is_durable_whatever_the_role_has_set() {
    let server = PostgresServer::shared();
    let schema = server.new_schema();
    drop(made(&server.url(&schema)));
    server.run(&format!(
        "CREATE TABLE {schema}_seen (value text); \
         CREATE FUNCTION {schema}_note() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO public.{schema}_seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$; \
         CREATE TRIGGER note BEFORE INSERT ON {schema}.events FOR EACH ROW EXECUTE FUNCTION public.{schema}_note()"
    ));
    for (number, (set, write, beat)) in [
        ("off", "on", "off"),
        ("local", "on", "off"),
        ("remote_apply", "remote_apply", "off"),
    ]
    .into_iter()
    .enumerate()
    {
        let role = format!("{schema}_{number}");
        server.run(&format!(
            "CREATE ROLE {role} LOGIN SUPERUSER; ALTER ROLE {role} SET synchronous_commit = {set}"
        ));
        let mut store = open(&server.url_as(&role, &schema));
        for (mode, expected) in [(TxMode::Write, write), (TxMode::Beat, beat)] {
            server.run(&format!("TRUNCATE {schema}_seen"));
            let mut tx = store.begin(mode).unwrap();
            tx.now().unwrap();
            tx.append_event(&event(1, "x"), Timestamp(EPOCH)).unwrap();
            tx.commit().unwrap();
            let seen = server.ask(&format!("SELECT value FROM {schema}_seen"));
            assert_eq!(seen, [expected], "{set}, {mode:?}");
        }
    }
}
