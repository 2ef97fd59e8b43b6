//! A pseudo-terminal whose master end the test holds.
//!
//! A thread reads everything that is written to the terminal, so that no process blocks on a full
//! one. The thread ends when the last process closes the terminal.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

#[derive(Debug)]
pub struct Terminal {
    master: File,
    path: PathBuf,
    shown: Arc<Mutex<Vec<u8>>>,
}

/// A new terminal that is not yet a controlling terminal: its master end, which hangs it up when
/// closed, and its path.
pub fn pair() -> (OwnedFd, PathBuf) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).expect("there are pseudo-terminals");
    grantpt(&master).expect("the terminal can be granted");
    unlockpt(&master).expect("the terminal can be unlocked");
    let name = ptsname(&master, Vec::new()).expect("the terminal has a name");
    (master, PathBuf::from(OsStr::from_bytes(name.as_bytes())))
}

impl Terminal {
    /// A new terminal that is not yet a controlling terminal.
    pub fn open() -> Terminal {
        let (master, path) = pair();
        let master = File::from(master);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let mut screen = master.try_clone().expect("a descriptor can be duplicated");
        let seen = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // An error (EIO) tells the master that no process has the terminal open any more.
            while let Ok(length @ 1..) = screen.read(&mut piece) {
                seen.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend_from_slice(&piece[..length]);
            }
        });
        Terminal {
            master,
            path,
            shown,
        }
    }

    /// The path of the terminal itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets its size; a new terminal has none.
    pub fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.master, size).expect("a terminal can be resized");
    }

    pub fn write(&self, text: &str) {
        (&self.master)
            .write_all(text.as_bytes())
            .expect("the terminal can be written to");
    }

    /// All output so far.
    pub fn shown(&self) -> String {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&shown).into_owned()
    }
}
