//! What the checks look at: the settings, the state directory, and the store if it opens.

use std::path::PathBuf;

use tenure_app::location::{StorePlace, is_absent, settings_and_store};
use tenure_app::open::{Context, Purpose, open};
use tenure_app::settings::Settings;
use tenure_service::answer::Problem;

/// What must be usable for a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    /// The settings, which name the store.
    Settings,
    /// A store that opens.
    Store,
}

pub struct Patient {
    purpose: Purpose,
    pub settings: Result<(Settings, StorePlace), Problem>,
    /// None while nothing needed it; then the store, or why it does not open.
    store: Option<Result<Context, Problem>>,
}

impl Patient {
    /// For checks: nothing is changed.
    pub fn examined() -> Self {
        Self::of(Purpose::Examine)
    }

    /// For repairs.
    pub fn treated() -> Self {
        Self::of(Purpose::Look)
    }

    fn of(purpose: Purpose) -> Self {
        Self {
            purpose,
            settings: settings_and_store(),
            store: None,
        }
    }

    /// Why a check cannot be made.
    pub fn lacks(&mut self, needs: Needs) -> Option<String> {
        match needs {
            Needs::Nothing => None,
            Needs::Settings => self
                .settings
                .as_ref()
                .err()
                .map(|_| "the settings are unreadable".to_owned()),
            Needs::Store => match &self.settings {
                Err(_) => Some("the settings are unreadable".to_owned()),
                Ok((_, place)) if is_absent(place) => Some("there is no store yet".to_owned()),
                Ok(_) => self
                    .store()
                    .is_err()
                    .then(|| "the store does not open".to_owned()),
            },
        }
    }

    /// The place of the store, for a check that needs the settings.
    pub fn place(&self) -> Result<&StorePlace, Problem> {
        match &self.settings {
            Ok((_, place)) => Ok(place),
            Err(problem) => Err(problem.clone()),
        }
    }

    pub fn dir(&self) -> Result<PathBuf, Problem> {
        Ok(self.place()?.dir().to_owned())
    }

    /// The open store.
    pub fn store(&mut self) -> Result<&mut Context, Problem> {
        let purpose = self.purpose;
        let store = self.store.get_or_insert_with(|| open(purpose));
        store.as_mut().map_err(|problem| problem.clone())
    }
}
