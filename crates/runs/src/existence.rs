//! The file of a conversation in the agent's own directory.

use std::path::PathBuf;

use tenure_core::conversation::Home;
use tenure_core::conversation::fitness::Existence;
use tenure_core::id::{AgentName, NativeId};
use tenure_core::run::Run;
use tenure_core::transcript;
use tenure_core::witness::StoredConversation;
use tenure_host::transcript_files;

use crate::places::{Place, PlaceAnswer};
use tenure_app::settings::Env;
use tenure_app::witness::kept;

/// The id that was chosen for a run's new conversation, if the agent created it without naming it.
pub(super) fn intended(run: &Run, home: &Home) -> Option<NativeId> {
    let intended = run.intended.clone()?;
    let kept = StoredConversation {
        agent: run.agent.clone(),
        native_id: intended.clone(),
        home: home.clone(),
    };
    let is_there = kept::look(&[kept]).first() == Some(&Existence::Present);
    is_there.then_some(intended)
}

/// The file, if there is exactly one.
pub fn file(agent: &AgentName, native_id: &NativeId, env: Env<'_>) -> Option<PathBuf> {
    let rule = transcript::layout_of(agent)?;
    let root = transcript_files::root(&rule, env)?;
    match transcript_files::find(&root, &rule, agent, native_id).as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    }
}

/// Asks a place whether its agent has a conversation, in the home inside.
pub(crate) fn ask(place: &Place, agent: &AgentName, native_id: &NativeId) -> PlaceAnswer {
    let rule = transcript::layout_of(agent);
    let (Some(rule), Some(name)) = (rule, transcript::name_pattern(agent, native_id)) else {
        return PlaceAnswer::CannotTell(
            "it keeps no files that are known by their names".to_owned(),
        );
    };
    let below = format!("{}/{}", rule.home, rule.folder);
    let least = if rule.empty_is_absent {
        "-size +0c"
    } else {
        ""
    };
    let depth = rule.depth.to_string();
    place.ask(EXISTS, &[&below, &depth, &name, least])
}

/// `$2` is the folder below the home, `$3` how deep the files may be, `$4` their name without its ending.
const EXISTS: &str = r#"[ -n "$HOME" ] && [ -d "$HOME" ] || exit 1
[ -d "$HOME/$2" ] || { echo no; exit 0; }
f=$(find "$HOME/$2" -maxdepth "$3" -type f \( -name "$4.jsonl" -o -name "$4.json" \) $5) || exit 1
if [ -n "$f" ]; then echo yes; else echo no; fi"#;
