//! What a terminal is sent so that it notifies its person.

use std::io::Write;
use std::os::unix::fs::FileTypeExt;

use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use tenure_app::settings::notify::TerminalForm;
use tenure_host::{clock, env};

use super::event::plain;

/// A terminal that may be written to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Its device.
    pub path: String,
    /// Whether it is a pane of tmux.
    pub in_tmux: bool,
    /// What `auto` stands for there.
    pub form: TerminalForm,
}

impl Target {
    /// The terminal of this process, by its variables.
    pub fn own() -> Option<Self> {
        let stderr = std::io::stderr();
        let path = rustix::termios::ttyname(&stderr, Vec::new()).ok()?;
        let variable = |name: &str| {
            let value = env::var(name)?.into_string().ok()?;
            (!value.is_empty()).then_some(value)
        };
        Some(Self {
            path: path.into_string().ok()?,
            in_tmux: variable("TMUX").is_some(),
            form: form_of(&variable),
        })
    }
}

/// What a terminal understands, by its variables. Inside tmux those of the terminal around it may be left.
fn form_of(variable: &dyn Fn(&str) -> Option<String>) -> TerminalForm {
    let program = variable("TERM_PROGRAM").unwrap_or_default();
    let term = variable("TERM").unwrap_or_default();
    if variable("KITTY_WINDOW_ID").is_some() || term.contains("kitty") {
        TerminalForm::Osc99
    } else if ["foot", "rxvt"].iter().any(|name| term.contains(name)) || program == "ghostty" {
        TerminalForm::Osc777
    } else if ["iTerm.app", "WezTerm", "WarpTerminal"].contains(&program.as_str())
        || variable("WT_SESSION").is_some()
    {
        TerminalForm::Osc9
    } else {
        TerminalForm::Bell
    }
}

/// A name for a notification: a terminal shows one of the same name in place of the last one.
pub fn new_id() -> String {
    format!("tenure-{}-{}", std::process::id(), clock::wall())
}

/// The bytes of a notification; `id` is its own. Inside tmux the sequence passes through, and the bell marks the window.
pub fn bytes(form: TerminalForm, in_tmux: bool, title: &str, body: &str, id: &str) -> Vec<u8> {
    // A semicolon ends a field of the sequence.
    let field = |text: &str| plain(text).replace(';', ",");
    let (title, body) = (field(title), field(body));
    let whole = if body.is_empty() {
        title.clone()
    } else {
        format!("{title}: {body}")
    };
    let sequence = match form {
        TerminalForm::Bell | TerminalForm::Auto => return b"\x07".to_vec(),
        TerminalForm::Osc9 => format!("\x1b]9;{whole}\x1b\\"),
        TerminalForm::Osc99 => {
            format!("\x1b]99;i={id}:d=0;{title}\x1b\\\x1b]99;i={id}:d=1:p=body;{body}\x1b\\")
        }
        TerminalForm::Osc777 => format!("\x1b]777;notify;{title};{body}\x1b\\"),
    };
    if in_tmux {
        let inner = sequence.replace('\x1b', "\x1b\x1b");
        format!("\x1bPtmux;{inner}\x1b\\\x07").into_bytes()
    } else {
        sequence.into_bytes()
    }
}

/// Writes to a terminal without waiting for it; it never becomes the terminal of this process.
pub fn write(target: &Target, bytes: &[u8]) -> Result<(), String> {
    let flags = OFlags::NOCTTY | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(|error| error.to_string())?;
    let opened = fs_err::OpenOptions::new()
        .write(true)
        .custom_flags(flags)
        .open(&target.path);
    let mut device = opened.map_err(|error| error.to_string())?;
    let found = device.metadata().map_err(|error| error.to_string())?;
    if !found.file_type().is_char_device() {
        return Err(format!("{} is not a terminal", target.path));
    }
    device.write_all(bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_v17_outside_of_tmux_each_form_is_what_its_terminals_understand() {
        let said = |form| String::from_utf8(bytes(form, false, "t", "b", "1")).unwrap();
        assert_eq!(said(TerminalForm::Osc9), "\x1b]9;t: b\x1b\\");
        assert_eq!(said(TerminalForm::Osc777), "\x1b]777;notify;t;b\x1b\\");
        assert_eq!(
            said(TerminalForm::Osc99),
            "\x1b]99;i=1:d=0;t\x1b\\\x1b]99;i=1:d=1:p=body;b\x1b\\"
        );
        assert_eq!(said(TerminalForm::Bell), "\x07");
    }

    #[test]
    fn f_v17_inside_tmux_a_sequence_passes_through_and_the_bell_rings() {
        let said = bytes(TerminalForm::Osc9, true, "t", "", "1");
        assert_eq!(said, b"\x1bPtmux;\x1b\x1b]9;t\x1b\x1b\\\x1b\\\x07");
        assert_eq!(bytes(TerminalForm::Bell, true, "t", "", "1"), b"\x07");
    }

    #[test]
    fn f_v18_no_text_can_end_the_sequence_or_turn_the_line_around() {
        let said = bytes(
            TerminalForm::Osc777,
            false,
            "a\x1b]0;x\x07\n\u{202e}b;c\u{9c}",
            "",
            "1",
        );
        assert_eq!(said, b"\x1b]777;notify;a]0,x b,c;\x1b\\");
    }

    #[test]
    fn a_terminal_is_known_by_its_variables() {
        let with = |name: &'static str, value: &'static str| {
            form_of(&move |asked| (asked == name).then(|| value.to_owned()))
        };
        assert_eq!(with("TERM_PROGRAM", "iTerm.app"), TerminalForm::Osc9);
        assert_eq!(with("TERM", "xterm-kitty"), TerminalForm::Osc99);
        assert_eq!(with("TERM", "foot"), TerminalForm::Osc777);
        assert_eq!(with("TERM", "xterm-256color"), TerminalForm::Bell);
    }

    #[test]
    fn only_a_terminal_is_written_to() {
        let target = |path: &str| Target {
            path: path.to_owned(),
            in_tmux: false,
            form: TerminalForm::Bell,
        };
        assert!(write(&target("/proc/self/comm"), b"\x07").is_err());
        assert!(write(&target("/nowhere"), b"\x07").is_err());
    }
}
