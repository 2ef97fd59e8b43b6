//! What was done in a run, by kind, and which kinds should have been done and never were: a run is no proof of what did
//! not happen in it.

use super::nemesis::Harm;

/// What a run has that can be harmed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Means {
    pub server: bool,
    pub pooler: bool,
    /// Whether workers are on several hosts, with keepers.
    pub hosts: bool,
    /// Whether pids may be given to threads.
    pub own_pids: bool,
    /// The disk fails at one of so many writes and syncs, or never for 0, and the power is cut.
    pub faults: Option<u64>,
}

/// How often something was done, and whether it should have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    pub name: &'static str,
    pub times: u64,
    pub is_expected: bool,
}

/// Every kind of harm.
pub fn counts(harm: &Harm, means: &Means) -> Vec<Count> {
    let (storms, shocks, disk) = (harm.storms, harm.shocks, harm.failures);
    let fails = means.faults.is_some_and(|one_in| one_in > 0);
    let all = [
        ("kills", harm.kills, true),
        ("stops", harm.stops, true),
        ("stopped openings", harm.openings, true),
        ("held write locks", harm.locks, !means.server),
        (
            "pids that became threads'",
            harm.threads,
            means.own_pids && !means.hosts,
        ),
        ("crowds", harm.crowds, means.hosts),
        ("killed keepers", shocks.kills, means.hosts),
        ("stopped keepers", shocks.stops, means.hosts),
        ("silent keepers", shocks.silences, means.hosts),
        ("server restarts", storms.restarts, means.server),
        (
            "times all connections ended",
            storms.terminations,
            means.server,
        ),
        ("cut links", storms.cuts, means.server),
        ("commits without an answer", storms.unanswered, means.server),
        ("delays", storms.delays, means.server),
        ("freezes", storms.freezes, means.server),
        ("locked rows", storms.locked_rows, means.server),
        ("stopped poolers", storms.stopped_poolers, means.pooler),
        ("writes", disk.writes, means.faults.is_some()),
        ("syncs", disk.syncs, means.faults.is_some()),
        ("power cuts", disk.cuts, means.faults.is_some()),
        (
            "writes under way at a power cut",
            disk.unsaved,
            means.faults.is_some(),
        ),
        ("failed writes and syncs", disk.failed, fails),
    ];
    all.into_iter()
        .map(|(name, times, is_expected)| Count {
            name,
            times,
            is_expected,
        })
        .collect()
}

/// The kinds that should have been done and never were.
pub fn missing(counts: &[Count]) -> Vec<&'static str> {
    let never = |count: &&Count| count.is_expected && count.times == 0;
    counts
        .iter()
        .filter(never)
        .map(|count| count.name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::weather::Storms;
    use super::*;

    fn harm() -> Harm {
        Harm {
            kills: 1,
            stops: 1,
            openings: 1,
            storms: Storms {
                restarts: 1,
                terminations: 1,
                cuts: 1,
                unanswered: 1,
                delays: 1,
                freezes: 1,
                stopped_poolers: 0,
                locked_rows: 1,
            },
            ..Harm::default()
        }
    }

    fn missing_of(harm: &Harm, means: Means) -> Vec<&'static str> {
        missing(&counts(harm, &means))
    }

    const SERVER: Means = Means {
        server: true,
        pooler: false,
        hosts: false,
        own_pids: false,
        faults: None,
    };

    #[test]
    fn a_kind_that_never_happened_is_missing_where_it_was_possible() {
        assert!(missing_of(&harm(), SERVER).is_empty());

        let mut unlocked = harm();
        unlocked.storms.locked_rows = 0;
        assert_eq!(missing_of(&unlocked, SERVER), ["locked rows"]);

        let pooled = Means {
            pooler: true,
            ..SERVER
        };
        assert_eq!(missing_of(&harm(), pooled), ["stopped poolers"]);
    }

    #[test]
    fn each_setup_misses_what_belongs_to_it() {
        let none = Harm::default();
        let file = Means::default();
        let common = ["kills", "stops", "stopped openings"];
        assert_eq!(
            missing_of(&none, file),
            [&common[..], &["held write locks"]].concat()
        );
        let disk = |one_in| Means {
            faults: Some(one_in),
            ..file
        };
        assert!(missing_of(&none, disk(100)).contains(&"failed writes and syncs"));
        assert!(!missing_of(&none, disk(0)).contains(&"failed writes and syncs"));
        assert!(missing_of(&none, disk(0)).contains(&"power cuts"));
        let hosts = Means {
            hosts: true,
            own_pids: true,
            ..SERVER
        };
        let missed = missing_of(&none, hosts);
        assert!(missed.contains(&"crowds") && missed.contains(&"silent keepers"));
        assert!(!missed.contains(&"held write locks"));
        assert!(!missed.contains(&"pids that became threads'"));
    }
}
