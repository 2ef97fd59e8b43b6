//! The files of the dashboard, as they are served.

/// A file: its path, its type and its bytes.
pub type File = (&'static str, &'static str, &'static [u8]);

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! files {
    ($($path:literal $(as $served:literal)?: $kind:expr;)*) => {
        pub const FILES: &[File] = &[$((
            files!(@served $path $($served)?), $kind, include_bytes!(concat!("../page/", $path)),
        )),*];
    };
    (@served $path:literal) => { concat!("/", $path) };
    (@served $path:literal $served:literal) => { $served };
}

files! {
    "index.html" as "/": "text/html; charset=utf-8";
    "style.css": "text/css; charset=utf-8";
    "timeline.css": "text/css; charset=utf-8";
    "icon.svg": "image/svg+xml";
    "api.js": SCRIPT;
    "app.js": SCRIPT;
    "claims.js": SCRIPT;
    "detail.js": SCRIPT;
    "fleet.js": SCRIPT;
    "log.js": SCRIPT;
    "missions.js": SCRIPT;
    "parts.js": SCRIPT;
    "queue.js": SCRIPT;
    "runs.js": SCRIPT;
    "store.js": SCRIPT;
    "stream.js": SCRIPT;
    "timeline-view.js": SCRIPT;
    "timeline.js": SCRIPT;
    "usage.js": SCRIPT;
    "words.js": SCRIPT;
    "vendor/htm-preact.js": SCRIPT;
    "vendor/LICENSES.txt": "text/plain; charset=utf-8";
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The largest that the page may be, as it is sent.
    const MAX_BYTES: usize = 200_000;

    fn count(dir: &Path) -> usize {
        let entries = std::fs::read_dir(dir).unwrap().flatten();
        let counts = entries.map(|entry| {
            if entry.file_type().unwrap().is_dir() {
                count(&entry.path())
            } else {
                usize::from(entry.file_name() != "SHA256SUMS")
            }
        });
        counts.sum()
    }

    #[test]
    fn every_file_is_served_and_the_page_is_small() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        assert_eq!(FILES.len(), count(&dir), "add the file to FILES");
        let size: usize = FILES.iter().map(|(_, _, bytes)| bytes.len()).sum();
        assert!(size < MAX_BYTES, "{size}");
    }

    /// Otherwise the browser finds each only after it read the one that needs it.
    #[test]
    fn the_browser_is_told_of_every_script_at_once() {
        let index = include_str!("../page/index.html");
        let scripts = FILES.iter().filter(|(_, kind, _)| *kind == SCRIPT);
        for (path, ..) in scripts {
            let path = &path[1..];
            assert!(index.contains(&format!("=\"{path}\"")), "{path}");
        }
    }
}
