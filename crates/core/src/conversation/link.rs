//! Links between items, one level deep.
//!
//! Every link leads to an item that is not linked itself. So a link to a linked item leads to that one's root,
//! and the items that continued an item which is linked now move with it.

use super::record::ItemState;
use crate::key::Key;

/// Why an item cannot be linked to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkFault {
    /// Both are one item.
    Itself,
    /// The target continues this item.
    Circle,
}

/// The item that a link from `item` to `target` leads to.
pub fn root_of(item: &Key, target: &ItemState) -> Result<Key, LinkFault> {
    if *item == target.item {
        return Err(LinkFault::Itself);
    }
    let root = target.root();
    if root == item {
        return Err(LinkFault::Circle);
    }
    Ok(root.clone())
}

#[cfg(test)]
mod tests {
    use super::super::record::ItemLink;
    use super::*;
    use crate::time::Timestamp;

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    fn item(text: &str, root: Option<&str>) -> ItemState {
        ItemState {
            link: root.map(|root| ItemLink {
                root: key(root),
                at: Timestamp(0),
                by: None,
            }),
            ..ItemState::plain(key(text))
        }
    }

    #[test]
    fn a_link_to_a_linked_item_goes_to_its_root() {
        let pr = key("pr:acme/web#9");
        let plain = item("issue:acme/web#6", None);
        assert_eq!(root_of(&pr, &plain), Ok(key("issue:acme/web#6")));
        let linked = item("issue:acme/web#7", Some("issue:acme/web#6"));
        assert_eq!(root_of(&pr, &linked), Ok(key("issue:acme/web#6")));
    }

    #[test]
    fn a_circle_is_refused() {
        let pr = key("pr:acme/web#9");
        let itself = item("pr:acme/web#9", None);
        assert_eq!(root_of(&pr, &itself), Err(LinkFault::Itself));
        let follower = item("issue:acme/web#6", Some("pr:acme/web#9"));
        assert_eq!(root_of(&pr, &follower), Err(LinkFault::Circle));
    }
}
