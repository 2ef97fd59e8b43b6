//! A store on a server, its keepers, and the dispatcher with its queue.

use tenure_app::keeper::report;
use tenure_app::{dispatchers, store_admin};
use tenure_host::clock;
use tenure_service::ListJobs;

use crate::finding::{Finding, Found};
use crate::patient::Patient;

/// How far the clocks of a server and of this machine may be apart, in milliseconds.
const APART: i64 = 30_000;

pub fn server(patient: &mut Patient) -> Found {
    if patient.place()?.server().is_none() {
        return Ok(Vec::new());
    }
    let store = match store_admin::status() {
        Ok(store) => store,
        Err(problem) => {
            return Ok(vec![
                Finding::error("server_away", "the store on the server gives no answer")
                    .seen(problem.message)
                    .advise("claims wait until it answers; what was given up is kept here"),
            ]);
        }
    };
    let mut found = Vec::new();
    if store.standby {
        let what = "the server is a standby, which cannot be written";
        found.push(Finding::error("server_standby", what).advise("name the primary server"));
    }
    if store.schema < store.supported {
        let what = "the schema of the store is older than this tenure needs";
        found.push(Finding::error("server_schema", what).advise("run `tenure store migrate`"));
    }
    for setting in &store.warnings {
        let what = "a crash of the server can lose what tenure confirmed";
        found.push(Finding::warning("server_unsafe", what).seen(setting));
    }
    Ok(found)
}

pub fn keepers(patient: &mut Patient) -> Found {
    if patient.place()?.server().is_none() {
        return Ok(Vec::new());
    }
    let keepers = report()?;
    let own = env!("CARGO_PKG_VERSION");
    let mut found = Vec::new();
    match &keepers.local {
        None => found.push(
            Finding::warning(
                "keeper_missing",
                "no keeper runs here, so only leases keep these sessions",
            )
            .advise("run any command inside an agent, or `tenure keeper`"),
        ),
        Some(local) => {
            if local.version != own {
                let what = "the keeper here is of another version";
                found.push(
                    Finding::warning("keeper_version", what)
                        .seen(format!("{}, and this is {own}", local.version))
                        .advise("run `tenure keeper stop`; the next command starts one"),
                );
            }
            if let Some(why) = &local.away_why {
                let what = "the keeper here has no answer from the store";
                found.push(Finding::error("keeper_away", what).seen(why));
            }
        }
    }
    for keeper in keepers.keepers.iter().filter(|keeper| keeper.fresh) {
        let apart = clock::wall().0.saturating_sub(keeper.last_seen_at.0);
        if apart < -APART {
            let what = format!(
                "the clocks of this machine and of the store differ ({})",
                keeper.host
            );
            let finding = Finding::warning("clock_apart", what);
            found.push(finding.seen(format!("by {} s at least", -apart / 1000)));
        }
    }
    Ok(found)
}

pub fn dispatchers(patient: &mut Patient) -> Found {
    let context = patient.store()?;
    let mut found: Vec<Finding> = dispatchers::warnings(context)
        .into_iter()
        .map(|said| {
            Finding::warning("endpoint_refuses", said)
                .advise("`tenure dispatch status` shows every endpoint")
        })
        .collect();
    for one in dispatchers::find(context) {
        found.extend(one.failing.iter().map(|(forge, why)| {
            Finding::warning(
                "forge_failing",
                format!("the forge {forge} does not answer as it should"),
            )
            .seen(why)
        }));
    }
    Ok(found)
}

/// Jobs that wait for a person.
pub fn jobs(patient: &mut Patient) -> Found {
    let listed = patient.store()?.service().list_jobs(&ListJobs {
        item: None,
        agent: None,
        all: false,
        limit: 0,
    })?;
    let mut found = Vec::new();
    for job in &listed.value.items {
        if let Some(parked) = job.parked.as_ref().filter(|parked| parked.until.is_none()) {
            let what = format!("job {} for {} waits for a person", job.id, job.item);
            found.push(
                Finding::warning("job_parked", what)
                    .seen(format!("{}: {}", parked.reason, parked.why))
                    .advise(format!(
                        "`tenure queue retry {0}` or `tenure queue cancel {0}`",
                        job.id
                    )),
            );
        }
        if let Some(why) = &job.unpublished {
            let what = format!("the result of job {} is not published", job.id);
            found.push(
                Finding::warning("job_unpublished", what)
                    .seen(why)
                    .advise(format!("`tenure queue publish {}`", job.id)),
            );
        }
        if job.past_timeout {
            let what = format!(
                "the run of job {} is past its timeout and has no runner",
                job.id
            );
            found.push(Finding::warning("job_left", what).advise("run `tenure queue`"));
        }
    }
    Ok(found)
}
