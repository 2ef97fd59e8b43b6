//! Records of processes that never were.

use tenure_testkit::Env;

/// Changes the database behind tenure's back.
pub fn forge(env: &Env, sql: &str) {
    let store = rusqlite::Connection::open(env.state().join("tenure.db")).expect("it is there");
    store
        .execute_batch(sql)
        .expect("the tables are as the test thinks");
}

/// Changes the record of a session's process.
pub fn forge_process(env: &Env, id: &str, set: &str) {
    forge(env, &format!("UPDATE sessions SET {set} WHERE id = '{id}'"));
    forge(
        env,
        &format!("UPDATE lives SET {set} WHERE session = '{id}'"),
    );
}
