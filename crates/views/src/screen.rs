//! The terminal: how big it is, and a screen of our own on it for as long as something is watched.
//!
//! A watch uses the alternate screen, hides the cursor, and reads keys unbuffered and without echo. All of that is
//! restored when the [`Screen`] is dropped: at the end, on an error, while a panic unwinds. A panic gives every screen
//! back before it is reported ([`give_back`]), so that the report can be read. Signals that end a program only wake
//! the watch, which then ends and drops it; SIGKILL restores nothing.
//! In the background only output is written: the keyboard belongs to the foreground job.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp,
    tcgetwinsize, tcsetattr,
};
use tenure_core::ignore::Ignore;

/// The alternate screen, without a cursor; what is too wide is cut off, and what is pasted is marked.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l\u{1b}[?2004h";
/// The cursor again, on the screen that was there before; the mouse is the terminal's again.
const LEAVE: &str = "\u{1b}[?1006l\u{1b}[?1000l\u{1b}[?2004l\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";

/// Asks for what the mouse does. `LEAVE` ends that.
pub const MOUSE: &str = "\u{1b}[?1000h\u{1b}[?1006h";

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

/// What was taken of terminals and not given back yet, by the number of its screen.
static TAKEN: Mutex<Vec<(u64, TerminalState)>> = Mutex::new(Vec::new());

/// The number of the next screen.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A terminal, and how its keyboard was before.
struct TerminalState {
    output: OwnedFd,
    keyboard: Option<(OwnedFd, Termios)>,
    /// Whether it shows our screen now.
    is_entered: bool,
}

impl TerminalState {
    /// Shows a screen of ours, and has keys one by one.
    fn enter(&mut self) -> io::Result<()> {
        self.is_entered = true;
        self.write(ENTER)?;
        match &self.keyboard {
            Some((keyboard, before)) => {
                tcsetattr(keyboard, OptionalActions::Now, &watching(before))?;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// A terminal that was given back already is another job's.
    fn leave(&mut self) {
        if !std::mem::take(&mut self.is_entered) {
            return;
        }
        if let Some((keyboard, before)) = &self.keyboard {
            // A terminal that is gone needs nothing any more.
            tcsetattr(keyboard, OptionalActions::Flush, before).ignore("the terminal is gone");
        }
        self.write(LEAVE).ignore("the terminal is gone");
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut output = File::from(self.output.try_clone()?);
        output.write_all(text.as_bytes())
    }
}

/// Gives back every terminal that this process has taken, at once.
pub fn give_back() {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    taken.drain(..).for_each(|(_, mut one)| one.leave());
}

/// A terminal that shows a screen of ours; dropping it gives back what was there.
pub struct Screen {
    number: u64,
    output: OwnedFd,
    keyboard: Option<OwnedFd>,
}

impl Screen {
    /// Takes a terminal, and its keyboard where that is ours to take.
    pub fn enter(output: impl AsFd, keyboard: impl AsFd) -> io::Result<Self> {
        let keyboard = is_in_front(&keyboard).then_some(keyboard);
        Self::take(&output, keyboard.as_ref())
    }

    fn take(output: &impl AsFd, keyboard: Option<&impl AsFd>) -> io::Result<Self> {
        let own = |of: &dyn AsFd| of.as_fd().try_clone_to_owned();
        let before = keyboard.map(tcgetattr).transpose()?;
        let screen = Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            output: own(output)?,
            keyboard: keyboard.map(|keyboard| own(keyboard)).transpose()?,
        };
        let keyboard = screen.keyboard.as_ref().map(|keyboard| own(keyboard));
        let mut taken = TerminalState {
            output: own(output)?,
            keyboard: keyboard.transpose()?.zip(before),
            is_entered: false,
        };
        let entered = taken.enter();
        let mut all = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((screen.number, taken));
        drop(all);
        entered.map(|()| screen)
    }

    /// The keyboard, if it is ours.
    pub fn keyboard(&self) -> io::Result<Option<File>> {
        let keyboard = self.keyboard.as_ref();
        let own = keyboard.map(|keyboard| keyboard.try_clone().map(File::from));
        own.transpose()
    }

    /// Gives the terminal back until [`Self::resume`].
    pub fn suspend(&self) {
        self.with(TerminalState::leave);
    }

    /// Takes it again, whatever happened to it meanwhile. Only for a job that is in front.
    pub fn resume(&self) -> io::Result<()> {
        self.with(TerminalState::enter).unwrap_or(Ok(()))
    }

    /// Whether its keys are for us now. In the background nothing may be drawn: the screen is another job's.
    pub fn is_in_front(&self) -> bool {
        self.keyboard.as_ref().is_some_and(is_in_front)
    }

    fn with<T>(&self, act: impl FnOnce(&mut TerminalState) -> T) -> Option<T> {
        let mut all = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = all.iter_mut();
        all.find(|(number, _)| *number == self.number)
            .map(|(_, taken)| act(taken))
    }

    /// How big it is; none if the terminal does not say.
    pub fn size(&self) -> Option<Size> {
        size(&self.output)
    }

    /// From now on `q` interrupts this process, and so does the end of the keyboard hang it up: a watch ends with
    /// those signals in any case.
    pub fn end_with_q(&self) -> io::Result<()> {
        let Some(mut keys) = self.keyboard()? else {
            return Ok(());
        };
        std::thread::Builder::new().spawn(move || {
            let signal = if pressed(&mut keys, b'q') {
                Signal::INT
            } else {
                Signal::HUP
            };
            kill_process(getpid(), signal).ignore("this process is there");
        })?;
        Ok(())
    }

    /// Writes to it; false if it is gone.
    pub fn write(&self, text: &str) -> bool {
        let output = self.output.try_clone().map(File::from);
        output.is_ok_and(|mut output| output.write_all(text.as_bytes()).is_ok())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut all = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.iter().position(|(number, _)| *number == self.number);
        if let Some(own) = own {
            all.remove(own).1.leave();
        }
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
pub fn is_in_front(keyboard: &impl AsFd) -> bool {
    tcgetpgrp(keyboard).is_ok_and(|front| front == rustix::process::getpgrp())
}

/// Keys one by one and unseen. Ctrl-C stays a signal; Ctrl-Z would leave the screen behind, and Ctrl-S would block
/// every write to it.
fn watching(before: &Termios) -> Termios {
    let mut modes = before.clone();
    modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    modes.input_modes -= InputModes::IXON;
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
    fn a_screen_is_given_back_once_each_time_that_it_was_taken() {
        let (mut master, slave) = terminal();
        let before = set(&slave);
        let screen = Screen::take(&slave, Some(&slave)).unwrap();
        screen.suspend();
        assert_eq!(set(&slave), before);
        screen.resume().unwrap();
        screen.suspend();
        drop(screen);
        assert_eq!(set(&slave), before);
        let mut shown = vec![0; 2 * (ENTER.len() + LEAVE.len())];
        master.read_exact(&mut shown).unwrap();
        let once = format!("{ENTER}{LEAVE}");
        assert_eq!(String::from_utf8(shown).unwrap(), once.repeat(2));
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
        assert!(
            !now.input_modes.contains(InputModes::IXON),
            "Ctrl-S is a key"
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
