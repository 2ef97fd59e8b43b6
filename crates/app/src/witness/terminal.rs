//! Where a session's window is, and whether a person was there.
//!
//! A process keeps the variables that it was started with, so the pane in them may be gone, or
//! another's now. A pane counts only if its terminal is the process's own, or the process runs
//! below the pane's process. Each server is asked once, all at the same time; if no session is in
//! tmux, none is asked.

use std::collections::HashMap;

use tenure_core::id::SessionId;
use tenure_core::time::Timestamp;
use tenure_core::witness::{Subject, TerminalPlace};
use tenure_host::clock;
use tenure_host::process_terminal::{self, ProcessTerminal};

use crate::tmux::{Pane, TmuxServer};
use crate::window_memory::KnownWindow;

/// Where sessions are.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The place of each, and when a person was last there.
    pub each: Vec<(Option<TerminalPlace>, Option<Timestamp>)>,
    /// The windows of those in tmux.
    pub windows: Vec<(SessionId, KnownWindow)>,
}

pub(super) fn places(about: &[Subject]) -> Places {
    let terminals: Vec<Option<ProcessTerminal>> = about
        .iter()
        .map(|subject| process_terminal::of(&subject.process))
        .collect();
    let servers = servers(&terminals);
    let mut windows = Vec::new();
    let place = |(subject, process_terminal): (&Subject, Option<ProcessTerminal>)| {
        let Some(process_terminal) = process_terminal else {
            return (None, None);
        };
        if let Some((socket, pane)) = &process_terminal.tmux {
            let found = servers
                .get(socket)
                .and_then(|server| server.pane(pane))
                .filter(|found| sits_in(subject, &process_terminal, found));
            if let Some(found) = found {
                windows.extend(KnownWindow::of(found).map(|known| (subject.session, known)));
                let place = TerminalPlace::Tmux {
                    socket: socket.clone(),
                    pane: pane.clone(),
                    name: found.name.clone(),
                };
                return (Some(place), found.is_seen.then(clock::wall));
            }
        }
        (process_terminal.terminal.map(TerminalPlace::Terminal), None)
    };
    let each = about.iter().zip(terminals).map(place).collect();
    Places { each, windows }
}

/// The servers that answered, by socket.
fn servers(terminals: &[Option<ProcessTerminal>]) -> HashMap<String, TmuxServer> {
    let sockets = terminals
        .iter()
        .flatten()
        .filter_map(|process_terminal| process_terminal.tmux.as_ref());
    let mut sockets: Vec<&str> = sockets.map(|(socket, _)| socket.as_str()).collect();
    sockets.sort_unstable();
    sockets.dedup();
    let answers = TmuxServer::look_at_all(&sockets);
    let named = sockets.iter().map(|socket| (*socket).to_owned());
    let answered = named.zip(answers);
    answered
        .filter_map(|(socket, server)| Some((socket, server?)))
        .collect()
}

fn sits_in(subject: &Subject, process_terminal: &ProcessTerminal, pane: &Pane) -> bool {
    let terminal = pane.terminal.strip_prefix("/dev/");
    let is_own = terminal.is_some() && terminal == process_terminal.terminal.as_deref();
    is_own || process_terminal::is_below(subject.process.pid, pane.pid)
}
