//! Many at the same moment.

use tenure_testkit::Agent;

/// What each of them comes to, all at the same time.
pub fn at_once<T: Send>(agents: &[Agent], work: impl Fn(&Agent) -> T + Sync) -> Vec<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let one = |agent| scope.spawn(move || work(agent));
        let tasks: Vec<_> = agents.iter().map(one).collect();
        let joined = tasks
            .into_iter()
            .map(|task| task.join().expect("it succeeds"));
        joined.collect()
    })
}
