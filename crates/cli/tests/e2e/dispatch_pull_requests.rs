//! From an issue to the merge: a branch, its pull request, a review, an approval. The forges are fakes that were written
//! from documentation.

use serde_json::Value;
use tenure_testkit::fake_forge::{Dialect, FakeForge, InjectedFault};
use tenure_testkit::{Env, Scripted, poll};

use crate::env;
use crate::support::forge_api::{jobs, set_up_forge};
use crate::support::git_host::git;
use crate::support::line::{SOON, text};
use crate::support::pull_events::{Forge, approval, assigned, changes_requested, opened_pull};
use crate::support::webhook::{Dispatcher, comment, issue};

/// It commits, unless it is asked to merge.
const WORKS: &str = "prompt=$(cat); echo \"$mode $prompt\" >>$dir/prompts; git rev-parse HEAD >>$dir/heads; \
     case $prompt in *Merge*) init m-1; done_ 'Checked.';; *) \
     echo x >>file; git add file; git -c user.name=a -c user.email=a@example.invalid commit -qm mine; \
     init; done_ 'Fixed.';; esac";

const RULES: &str = "push = true\nopen_pr = true\nreply = \"comment\"\n\
     [[rule]]\nname = \"address\"\non = [ADDRESS]\nauthors = [\"alice\"]\nagent = \"mine\"\nskill = \"fix\"\n\
     push = true\nopen_pr = true\nreply = \"comment\"\n\
     [[rule]]\nname = \"merge\"\non = [\"pr.approved\"]\nauthors = [\"alice\"]\nagent = \"mine\"\n\
     skill = \"merge\"\nfresh = true\nmerge = true\nreply = \"comment\"";

struct Story {
    env: Env,
    mine: Scripted,
    forge: FakeForge,
    kind: Forge,
}

impl Story {
    fn new(dialect: Dialect) -> Self {
        let env = env();
        let mine = Scripted::new(&env, "mine", WORKS);
        // GitLab sends no review that asks for changes.
        let address = match dialect {
            Dialect::GitLab => "\"pr.review_comment\"",
            _ => "\"pr.changes_requested\"",
        };
        let forge = set_up_forge(&env, dialect, "", &RULES.replace("ADDRESS", address));
        forge.state().git_dir = Some(env.dir().join("web/.git"));
        let skill = env.home().join(".config/tenure/skills/merge.md");
        std::fs::write(skill, "Merge {{ item }}.").expect("the environment is ours");
        let kind = Forge(dialect);
        Self {
            env,
            mine,
            forge,
            kind,
        }
    }

    /// The newest job of a rule, once it is over.
    #[track_caller]
    fn over(&self, rule: &str, count: usize) -> Value {
        poll(SOON, rule, || {
            let jobs = jobs(&self.env);
            let own: Vec<&Value> = jobs.iter().filter(|job| job["rule"] == rule).collect();
            let is_over = own.len() == count && own.iter().all(|job| job["state"] == "ended");
            is_over.then(|| own[0].clone())
        })
    }

    /// The number of the pull request, once there is one.
    #[track_caller]
    fn pull(&self) -> u64 {
        poll(SOON, "a pull request is opened", || {
            self.forge.state().pulls.keys().next().copied()
        })
    }

    /// The head of the branch, for the forge too.
    fn head(&self, number: u64) -> String {
        let mut state = self.forge.state();
        state.update_heads();
        state.heads[&number].commit.clone()
    }

    #[track_caller]
    fn says(&self, what: &str) {
        poll(SOON, what, || {
            let own = self.forge.own_comments();
            own.into_iter().find(|one| one.body.contains(what))
        });
    }
}

#[test]
fn a_story_from_an_issue_to_the_merge_on_every_forge() {
    for (dialect, name) in Dialect::ALL {
        let story = Story::new(dialect);
        let ann = story.env.agent("ann");
        let door = Dispatcher::start(&ann);
        story.kind.send(&door, "d-1", &story.kind.issue(6));
        let number = story.pull();
        let made = story.forge.state().pulls[&number].clone();
        assert_eq!(
            (
                made.branch.as_str(),
                made.base.as_str(),
                made.title.as_str()
            ),
            ("tenure/issue-6", "main", "Login fails (#6)"),
            "{name}"
        );
        assert!(made.body.contains("Closes #6\n"), "{name}: {}", made.body);
        assert!(made.body.contains("\nFixed.\n"), "{name}: {}", made.body);
        story.says("Pull request: https://git.example.org/acme/web/");
        let first = story.head(number);
        story
            .kind
            .send(&door, "d-2", &opened_pull(story.kind, number, &first));
        let review = changes_requested(story.kind, number, &first);
        story.kind.send(&door, "d-3", &review);
        let job = story.over("address", 1);
        assert_eq!(job["published"], "tenure/issue-6", "{name}: {job:#}");
        let second = story.head(number);
        assert_ne!(first, second, "{name}: the pull request is updated");
        assert_eq!(story.forge.state().pulls.len(), 1, "{name}");
        let approved = approval(story.kind, number, &second);
        story.kind.send(&door, "d-4", &approved);
        poll(SOON, "it is merged", || {
            (story.forge.state().threads[&number].state == "merged").then_some(())
        });
        let job = story.over("merge", 1);
        assert_eq!(job["role"], "merge", "{name}: {job:#}");
        story.says("It was merged.");
        let prompts = story.mine.wrote("prompts").expect("it ran");
        let modes: Vec<&str> = prompts
            .lines()
            .filter_map(|line| line.split(' ').next())
            .filter(|word| ["fresh", "resume"].contains(word))
            .collect();
        assert_eq!(
            modes,
            ["fresh", "resume", "fresh"],
            "{name}: the review continues, the merge is on its own"
        );
        let heads = story.mine.wrote("heads").expect("it ran");
        let heads: Vec<&str> = heads.lines().collect();
        assert_eq!(heads[1..], [first.as_str(), &second], "{name}");
    }
}

#[test]
fn a_pull_request_of_ours_continues_its_issue_though_the_event_about_it_was_lost() {
    let story = Story::new(Dialect::Forgejo);
    let ann = story.env.agent("ann");
    let door = Dispatcher::start(&ann);
    story.kind.send(&door, "d-1", &story.kind.issue(6));
    let number = story.pull();
    story.says("Pull request: https://git.example.org/acme/web/");
    let head = story.head(number);
    let review = changes_requested(story.kind, number, &head);
    story.kind.send(&door, "d-2", &review);
    story.over("address", 1);
    let prompts = story.mine.wrote("prompts").expect("it ran");
    assert!(prompts.contains("\nresume "), "{prompts}");
}

#[test]
fn a_commit_that_nobody_approved_is_not_merged() {
    let story = Story::new(Dialect::Forgejo);
    let held = "prompt=$(cat); case $prompt in *Merge*) init m-1; ready $dir/on; hold $dir/flag;; *) \
         echo x >>file; git add file; git -c user.name=a -c user.email=a@example.invalid commit -qm mine; init;; esac; done_";
    story.mine.does(held);
    story.mine.keep("flag");
    let ann = story.env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    let number = story.pull();
    let head = story.head(number);
    let approved = approval(story.kind, number, &head);
    story.kind.send(&door, "d-2", &approved);
    poll(SOON, "it runs", || story.mine.wrote("on"));
    push_something_else(&story.env);
    std::fs::remove_file(story.mine.file("flag")).expect("it is there");
    story.says("It was not merged: ");
    assert_eq!(story.forge.state().threads[&number].state, "open");
}

/// Someone pushes to the branch of the pull request.
fn push_something_else(env: &Env) {
    let repo = env.dir().join("web");
    let git = |words: &[&str]| git(&repo, words);
    let tree = git(&["rev-parse", "tenure/issue-6^{tree}"]);
    let commit = git(&["commit-tree", &tree, "-p", "tenure/issue-6", "-m", "other"]);
    git(&["update-ref", "refs/heads/tenure/issue-6", &commit]);
}

#[test]
fn a_pull_request_whose_answer_was_lost_is_found_and_not_opened_again() {
    let story = Story::new(Dialect::GitHub);
    let opens = "POST /repos/acme/web/pulls";
    story
        .forge
        .state()
        .fail(opens, 1, InjectedFault::DoneUnanswered);
    let ann = story.env.agent("ann");
    let door = Dispatcher::start(&ann);
    story.kind.send(&door, "d-1", &story.kind.issue(6));
    story.says("Pull request: https://git.example.org/acme/web/");
    assert_eq!(story.forge.asked(opens), 1);
}

#[test]
fn a_person_stops_a_run_by_a_comment_and_by_taking_the_assignment_back() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "init; ready $dir/on; hold $dir/flag; done_");
    mine.keep("flag");
    let rule = "reply = \"comment\"\n[[rule]]\nname = \"assigned\"\non = [\"issue.assigned\"]\n\
         assignee = \"helper\"\nauthors = [\"alice\"]\nagent = \"mine\"\nskill = \"fix\"";
    let forge = set_up_forge(&env, Dialect::Forgejo, "", rule);
    forge
        .state()
        .permissions
        .insert("mallory".to_owned(), "read");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let stopped = |rule: &str| {
        poll(SOON, "it is stopped", || {
            let jobs = jobs(&env);
            let job = jobs.iter().find(|job| job["rule"] == rule)?;
            (job["outcome"] == "stopped").then(|| text(&job["why"]))
        })
    };
    door.deliver("issues", "d-1", &issue(6, "opened"));
    poll(SOON, "it runs", || mine.wrote("on"));
    let (_, told) = door.deliver(
        "issue_comment",
        "d-2",
        &comment(6, 41, "mallory", "/tenure stop"),
    );
    assert_eq!(told["verdict"], "refused", "{told}");
    door.deliver(
        "issue_comment",
        "d-3",
        &comment(6, 42, "alice", "/tenure stop"),
    );
    let why = stopped("fix");
    assert!(why.contains("alice commented /tenure stop"), "{why}");
    std::fs::remove_file(mine.file("on")).expect("it ran");
    door.deliver("issues", "d-4", &assigned(7, true));
    poll(SOON, "it runs", || mine.wrote("on"));
    door.deliver("issues", "d-5", &assigned(7, false));
    let why = stopped("assigned");
    assert!(why.contains("alice removed its assignee"), "{why}");
}
