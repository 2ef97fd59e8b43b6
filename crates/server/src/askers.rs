//! Questions to forges about deliveries, in threads of their own.
//!
//! A forge that accepts connections and never answers costs a few threads, but does not block the
//! door. Beyond [`AT_ONCE`] questions, or after [`WITHIN`], a delivery is stored without its answer
//! and decided later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_app::dispatch::receive::Genuine;
use tenure_app::dispatch::{Asked, Config};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How many questions to one forge may be open at once.
const AT_ONCE: usize = 8;
/// How long an answer may take. The forge itself waits 5 s or more for ours.
const WITHIN: Duration = Duration::from_secs(3);

#[derive(Clone)]
pub struct Askers {
    config: Arc<Config>,
    places: Arc<BTreeMap<String, Arc<Semaphore>>>,
}

impl Askers {
    pub fn new(config: Arc<Config>) -> Self {
        let names = config.forges.iter().map(|forge| forge.name.clone());
        let places = names.map(|name| (name, Arc::new(Semaphore::new(AT_ONCE))));
        Self {
            places: Arc::new(places.collect()),
            config,
        }
    }

    pub async fn ask(&self, genuine: &Genuine) -> Asked {
        if !genuine.is_asked(&self.config) {
            return genuine.ask(&self.config);
        }
        let late = |why: &str| {
            let name = genuine.endpoint();
            Asked::Unanswered(format!("forge {name} could not be asked: {why}"))
        };
        let Some(places) = self.places.get(genuine.endpoint()) else {
            return late("it is unknown");
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            return late("too many questions to it are open");
        };
        let (genuine, config) = (genuine.clone(), self.config.clone());
        let asking = spawn_blocking(move || {
            let asked = genuine.ask(&config);
            drop(place);
            asked
        });
        match timeout(WITHIN, asking).await {
            Ok(Ok(asked)) => asked,
            // The thread that asked has failed, or still waits.
            Ok(Err(_)) | Err(_) => late("no answer came in time"),
        }
    }
}
