//! Whether a repository is still the one that its jobs were permitted for.
//!
//! Its id at its forge is remembered with the first event. If an event reports another id under the same name, or that the
//! repository was deleted, its jobs wait until a person says that it is the right one. An event of the earlier id does not
//! change that: it may be a late one.

use crate::key::Key;

/// What an event says about its repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRepository {
    /// The canonical name.
    pub name: String,
    pub id: u64,
    pub is_deleted: bool,
}

/// Why a repository may be another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// Its name has this id now.
    Other(u64),
    Deleted,
}

/// What is known of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The canonical name.
    pub name: String,
    /// None if the next event tells it.
    pub id: Option<u64>,
    pub doubt: Option<Doubt>,
}

impl Identity {
    pub fn of(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            id: None,
            doubt: None,
        }
    }

    /// The key under which it is stored; none if the name is too long for one.
    pub fn key(name: &str) -> Option<Key> {
        Key::stored(&format!("repo:{name}")).ok()
    }

    /// After an event.
    #[must_use]
    pub fn after(self, seen: &SeenRepository) -> Self {
        let is_known = self.id.is_none_or(|id| id == seen.id);
        let is_doubted = self.doubt == Some(Doubt::Other(seen.id));
        let doubt = match (is_known, seen.is_deleted) {
            (true, true) => Some(Doubt::Deleted),
            (true, false) => self.doubt,
            (false, true) if is_doubted => Some(Doubt::Deleted),
            // A late word about one that had the name before.
            (false, true) => self.doubt,
            (false, false) => Some(Doubt::Other(seen.id)),
        };
        Self {
            id: self.id.or(Some(seen.id)),
            doubt,
            ..self
        }
    }

    /// Whether an event with this id is about another repository than the one whose items are known.
    pub fn is_other(&self, id: u64) -> bool {
        self.id.is_some_and(|known| known != id)
    }

    /// A person says that it is the right one.
    #[must_use]
    pub fn believed(self) -> Self {
        let id = match self.doubt {
            None => self.id,
            Some(Doubt::Other(id)) => Some(id),
            Some(Doubt::Deleted) => None,
        };
        Self {
            id,
            doubt: None,
            ..self
        }
    }

    /// Why its jobs wait.
    pub fn why(&self) -> Option<String> {
        let name = &self.name;
        let what = match (self.doubt?, self.id) {
            (Doubt::Deleted, _) => format!("{name} was deleted at its forge"),
            (Doubt::Other(now), Some(id)) => {
                format!("{name} has the id {now} at its forge and had {id}: it may be another one")
            }
            (Doubt::Other(now), None) => format!("{name} has another id at its forge, {now}"),
        };
        Some(format!(
            "{what}; if it is the right repository, a person retries the job"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(id: u64) -> SeenRepository {
        SeenRepository {
            name: "acme/web".to_owned(),
            id,
            is_deleted: false,
        }
    }

    fn deleted(id: u64) -> SeenRepository {
        SeenRepository {
            is_deleted: true,
            ..seen(id)
        }
    }

    #[test]
    fn another_id_is_doubted_until_a_person_believes_it() {
        let known = Identity::of("acme/web").after(&seen(3)).after(&seen(3));
        assert_eq!((known.id, known.why()), (Some(3), None));
        let other = known.after(&seen(9));
        assert_eq!((other.id, other.doubt), (Some(3), Some(Doubt::Other(9))));
        assert!(other.is_other(9) && !other.is_other(3));
        let late = other.after(&seen(3));
        assert_eq!(late.doubt, Some(Doubt::Other(9)), "a late event");
        let believed = late.believed();
        assert_eq!((believed.id, believed.doubt), (Some(9), None));
        assert!(believed.is_other(3) && !believed.is_other(9));
        assert_eq!(believed.clone().after(&deleted(3)), believed, "the old one");
        assert_eq!(
            believed.after(&seen(3)).doubt,
            Some(Doubt::Other(3)),
            "back again"
        );
    }

    #[test]
    fn a_deleted_one_is_doubted_and_its_successor_is_learnt_when_a_person_believes_it() {
        let known = Identity::of("acme/web").after(&seen(3));
        let gone = known.after(&deleted(3));
        assert_eq!(gone.doubt, Some(Doubt::Deleted));
        assert_eq!(gone.clone().after(&seen(9)).doubt, Some(Doubt::Other(9)));
        let believed = gone.believed();
        assert_eq!((believed.id, believed.doubt), (None, None));
        assert_eq!(believed.after(&seen(9)).why(), None);
        let unknown = Identity::of("acme/web").after(&deleted(3));
        assert_eq!(unknown.doubt, Some(Doubt::Deleted));
    }
}
