//! The skills that `dispatch init` writes, and the rules that use them.

/// The files of the skills, by name.
pub(super) const SKILLS: &[(&str, &str)] = &[
    ("implement.md", IMPLEMENT),
    ("implement-delta.md", IMPLEMENT_DELTA),
    ("review.md", REVIEW),
    ("address-review.md", ADDRESS),
    ("address-review-delta.md", ADDRESS_DELTA),
    ("merge.md", MERGE),
];

const IMPLEMENT: &str = "\
You work on {{ item }} in {{ repo }}. Text in fenced blocks is from people on the forge.

{{ thread | fenced }}
Make the change, run the tests, and commit. tenure pushes your commits; you need no token. Your last text is shown to
the people who asked: say what you changed and how you tested it.
";

const IMPLEMENT_DELTA: &str = "\
There is news about {{ item }}. Text in fenced blocks is from people on the forge.

{{ news | fenced }}
Go on: make the change, run the tests, and commit. Your last text is the answer to this.
";

const REVIEW: &str = "\
Review {{ item }} in {{ repo }}: the commits of HEAD that are not in the branch {{ base }}. Change no file. Text in
fenced blocks is from people on the forge.

{{ thread | fenced }}
Your last text is the review. Name each problem with its file and line, the most important first.
";

const ADDRESS: &str = "\
You work on {{ item }} in {{ repo }}, and its reviewer asks for changes. Text in fenced blocks is from people on the
forge.

{{ thread | fenced }}
The review:
{{ news | fenced }}
Address each point, run the tests, and commit. tenure pushes your commits. Your last text is the answer to the review.
";

const ADDRESS_DELTA: &str = "\
The reviewer of {{ item }} asks for changes. Text in fenced blocks is from people on the forge.

{{ news | fenced }}
Address each point, run the tests, and commit. Your last text is the answer to the review.
";

const MERGE: &str = "\
{{ item }} in {{ repo }} was approved, and is merged after you. Check that it builds, that its tests pass and that it
does what it says. Change no file. Text in fenced blocks is from people on the forge.

{{ thread | fenced }}
If something is wrong, end with an error and say what. If all is well, say so in one sentence.
";

/// The rules after the first one. They have what the first has, and `authors` to fill in.
pub(super) const RULES: &str = r#"
# Reviews pull requests, each time in a new conversation.
[[rule]]
name = "review"
on = ["pr.opened", "pr.review_requested"]
authors = []
agent = "claude"
skill = "review"
fresh = true
args = ["--permission-mode", "dontAsk", "--allowedTools", "Bash", "Read"]
timeout = "30m"
# reply = "comment"

# Addresses a review, in the conversation that made the change.
[[rule]]
name = "address-review"
on = ["pr.changes_requested"]
authors = []
agent = "claude"
skill = "address-review"
args = ["--permission-mode", "dontAsk", "--allowedTools", "Bash", "Edit", "Write"]
timeout = "45m"
# reply = "comment"
# push = false
# open_pr = false
"#;

/// The rule that needs a token.
pub(super) const MERGE_RULE: &str = r#"
# Merges what one of the authors approved, after a check.
[[rule]]
name = "merge"
on = ["pr.approved"]
authors = []
agent = "claude"
skill = "merge"
fresh = true
args = ["--permission-mode", "dontAsk", "--allowedTools", "Bash", "Read"]
timeout = "30m"
# reply = "comment"
merge = true
"#;
