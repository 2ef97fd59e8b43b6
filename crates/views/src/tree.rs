//! Sessions as a tree: a session that was registered inside another is its child.

use std::collections::{HashMap, HashSet};

use tenure_service::view::SessionView;

/// A session in a list, and how far below the top it stands.
#[derive(Debug, Clone, Copy)]
pub struct Branch<'a> {
    /// How many of those above it are in the list.
    pub depth: usize,
    pub session: &'a SessionView,
}

/// Each session followed by its children. A session whose parent is not listed is at the top.
pub fn arranged<'a>(sessions: impl IntoIterator<Item = &'a SessionView>) -> Vec<Branch<'a>> {
    let sessions: Vec<&SessionView> = sessions.into_iter().collect();
    let listed: HashSet<&str> = sessions.iter().map(|one| one.id.as_str()).collect();
    let mut children: HashMap<&str, Vec<&SessionView>> = HashMap::new();
    let mut tops = Vec::new();
    for session in sessions.iter().copied() {
        match session.parent.as_deref().filter(|id| listed.contains(id)) {
            Some(parent) => children.entry(parent).or_default().push(session),
            None => tops.push(session),
        }
    }
    let mut order = Vec::with_capacity(sessions.len());
    let mut placed = HashSet::new();
    // Two that were each resumed inside the other have no top: they come last, as their own.
    for top in tops.into_iter().chain(sessions) {
        let mut next = vec![Branch {
            depth: 0,
            session: top,
        }];
        while let Some(branch) = next.pop() {
            if !placed.insert(branch.session.id.as_str()) {
                continue;
            }
            order.push(branch);
            let below = children.get(branch.session.id.as_str());
            let depth = branch.depth + 1;
            let below = below.into_iter().flatten().rev();
            next.extend(below.map(|session| Branch { depth, session }));
        }
    }
    order
}
