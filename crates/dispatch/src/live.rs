//! The settings that a dispatcher works with now. They are replaced as a whole when it reloads its file.

use std::sync::{Arc, PoisonError, RwLock};

use super::config::Config;

/// Clones have the same settings.
#[derive(Clone)]
pub struct LiveConfig(Arc<RwLock<Arc<Config>>>);

impl LiveConfig {
    pub fn new(config: Config) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(config))))
    }

    pub fn now(&self) -> Arc<Config> {
        let config = self.0.read().unwrap_or_else(PoisonError::into_inner);
        config.clone()
    }

    pub fn replace(&self, config: Config) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(config);
    }
}
