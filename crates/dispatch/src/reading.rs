//! A file that is being checked: its location, and the findings so far.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_core::time::Span;
use tenure_forges::Secret;

use super::document::Section;
use super::fault::ConfigFault;
use tenure_app::settings::Settings;
use tenure_runs::credential;

pub(super) struct Reading<'a> {
    /// Paths in the file are relative to this.
    pub dir: &'a Path,
    pub settings: &'a Settings,
    /// The directory of the user's settings.
    pub user: Option<&'a Path>,
    pub faults: Vec<ConfigFault>,
    pub notes: Vec<String>,
}

impl Reading<'_> {
    pub fn at_least_one(&mut self, section: &Section<'_>, key: &str, value: u32) -> u32 {
        if value == 0 {
            self.faults
                .push(section.fault(key, "it must be at least 1"));
        }
        value
    }

    pub fn span(&mut self, section: &Section<'_>, key: &str, text: &str) -> Option<Duration> {
        match text.parse::<Span>() {
            Ok(span) => Some(span.0),
            Err(error) => {
                self.faults.push(section.fault(key, error.why));
                None
            }
        }
    }

    pub fn path(&self, text: &str) -> PathBuf {
        self.dir.join(text)
    }

    /// A secret in a file that only its owner can read.
    pub fn secret(&mut self, section: &Section<'_>, key: &str, file: &str) -> Option<Secret> {
        match credential::secret(&self.path(file)) {
            Ok(secret) => Some(secret),
            Err(why) => {
                self.faults.push(section.fault(key, why));
                None
            }
        }
    }
}
