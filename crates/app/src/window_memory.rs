//! Where sessions were in tmux: the order and the names of their windows, so that `tenure resume --all` opens them alike.
//!
//! The answer of tmux is kept in a small file of the state directory: once tmux is gone, nothing else knows it.
//! Hooks never ask. Of two that change the file at once, one may win; the next look finds what is missing.
//!
//! *Crash*: the file is replaced as a whole. *Damage, older version*: nothing is known, until the next look.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::id::SessionId;
use tenure_core::ignore::Ignore;
use tenure_core::time::Timestamp;
use tenure_host::{clock, file, read};

use crate::tmux::Pane;

const FILE: &str = "windows.json";
/// Longer than any such file.
const MAX_LENGTH: u64 = 1 << 22;
/// Sessions that were not seen for longer are forgotten.
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A session's window. The order is that of tmux.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KnownWindow {
    tmux_session: String,
    window: u32,
    pane: u32,
    /// Its name, if tmux did not make it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl KnownWindow {
    pub(crate) fn of(found: &Pane) -> Option<Self> {
        let (tmux_session, window, pane) = found.position()?;
        Some(Self {
            tmux_session: tmux_session.to_owned(),
            window,
            pane,
            name: found.window_name.clone().filter(|name| !name.is_empty()),
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct WindowEntry {
    window: KnownWindow,
    /// When it was found there.
    at: Timestamp,
}

type AllKept = BTreeMap<String, WindowEntry>;

/// The windows that sessions had, by the session's id.
pub fn known(state: &Path) -> BTreeMap<String, KnownWindow> {
    let kept = kept(&path(state));
    kept.into_iter()
        .map(|(id, kept)| (id, kept.window))
        .collect()
}

/// Keeps where sessions are, if that is new.
pub(crate) fn remember(state: &Path, found: &[(SessionId, KnownWindow)]) {
    if found.is_empty() {
        return;
    }
    let path = path(state);
    let mut all = kept(&path);
    let now = clock::wall();
    let before = all.len();
    all.retain(|_, kept| kept.at.age_at(now) < KEPT_FOR);
    let mut is_new = all.len() < before;
    for (session, window) in found {
        let id = session.to_string();
        if all.get(&id).is_none_or(|kept| kept.window != *window) {
            let window = window.clone();
            all.insert(id, WindowEntry { window, at: now });
            is_new = true;
        }
    }
    if is_new && let Ok(text) = serde_json::to_vec(&all) {
        file::write_atomic(&path, &text).ignore("the next look keeps it");
    }
}

fn path(state: &Path) -> PathBuf {
    state.join(FILE)
}

fn kept(path: &Path) -> AllKept {
    let text = read::text(path, MAX_LENGTH).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}
