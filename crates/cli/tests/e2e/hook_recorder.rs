//! The recorder that docs/adding-an-agent.md hands to a newcomer.

use std::path::Path;

use tenure_testkit::Cmd;

use crate::env;

#[test]
fn hooks_that_run_at_once_are_recorded_whole_and_without_values() {
    let env = env();
    let agent = env.agent("newcomer");
    let recorder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/record-hooks");
    let dir = env.home().join("recorded");
    let one = format!(
        "echo '{{\"n\":1}}' | {} {} Start",
        recorder.display(),
        dir.display()
    );
    let all = format!("{one} & {one} & {one} & wait");
    let hooks = Cmd::shell(&all).env("SECRET_OF_THE_AGENT", "hunter2");
    agent.run(hooks).ok();

    let mut payloads = 0;
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("hunter2"), "{}", path.display());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with("-Start.json") {
            assert_eq!(text, "{\"n\":1}\n");
            payloads += 1;
        } else if name.ends_with(".meta") {
            assert!(text.contains("SECRET_OF_THE_AGENT\n"), "{text}");
        } else {
            assert!(text.contains("/agents/newcomer\t"), "{text}");
        }
    }
    assert_eq!(payloads, 3);
}
