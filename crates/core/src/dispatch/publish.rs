//! Whether the result of a run may leave this machine, and under which name.
//!
//! A push to the base repository starts its CI, which has secrets, and a changed test is enough to read them. So a
//! result on top of code that no permitted person wrote is never pushed there. A result that changes what gives
//! orders (to CI, to reviewers, to git, to agents) waits for a person, unless its rule says otherwise.
//!
//! *Invariants*: the branch has our name, never one that an agent chose, and is never the base branch. What is not
//! pushed says why ([`Unpublished`]). Authors and dates of commits decide nothing: they are a claim.

use serde::{Deserialize, Serialize};

use crate::key::Key;
use crate::queue::Trust;
use crate::run::worktree;
use crate::text;

/// What a rule says about results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Publishing {
    /// Whether results are pushed at all.
    pub push: bool,
    /// Whether every result waits for a person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
    /// Whether results that change what gives orders are pushed like others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub workflows: bool,
    /// Whether a pull request is opened for a branch that was pushed, or updated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub open_pr: bool,
    /// Whether the approved commit of a pull request is merged after a run that is done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub merge: bool,
}

/// A path that differs between the commit that a run started from and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChange {
    pub path: String,
    pub kind: ChangeKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    /// A file, changed or removed; also what was removed and is not a file.
    File,
    /// A symbolic link that is new or leads elsewhere now.
    Link { target: String },
    /// A submodule that is new or at another commit now.
    Submodule,
}

/// A result, as far as the rule needs it.
#[derive(Debug, Clone, Copy)]
pub struct RunResult<'a> {
    /// The branch that it would be pushed to: [`branch`], or the branch of its pull request if that is ours.
    pub branch: &'a str,
    /// The lowest trust that its place ever had.
    pub trust: Trust,
    pub changes: &'a [PathChange],
    /// The branch that the forge merges into by default.
    pub base_branch: &'a str,
    /// Whether a person looked at it and said yes.
    pub approved: bool,
}

/// What became of the result of a run that could be published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultState {
    /// It is on this branch.
    Published(String),
    /// A person can publish it; this is why it was not.
    Waits(String),
}

/// Why a result was not pushed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unpublished {
    #[error("its rule does not push")]
    NoPush,
    #[error(
        "it contains commits of someone who may not start runs, and CI would run them with the repository's secrets"
    )]
    Outside,
    #[error("{0} is the base branch")]
    BaseBranch(String),
    #[error("its rule publishes only what a person approved")]
    Asks,
    #[error("it changes what gives orders: {}", listed(.0))]
    GivesOrders(Vec<InstructionChange>),
}

impl Unpublished {
    /// Whether a person can let it through.
    pub fn waits(&self) -> bool {
        matches!(self, Self::Asks | Self::GivesOrders(_))
    }
}

/// A change that gives orders.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstructionChange {
    #[error("{}", text::name(.0))]
    File(String),
    #[error("{} (a link out of the repository)", text::name(.0))]
    Link(String),
    #[error("{} (a submodule)", text::name(.0))]
    Submodule(String),
}

/// Whether a result is pushed, or why it is not.
pub fn publish(rule: Publishing, result: &RunResult<'_>) -> Result<(), Unpublished> {
    if !rule.push {
        return Err(Unpublished::NoPush);
    }
    if result.trust == Trust::Outside {
        return Err(Unpublished::Outside);
    }
    let branch = result.branch;
    if branch == result.base_branch {
        return Err(Unpublished::BaseBranch(branch.to_owned()));
    }
    let orders = orders(result.changes);
    if !result.approved && !rule.workflows && !orders.is_empty() {
        return Err(Unpublished::GivesOrders(orders));
    }
    if !result.approved && rule.asks {
        return Err(Unpublished::Asks);
    }
    Ok(())
}

/// The branch for the results of an item.
pub fn branch(item: &Key, repo: &str) -> String {
    worktree::branch(&worktree::slug(item, Some(repo)), false)
}

/// Whether a branch has a name that only tenure gives.
pub fn is_own_branch(branch: &str) -> bool {
    branch.starts_with("tenure/")
}

/// The changes that give orders.
pub fn orders(changes: &[PathChange]) -> Vec<InstructionChange> {
    changes.iter().filter_map(order).collect()
}

fn order(change: &PathChange) -> Option<InstructionChange> {
    let path = &change.path;
    match &change.kind {
        ChangeKind::Submodule => Some(InstructionChange::Submodule(path.clone())),
        ChangeKind::Link { target } if leaves(path, target) => {
            Some(InstructionChange::Link(path.clone()))
        }
        _ => gives_orders(path).then(|| InstructionChange::File(path.clone())),
    }
}

/// Files and directories that give orders, in any directory: some are read from each directory, and for the rest a
/// question too many is better than one too few.
const NAMES: &[&str] = &[
    // CI.
    ".buildkite",
    ".circleci",
    ".drone.yml",
    ".forgejo",
    ".gitea",
    ".github",
    ".gitlab",
    ".gitlab-ci.yml",
    ".travis.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "jenkinsfile",
    // Reviewers.
    "codeowners",
    // Git.
    ".gitattributes",
    ".gitmodules",
    ".lfsconfig",
    // Agents and editors.
    ".claude",
    ".codex",
    ".cursor",
    ".cursorrules",
    ".devcontainer",
    ".devcontainer.json",
    ".gemini",
    ".mcp.json",
    ".opencode",
    ".qwen",
    ".tenure",
    ".vscode",
    "agents.md",
    "agents.override.md",
    "claude.local.md",
    "claude.md",
    "gemini.md",
    "opencode.json",
    "opencode.jsonc",
    "qwen.md",
];

/// What such a name begins with.
const BEGINNINGS: &[&str] = &[".woodpecker"];

fn gives_orders(path: &str) -> bool {
    // Some file systems do not tell upper from lower case.
    let path = path.to_lowercase();
    path.split('/')
        .any(|part| NAMES.contains(&part) || BEGINNINGS.iter().any(|begin| part.starts_with(begin)))
}

/// Whether a link leads out of the repository, or into git's own directory.
fn leaves(path: &str, target: &str) -> bool {
    if target.starts_with('/') {
        return true;
    }
    let mut at: Vec<&str> = path.split('/').collect();
    at.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if at.pop().is_none() {
                    return true;
                }
            }
            part if part.eq_ignore_ascii_case(".git") => return true,
            part => at.push(part),
        }
    }
    false
}

/// How many changes a sentence names.
const SHOWN: usize = 10;

fn listed(orders: &[InstructionChange]) -> String {
    let mut named: Vec<String> = orders
        .iter()
        .take(SHOWN)
        .map(InstructionChange::to_string)
        .collect();
    if orders.len() > SHOWN {
        named.push(format!("{} more", orders.len() - SHOWN));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> PathChange {
        let (path, kind) = (path.to_owned(), ChangeKind::File);
        PathChange { path, kind }
    }

    fn link(path: &str, target: &str) -> PathChange {
        let target = target.to_owned();
        PathChange {
            path: path.to_owned(),
            kind: ChangeKind::Link { target },
        }
    }

    const PUSHES: Publishing = Publishing {
        push: true,
        asks: false,
        workflows: false,
        open_pr: false,
        merge: false,
    };

    fn of(rule: Publishing, trust: Trust, changes: &[PathChange]) -> Result<(), Unpublished> {
        approved_or_not(rule, trust, changes, false)
    }

    fn approved_or_not(
        rule: Publishing,
        trust: Trust,
        changes: &[PathChange],
        approved: bool,
    ) -> Result<(), Unpublished> {
        let result = RunResult {
            branch: "tenure/issue-6",
            trust,
            changes,
            base_branch: "main",
            approved,
        };
        publish(rule, &result)
    }

    #[test]
    fn a_plain_result_of_a_permitted_person_gets_a_branch_of_our_name() {
        let changes = [file("src/lib.rs"), link("docs/latest", "v2/index.md")];
        assert_eq!(of(PUSHES, Trust::Trusted, &changes), Ok(()));
        let item = Key::parse("issue:acme/web#6").unwrap();
        let own = branch(&item, "acme/web");
        assert_eq!(own, "tenure/issue-6");
        assert!(is_own_branch(&own) && !is_own_branch("fix-6"));
        assert_eq!(
            of(Publishing::default(), Trust::Trusted, &changes),
            Err(Unpublished::NoPush)
        );
    }

    #[test]
    fn what_nobody_permitted_wrote_is_pushed_nowhere_whatever_the_rule_and_a_person_say() {
        let all = Publishing {
            workflows: true,
            ..PUSHES
        };
        let got = approved_or_not(all, Trust::Outside, &[file("a")], true);
        assert_eq!(got, Err(Unpublished::Outside));
        assert!(!Unpublished::Outside.waits());
    }

    #[test]
    fn what_gives_orders_waits_for_a_person_and_is_named() {
        let orders = [
            ".github/workflows/ci.yml",
            ".forgejo/workflows/x.yml",
            ".gitea/x",
            ".gitlab-ci.yml",
            ".woodpecker.yml",
            ".woodpecker/build.yaml",
            ".circleci/config.yml",
            "Jenkinsfile",
            "docs/CODEOWNERS",
            "sub/.gitattributes",
            ".gitmodules",
            ".lfsconfig",
            "CLAUDE.md",
            "crates/core/claude.md",
            "AGENTS.md",
            ".claude/settings.json",
            ".codex/config.toml",
            ".mcp.json",
            ".tenure/skills/implement.md",
            ".vscode/tasks.json",
            ".devcontainer/devcontainer.json",
            ".GitHub/workflows/ci.yml",
        ];
        for path in orders {
            let got = of(PUSHES, Trust::Trusted, &[file("a"), file(path)]).unwrap_err();
            assert!(got.waits(), "{path}");
            assert!(got.to_string().contains(path), "{got}");
        }
        for path in [
            "src/github.rs",
            "github/workflows/x",
            "docs/agents.rs",
            "my.claude",
        ] {
            assert!(of(PUSHES, Trust::Trusted, &[file(path)]).is_ok(), "{path}");
        }
        let lifts = Publishing {
            workflows: true,
            ..PUSHES
        };
        assert!(of(lifts, Trust::Trusted, &[file(".github/x")]).is_ok());
        assert!(approved_or_not(PUSHES, Trust::Trusted, &[file(".github/x")], true).is_ok());
    }

    #[test]
    fn a_rule_that_asks_publishes_only_what_a_person_approved() {
        let asks = Publishing {
            asks: true,
            workflows: true,
            ..PUSHES
        };
        let no = of(asks, Trust::Trusted, &[file("a")]).unwrap_err();
        assert_eq!(no, Unpublished::Asks);
        assert!(no.waits());
        assert!(approved_or_not(asks, Trust::Trusted, &[file("a")], true).is_ok());
    }

    #[test]
    fn links_out_of_the_tree_and_submodules_wait() {
        let out = [
            ("a", "/etc/passwd"),
            ("a", "../secret"),
            ("a/b", "../../x"),
            ("a/b/c", "../../../x"),
            ("a", "x/../../y"),
            ("a", ".git/config"),
            ("a/b", "../.GIT/hooks/x"),
        ];
        for (path, target) in out {
            let got = of(PUSHES, Trust::Trusted, &[link(path, target)]);
            let named = Unpublished::GivesOrders(vec![InstructionChange::Link(path.to_owned())]);
            assert_eq!(got, Err(named), "{path} -> {target}");
        }
        for (path, target) in [("a/b", "../x"), ("a/b/c", "../../x"), ("a", "./b/../c")] {
            assert!(of(PUSHES, Trust::Trusted, &[link(path, target)]).is_ok());
        }
        let module = PathChange {
            path: "vendor/x".to_owned(),
            kind: ChangeKind::Submodule,
        };
        let got = of(PUSHES, Trust::Trusted, &[module]).unwrap_err();
        assert!(got.to_string().contains("vendor/x (a submodule)"), "{got}");
    }

    #[test]
    fn the_base_branch_is_never_pushed() {
        let result = RunResult {
            branch: "tenure/issue-6",
            trust: Trust::Trusted,
            changes: &[],
            base_branch: "tenure/issue-6",
            approved: true,
        };
        let no = publish(PUSHES, &result).unwrap_err();
        assert_eq!(no, Unpublished::BaseBranch("tenure/issue-6".to_owned()));
    }

    #[test]
    fn a_name_that_an_agent_chose_reaches_no_branch_and_no_terminal() {
        let item = Key::parse("branch:acme/web:a;$(id)").unwrap();
        let branch = branch(&item, "acme/web");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '/');
        assert!(branch.chars().all(is_plain), "{branch}");
        let hidden = InstructionChange::File(".github/\u{1b}[2J\u{202e}x".to_owned()).to_string();
        assert!(!hidden.contains(['\u{1b}', '\u{202e}']), "{hidden}");
    }

    #[test]
    fn a_long_list_is_cut() {
        let changes: Vec<PathChange> = (0..25).map(|n| file(&format!(".github/{n}"))).collect();
        let told = of(PUSHES, Trust::Trusted, &changes)
            .unwrap_err()
            .to_string();
        assert!(told.ends_with("15 more"), "{told}");
    }
}
