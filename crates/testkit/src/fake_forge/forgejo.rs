//! Forgejo's paths and names: the same as GitHub's, except for lists.

use super::github::{issue, shared};
use super::http::{FakeResponse, Request};
use super::state::ForgeState;

pub(super) fn answer(state: &mut ForgeState, request: &Request) -> Option<FakeResponse> {
    let (method, parts) = request.route();
    match (method, parts.as_slice()) {
        ("GET", ["repos", "acme", "web", "issues"]) => {
            let wants_pulls = request.query.contains("type=pulls");
            let open = state
                .threads
                .iter()
                .filter(|(_, one)| one.state == "open" && one.is_pull == wants_pulls);
            FakeResponse::ok(open.map(|(number, one)| issue(*number, one)).collect())
        }
        ("POST", ["repos", "acme", "web", "pulls", number, "merge"]) => {
            if request.body["Do"] != "merge" {
                return FakeResponse::refused(422, "Do is missing");
            }
            let head = request.body["head_commit_id"].as_str();
            FakeResponse::refused(state.merge(number.parse().ok()?, head), "merge")
        }
        _ => shared(state, request),
    }
}
