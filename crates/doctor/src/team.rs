//! A store on a server, its keepers, and the dispatcher with its queue.

use tenure_app::keeper::{KeeperStatus, report};
use tenure_app::store_admin::StoreView;
use tenure_app::{dispatchers, store_admin};
use tenure_core::time::Timestamp;
use tenure_host::clock;
use tenure_service::ListJobs;

use crate::code::Code;
use crate::finding::{Finding, Found};
use crate::patient::Patient;

/// How far the clocks of a server and of this machine may be apart, in milliseconds.
const APART: i64 = 30_000;
/// The encoding of a database that can hold a store.
const ENCODING: &str = "UTF8";

pub fn server(patient: &mut Patient) -> Found {
    if patient.place()?.server().is_none() {
        return Ok(Vec::new());
    }
    Ok(match store_admin::status() {
        Ok(store) => of_server(&store, clock::wall()),
        Err(problem) => vec![
            Finding::error(Code::ServerAway, "the store on the server gives no answer")
                .seen(problem.message)
                .advise("claims wait until it answers; what was given up is kept here"),
        ],
    })
}

fn of_server(store: &StoreView, now: Timestamp) -> Vec<Finding> {
    let mut found = Vec::new();
    if store.standby {
        let what = "the server is a standby, which cannot be written";
        found.push(Finding::error(Code::ServerStandby, what).advise("name the primary server"));
    }
    if store.schema < store.supported {
        let what = "the schema of the store is older than this tenure needs";
        found.push(Finding::error(Code::ServerSchema, what).advise("run `tenure store migrate`"));
    }
    for setting in &store.warnings {
        let what = "a crash of the server can lose what tenure confirmed";
        let finding = Finding::warning(Code::ServerUnsafe, what).seen(setting);
        found.push(finding.advise("an administrator of the server turns it on"));
    }
    if let Some(other) = store.encoding.as_ref().filter(|one| *one != ENCODING) {
        let what = format!("the encoding of the database is {other}, and not {ENCODING}");
        let advice = format!("copy the store into a database with ENCODING '{ENCODING}'");
        found.push(Finding::error(Code::ServerEncoding, what).advise(advice));
    }
    if !store.missing_rights.is_empty() {
        let role = store.role.as_deref().unwrap_or("of this connection");
        let what = format!("the role {role} lacks rights, so some commands fail");
        let mut finding = Finding::error(Code::ServerGrants, what)
            .advise("the owner of the store grants them again, as docs/team.md lists them");
        finding.evidence.clone_from(&store.missing_rights);
        found.push(finding);
    }
    let apart = store
        .clock
        .map_or(0, |theirs| theirs.0.saturating_sub(now.0));
    if apart.abs() > APART {
        let what = "the clocks of this machine and of the store differ";
        let ahead = if apart > 0 {
            "the store's"
        } else {
            "the one here"
        };
        found.push(
            Finding::warning(Code::ClockApart, what)
                .seen(format!("{ahead} is {} s ahead", apart.abs() / 1000))
                .advise("set the clock of the one that is wrong, and keep it by NTP"),
        );
    }
    found
}

pub fn keepers(patient: &mut Patient) -> Found {
    if patient.place()?.server().is_none() {
        return Ok(Vec::new());
    }
    Ok(of_keeper(report()?.local.as_ref()))
}

/// What is wrong with the keeper of this machine; none if none runs.
fn of_keeper(keeper: Option<&KeeperStatus>) -> Vec<Finding> {
    let Some(keeper) = keeper else {
        let what = "no keeper runs here, so only leases keep these sessions";
        return vec![
            Finding::warning(Code::KeeperMissing, what)
                .advise("run any command inside an agent, or `tenure keeper`"),
        ];
    };
    let own = env!("CARGO_PKG_VERSION");
    let mut found = Vec::new();
    if keeper.version != own {
        let what = "the keeper here is of another version";
        found.push(
            Finding::warning(Code::KeeperVersion, what)
                .seen(format!("{}, and this is {own}", keeper.version))
                .advise("run `tenure keeper stop`; the next command starts one"),
        );
    }
    if let Some(why) = &keeper.away_why {
        let what = "the keeper here has no answer from the store";
        found.push(
            Finding::error(Code::KeeperAway, what)
                .seen(why)
                .advise("`tenure store status` says whether the store answers this command"),
        );
    }
    found
}

pub fn dispatchers(patient: &mut Patient) -> Found {
    let context = patient.store()?;
    let mut found: Vec<Finding> = dispatchers::warnings(context)
        .into_iter()
        .map(|said| {
            Finding::warning(Code::EndpointRefuses, said)
                .advise("`tenure dispatch status` shows every endpoint")
        })
        .collect();
    for one in dispatchers::find(context) {
        found.extend(one.failing.iter().map(|(forge, why)| {
            Finding::warning(
                Code::ForgeFailing,
                format!("the forge {forge} does not answer as it should"),
            )
            .seen(why)
            .advise("`tenure dispatch check` asks it now")
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
                Finding::warning(Code::JobParked, what)
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
                Finding::warning(Code::JobUnpublished, what)
                    .seen(why)
                    .advise(format!("`tenure queue publish {}`", job.id)),
            );
        }
        if job.past_timeout {
            let what = format!(
                "the run of job {} is past its timeout and has no runner",
                job.id
            );
            found.push(Finding::warning(Code::JobLeft, what).advise("run `tenure queue`"));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use tenure_app::store_admin::Backend;

    use super::*;

    /// A server that has nothing wrong.
    fn store() -> StoreView {
        StoreView {
            location: "postgres://ann@db/work".to_owned(),
            backend: Backend::Postgres,
            shared: true,
            server: Some("17".to_owned()),
            role: Some("ann".to_owned()),
            schema: Some(7),
            supported: Some(7),
            standby: false,
            warnings: Vec::new(),
            encoding: Some("UTF8".to_owned()),
            clock: Some(Timestamp(1_000_000)),
            missing_rights: Vec::new(),
            migrated_from: None,
            copied_from: None,
            copied_rows: None,
        }
    }

    fn keeper() -> KeeperStatus {
        KeeperStatus {
            id: "k".to_owned(),
            pid: 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            store: "postgres://ann@db/work".to_owned(),
            started_at: Timestamp(1),
            renewed_at: Some(Timestamp(2)),
            away_since: None,
            away_why: None,
            sessions: 0,
            claims: 0,
        }
    }

    /// The only finding, which says what helps.
    #[track_caller]
    fn only(found: &[Finding]) -> &'static str {
        let [one] = found else {
            panic!("one finding is expected: {found:?}");
        };
        assert!(one.advice.is_some(), "{one:?}");
        one.code.as_str()
    }

    fn code_of(change: impl FnOnce(&mut StoreView)) -> &'static str {
        let mut store = store();
        change(&mut store);
        only(&of_server(&store, Timestamp(1_000_000)))
    }

    #[test]
    fn a_server_that_is_as_it_should_be_has_no_findings() {
        for apart in [-APART, 0, APART] {
            let found = of_server(&store(), Timestamp(1_000_000 + apart));
            assert!(found.is_empty(), "{apart}: {found:?}");
        }
    }

    #[test]
    fn a_server_that_cannot_be_written_or_is_not_set_up() {
        assert_eq!(code_of(|store| store.standby = true), "server_standby");
        assert_eq!(code_of(|store| store.schema = Some(6)), "server_schema");
        let weak = |store: &mut StoreView| store.warnings.push("fsync = off".to_owned());
        assert_eq!(code_of(weak), "server_unsafe");
        let latin = |store: &mut StoreView| store.encoding = Some("LATIN1".to_owned());
        assert_eq!(code_of(latin), "server_encoding");
        let grants = |store: &mut StoreView| store.missing_rights.push("INSERT on jobs".to_owned());
        assert_eq!(code_of(grants), "server_grants");
    }

    #[test]
    fn clocks_that_are_apart_in_either_direction() {
        for apart in [-APART - 1, APART + 1] {
            let found = of_server(&store(), Timestamp(1_000_000 + apart));
            assert_eq!(only(&found), "clock_apart");
        }
    }

    #[test]
    fn a_keeper_of_another_version_without_an_answer_or_missing() {
        assert!(of_keeper(Some(&keeper())).is_empty());
        assert_eq!(only(&of_keeper(None)), "keeper_missing");
        let mut other = keeper();
        other.version = "0.0.1".to_owned();
        assert_eq!(only(&of_keeper(Some(&other))), "keeper_version");
        let mut away = keeper();
        away.away_why = Some("connection refused".to_owned());
        assert_eq!(only(&of_keeper(Some(&away))), "keeper_away");
    }
}
