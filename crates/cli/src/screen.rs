//! The terminal: how big it is, and a screen of our own on it for as long as something is watched.
//!
//! A watch uses the alternate screen, hides the cursor, and reads keys unbuffered and without echo. All of that is
//! restored when the [`Screen`] is dropped: at the end, on an error, while a panic unwinds. Signals that end a
//! program only wake the watch, which then ends and drops it; SIGKILL restores nothing.
//! In the background only output is written: the keyboard belongs to the foreground job.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcgetwinsize,
    tcsetattr,
};

/// The alternate screen, without a cursor.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
/// The cursor again, on the screen that was there before.
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";

/// Columns and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

/// The width of stdout, if it is a terminal and its width is known.
pub fn columns() -> Option<usize> {
    let said = || {
        let text = tenure_host::env::var("COLUMNS")?.into_string().ok()?;
        text.parse().ok().filter(|columns| *columns > 0)
    };
    let output = io::stdout();
    if !output.is_terminal() {
        return None;
    }
    said().or_else(|| size(&output).map(|size| size.columns))
}

/// How high standard output is.
pub fn rows() -> Option<usize> {
    size(&io::stdout()).map(|size| size.rows)
}

fn size(terminal: &impl AsFd) -> Option<Size> {
    let size = tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| Size {
        columns: size.ws_col.into(),
        rows: size.ws_row.into(),
    })
}

/// A terminal that shows a screen of ours; dropping it gives back what was there.
pub struct Screen {
    output: OwnedFd,
    keyboard: Option<(OwnedFd, Termios)>,
}

impl Screen {
    /// Takes a terminal, and its keyboard where that is ours to take.
    pub fn enter(output: impl AsFd, keyboard: impl AsFd) -> io::Result<Self> {
        let keyboard = is_in_front(&keyboard).then_some(keyboard);
        Self::take(&output, keyboard.as_ref())
    }

    fn take(output: &impl AsFd, keyboard: Option<&impl AsFd>) -> io::Result<Self> {
        let mut screen = Self {
            output: output.as_fd().try_clone_to_owned()?,
            keyboard: None,
        };
        screen.write(ENTER)?;
        if let Some(keyboard) = keyboard {
            let own = keyboard.as_fd().try_clone_to_owned()?;
            let before = tcgetattr(&own)?;
            tcsetattr(&own, OptionalActions::Now, &watching(&before))?;
            screen.keyboard = Some((own, before));
        }
        Ok(screen)
    }

    /// From now on `q` interrupts this process, and so does the end of the keyboard hang it up: a watch ends with
    /// those signals in any case.
    pub fn end_with_q(&self) -> io::Result<()> {
        let Some((keyboard, _)) = &self.keyboard else {
            return Ok(());
        };
        let mut keys = File::from(keyboard.try_clone()?);
        std::thread::Builder::new().spawn(move || {
            let signal = if pressed(&mut keys, b'q') {
                Signal::INT
            } else {
                Signal::HUP
            };
            // It cannot fail: we are there.
            kill_process(getpid(), signal).ok();
        })?;
        Ok(())
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut output = File::from(self.output.try_clone()?);
        output.write_all(text.as_bytes())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some((keyboard, before)) = &self.keyboard {
            // A terminal that is gone needs nothing any more.
            tcsetattr(keyboard, OptionalActions::Flush, before).ok();
        }
        self.write(LEAVE).ok();
    }
}

/// Reads keys until this one comes; false if there will be no more.
fn pressed(keys: &mut impl Read, wanted: u8) -> bool {
    let mut piece = [0; 64];
    loop {
        match keys.read(&mut piece) {
            Ok(0) => return false,
            Ok(count) if piece[..count].contains(&wanted) => return true,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
}

/// Whether this is a terminal whose keys are for us: the shell gave it to our process group.
fn is_in_front(keyboard: &impl AsFd) -> bool {
    tcgetpgrp(keyboard).is_ok_and(|front| front == rustix::process::getpgrp())
}

/// Keys one by one and unseen. Ctrl-C stays a signal; Ctrl-Z would leave the screen behind.
fn watching(before: &Termios) -> Termios {
    let mut modes = before.clone();
    modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    modes.special_codes[SpecialCodeIndex::VSUSP] = 0;
    modes
}

#[cfg(test)]
mod tests {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    /// Both ends of a new terminal.
    fn terminal() -> (File, File) {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap();
        let noctty = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        let slave = rustix::fs::open(&path, noctty, rustix::fs::Mode::empty()).unwrap();
        (master.into(), slave.into())
    }

    /// What is set of a keyboard.
    fn set(keyboard: &File) -> String {
        format!("{:?}", tcgetattr(keyboard).unwrap())
    }

    #[test]
    fn f_v10_a_panic_gives_the_terminal_back() {
        let (mut master, slave) = terminal();
        let before = set(&slave);
        let ended = std::panic::catch_unwind(|| {
            let _screen = Screen::take(&slave, Some(&slave)).unwrap();
            assert_ne!(set(&slave), before);
            panic!("while something is watched");
        });
        assert!(ended.is_err());
        assert_eq!(set(&slave), before);
        let mut shown = vec![0; ENTER.len() + LEAVE.len()];
        master.read_exact(&mut shown).unwrap();
        assert_eq!(String::from_utf8(shown).unwrap(), format!("{ENTER}{LEAVE}"));
    }

    #[test]
    fn keys_are_neither_shown_nor_held_back_and_only_one_ends() {
        let (mut master, slave) = terminal();
        let _screen = Screen::take(&slave, Some(&slave)).unwrap();
        let now = tcgetattr(&slave).unwrap();
        assert!(
            !now.local_modes
                .intersects(LocalModes::ICANON | LocalModes::ECHO)
        );
        assert!(
            now.local_modes.contains(LocalModes::ISIG),
            "Ctrl-C is a signal"
        );
        master.write_all(b"abq").unwrap();
        assert!(pressed(&mut &slave, b'q'));
        assert!(!pressed(&mut io::empty(), b'q'), "no more keys");
    }

    #[test]
    fn a_keyboard_of_another_process_group_is_left_alone() {
        let (_master, slave) = terminal();
        assert!(!is_in_front(&slave));
    }
}
