//! The repository in which the workers of a host work, and what they claim there; [`super::places`] checks it.

use tenure_app::place::complete_keys;
use tenure_core::id::HostId;
use tenure_service::answer::Problem;

/// The repository in the directory of a run. Workers of a host work in it.
pub const WORKSPACE: &str = "workspace";

/// What they claim, as a person would type it there. One includes the other.
const TYPED: [&str; 2] = ["path:src/**", "path:src/x.rs"];

/// The keys of this host, for a process in the repository.
pub fn keys(host: &HostId) -> Result<Vec<String>, Problem> {
    let typed = complete_keys(&TYPED.map(str::to_owned), Some(host))?;
    Ok(typed.iter().map(|typed| typed.key.to_string()).collect())
}
