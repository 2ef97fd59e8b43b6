//! What a session is shown to do: the newest of what its events and its own agent's files say.
//!
//! Hooks are not sent for everything: a turn that a person cancels, a prompt that is answered with no. Where the
//! agent keeps a file that says so, that file is asked when somebody looks, and the newer of the two counts.

use crate::session::{Activity, Doing};
use crate::time::Timestamp;
use crate::witness::OwnWord;

/// What a session does, and who says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub doing: Doing,
    pub since: Timestamp,
    /// What it waits for a person to answer, on one line.
    pub asks: Option<String>,
    /// `events`, or what the agent's own file is called.
    pub source: &'static str,
    /// Whether nothing else could have happened since without a word.
    pub certain: bool,
}

/// The newer of what events and the agent's own files say. At the same time the file, which is written later.
pub fn newest(events: Option<&Activity>, own: Option<&OwnWord>) -> Option<Shown> {
    let told = events.map(|activity| Shown {
        doing: activity.doing,
        since: activity.since,
        asks: activity.asks.clone(),
        source: "events",
        certain: true,
    });
    let said = own.and_then(|word| {
        word.doing.map(|doing| Shown {
            doing,
            since: word.at,
            asks: word.asks.clone(),
            source: word.source,
            certain: true,
        })
    });
    match (told, said) {
        (Some(told), Some(said)) if told.since > said.since => Some(told),
        (told, said) => said.or(told),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(doing: Doing, at: i64) -> Activity {
        Activity {
            doing,
            since: Timestamp(at),
            asks: None,
        }
    }

    fn said(doing: Doing, at: i64) -> OwnWord {
        OwnWord {
            doing: Some(doing),
            asks: None,
            title: None,
            at: Timestamp(at),
            source: "its own registry",
        }
    }

    #[test]
    fn the_newer_word_counts() {
        let doing = |events: i64, own: i64| {
            let (events, own) = (told(Doing::Busy, events), said(Doing::Idle, own));
            newest(Some(&events), Some(&own)).unwrap().doing
        };
        assert_eq!(doing(2, 1), Doing::Busy);
        assert_eq!(doing(1, 2), Doing::Idle);
        assert_eq!(doing(1, 1), Doing::Idle);
    }

    #[test]
    fn one_word_alone_counts() {
        let only = newest(Some(&told(Doing::Busy, 1)), None).unwrap();
        assert_eq!((only.doing, only.source), (Doing::Busy, "events"));
        let only = newest(None, Some(&said(Doing::Waiting, 1))).unwrap();
        assert_eq!(
            (only.doing, only.source),
            (Doing::Waiting, "its own registry")
        );
        assert_eq!(newest(None, None), None);
    }
}
