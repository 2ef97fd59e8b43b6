//! Which stored keys mean the same item as a typed one.
//!
//! Two `path:` keys do if they belong to one repository, under whatever names ([`tenure_core::repository`]),
//! and can match the same file.
//!
//! The current remotes of repositories are read from their files, never while a lock is held.

use crate::context::{Ctx, Stop};
use crate::evidence::Want;
use tenure_core::claim::{ClaimRecord, Hold};
use tenure_core::id::SessionId;
use tenure_core::key::Key;
use tenure_core::repository::{Home, Space};
use tenure_core::spelling;
use tenure_core::store::{ClaimFilter, Lock};

impl Ctx<'_> {
    /// All names of the repository in a path key.
    ///
    /// `home` is the repository of an existing hold, for a caller that is elsewhere.
    fn space(&self, name: &str, home: Option<&Home>) -> Result<Space, Stop> {
        let here = self.repository();
        if here.as_ref().is_some_and(|here| here.is_called(name)) {
            return Ok(Space::of(name, here.as_ref()));
        }
        let named = spelling::is_directory(name).then(|| Home {
            dir: name.to_owned(),
            mark: None,
        });
        let Some(home) = home.or(named.as_ref()) else {
            return Ok(Space::of(name, None));
        };
        let remote = self.remote(home)?;
        Ok(Space::with(name, Some(home), remote.as_deref()))
    }

    /// The repository that a path key is granted in.
    pub fn home_for(&self, key: &Key) -> Option<Home> {
        let (name, _) = key.path_parts()?;
        let here = self.repository()?;
        here.is_called(name).then_some(here.home)
    }

    /// The current remote of a repository; none if it is on another machine, where it cannot be read.
    fn remote(&self, home: &Home) -> Result<Option<String>, Stop> {
        let Some(common_dir) = home.dir_on(&self.observer.host) else {
            return Ok(None);
        };
        match self.evidence.remote(common_dir) {
            Some(remote) => Ok(remote.clone()),
            None => Err(Stop::Look(Want::Remotes(vec![common_dir.to_owned()]))),
        }
    }

    /// Makes sure that the remotes of all these repositories have been read, in one pass.
    fn read_remotes<'h>(&self, homes: impl Iterator<Item = &'h Home>) -> Result<(), Stop> {
        let is_unread = |dir: &&str| self.evidence.remote(dir).is_none();
        let dirs = homes.filter_map(|home| home.dir_on(&self.observer.host));
        let unread: Vec<String> = dirs.filter(is_unread).map(str::to_owned).collect();
        if unread.is_empty() {
            Ok(())
        } else {
            Err(Stop::Look(Want::Remotes(unread)))
        }
    }

    /// Whether a hold with this home belongs to a space.
    fn is_home_in(&self, space: &Space, home: &Home) -> Result<bool, Stop> {
        if space.is_home(home) {
            return Ok(true);
        }
        let remote = self.remote(home)?;
        Ok(remote.is_some_and(|remote| space.is_called(&remote)))
    }

    fn is_hold_in(&self, space: &Space, hold: &Hold) -> Result<bool, Stop> {
        let named = hold.key.path_parts();
        if named.is_some_and(|(name, _)| space.is_called(name)) {
            return Ok(true);
        }
        match &hold.home {
            Some(home) => self.is_home_in(space, home),
            None => Ok(false),
        }
    }

    /// The locks that keep anything from being granted next to a path key.
    ///
    /// `home` is the repository of an existing hold, as for a space.
    pub fn space_locks(&self, key: &Key, home: Option<&Home>) -> Result<Vec<Lock>, Stop> {
        let Some((name, _)) = key.path_parts() else {
            return Ok(Vec::new());
        };
        let space = self.space(name, home)?;
        Ok(space.names().iter().cloned().map(Lock::Paths).collect())
    }

    /// Every held path of a space, ordered by key.
    pub fn held_paths(&mut self, space: &Space) -> Result<Vec<ClaimRecord>, Stop> {
        let homes = self.tx.open_homes()?;
        self.read_remotes(homes.iter().filter(|home| !space.is_home(home)))?;
        let mut filters = Vec::new();
        for name in space.names() {
            filters.push(ClaimFilter {
                prefix: Some(format!("path:{name}:")),
                ..ClaimFilter::default()
            });
        }
        for home in homes {
            if self.is_home_in(space, &home)? {
                filters.push(ClaimFilter {
                    home: Some(home),
                    ..ClaimFilter::default()
                });
            }
        }
        let mut held = Vec::new();
        for filter in &filters {
            held.extend(self.tx.list_claims(filter)?);
        }
        held.sort_by(|one, other| one.key.cmp(&other.key));
        held.dedup_by(|one, other| one.key == other.key);
        Ok(held)
    }

    /// Other held keys that mean the same item, or can match the same file.
    ///
    /// `home` is the repository of an existing hold, as for a space.
    pub fn beside(&mut self, key: &Key, home: Option<&Home>) -> Result<Vec<ClaimRecord>, Stop> {
        let Some((name, glob)) = key.path() else {
            return Ok(Vec::new());
        };
        let space = self.space(name, home)?;
        let mut held = self.held_paths(&space)?;
        held.retain(|record| {
            let other = record.key.path();
            record.key != *key && other.is_some_and(|(_, other)| other.overlaps(&glob))
        });
        Ok(held)
    }

    /// The held rows of the same path under other names of its repository.
    fn same_item(&mut self, key: &Key) -> Result<Vec<ClaimRecord>, Stop> {
        let Some((name, glob)) = key.path_parts() else {
            return Ok(Vec::new());
        };
        let space = self.space(name, None)?;
        let mut held = self.held_paths(&space)?;
        held.retain(|record| {
            let other = record.key.path_parts();
            record.key != *key && other.is_some_and(|(_, other)| other == glob)
        });
        Ok(held)
    }

    /// The key under which an item is held, or `me` held it last; otherwise the typed key.
    pub fn held_key(&mut self, key: &Key, me: Option<SessionId>) -> Result<Key, Stop> {
        let is_held = |record: &ClaimRecord| record.current().is_some();
        if !key.has_other_names() || self.tx.claim(key)?.is_some_and(|found| is_held(&found)) {
            return Ok(key.clone());
        }
        let same = self.same_item(key)?;
        if let Some(held) = same.iter().find(|record| is_held(record)) {
            return Ok(held.key.clone());
        }
        if let Some(me) = me
            && self.tx.newest_hold_of(me, key)?.is_none()
            && let Some(mine) = self.newest_of_same(key, me)?
        {
            return Ok(mine.key);
        }
        Ok(key.clone())
    }

    /// What a session last held of the same item under another name.
    fn newest_of_same(&mut self, key: &Key, me: SessionId) -> Result<Option<Hold>, Stop> {
        let mut found: Option<Hold> = None;
        for mine in self.newest_holds_of_item(key, me)? {
            if found
                .as_ref()
                .is_none_or(|best| best.granted_at < mine.granted_at)
            {
                found = Some(mine);
            }
        }
        Ok(found)
    }

    fn newest_holds_of_item(&mut self, key: &Key, me: SessionId) -> Result<Vec<Hold>, Stop> {
        let Some((_, glob)) = key.path_parts() else {
            let mine = self.tx.newest_hold_of(me, key)?;
            return Ok(mine.into_iter().collect());
        };
        let mine = self.tx.newest_holds_of_path(me, glob)?;
        self.only_in_space(key, mine)
    }

    /// The holds among these that are in the repository of a path key.
    pub fn only_in_space(&mut self, key: &Key, holds: Vec<Hold>) -> Result<Vec<Hold>, Stop> {
        let Some((name, _)) = key.path_parts() else {
            return Ok(Vec::new());
        };
        let space = self.space(name, None)?;
        self.read_remotes(holds.iter().filter_map(|hold| hold.home.as_ref()))?;
        let mut kept = Vec::new();
        for hold in holds {
            if self.is_hold_in(&space, &hold)? {
                kept.push(hold);
            }
        }
        Ok(kept)
    }

    /// The key that a claim by `me` is decided on: another name under which `me` already holds the item.
    pub fn key_to_claim(&mut self, key: &Key, me: SessionId) -> Result<Key, Stop> {
        if !key.has_other_names() {
            return Ok(key.clone());
        }
        let same = self.same_item(key)?;
        if same.is_empty() {
            return Ok(key.clone());
        }
        let decides = |record: &ClaimRecord| {
            let hold = record.current();
            hold.is_some_and(|hold| hold.session == me)
        };
        let found = same.into_iter().find(decides);
        Ok(found.map_or_else(|| key.clone(), |record| record.key))
    }

    /// What a prefix listing shows although its text differs: paths held under other names of their repository.
    pub fn others_with_prefix(&mut self, prefix: &str) -> Result<Vec<ClaimRecord>, Stop> {
        let named = prefix.strip_prefix("path:");
        let Some((name, glob)) = named.and_then(spelling::split_path) else {
            return Ok(Vec::new());
        };
        let space = self.space(name, None)?;
        let mut held = self.held_paths(&space)?;
        held.retain(|record| {
            let parts = record.key.path_parts();
            parts.is_some_and(|(_, other)| other.starts_with(glob))
        });
        Ok(held)
    }
}
