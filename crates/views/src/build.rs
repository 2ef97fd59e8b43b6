//! What this program was built from and for, as `tenure --version` says it.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// The build of a program.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BuildView {
    /// The version, such as 0.1.0.
    number: &'static str,
    /// The commit it was built from; null if the build did not name one.
    commit: Option<&'static str>,
    /// The target it was built for, as Rust names it.
    target: &'static str,
}

/// This one's. build.rs says where commit and target come from.
pub const OWN: BuildView = BuildView {
    number: env!("CARGO_PKG_VERSION"),
    commit: said(env!("TENURE_COMMIT")),
    target: env!("TENURE_TARGET"),
};

const fn said(commit: &str) -> Option<&str> {
    if commit.is_empty() {
        None
    } else {
        Some(commit)
    }
}

impl fmt::Display for BuildView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (", self.number)?;
        match self.commit {
            Some(commit) => write!(f, "commit {commit}")?,
            None => f.write_str("unknown commit")?,
        }
        write!(f, ", {})", self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_a_commit_says_so() {
        let shown = |commit| {
            let target = "x86_64-unknown-linux-musl";
            let build = BuildView {
                number: "1.2.3",
                commit: said(commit),
                target,
            };
            build.to_string()
        };
        assert_eq!(
            shown("0059c85fd4b2"),
            "1.2.3 (commit 0059c85fd4b2, x86_64-unknown-linux-musl)"
        );
        assert_eq!(
            shown(""),
            "1.2.3 (unknown commit, x86_64-unknown-linux-musl)"
        );
    }

    #[test]
    fn the_target_is_this_machines() {
        assert!(
            OWN.target.starts_with(std::env::consts::ARCH),
            "{}",
            OWN.target
        );
    }
}
