//! Agents that are parked on a host because of a usage limit.

use std::time::Duration;

use tenure_core::run::Outcome;
use tenure_core::store::{Store, TxMode};
use tenure_core::time::Timestamp;
use tenure_service::EndRun;
use tenure_service::error::Error;

use super::{Asked, ITEM, Office, asked, done, ended, worker};
use crate::kind;

fn parked(n: u8, until: Timestamp, named: bool) -> EndRun {
    EndRun {
        parked: Some((until, named)),
        ..ended(n, Outcome::Parked)
    }
}

impl Office {
    /// How often in a row the agent was parked without a named time.
    fn parks(&mut self) -> Option<(Timestamp, u32)> {
        let host = self.rig.world.observer.host.clone();
        let mut tx = self.rig.store.inner().begin(TxMode::Read).unwrap();
        let park = tx.park(&worker(), &host).unwrap();
        park.map(|park| (park.until, park.count))
    }
}

#[test]
fn f_r25_an_agent_that_is_parked_starts_no_run_on_this_host_until_then() {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    let until = office.later(7200);
    office.ends(&one, &parked(1, until, true)).unwrap();
    for item in [ITEM, "wp:2"] {
        let other = Asked { item, ..asked(2) };
        let Err(refused) = office.turn(&other) else {
            panic!("it is parked");
        };
        assert_eq!(refused.kind(), "parked");
        assert!(
            refused.to_string().contains(&until.to_string()),
            "{refused}"
        );
    }
    assert_eq!(office.parks(), Some((until, 0)));
    office.rig.clock.advance(Duration::from_secs(7201));
    let two = asked(2);
    office.works(&two, "n1");
    office.ends(&two, &done(2, "n1")).unwrap();
    assert_eq!(office.parks(), None, "it was answered");
}

#[test]
fn a_limit_without_a_time_counts_up_until_the_agent_is_answered() {
    let mut office = Office::new();
    for n in 1..=3 {
        let one = asked(n);
        office.works(&one, "n1");
        let until = office.later(60);
        office.ends(&one, &parked(n, until, false)).unwrap();
        assert_eq!(office.parks(), Some((until, u32::from(n))));
        office.rig.clock.advance(Duration::from_secs(61));
        let next = office.request(&asked(n + 1)).unwrap().planned.parked;
        assert_eq!(next, u32::from(n));
    }
    let failed = asked(4);
    office.works(&failed, "n1");
    office.ends(&failed, &ended(4, Outcome::Failed)).unwrap();
    assert_eq!(office.parks().unwrap().1, 3, "a failure is no answer");
    let named = asked(5);
    office.works(&named, "n1");
    let until = office.later(600);
    office.ends(&named, &parked(5, until, true)).unwrap();
    assert_eq!(office.parks(), Some((until, 0)), "a named time starts anew");
}

#[test]
fn a_run_that_was_under_way_goes_on_and_a_park_at_its_start_is_seen() {
    let mut office = Office::new();
    let (one, two) = (
        asked(1),
        Asked {
            item: "wp:2",
            dir: "/work/2",
            ..asked(2)
        },
    );
    office.works(&one, "n1");
    office.works(&two, "n2");
    let third = Asked {
        item: "wp:3",
        dir: "/work/3",
        ..asked(3)
    };
    let request = office.request(&third).unwrap();
    let until = office.later(600);
    office.ends(&one, &parked(1, until, true)).unwrap();
    let runner = office.rig.here(&[third.runner]);
    let late: Result<_, Error> = office
        .rig
        .call(&runner, |service| service.start_run(&request, None));
    assert_eq!(kind(late), "parked", "it was planned before");
    assert_eq!(office.show(2).state, "running");
}
