//! Pages of messages that unit tests make, beside those of the tests in `tests/e2e/messages`.

use std::path::Path;

/// Compares a text with the page of this name; with `UPDATE=1` in the environment keeps it.
#[track_caller]
pub(crate) fn compare(name: &str, text: &str) {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages");
    let file = pages.join(format!("{name}.txt"));
    if tenure_host::env::var("UPDATE").is_some_and(|value| value == "1") {
        fs_err::write(&file, text).expect("the sources can be written");
    }
    let kept = fs_err::read_to_string(&file).unwrap_or_default();
    let diff = similar::TextDiff::from_lines(kept.as_str(), text);
    let diff = diff.unified_diff().context_radius(3).to_string();
    assert!(
        kept == text,
        "{} differs; read the change, and keep it with UPDATE=1:\n{diff}",
        file.display()
    );
}
