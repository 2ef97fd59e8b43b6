//! Repositories: how one is identified, and which `path:` keys belong to it.
//!
//! A `path:` key names its repository by the remote, else by the common directory, and keeps that text while it
//! is held. In the meantime the remote can be added, changed or removed, and the directory can be moved. So
//! every hold of a path also stores its [`Home`], the repository in which it was granted. Two keys are in one
//! space if they share any identification:
//!
//! - the asker is identified by the name that was typed and, if that is a name of the repository it is in, by
//!   that repository's home and its current remote;
//! - a hold is identified by the name in its key, by its home, and by the current remote of its home.
//!
//! Clones share a space through their remote, because their work meets there. Nothing is remembered beyond the
//! hold: a fork whose remote becomes the upstream joins the two only for what is held in it. Each side's own
//! names decide, never a chain of third repositories.
//!
//! On a store that several machines use, a directory is one of a machine: the same path on two of them is two
//! repositories. So its name begins with the machine there (`@MACHINE/DIRECTORY`), in keys and in homes alike, and only
//! a remote that both have makes two clones one space. A name without a machine is of a time when one machine used the
//! store, and can be of any.

use crate::id::HostId;

/// The directory of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// The common directory of its worktrees, absolute; with its machine in front if several use the store.
    pub dir: String,
    /// What stays the same when the directory is moved; none if unknown.
    pub mark: Option<String>,
}

impl Home {
    /// The same as a directory of this machine, for a store that several use.
    #[must_use]
    pub fn on(self, host: &HostId) -> Self {
        Self {
            dir: on(host, &self.dir),
            mark: self.mark.map(|mark| on(host, &mark)),
        }
    }

    /// Its directory, if it is or may be one of this machine.
    pub fn dir_on(&self, host: &HostId) -> Option<&str> {
        let (machine, dir) = split_machine(&self.dir);
        machine
            .is_none_or(|machine| machine == host.label())
            .then_some(dir)
    }

    /// Whether both are the same directory, possibly moved in between.
    pub fn is(&self, other: &Self) -> bool {
        let moved = self.mark.is_some() && self.mark == other.mark;
        let (machine, dir) = split_machine(&self.dir);
        let (other_machine, other_dir) = split_machine(&other.dir);
        let may_be_one = machine.is_none() || other_machine.is_none() || machine == other_machine;
        (dir == other_dir && may_be_one) || moved
    }
}

/// A text that is only known on one machine, with that machine in front. What has one keeps it.
pub fn on(host: &HostId, text: &str) -> String {
    match split_machine(text) {
        (None, text) => format!("@{}/{}", host.label(), text.trim_start_matches('/')),
        (Some(_), _) => text.to_owned(),
    }
}

/// The text without the machine in front of it.
pub fn without_machine(text: &str) -> &str {
    split_machine(text).1
}

/// The machine in front of a directory, and the directory.
fn split_machine(dir: &str) -> (Option<&str>, &str) {
    let marked = dir.strip_prefix('@');
    match marked.and_then(|rest| Some((rest, rest.find('/')?))) {
        Some((rest, at)) => (Some(&rest[..at]), &rest[at..]),
        None => (None, dir),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    pub home: Home,
    /// The canonical `owner/name` of its remote, if it has one.
    pub remote: Option<String>,
}

impl Repository {
    /// The same on this machine, for a store that several use.
    #[must_use]
    pub fn on(self, host: &HostId) -> Self {
        Self {
            home: self.home.on(host),
            ..self
        }
    }

    /// Its name in new keys.
    pub fn name(&self) -> &str {
        self.remote.as_deref().unwrap_or(&self.home.dir)
    }

    /// Whether that is one of its names.
    pub fn is_called(&self, name: &str) -> bool {
        let dir = split_machine(&self.home.dir).1;
        self.home.dir == name || dir == name || self.remote.as_deref() == Some(name)
    }
}

/// All names of the repository that a path request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    names: Vec<String>,
    home: Option<Home>,
}

impl Space {
    /// The space of a key with this name, in a repository if that has the name.
    pub fn of(name: &str, repository: Option<&Repository>) -> Self {
        let repository = repository.filter(|found| found.is_called(name));
        Self::with(
            name,
            repository.map(|found| &found.home),
            repository.and_then(|found| found.remote.as_deref()),
        )
    }

    /// The space of a key with this name and home, whose remote is now this one.
    pub fn with(name: &str, home: Option<&Home>, remote: Option<&str>) -> Self {
        let dir = home.map(|home| home.dir.as_str());
        let all = [Some(name), dir, remote];
        let mut names: Vec<String> = all.into_iter().flatten().map(str::to_owned).collect();
        // Sorted, so that two callers lock them in the same order.
        names.sort();
        names.dedup();
        let home = home.cloned();
        Self { names, home }
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether a key with this name is in the space, whatever its home.
    pub fn is_called(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// Whether a hold with this home is in the space, whatever the home's remote.
    pub fn is_home(&self, home: &Home) -> bool {
        self.is_called(&home.dir) || self.home.as_ref().is_some_and(|own| own.is(home))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(dir: &str) -> Home {
        Home {
            dir: dir.into(),
            mark: Some(format!("mark of {dir}")),
        }
    }

    fn repository(dir: &str, remote: Option<&str>) -> Repository {
        Repository {
            home: home(dir),
            remote: remote.map(str::to_owned),
        }
    }

    /// A hold: the name in its key, its home, and its home's current remote.
    type HoldFields<'a> = (&'a str, &'a str, Option<&'a str>);

    /// Whether a request in a repository conflicts with a hold.
    fn meets(asker: &Repository, (name, dir, remote): HoldFields<'_>) -> bool {
        let space = Space::of(asker.name(), Some(asker));
        space.is_called(name)
            || space.is_home(&home(dir))
            || remote.is_some_and(|remote| space.is_called(remote))
    }

    #[test]
    fn f_c20_a_hold_is_met_under_every_name_that_its_repository_has_or_had() {
        let without: HoldFields<'_> = ("/a/.git", "/a/.git", Some("x/n"));
        assert!(
            meets(&repository("/a/.git", Some("x/n")), without),
            "remote added"
        );
        assert!(
            meets(&repository("/b/.git", Some("x/n")), without),
            "another clone"
        );
        let changed: HoldFields<'_> = ("x/n", "/a/.git", Some("y/n"));
        for (dir, remote) in [
            ("/a", Some("y/n")),
            ("/b", Some("x/n")),
            ("/c", Some("y/n")),
        ] {
            assert!(
                meets(&repository(&format!("{dir}/.git"), remote), changed),
                "{dir}"
            );
        }
        let removed: HoldFields<'_> = ("x/n", "/a/.git", None);
        assert!(meets(&repository("/a/.git", None), removed));
        assert!(meets(&repository("/b/.git", Some("x/n")), removed));
        assert!(!meets(&repository("/c/.git", Some("y/n")), removed));
    }

    #[test]
    fn repositories_that_share_no_name_never_meet() {
        // A fork whose remote became the upstream's while it holds something.
        let between: HoldFields<'_> = ("fork/n", "/a/.git", Some("up/n"));
        let (up, fork) = (
            repository("/u/.git", Some("up/n")),
            repository("/f/.git", Some("fork/n")),
        );
        assert!(meets(&up, between) && meets(&fork, between));
        assert!(!meets(&up, ("fork/n", "/f/.git", Some("fork/n"))));
        assert!(!meets(&fork, ("up/n", "/u/.git", Some("up/n"))));
        assert!(!meets(
            &repository("/a/.git", None),
            ("/b/.git", "/b/.git", None)
        ));
    }

    #[test]
    fn a_directory_that_was_moved_is_known_by_its_mark() {
        let mut moved = repository("/new/.git", None);
        moved.home.mark = home("/old/.git").mark;
        assert!(meets(&moved, ("/old/.git", "/old/.git", None)));
        let unmarked = |dir: &str| Home {
            dir: dir.into(),
            mark: None,
        };
        assert!(!unmarked("/a").is(&unmarked("/b")));
    }

    #[test]
    fn the_same_path_on_two_machines_is_two_repositories_unless_they_share_a_remote() {
        let (one, two) = (HostId::new("m1-a"), HostId::new("m2-b"));
        let held = repository("/w/.git", None).on(&one);
        assert_eq!(held.name(), "@m1a/w/.git");
        let meets = |asker: &Repository, held: &Repository| {
            let space = Space::of(asker.name(), Some(asker));
            space.is_called(held.name()) || space.is_home(&held.home)
        };
        assert!(meets(&repository("/w/.git", None).on(&one), &held));
        // The mark is the same too: both machines were made from one image.
        assert!(!meets(&repository("/w/.git", None).on(&two), &held));
        let held = repository("/w/.git", Some("x/n")).on(&one);
        assert!(meets(&repository("/w/.git", Some("x/n")).on(&two), &held));
        // What was held before several machines used the store may be of any of them.
        assert!(meets(
            &repository("/w/.git", None).on(&two),
            &repository("/w/.git", None)
        ));
        assert_eq!(held.home.dir_on(&one), Some("/w/.git"));
        assert_eq!(held.home.dir_on(&two), None);
    }

    #[test]
    fn a_name_of_elsewhere_says_nothing_about_where_it_was_typed() {
        let here = repository("/a/.git", Some("x/n"));
        let space = Space::of("y/n", Some(&here));
        assert_eq!(space.names(), ["y/n"]);
        assert!(!space.is_home(&here.home));
        let space = Space::of("x/n", Some(&here));
        assert_eq!(space.names(), ["/a/.git", "x/n"]);
    }
}
