//! What a list costs grows with what it lists and no faster, and a long history is read a page at a time.

use std::cell::Cell;
use std::time::Duration;

use tenure_core::event::EventFilter;
use tenure_core::id::Cursor;
use tenure_core::time::Timestamp;
use tenure_service::view::EventView;
use tenure_service::{ActFor, ListRequest, PAGE, Service};

use crate::{Rig, TICK, Who};

thread_local! {
    static STATEMENTS: Cell<usize> = const { Cell::new(0) };
}

/// Sessions that died silently; every other one holds a key, and all are in conversations.
fn with_dead(count: u32) -> (Rig, Who) {
    let mut rig = Rig::new();
    for n in 0..count {
        let who = rig.here(&[1_000 + n]);
        rig.register(&who, &format!("ses_{n}"));
        if n % 2 == 0 {
            rig.claim(&who, &format!("wp:{n}")).unwrap();
        }
        who.dies();
        rig.clock.advance(TICK);
    }
    let alive = rig.here(&[9]);
    rig.register(&alive, "ses_alive");
    (rig, alive)
}

/// How many statements a call takes with this many dead sessions.
fn statements<T>(
    dead: u32,
    act: impl FnOnce(&mut Service<'_>) -> tenure_service::Reply<T>,
) -> usize {
    let (mut rig, alive) = with_dead(dead);
    let store = rig.store.inner();
    store.check_statements(|_, _| STATEMENTS.set(STATEMENTS.get() + 1));
    STATEMENTS.set(0);
    rig.call(&alive, act).unwrap();
    STATEMENTS.get()
}

/// As many statements for each session more, however many there are. No list records more than a hundred deaths, so
/// these are beyond that.
fn grows_evenly<T>(most: usize, act: fn(&mut Service<'_>) -> tenure_service::Reply<T>) {
    let [small, middle, large] = [200, 300, 400].map(|dead| statements(dead, act));
    let (first, second) = (middle - small, large - middle);
    let each = second.div_ceil(100);
    assert!(each <= most, "{each} statements for each session more");
    assert!(
        second <= first + 100,
        "{small}, {middle} and {large} statements"
    );
}

#[test]
fn a_list_of_the_dead_asks_few_questions_about_each() {
    grows_evenly(2, |service| service.list(&ListRequest::default()));
}

#[test]
fn a_list_of_the_living_asks_nothing_about_the_dead() {
    grows_evenly(0, |service| {
        service.who(&ActFor::default(), &ListRequest::default())
    });
    grows_evenly(0, |service| {
        service.status(&ActFor::default(), &ListRequest::default())
    });
}

#[test]
fn each_death_that_is_recorded_costs_the_same() {
    grows_evenly(30, |service| service.all_resumable(Duration::from_secs(60)));
}

/// Everything that a reader of pages gets, and how many pages that took.
fn all_pages(rig: &mut Rig, who: &Who, filter: &EventFilter) -> (Vec<EventView>, usize) {
    let start = rig.call(who, |service| service.log_start(filter, None));
    let mut next = start.unwrap().filter;
    let (mut all, mut pages) = (Vec::new(), 0);
    loop {
        let page = rig.call(who, |service| service.log_page(&next)).unwrap();
        assert!(page.items.len() <= PAGE);
        all.extend(page.items);
        pages += 1;
        match page.next {
            Some(after) => next.after = Some(after),
            None => return (all, pages),
        }
        if filter.limit > 0 {
            next.limit = filter.limit - all.len();
            if next.limit == 0 {
                return (all, pages);
            }
        }
    }
}

#[test]
fn a_long_log_is_read_a_page_at_a_time_and_nothing_is_missed() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    rig.register(&ann, "ses_ann");
    let noon = rig.clock.now();
    for n in 0..PAGE + 20 {
        rig.clock.advance(TICK);
        rig.claim(&ann, &format!("wp:{n}")).unwrap();
    }
    let whole = EventFilter::default();
    let one_go = rig.call(&ann, |service| service.log(&whole, None)).unwrap();
    let expected: Vec<u64> = one_go.items.iter().map(|event| event.cursor).collect();
    let cursors = |events: &[EventView]| events.iter().map(|e| e.cursor).collect::<Vec<_>>();
    let (all, pages) = all_pages(&mut rig, &ann, &whole);
    assert_eq!(cursors(&all), expected);
    assert_eq!(pages, expected.len().div_ceil(PAGE));
    let newest = EventFilter {
        limit: PAGE + 7,
        ..EventFilter::default()
    };
    let (some, _) = all_pages(&mut rig, &ann, &newest);
    assert_eq!(cursors(&some), expected[expected.len() - PAGE - 7..]);
    let since = EventFilter {
        since: Some(Timestamp(noon.wall.0 + 3)),
        ..EventFilter::default()
    };
    let (lately, _) = all_pages(&mut rig, &ann, &since);
    let by_time = rig.call(&ann, |service| service.log(&since, None)).unwrap();
    assert!(lately.len() < expected.len());
    assert_eq!(cursors(&lately), cursors(&by_time.items));
    let after = EventFilter {
        after: Some(Cursor(expected[2])),
        limit: 3,
        ..EventFilter::default()
    };
    let (three, _) = all_pages(&mut rig, &ann, &after);
    assert_eq!(cursors(&three), expected[3..6]);
}

#[test]
fn what_a_limit_leaves_out_is_counted_up_to_a_thousand() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    rig.register(&ann, "ses_ann");
    for n in 0..1_010 {
        rig.claim(&ann, &format!("wp:{n}")).unwrap();
    }
    let newest = |limit| EventFilter {
        limit,
        ..EventFilter::default()
    };
    let mut more = |limit| {
        let filter = newest(limit);
        let start = rig.call(&ann, |service| service.log_start(&filter, None));
        let start = start.unwrap();
        (start.more, start.more_is_least)
    };
    assert_eq!(more(2), (1_000, true));
    assert_eq!(more(0), (0, false), "all are shown");
    let (some, is_least) = more(1_000);
    assert!(some > 0 && some < 1_000 && !is_least, "{some}");
}
