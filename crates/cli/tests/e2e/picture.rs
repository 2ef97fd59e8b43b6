//! The README's picture is what the demo prints.

use std::path::Path;

use tenure_testkit::picture;

use crate::env;

#[test]
fn the_picture_of_the_readme_is_what_the_demo_prints() {
    let printed = env().tenure(&["demo"]).ok().stdout;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(picture::FILE);
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == picture::of_demo(&printed),
        "docs/demo.svg is out of date: run scripts/picture\n{printed}"
    );
}
