//! The open connections: how many there may be, and which one is closed for a new one.
//!
//! A connection is idle while it sends no request: before its first one, and between two. If all places are taken, the one
//! that has been idle for the longest is closed. One address that is not this machine's gets at most half of them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tenure_host::clock;
use tokio::sync::Notify;

/// One connection.
pub struct Connection {
    number: u64,
    address: IpAddr,
    /// Since when it is idle; none while a request of it is read or answered.
    idle_since: Mutex<Option<Instant>>,
    closed: Notify,
    of: Connections,
}

impl Connection {
    /// Until it must make room for another.
    pub async fn closed(&self) {
        self.closed.notified().await;
    }

    /// It is busy for as long as this is kept.
    pub fn request(self: &Arc<Self>) -> ActiveRequest {
        *lock(&self.idle_since) = None;
        ActiveRequest(self.clone())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        lock(&self.of.all).remove(&self.number);
    }
}

/// A request that is read or answered.
pub struct ActiveRequest(Arc<Connection>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        *lock(&self.0.idle_since) = Some(clock::instant());
    }
}

#[derive(Clone)]
pub struct Connections {
    most: usize,
    next: Arc<AtomicU64>,
    all: Arc<Mutex<BTreeMap<u64, std::sync::Weak<Connection>>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known of a connection: its number, its address, and since when it is idle.
type ConnectionInfo = (u64, IpAddr, Option<Instant>);

/// What a new connection needs.
#[derive(Debug, PartialEq, Eq)]
enum Room {
    Free,
    /// This one must go.
    Instead(u64),
    None,
}

fn room(all: &[ConnectionInfo], address: IpAddr, most: usize) -> Room {
    let own = all.iter().filter(|one| one.1 == address).count();
    let is_over = !address.is_loopback() && own >= most.div_ceil(2);
    if !is_over && all.len() < most {
        return Room::Free;
    }
    let meant = all.iter().filter(|one| !is_over || one.1 == address);
    let idle = meant.filter_map(|one| Some((one.2?, one.0)));
    idle.min()
        .map_or(Room::None, |(_, number)| Room::Instead(number))
}

impl Connections {
    pub fn new(most: usize) -> Self {
        Self {
            most,
            next: Arc::default(),
            all: Arc::default(),
        }
    }

    /// Adds one, if there is room, or one that is idle can be closed for it.
    pub fn add(&self, address: IpAddr) -> Option<Arc<Connection>> {
        let mut all = lock(&self.all);
        let open: Vec<Arc<Connection>> =
            all.values().filter_map(std::sync::Weak::upgrade).collect();
        let known: Vec<ConnectionInfo> = open
            .iter()
            .map(|one| (one.number, one.address, *lock(&one.idle_since)))
            .collect();
        match room(&known, address, self.most) {
            Room::Free => {}
            Room::None => {
                drop(all);
                return None;
            }
            Room::Instead(number) => {
                all.remove(&number);
                if let Some(oldest) = open.iter().find(|one| one.number == number) {
                    oldest.closed.notify_one();
                }
            }
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(Connection {
            number,
            address,
            idle_since: Mutex::new(Some(clock::instant())),
            closed: Notify::new(),
            of: self.clone(),
        });
        all.insert(number, Arc::downgrade(&connection));
        // Those that ended meanwhile remove themselves, which needs the lock.
        drop(all);
        drop(open);
        Some(connection)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_one_that_is_idle_for_the_longest_makes_room() {
        let now = clock::instant();
        let before = now.checked_sub(Duration::from_secs(1));
        let (here, there) = (ip("127.0.0.1"), ip("192.0.2.7"));
        let all = [(1, here, None), (2, here, Some(now)), (3, there, before)];
        assert_eq!(room(&all, here, 4), Room::Free);
        assert_eq!(room(&all, here, 3), Room::Instead(3));
        assert_eq!(room(&all[..2], here, 2), Room::Instead(2));
        assert_eq!(room(&all[..1], here, 1), Room::None, "it is busy");
    }

    #[test]
    fn one_address_gets_at_most_half_of_the_places_unless_it_is_this_machines() {
        let now = clock::instant();
        let (here, there) = (ip("127.0.0.1"), ip("192.0.2.7"));
        let of = |address, idle| [(1, address, idle), (2, address, idle)];
        assert_eq!(room(&of(there, Some(now)), there, 4), Room::Instead(1));
        assert_eq!(room(&of(there, None), there, 4), Room::None);
        assert_eq!(room(&of(there, None), ip("192.0.2.8"), 4), Room::Free);
        assert_eq!(room(&of(here, None), here, 4), Room::Free);
        let other = ip("192.0.2.8");
        let all = [
            (1, other, Some(now)),
            (2, there, Some(now)),
            (3, there, None),
        ];
        assert_eq!(room(&all, there, 4), Room::Instead(2), "its own one");
    }

    #[test]
    fn a_connection_that_ends_leaves_its_place() {
        let connections = Connections::new(1);
        let here = ip("127.0.0.1");
        let first = connections.add(here).unwrap();
        let request = first.request();
        assert!(connections.add(here).is_none());
        drop(request);
        let second = connections.add(here).unwrap();
        drop(first);
        let request = second.request();
        assert!(connections.add(here).is_none());
        drop((request, second));
        assert!(connections.add(here).is_some());
    }
}
