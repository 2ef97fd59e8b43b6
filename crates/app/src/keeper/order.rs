//! What a keeper is started with: which store, which state directory, which times.
//!
//! It travels through a pipe, because the store's URL may contain a password, and arguments can be seen by others.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::policy::Policy;

use crate::read_json::read_json;
use crate::settings::Settings;
use crate::store_place::StorePlace;

/// Longer than any order.
const MAX_LENGTH: u64 = 1 << 16;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeeperOrder {
    /// The store as the settings name it.
    pub store: String,
    /// The state directory.
    pub dir: PathBuf,
    lease: u64,
    lock_delay: u64,
    host_lease: u64,
}

impl KeeperOrder {
    /// The order for the store of these settings; none unless several machines use it.
    pub fn of(settings: &Settings, place: &StorePlace) -> Option<Self> {
        let store = settings.store.clone()?;
        place.server()?;
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Some(Self {
            store,
            dir: place.dir().to_owned(),
            lease: millis(settings.policy.lease),
            lock_delay: millis(settings.policy.lock_delay),
            host_lease: millis(settings.policy.host_lease),
        })
    }

    pub fn policy(&self) -> Policy {
        Policy {
            lease: Duration::from_millis(self.lease),
            lock_delay: Duration::from_millis(self.lock_delay),
            host_lease: Duration::from_millis(self.host_lease),
            ..Policy::default()
        }
    }

    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *to, self)?;
        to.flush()
    }

    /// Reads the order from the pipe that a starter wrote.
    pub fn read() -> io::Result<Self> {
        let mut text = Vec::new();
        io::stdin().take(MAX_LENGTH).read_to_end(&mut text)?;
        read_json(&text)
    }
}
