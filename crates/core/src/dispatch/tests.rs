use super::publish::Publishing;
use super::*;
use crate::forge::{
    Association, EventKind, ForgeEvent, Permission, Person, Pull, ReviewState, branch_item,
    issue_item, pull_item, text,
};
use crate::id::{AgentName, WorkerRole};
use crate::skill::SkillName;

fn rule(name: &str, on: &[&str]) -> Rule {
    Rule {
        name: name.to_owned(),
        when: When {
            repo: Some("acme/web".to_owned()),
            on: on
                .iter()
                .map(|kind| EventKind::parse(kind).unwrap())
                .collect(),
            authors: vec!["alice".to_owned()],
            ..When::default()
        },
        action: Action {
            agent: AgentName::known("claude"),
            role: WorkerRole::default(),
            skill: SkillName::parse("implement").unwrap(),
            fresh: false,
            args: Vec::new(),
            env: Vec::new(),
            wrap: Vec::new(),
            exclusive: false,
            timeout: None,
            caps: Caps::default(),
            reply: Reply::Nothing,
            on_close: OnClose::Finish,
            publishing: Publishing::default(),
            model: None,
        },
        goes_on: false,
    }
}

fn repo() -> Repo {
    Repo {
        name: "acme/web".to_owned(),
        forge: "home".to_owned(),
        tells_associations: true,
        never_sends: Vec::new(),
        own_account: Some("bot".to_owned()),
        bots: vec!["Renovate".to_owned(), "id:41".to_owned()],
    }
}

fn rules(rules: Vec<Rule>) -> Rules {
    Rules {
        repos: vec![repo()],
        rules,
    }
}

fn issue(kind: &str) -> ForgeEvent {
    let mut event = ForgeEvent::new(EventKind::parse(kind).unwrap(), "acme/web");
    event.item = Some(issue_item("acme/web", 6).unwrap());
    event.actor = Person::named("alice");
    event.subject_author = Some(Person::named("alice"));
    event.text_author = Some(Person::named("alice"));
    event.title = "Login fails".to_owned();
    event
}

fn pull(kind: &str) -> ForgeEvent {
    let mut event = issue(kind);
    event.item = Some(pull_item("acme/web", 9).unwrap());
    event.pull = Some(Pull {
        branch: "fix-6".to_owned(),
        base: "main".to_owned(),
        head: Some("a1".to_owned()),
        head_repo: Some("acme/web".to_owned()),
        is_fork: false,
        is_draft: false,
    });
    event
}

fn asked(event: &ForgeEvent, all: &Rules) -> Decision {
    decide(event, "home", all, &Facts::default())
}

/// The reason of the only rule.
#[track_caller]
fn why(event: &ForgeEvent, all: &Rules) -> No {
    let decision = asked(event, all);
    assert_eq!(decision.runs, [], "it runs");
    decision.verdicts[0].no.clone().unwrap()
}

#[track_caller]
fn started(decision: &Decision) -> Vec<&str> {
    decision.runs.iter().map(|run| run.rule.as_str()).collect()
}

#[test]
fn the_first_rule_that_matches_wins_unless_it_goes_on() {
    let mut first = rule("first", &["issue.opened"]);
    let other = rule("other", &["issue.comment"]);
    let last = rule("last", &["issue.opened"]);
    let event = issue("issue.opened");
    let all = rules(vec![other.clone(), first.clone(), last.clone()]);
    let decision = asked(&event, &all);
    assert_eq!(started(&decision), ["first"]);
    assert_eq!(decision.runs[0].item.as_str(), "issue:acme/web#6");
    assert_eq!(decision.runs[0].trust, Trust::Permitted);
    let kinds: Vec<Option<&str>> = decision
        .verdicts
        .iter()
        .map(|verdict| verdict.no.as_ref().map(No::kind))
        .collect();
    assert_eq!(kinds, [Some("other_event"), None, Some("earlier_rule")]);
    first.goes_on = true;
    let all = rules(vec![other, first, last]);
    assert_eq!(started(&asked(&event, &all)), ["first", "last"]);
}

#[test]
fn a_repository_that_is_not_configured_starts_nothing() {
    let mut all = rules(vec![rule("one", &["issue.opened"])]);
    all.rules[0].when.repo = None;
    let mut event = issue("issue.opened");
    assert!(
        asked(&event, &all).no.is_none(),
        "a rule for every repository"
    );
    event.repo = "acme/other".to_owned();
    let no = asked(&event, &all).no.unwrap();
    assert_eq!(no.kind(), "unknown_repository");
    // The same name on another forge is another repository.
    let decision = decide(&issue("issue.opened"), "elsewhere", &all, &Facts::default());
    assert_eq!(decision.no.unwrap().kind(), "unknown_repository");
}

#[test]
fn only_who_is_named_starts_a_run() {
    let mut one = rule("one", &["issue.comment"]);
    let mut event = issue("issue.comment");
    event.actor = Person::named("Alice");
    assert_eq!(started(&asked(&event, &rules(vec![one.clone()]))), ["one"]);
    event.actor = Person::named("mallory");
    event.text_author = Some(event.actor.clone());
    assert_eq!(
        why(&event, &rules(vec![one.clone()])).kind(),
        "not_an_author"
    );
    one.when.authors = vec!["id:7".to_owned()];
    assert_eq!(
        why(&event, &rules(vec![one.clone()])).kind(),
        "not_an_author"
    );
    event.actor.id = Some(7);
    assert_eq!(started(&asked(&event, &rules(vec![one.clone()]))), ["one"]);
    one.when.authors.clear();
    one.when.associations = vec![Association::Member];
    let all = rules(vec![one]);
    assert_eq!(why(&event, &all).kind(), "association_unknown");
    event.association = Some(Association::Contributor);
    assert_eq!(why(&event, &all).kind(), "other_association");
    event.association = Some(Association::Member);
    assert_eq!(started(&asked(&event, &all)), ["one"]);
    // The forge's own answer counts more than what the event reports.
    let facts = |permission| Facts {
        permission: Some(permission),
        ..Facts::default()
    };
    let decision = decide(&event, "home", &all, &facts(Permission::Read));
    assert_eq!(
        decision.verdicts[0].no.as_ref().unwrap().kind(),
        "not_permitted"
    );
    let decision = decide(&event, "home", &all, &facts(Permission::Write));
    assert_eq!(started(&decision), ["one"]);
}

/// A login can change hands, and a person can leave.
#[test]
fn a_named_author_whom_the_forge_does_not_let_write_starts_nothing() {
    let mut one = rule("one", &["issue.comment"]);
    let event = issue("issue.comment");
    for authors in ["alice", "id:3"] {
        one.when.authors = vec![authors.to_owned()];
        let mut event = event.clone();
        event.actor.id = Some(3);
        let all = rules(vec![one.clone()]);
        for (permission, is_run) in [
            (Some(Permission::Nothing), false),
            (Some(Permission::Read), false),
            (Some(Permission::Write), true),
            (None, true),
        ] {
            let facts = Facts {
                permission,
                ..Facts::default()
            };
            let decision = decide(&event, "home", &all, &facts);
            assert_eq!(decision.runs.len(), usize::from(is_run), "{permission:?}");
            let no = decision.verdicts[0].no.as_ref();
            let kind = (!is_run).then_some("named_not_permitted");
            assert_eq!(no.map(No::kind), kind, "{permission:?}");
            assert!(no.is_none_or(No::is_refusal));
        }
    }
}

#[test]
fn f_r15_what_tenure_did_or_wrote_starts_nothing() {
    let mut one = rule("one", &["issue.comment", "issue.labeled", "issue.opened"]);
    one.when.authors = vec!["alice".to_owned(), "bot".to_owned()];
    let all = rules(vec![one]);
    let mut event = issue("issue.comment");
    event.comment = Some("@bot go on".to_owned());
    event.actor = Person::named("Bot");
    event.text_author = Some(event.actor.clone());
    assert_eq!(asked(&event, &all).no.unwrap().kind(), "own_account");
    // By its id, after it was renamed.
    let own = Person {
        login: "old-name".to_owned(),
        id: Some(3),
        is_bot: false,
    };
    event.actor = Person {
        id: own.id,
        ..Person::named("alice")
    };
    let facts = Facts {
        own: Some(&own),
        ..Facts::default()
    };
    let decision = decide(&event, "home", &all, &facts);
    assert_eq!(decision.no.unwrap().kind(), "own_account");
    // By the marker, from any account.
    let mut event = issue("issue.comment");
    event.comment = Some(format!("done\n{}", text::MARKER));
    assert_eq!(asked(&event, &all).no.unwrap().kind(), "own_text");
    // A label that a person sets on an issue of tenure's own is a person's act.
    let mut event = issue("issue.labeled");
    event.body = format!("found a bug\n{}", text::MARKER);
    event.text_author = Some(Person::named("bot"));
    assert_eq!(started(&asked(&event, &all)), ["one"]);
}

#[test]
fn f_r15_a_bot_is_no_person_whether_the_forge_or_the_settings_say_so() {
    let mut one = rule("one", &["issue.comment"]);
    one.when.authors = vec![
        "alice".to_owned(),
        "renovate".to_owned(),
        "id:41".to_owned(),
    ];
    let all = rules(vec![one]);
    let by = |actor: Person| {
        let mut event = issue("issue.comment");
        event.text_author = Some(actor.clone());
        event.actor = actor;
        let decision = asked(&event, &all);
        assert_eq!(started(&decision), ["one"]);
        decision.by_person
    };
    let account = |login: &str, id, is_bot| Person {
        id,
        is_bot,
        ..Person::named(login)
    };
    assert!(by(account("alice", Some(3), false)));
    assert!(!by(account("alice", Some(3), true)));
    assert!(!by(account("renovate", None, false)));
    assert!(!by(account("renamed", Some(41), false)));
}

#[test]
fn an_edit_by_another_or_after_the_trigger_starts_nothing() {
    let all = rules(vec![rule("one", &["issue.edited", "issue.comment"])]);
    for kind in ["issue.edited", "issue.comment"] {
        let mut event = issue(kind);
        event.is_edit = true;
        assert_eq!(started(&asked(&event, &all)), ["one"], "{kind}");
        let facts = Facts {
            triggered_before: true,
            ..Facts::default()
        };
        let decision = decide(&event, "home", &all, &facts);
        assert_eq!(decision.no.unwrap().kind(), "edited_after_trigger");
        event.text_author = Some(Person::named("mallory"));
        assert_eq!(asked(&event, &all).no.unwrap().kind(), "edited_by_other");
    }
}

#[test]
fn each_condition_is_asked_for_and_named() {
    let all = |change: &dyn Fn(&mut When)| {
        let mut one = rule(
            "one",
            &[
                "issue.labeled",
                "issue.assigned",
                "issue.opened",
                "pr.opened",
                "pr.review_requested",
            ],
        );
        change(&mut one.when);
        rules(vec![one])
    };
    let label = all(&|when| when.label = Some("Agent".to_owned()));
    let mut event = issue("issue.opened");
    assert_eq!(why(&event, &label).kind(), "no_label");
    event.labels = vec!["agent".to_owned(), "bug".to_owned()];
    assert_eq!(started(&asked(&event, &label)), ["one"]);
    event.kind = EventKind::IssueLabeled;
    event.added = vec!["bug".to_owned()];
    assert_eq!(why(&event, &label).kind(), "other_label");
    event.added = vec!["agent".to_owned()];
    assert_eq!(started(&asked(&event, &label)), ["one"]);
    // Forgejo does not tell which label was added.
    event.added.clear();
    assert_eq!(started(&asked(&event, &label)), ["one"]);
    let facts = Facts {
        triggered_before: true,
        ..Facts::default()
    };
    let decision = decide(&event, "home", &label, &facts);
    assert_eq!(
        decision.verdicts[0].no.as_ref().unwrap().kind(),
        "label_before"
    );

    let mention = all(&|when| when.mention = Some("@bot".to_owned()));
    let mut event = issue("issue.opened");
    assert_eq!(why(&event, &mention).kind(), "no_mention");
    event.title = "@bot fix the login".to_owned();
    assert_eq!(started(&asked(&event, &mention)), ["one"]);

    let assignee = all(&|when| when.assignee = Some("bot".to_owned()));
    let mut event = issue("issue.assigned");
    event.assignees = vec!["bot".to_owned(), "alice".to_owned()];
    event.added = vec!["alice".to_owned()];
    assert_eq!(why(&event, &assignee).kind(), "no_assignee");
    event.added = vec!["bot".to_owned()];
    assert_eq!(started(&asked(&event, &assignee)), ["one"]);

    let reviewer = all(&|when| when.reviewer = Some("bot".to_owned()));
    let mut event = pull("pr.review_requested");
    assert_eq!(why(&event, &reviewer).kind(), "no_reviewer");
    event.reviewers = vec!["bot".to_owned()];
    assert_eq!(started(&asked(&event, &reviewer)), ["one"]);

    let branch = all(&|when| when.branch = Some(BranchPattern::parse("release/*").unwrap()));
    let mut event = pull("pr.opened");
    assert_eq!(why(&event, &branch).kind(), "other_branch");
    event.pull.as_mut().unwrap().base = "release/1".to_owned();
    assert_eq!(started(&asked(&event, &branch)), ["one"]);
    assert_eq!(why(&issue("issue.opened"), &branch).kind(), "no_branch");
}

#[test]
fn f_r29_code_of_others_runs_only_under_a_wrap() {
    let bare = rule("bare", &["pr.opened", "pr.comment"]);
    let mut wrapped = rule("wrapped", &["pr.opened", "pr.comment"]);
    wrapped.action.wrap = vec!["podman".to_owned(), "run".to_owned()];
    let (one, both) = (rules(vec![bare.clone()]), rules(vec![bare, wrapped]));
    let own = asked(&pull("pr.opened"), &one);
    assert_eq!(own.runs[0].trust, Trust::Permitted);
    assert_eq!(own.runs[0].head.as_deref(), Some("a1"));
    // A permitted person comments on the pull request of a stranger, on a fork, and on one of unknown origin.
    let mut stranger = pull("pr.comment");
    stranger.subject_author = Some(Person::named("mallory"));
    let mut fork = pull("pr.comment");
    fork.pull.as_mut().unwrap().is_fork = true;
    let mut unknown = pull("pr.comment");
    unknown.pull = None;
    for (event, kind) in [
        (&stranger, "foreign_code"),
        (&fork, "fork"),
        (&unknown, "unknown_code"),
    ] {
        assert_eq!(why(event, &one).kind(), kind);
        let decision = asked(event, &both);
        assert_eq!(started(&decision), ["wrapped"], "{kind}");
        assert_eq!(decision.runs[0].trust, Trust::Outside, "{kind}");
    }
    // The forge answers where it is from.
    let told = pull("pr.comment").pull;
    let facts = Facts {
        pull: told.as_ref(),
        ..Facts::default()
    };
    let decision = decide(&unknown, "home", &one, &facts);
    assert_eq!(decision.runs[0].trust, Trust::Permitted);
    // The agent's own pull request is continued.
    let mut ours = pull("pr.comment");
    ours.subject_author = Some(Person::named("bot"));
    assert_eq!(asked(&ours, &one).runs[0].trust, Trust::Permitted);
}

#[test]
fn a_closed_item_is_cleaned_up_no_matter_who_closed_it() {
    let mut stops = rule("stops", &["issue.opened"]);
    stops.action.on_close = OnClose::Stop;
    let all = rules(vec![rule("finishes", &["issue.opened"]), stops]);
    let mut event = pull("pr.merged");
    event.actor = Person::named("somebody");
    let cleanup = asked(&event, &all).cleanup.unwrap();
    assert_eq!(cleanup.item.as_str(), "pr:acme/web#9");
    assert!(cleanup.is_merged && cleanup.by_person);
    assert_eq!(cleanup.stops, ["stops"]);
    // The agent merges its own pull request: its run is not stopped.
    event.actor = Person::named("bot");
    let decision = asked(&event, &all);
    let cleanup = decision.cleanup.unwrap();
    assert!(!cleanup.by_person && cleanup.stops.is_empty());
    assert_eq!(decision.no.unwrap().kind(), "own_account");
    event.actor = Person {
        is_bot: true,
        ..Person::named("merge-queue")
    };
    assert!(!asked(&event, &all).cleanup.unwrap().by_person);
    let mut event = issue("branch.deleted");
    event.item = Some(branch_item("acme/web", "fix-6").unwrap());
    let cleanup = asked(&event, &all).cleanup.unwrap();
    assert_eq!(cleanup.item.as_str(), "branch:acme/web:fix-6");
    let reopened = asked(&issue("issue.reopened"), &all);
    assert_eq!(reopened.reopened.unwrap().as_str(), "issue:acme/web#6");
    assert_eq!(reopened.cleanup, None);
}

#[test]
fn a_reset_is_for_who_may_start_a_run() {
    let mut one = rule("one", &["issue.comment"]);
    one.when.mention = Some("@bot".to_owned());
    let all = rules(vec![one]);
    let mut event = issue("issue.comment");
    event.comment = Some("/tenure reset".to_owned());
    let decision = asked(&event, &all);
    assert_eq!(decision.reset.unwrap().as_str(), "issue:acme/web#6");
    assert_eq!(decision.runs, []);
    event.actor = Person::named("mallory");
    let decision = asked(&event, &all);
    assert_eq!(decision.reset, None);
    assert_eq!(decision.no.unwrap().kind(), "reset_refused");
    event.actor = Person::named("alice");
    event.is_edit = true;
    assert_eq!(asked(&event, &all).reset, None);
}

#[test]
fn a_stop_is_for_who_may_start_a_run() {
    let all = rules(vec![rule("one", &["issue.opened"])]);
    let mut event = issue("issue.comment");
    event.comment = Some("/tenure stop".to_owned());
    let halt = asked(&event, &all).halt.unwrap();
    assert_eq!((halt.item.as_str(), halt.rules), ("issue:acme/web#6", None));
    assert_eq!(halt.why, "alice commented /tenure stop");
    event.actor = Person::named("mallory");
    let decision = asked(&event, &all);
    assert_eq!(decision.halt, None);
    assert_eq!(decision.no.unwrap().kind(), "stop_refused");
    event.actor = Person::named("alice");
    event.is_edit = true;
    assert_eq!(asked(&event, &all).halt, None);
}

#[test]
fn unassigning_stops_what_the_assignment_started() {
    let mut assigned = rule("assigned", &["issue.assigned"]);
    assigned.when.assignee = Some("helper".to_owned());
    let all = rules(vec![assigned, rule("other", &["issue.comment"])]);
    let halted = |event: &ForgeEvent| asked(event, &all).halt.map(|halt| halt.rules);
    let mut event = issue("issue.unassigned");
    event.assignees = vec!["helper".to_owned()];
    event.removed = vec!["carol".to_owned()];
    assert_eq!(halted(&event), None, "someone else");
    event.assignees.clear();
    event.removed = vec!["Helper".to_owned()];
    let named = Some(Some(vec!["assigned".to_owned()]));
    assert_eq!(halted(&event), named);
    event.removed.clear();
    assert_eq!(halted(&event), named, "a forge that tells only who is left");
    event.removed = vec!["bot".to_owned()];
    assert_eq!(halted(&event), Some(None), "tenure's own account: all");
    event.actor = Person::named("mallory");
    assert_eq!(halted(&event), None);
}

#[test]
fn a_rule_can_ask_for_the_state_of_a_review() {
    let all = rules(vec![
        rule("merge", &["pr.approved"]),
        rule("address", &["pr.changes_requested"]),
        rule("read", &["pr.review"]),
    ]);
    let started = |event: &ForgeEvent| asked(event, &all).runs[0].rule.clone();
    let mut event = pull("pr.review");
    for (state, expected) in [
        (ReviewState::Approved, "merge"),
        (ReviewState::ChangesRequested, "address"),
        (ReviewState::Commented, "read"),
    ] {
        event.review = Some(state);
        assert_eq!(started(&event), expected);
    }
    event.review = Some(ReviewState::Approved);
    event.is_edit = true;
    assert_eq!(started(&event), "read", "an edited review approves nothing");
    let hidden = rules(vec![
        rule("read", &["pr.review"]),
        rule("merge", &["pr.approved"]),
    ]);
    assert_eq!(unreachable(&hidden).len(), 1);
    assert_eq!(unreachable(&all), []);
}

#[test]
fn a_pull_request_continues_the_issue_that_it_closes_but_not_from_a_fork() {
    let all = rules(vec![rule("one", &["pr.opened"])]);
    let link = |event: &ForgeEvent| asked(event, &all).link.map(|link| link.target.to_string());
    let mut event = pull("pr.opened");
    assert_eq!(link(&event), None);
    event.body = "Closes #6 and other/web#7".to_owned();
    assert_eq!(link(&event).as_deref(), Some("issue:acme/web#6"));
    event.body = "closes other/web#7".to_owned();
    assert_eq!(link(&event), None);
    event.pull.as_mut().unwrap().branch = "tenure/issue-4".to_owned();
    assert_eq!(link(&event).as_deref(), Some("issue:acme/web#4"));
    event.pull.as_mut().unwrap().is_fork = true;
    assert_eq!(link(&event), None);
    let mut event = pull("pr.edited");
    event.body = "Closes #6".to_owned();
    event.is_edit = true;
    assert!(link(&event).is_some());
    event.actor = Person::named("mallory");
    assert_eq!(link(&event), None);
}

#[test]
fn a_rule_that_can_never_match_is_named_with_its_reason() {
    let never = |all: &Rules| -> Vec<(usize, &'static str)> {
        let found = unreachable(all).into_iter();
        found.map(|(place, never)| (place, never.key())).collect()
    };
    let one = |change: &dyn Fn(&mut Rule)| {
        let mut one = rule("one", &["issue.opened"]);
        change(&mut one);
        rules(vec![one])
    };
    assert_eq!(never(&one(&|_| {})), []);
    for (change, key) in [
        (
            &(|rule: &mut Rule| rule.when.repo = Some("a/b".into())) as &dyn Fn(&mut Rule),
            "repo",
        ),
        (&|rule| rule.when.on.clear(), "on"),
        (&|rule| rule.when.on = vec![EventKind::Ping], "on"),
        (&|rule| rule.when.authors.clear(), "authors"),
        (&|rule| rule.when.authors = vec!["BOT".into()], "authors"),
        (&|rule| rule.when.reviewer = Some("bot".into()), "reviewer"),
        (
            &|rule| rule.when.branch = Some(BranchPattern::parse("main").unwrap()),
            "branch",
        ),
        (
            &|rule| {
                rule.when.on = vec![EventKind::Push];
                rule.when.mention = Some("@bot".into());
            },
            "mention",
        ),
    ] {
        assert_eq!(never(&one(change)), [(0, key)]);
    }
    let mut silent = one(&|rule| {
        rule.when.authors.clear();
        rule.when.associations = vec![Association::Member];
    });
    assert_eq!(never(&silent), []);
    silent.repos[0].tells_associations = false;
    assert_eq!(never(&silent), [(0, "associations")]);
    let mut unsent = one(&|_| {});
    unsent.repos[0].never_sends = vec![EventKind::IssueOpened];
    assert_eq!(never(&unsent), [(0, "on")]);
}

#[test]
fn a_rule_behind_one_that_takes_everything_is_named() {
    let wide = rule("wide", &["issue.opened", "pr.opened"]);
    let mut narrow = rule("narrow", &["issue.opened"]);
    narrow.when.label = Some("agent".into());
    let hidden = |first: &Rule, second: &Rule| {
        !unreachable(&rules(vec![first.clone(), second.clone()])).is_empty()
    };
    assert!(hidden(&wide, &narrow));
    assert!(!hidden(&narrow, &wide), "the narrow one first");
    let mut other = narrow.clone();
    other.when.authors.push("bob".into());
    assert!(!hidden(&wide, &other), "bob may start only the second");
    let mut first = wide.clone();
    first.goes_on = true;
    assert!(!hidden(&first, &narrow));
    // A wrapped rule takes what the first one refuses.
    let mut wrapped = rule("wrapped", &["pr.opened"]);
    wrapped.action.wrap = vec!["podman".into()];
    assert!(!hidden(&wide, &wrapped));
    let pattern = |text: &str| Some(BranchPattern::parse(text).unwrap());
    let (mut any, mut main) = (rule("any", &["pr.opened"]), rule("main", &["pr.opened"]));
    any.when.branch = pattern("**");
    main.when.branch = pattern("main");
    assert!(hidden(&any, &main));
    assert!(!hidden(&main, &any));
}
