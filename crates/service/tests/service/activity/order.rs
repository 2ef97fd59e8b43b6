//! In which order many are shown.

use super::*;

#[test]
fn f_v11_those_that_need_a_person_come_first() {
    let mut stage = Stage::new();
    let names = 20..=31;
    let [
        idle,
        busy,
        newer_busy,
        finished,
        stalled,
        one_file,
        same_file,
        loser,
        taker,
        dead,
        waits,
        waits_longer,
    ]: [Who; 12] = names
        .map(|pid| stage.starts("claude", pid))
        .collect::<Vec<_>>()
        .try_into()
        .unwrap_or_else(|_| panic!("twelve of them"));
    stage.prompts(&stalled);
    stage.pass(MINUTE * 20);
    stage.registry(&stalled, Doing::Busy);
    stage.pass(MINUTE * 20);
    for who in [&busy, &newer_busy, &finished, &waits, &waits_longer] {
        stage.prompts(who);
    }
    stage.does(&finished, "claude", Doing::Finished);
    for who in [&waits_longer, &waits] {
        stage.does(who, "claude", Doing::Waiting);
        stage.pass(Duration::from_millis(5));
    }
    for who in [&one_file, &same_file] {
        stage.writes(who, "/work/a.rs");
    }
    for (who, text) in [(&loser, "wp:1"), (&dead, "wp:2")] {
        stage.rig.claim(who, text).unwrap();
    }
    let takes = TakeoverRequest {
        key: key("wp:1"),
        from: None,
        epoch: None,
        note: None,
        reason: Reason::parse("it hangs").expect("a reason"),
    };
    let act_for = ActFor {
        session: None,
        reason: Reason::parse("it hangs").ok(),
    };
    stage
        .rig
        .call(&taker, |service| service.takeover(&act_for, &takes))
        .unwrap();
    dead.dies();
    let shown: Vec<(u32, Option<&str>)> = stage
        .all()
        .iter()
        .map(|one| (one.process.pid.unwrap(), one.rank))
        .collect();
    let expected = [
        (&waits_longer, "waiting"),
        (&waits, "waiting"),
        (&dead, "died_with_work"),
        (&loser, "lost_claim"),
        (&same_file, "collides"),
        (&one_file, "collides"),
        (&stalled, "stalled"),
        (&finished, "finished"),
        (&newer_busy, "busy"),
        (&busy, "busy"),
        (&taker, "idle"),
        (&idle, "idle"),
    ];
    let expected = expected.map(|(who, rank)| (who.pids[0], Some(rank)));
    assert_eq!(shown, expected);
    // The same once the death is recorded, and after a list.
    let order = |stage: &mut Stage| -> Vec<u32> {
        let all = stage.all();
        all.iter().filter_map(|one| one.process.pid).collect()
    };
    let before = order(&mut stage);
    assert_eq!(before, expected.map(|(pid, _)| pid));
    let handle = stage.one(&busy).handle;
    let program = stage.nobody();
    stage.ask(&program, |service| service.show(&handle));
    assert_eq!(order(&mut stage), before);
}
