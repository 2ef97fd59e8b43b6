//! The hooks of a git repository that refuse to publish work on a claim that the session lost.
//!
//! Our own script replaces the hook. An existing hook is kept next to it under another name and runs after ours
//! with the same arguments and input. Without tenure, and whatever else goes wrong with it, only the kept hook
//! decides; unless guard.on_error is closed, and the session may have lost its claim (exit code 9).

use super::command::quoted;

/// The hooks that check.
pub const HOOKS: [&str; 2] = ["pre-commit", "pre-push"];

const MARK: &str = "# Written by tenure (`tenure install git`); `tenure uninstall git` removes it. Edits \
                    here are lost.";

/// The name under which an existing hook is kept.
pub fn kept(hook: &str) -> String {
    format!("{hook}.before-tenure")
}

pub fn text(program: &str, hook: &str) -> String {
    let (program, kept) = (quoted(program), kept(hook));
    format!(
        "#!/bin/sh\n{MARK}\nif test -x {program}; then\n  \
         {program} guard --lost --quiet </dev/null >&2\n  case $? in 5|9) exit 1 ;; esac\nfi\n\
         before=\"${{0%/*}}/{kept}\"\nif test -x \"$before\"; then exec \"$before\" \"$@\"; fi\nexit 0\n"
    )
}

/// Whether a script is ours.
pub fn is_ours(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.nth(1) == Some(MARK.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_script_is_ours() {
        assert!(is_ours(
            text("/opt/my tenure/tenure", "pre-push").as_bytes()
        ));
        let quotes = "#!/bin/sh\necho '# Written by tenure'\n";
        for other in [
            &b""[..],
            b"#!/bin/sh\ntenure guard --lost\n",
            quotes.as_bytes(),
            b"\xff\n\xfe",
        ] {
            assert!(!is_ours(other));
        }
    }
}
