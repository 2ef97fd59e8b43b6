//! What runs used: as they report it themselves.

use tenure_core::local_time::Zone;
use tenure_core::run::Usage;
use tenure_core::run::budget::Budgets;
use tenure_core::spend::UsageBy;
use tenure_core::time::{DAY, Timestamp};
use tenure_service::error::Error;
use tenure_service::{EndRun, UsageRequest};

use super::{Asked, ITEM, Office, asked, done, key};
use crate::kind;

/// A run with this usage, from its start to its end.
fn runs(office: &mut Office, one: &Asked, tokens_in: Option<u64>, cost: Option<f64>) {
    office.works(one, "n1");
    let usage = Usage {
        turns: Some(1),
        tokens_in,
        tokens_out: tokens_in.map(|_| 5),
        cost,
    };
    let end = EndRun {
        usage,
        ..done(one.n, "n1")
    };
    office.ends(one, &end).unwrap();
}

#[test]
fn a_run_counts_with_what_its_agent_reported() {
    let mut office = Office::new();
    let (first, second) = (asked(1), asked(2));
    runs(&mut office, &first, Some(900), Some(0.25));
    runs(&mut office, &second, None, None);
    let shell = office.shell.clone();
    let mut by = |by| {
        let request = UsageRequest {
            by,
            since: Timestamp(0),
            zone: Zone::utc(),
            budgets: Budgets::default(),
        };
        office
            .rig
            .call(&shell, |service| service.usage(&request))
            .unwrap()
    };
    let by_item = by(UsageBy::Item);
    assert_eq!(by_item.rows.len(), 1);
    assert_eq!(by_item.rows[0].name.as_deref(), Some(ITEM));
    let used = by_item.rows[0].used;
    assert_eq!((used.tokens_in, used.tokens_out), (900, 5));
    assert_eq!(used.cost, Some(0.25));
    assert_eq!(by(UsageBy::Session).rows.len(), 1);
}

/// What is left for a run of the item, or why none may begin.
fn left(office: &mut Office, budgets: Budgets) -> Result<Option<f64>, Error> {
    let shell = office.shell.clone();
    office
        .rig
        .call(&shell, |service| service.run_budget(&key(ITEM), &budgets))
}

#[test]
fn a_budget_that_is_used_up_keeps_the_next_run_from_beginning() {
    let none = Budgets::default();
    let mut office = Office::new();
    let day = |most| Budgets {
        day: Some(most),
        ..none
    };
    assert_eq!(left(&mut office, day(1.0)).unwrap(), Some(1.0));
    runs(&mut office, &asked(1), Some(900), Some(0.25));
    assert_eq!(left(&mut office, none).unwrap(), None);
    assert_eq!(left(&mut office, day(1.0)).unwrap(), Some(0.75));
    let used_up = left(&mut office, day(0.25));
    let said = used_up.as_ref().unwrap_err().to_string();
    let why = "all runs cost $0.25 within a day; budget.day is $0.25; runs begin again at ";
    assert!(said.starts_with(why), "{said}");
    assert_eq!(kind(used_up), "over_budget");
    let item_day = |most| Budgets {
        item_day: Some(most),
        ..day(5.0)
    };
    assert_eq!(left(&mut office, item_day(1.0)).unwrap(), Some(0.75));
    let said = left(&mut office, item_day(0.2)).unwrap_err().to_string();
    assert!(said.contains("budget.item_day is $0.20"), "{said}");
    // What reports money does not count its tokens.
    let tokens = Budgets {
        day_tokens: 900,
        ..none
    };
    assert_eq!(left(&mut office, tokens).unwrap(), None);
    runs(&mut office, &asked(2), Some(895), None);
    assert_eq!(kind(left(&mut office, tokens)), "over_budget");
    office.rig.clock.advance(DAY);
    for budgets in [day(0.25), item_day(0.2), tokens] {
        assert!(left(&mut office, budgets).is_ok(), "{budgets:?}");
    }
}
