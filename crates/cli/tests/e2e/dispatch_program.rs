//! `tenure` executes `tenure-server`, which is installed beside it.

use tenure_testkit::Env;

use crate::support::env;

#[test]
fn a_missing_second_program_is_named() {
    let env = env();
    let dir = env.dir().join("alone");
    std::fs::create_dir(&dir).unwrap();
    let alone = dir.join("tenure");
    std::fs::copy(env.tenure_path(), &alone).unwrap();
    let env = Env::new(&alone);
    let refused = env.tenure(&["dispatch", "check"]);
    assert_eq!(refused.code, 70, "{refused:?}");
    assert!(
        refused.stderr.contains("tenure-server"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("cargo install"),
        "{}",
        refused.stderr
    );
}
