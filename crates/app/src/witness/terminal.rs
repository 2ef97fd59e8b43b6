//! Where a session's window is, and whether a person was there.
//!
//! A process keeps the variables that it was started with, so a pane that they name may be gone, or another's
//! now. A pane counts only where its terminal is the process's own, or the process runs below what the pane was
//! opened for. Each server is asked once; where no session sits in a tmux, none is.

use std::collections::HashMap;

use tenure_core::time::Timestamp;
use tenure_core::witness::{Subject, TerminalPlace};
use tenure_host::seat::{self, Seat};

use crate::tmux::{Pane, Server};

/// The place of each, and when a person was last there.
pub(super) fn places(about: &[Subject]) -> Vec<(Option<TerminalPlace>, Option<Timestamp>)> {
    let mut servers: HashMap<String, Option<Server>> = HashMap::new();
    let place = |subject: &Subject| {
        let Some(seat) = seat::of(&subject.process) else {
            return (None, None);
        };
        if let Some((socket, pane)) = &seat.tmux {
            let server = servers
                .entry(socket.clone())
                .or_insert_with(|| Server::look(socket));
            let found = server.as_ref().and_then(|server| server.pane(pane));
            if let Some(found) = found.filter(|found| sits_in(subject, &seat, found)) {
                let place = TerminalPlace::Tmux {
                    socket: socket.clone(),
                    pane: pane.clone(),
                    name: found.name.clone(),
                };
                return (Some(place), found.attended_at);
            }
        }
        (seat.terminal.map(TerminalPlace::Terminal), None)
    };
    about.iter().map(place).collect()
}

fn sits_in(subject: &Subject, seat: &Seat, pane: &Pane) -> bool {
    let terminal = pane.terminal.strip_prefix("/dev/");
    let is_own = terminal.is_some() && terminal == seat.terminal.as_deref();
    is_own || seat::is_below(subject.process.pid, pane.pid)
}
