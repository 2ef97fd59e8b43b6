//! Sessions without a window: their agent's own service runs them, or their terminal was closed.

use tenure_core::witness::{Subject, TerminalPlace};
use tenure_host::terminal;

use crate::background;

/// Why a session has no window; `None` if it may have one.
pub(super) fn place(subject: &Subject) -> Option<TerminalPlace> {
    // Such a service holds a terminal that no one sees.
    if background::running(subject.agent.as_str(), &subject.process).is_some() {
        return Some(TerminalPlace::NoWindow);
    }
    terminal::is_gone(&subject.process).then_some(TerminalPlace::Gone)
}
