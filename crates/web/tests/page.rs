//! The dashboard's files: libraries as they were fetched, and nothing that its policy refuses.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("page")
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn the_libraries_are_those_that_were_fetched() {
    let vendor = page().join("vendor");
    let sums = fs::read_to_string(vendor.join("SHA256SUMS")).unwrap();
    let mut listed = Vec::new();
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").unwrap();
        let digest = Sha256::digest(fs::read(vendor.join(name)).unwrap());
        let found: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, sum, "{name}: run scripts/vendor-web --write");
        listed.push(name);
    }
    let scripts = files(&vendor).into_iter();
    let scripts = scripts.filter(|path| path.extension().is_some_and(|ending| ending == "js"));
    for script in scripts {
        let name = script.file_name().unwrap().to_str().unwrap();
        assert!(listed.contains(&name), "{name} has no checksum");
    }
}

/// Its Content-Security-Policy refuses inline scripts and styles; markup from a string is how text becomes markup.
#[test]
fn no_script_or_style_is_inline() {
    for path in files(&page()) {
        let is_vendored = path.parent().is_some_and(|dir| dir.ends_with("vendor"));
        if is_vendored {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for refused in [
            "innerHTML",
            "insertAdjacentHTML",
            "dangerouslySetInnerHTML",
            "document.write",
            "eval(",
            "new Function",
            " style=",
            "<style",
            "javascript:",
        ] {
            assert!(!text.contains(refused), "{}: {refused}", path.display());
        }
    }
    let html = fs::read_to_string(page().join("index.html")).unwrap();
    let scripts = html.matches("<script").count();
    assert_eq!(
        scripts,
        html.matches("<script type=\"module\" src=").count()
    );
}
