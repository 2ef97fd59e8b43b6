//! The files of the dashboard, as they are served: one row per file.

/// A file: its path, its type and its bytes.
pub type File = (&'static str, &'static str, &'static [u8]);

pub const FILES: &[File] = &[(
    "/",
    "text/html; charset=utf-8",
    include_bytes!("../page/index.html"),
)];
