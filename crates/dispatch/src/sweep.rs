//! What webhooks did not report: closed items, and deliveries that never arrived.
//!
//! No forge retries by itself, so a missed close would keep a conversation and its worktree
//! forever. The sweep asks about the items that are open here, and closes those that are over, as a
//! webhook would. GitHub also lists deliveries that failed, and is asked to send them again.
//!
//! *Doubt*: an item is closed only if the forge reports it as closed, or as gone while it shows the
//! rest of its repository. A branch is closed only if the forge reported it before, because a
//! branch that was never pushed does not exist there either. *Who closed it* is unknown, so no live
//! run is stopped. *Crash*: every step may be repeated.

use tenure_core::key::Key;
use tenure_core::queue::delivery::{Delivery, Verdict};
use tenure_core::store::DeliveryFilter;
use tenure_core::time::Timestamp;
use tenure_forges::api::{ApiError, ForgeApi, ItemNow, SentDelivery};
use tenure_service::answer::Problem;

use super::closing::close;
use super::config::Config;
use super::forge_config::ForgeConfig;
use tenure_app::open::Context;
use tenure_runs::places;
use tenure_runs::worktree;

/// How many times a delivery is sent in total.
const MAX_ATTEMPTS: usize = 4;
/// How far before the last sweep deliveries are checked again: their last attempt may have come
/// later.
const OVERLAP: std::time::Duration = std::time::Duration::from_secs(3600);

/// The result of a sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Items that are closed at the forge.
    pub closed: Vec<Key>,
    /// The ids of deliveries that the forge was asked to send again.
    pub again: Vec<String>,
    /// What could not be determined.
    pub missed: Vec<String>,
}

/// Asks a forge about everything that is open here. The error is the one that ended the sweep.
pub(super) fn sweep(
    context: &mut Context,
    config: &Config,
    forge: &ForgeConfig,
    api: &dyn ForgeApi,
    last: Option<Timestamp>,
) -> Result<(Swept, Option<ApiError>), Problem> {
    let mut swept = Swept::default();
    let records = worktree::records_left(context.dir()).into_iter();
    let records = records.map(|record| record.item);
    let places = places::record::all(context.dir()).into_iter();
    let records = records.chain(places.map(|(_, record)| record.item));
    let with_files: Vec<Key> = records.filter_map(|item| Key::stored(&item).ok()).collect();
    let open = context.service().open_items(&with_files)?.value;
    for repo in config.repos.iter().filter(|repo| repo.forge == forge.name) {
        let ours: Vec<&Key> = open.iter().filter(|item| is_of(item, &repo.name)).collect();
        // The forge would tell about the items of another repository that has the name.
        let identity = context.service().repository_identity(&repo.name)?.value;
        let is_doubted = identity.is_some_and(|known| known.doubt.is_some());
        let ours = if is_doubted { Vec::new() } else { ours };
        let over = match over(context, api, &repo.name, &ours)? {
            Ok(over) => over,
            Err(error @ ApiError::Limited { .. }) => return Ok((swept, Some(error))),
            Err(error) => {
                swept.missed.push(format!("{}: {error}", repo.name));
                Vec::new()
            }
        };
        for (item, is_merged) in over {
            close(context, &item, is_merged, &[])?;
            swept.closed.push(item);
        }
        match lost(context, forge, api, &repo.name, last)? {
            Ok(again) => swept.again.extend(again),
            Err(error @ ApiError::Limited { .. }) => return Ok((swept, Some(error))),
            Err(error) => swept
                .missed
                .push(format!("deliveries of {}: {error}", repo.name)),
        }
    }
    Ok((swept, None))
}

fn is_of(item: &Key, repo: &str) -> bool {
    let rest = item.rest().strip_prefix(repo);
    match item.scheme() {
        // Keys that people made up may have no number, and no forge knows those.
        "issue" | "pr" => rest
            .and_then(|rest| rest.strip_prefix('#'))
            .is_some_and(|number| number.parse::<u64>().is_ok()),
        "branch" => rest.is_some_and(|rest| rest.starts_with(':')),
        _ => false,
    }
}

type ForgeResult<T> = Result<Result<T, ApiError>, Problem>;

/// Which of these items are over, and whether they were merged.
fn over(
    context: &mut Context,
    api: &dyn ForgeApi,
    repo: &str,
    ours: &[&Key],
) -> ForgeResult<Vec<(Key, bool)>> {
    if ours.is_empty() {
        return Ok(Ok(Vec::new()));
    }
    // One request for all items, which also proves that the repository is visible.
    let open = match api.open_items(repo) {
        Ok(open) => open,
        Err(error) => return Ok(Err(error)),
    };
    let mut over = Vec::new();
    for item in ours.iter().filter(|item| !open.contains(item)) {
        let found = match item.scheme() {
            "branch" if !is_reported(context, item)? => continue,
            "branch" => {
                let branch = item.rest().strip_prefix(repo).unwrap_or_default();
                let branch = branch.trim_start_matches(':');
                api.has_branch(repo, branch).map(|is_there| {
                    if is_there {
                        ItemNow::Open
                    } else {
                        ItemNow::Gone
                    }
                })
            }
            _ => api.state(item),
        };
        match found {
            Ok(ItemNow::Open) => {}
            Ok(now) => over.push(((*item).clone(), now == ItemNow::Merged)),
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(over))
}

/// Whether a delivery about this item ever arrived.
fn is_reported(context: &mut Context, item: &Key) -> Result<bool, Problem> {
    let filter = DeliveryFilter {
        item: Some(item.clone()),
        limit: 1,
        ..DeliveryFilter::default()
    };
    Ok(!context.service().find_deliveries(&filter)?.value.is_empty())
}

/// Requests redelivery of a repository's lost deliveries; returns their ids.
fn lost(
    context: &mut Context,
    forge: &ForgeConfig,
    api: &dyn ForgeApi,
    repo: &str,
    last: Option<Timestamp>,
) -> ForgeResult<Vec<String>> {
    let since = last.map_or_else(String::new, |at| at.minus(OVERLAP).to_string());
    let path = format!("/hooks/{}", forge.name);
    let sent = match api.deliveries(repo, &path, &since) {
        Ok(Some(sent)) => sent,
        Ok(None) => return Ok(Ok(Vec::new())),
        Err(error) => return Ok(Err(error)),
    };
    let mut again: Vec<String> = Vec::new();
    // Newest first; they are sent again in their original order.
    for one in sent.iter().rev() {
        let same: Vec<&SentDelivery> = sent.iter().filter(|other| other.id == one.id).collect();
        let is_settled = same.iter().any(|other| other.arrived)
            || same.len() >= MAX_ATTEMPTS
            || again.contains(&one.id);
        if is_settled || is_stored(context, forge, &one.id)? {
            continue;
        }
        if let Err(error) = api.redeliver(repo, one) {
            return Ok(Err(error));
        }
        again.push(one.id.clone());
    }
    Ok(Ok(again))
}

/// Whether a delivery with this id led to something here, whatever answer the forge got.
fn is_stored(context: &mut Context, forge: &ForgeConfig, id: &str) -> Result<bool, Problem> {
    let like = Delivery {
        id: 0,
        endpoint: forge.name.clone(),
        delivery_id: Some(id.to_owned()),
        content_key: None,
        body_hash: None,
        received_at: Timestamp(0),
        event: String::new(),
        repo: None,
        item: None,
        author: None,
        verdict: Verdict::Ignored,
        rule: None,
        why: String::new(),
        job: None,
    };
    Ok(context.service().is_known_delivery(&like)?.value)
}
