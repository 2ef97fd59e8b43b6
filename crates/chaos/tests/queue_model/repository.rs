//! What is known of a repository by its events.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// Its name has this id now.
    Other(u64),
    Deleted,
}

/// What is known of the repository.
#[derive(Debug, Clone, Copy, Default)]
pub struct Repository {
    pub id: Option<u64>,
    pub doubt: Option<Doubt>,
}

impl Repository {
    pub fn see(&mut self, id: u64, deleted: bool) {
        let is_other = self.id.is_some_and(|known| known != id);
        let is_doubted = self.doubt == Some(Doubt::Other(id));
        self.id = self.id.or(Some(id));
        match deleted {
            true if !is_other || is_doubted => self.doubt = Some(Doubt::Deleted),
            false if is_other => self.doubt = Some(Doubt::Other(id)),
            // What is known, or a late word about one that had the name before.
            _ => {}
        }
    }

    pub fn believe(&mut self) {
        match self.doubt.take() {
            Some(Doubt::Other(id)) => self.id = Some(id),
            Some(Doubt::Deleted) => self.id = None,
            None => {}
        }
    }
}
