//! Command lines, environments and what the rows say of each agent.

use tenure_agents::run::{
    Keeps, Launch, Runs, StopSignal, Untrusted, WrongArgument, check_arguments,
};
use tenure_agents::{ADAPTERS, MARKS};
use tenure_core::agent::AGENTS;
use tenure_core::id::NativeId;

use crate::captured::run_of;

fn launch<'a>(resume: Option<&'a NativeId>, intended: Option<&'a NativeId>) -> Launch<'a> {
    Launch {
        resume,
        intended,
        title: "tenure-r-1",
        dir: "/w",
        trusted: true,
        budget_usd: None,
        arguments: &[],
        prompt_file: None,
    }
}

fn line(agent: &str, launch: &Launch<'_>) -> String {
    let words = run_of(agent).command(launch);
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    words.join(" ")
}

fn id() -> NativeId {
    NativeId::parse("7f3c").expect("it is an id")
}

#[test]
fn every_agent_with_a_row_runs_unattended_or_has_no_command_line() {
    for row in ADAPTERS {
        // A gateway is not started for one run.
        let mut known = AGENTS.iter().filter(|one| one.name == row.name);
        let is_gateway = known.any(|one| one.hosts);
        assert_eq!(
            row.runs.is_none(),
            row.is_any_program || is_gateway,
            "{}: `runs` is what `tenure run` needs, in src/run/{0}.rs",
            row.name
        );
        let Some(run) = &row.runs else { continue };
        let spec = run.spec();
        if let Keeps::File = spec.keeps {
            let core = AGENTS.iter().find(|one| one.name == row.name);
            assert!(
                core.is_some_and(|core| core.transcripts.is_some()),
                "{}: no directory",
                row.name
            );
        }
        assert!(!row.is_unknown(0, ""), "{}", row.name);
    }
}

/// The prompt is nowhere on a line: it is the standard input. `f_r17`: an id of our choice only with a new
/// conversation, since Claude Code refuses both.
#[test]
fn f_r17_each_agent_is_started_and_resumed_by_its_own_line() {
    let id = id();
    let fresh = launch(None, Some(&id));
    let resume = launch(Some(&id), Some(&id));
    for (agent, started, resumed) in [
        (
            "claude",
            "claude -p --session-id 7f3c --output-format stream-json --verbose --permission-mode dontAsk --allowedTools Bash,Edit,Write,NotebookEdit",
            "claude -p --resume 7f3c --output-format stream-json --verbose --permission-mode dontAsk --allowedTools Bash,Edit,Write,NotebookEdit",
        ),
        (
            "codex",
            "codex exec --json --skip-git-repo-check --sandbox workspace-write -",
            "codex exec --json --skip-git-repo-check --sandbox workspace-write resume 7f3c -",
        ),
        (
            "gemini",
            "gemini -o stream-json --skip-trust -y --session-id 7f3c",
            "gemini -o stream-json --skip-trust -y --resume 7f3c",
        ),
        (
            "opencode",
            "opencode run --format json --title tenure-r-1",
            "opencode run --format json --dir /w --session 7f3c",
        ),
        (
            "qwen",
            "qwen -o stream-json -y --session-id 7f3c",
            "qwen -o stream-json -y --resume 7f3c",
        ),
    ] {
        assert_eq!(line(agent, &fresh), started);
        assert_eq!(line(agent, &resume), resumed);
    }
}

#[test]
fn what_the_user_decides_about_permissions_replaces_the_default() {
    for (agent, argument, absent) in [
        ("claude", "--permission-mode=plan", "dontAsk"),
        ("claude", "--dangerously-skip-permissions", "dontAsk"),
        ("claude", "--allowedTools=Read", "Bash"),
        (
            "codex",
            "--dangerously-bypass-approvals-and-sandbox",
            "workspace-write",
        ),
        ("codex", "-s", "workspace-write"),
        ("gemini", "--approval-mode", " -y"),
        ("qwen", "--approval-mode", " -y"),
    ] {
        let arguments = [argument.to_owned()];
        let launch = Launch {
            arguments: &arguments,
            ..launch(None, None)
        };
        let line = line(agent, &launch);
        assert!(line.contains(argument) && !line.contains(absent), "{line}");
    }
    let budget = Launch {
        budget_usd: Some(2.5),
        ..launch(None, None)
    };
    assert!(line("claude", &budget).contains("--max-budget-usd 2.5"));
}

#[test]
fn an_untrusted_repository_gives_no_orders() {
    let id = id();
    let untrusted = Launch {
        trusted: false,
        ..launch(Some(&id), None)
    };
    let claude = line("claude", &untrusted);
    assert!(
        claude.contains("--setting-sources user --strict-mcp-config"),
        "{claude}"
    );
    assert!(!line("claude", &launch(None, None)).contains("--setting-sources"));
    assert!(line("gemini", &untrusted).contains("--skip-trust"));
    assert!(MARKS.contains(&"GEMINI_CLI_TRUST_WORKSPACE"));
    let own = |variables: Vec<(&str, String)>| {
        let mut names = variables.into_iter().map(|(name, _)| name);
        names.any(|name| name == "GEMINI_CLI_TRUSTED_FOLDERS_PATH")
    };
    assert!(own(run_of("gemini").environment(&untrusted, &|_| None)));
    let trusted = run_of("gemini").environment(&launch(None, None), &|_| None);
    assert!(!own(trusted));
    assert!(matches!(
        run_of("gemini").spec().untrusted,
        Untrusted::UnlessOff(_)
    ));
    let variables = run_of("opencode").environment(&untrusted, &|_| None);
    let switch = ("OPENCODE_DISABLE_PROJECT_CONFIG", "1".to_owned());
    assert!(variables.contains(&switch));
    let trusted = run_of("opencode").environment(&launch(None, None), &|_| None);
    assert!(!trusted.contains(&switch));
    assert!(matches!(
        run_of("codex").spec().untrusted,
        Untrusted::Config(_)
    ));
    let qwen = line("qwen", &untrusted);
    assert!(!qwen.contains("-y"), "{qwen}");
    let allowed = "--allowed-tools run_shell_command,monitor,edit,write_file,notebook_edit -o";
    assert!(qwen.contains(allowed), "{qwen}");
    let variables = run_of("qwen").environment(&untrusted, &|_| None);
    let names: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
    assert!(names.contains(&"QWEN_CODE_TRUSTED_FOLDERS_PATH"));
    assert!(matches!(
        run_of("qwen").spec().untrusted,
        Untrusted::Machine(_)
    ));
}

#[test]
fn arguments_that_a_run_sets_itself_are_refused() {
    let check = |agent: &str, argument: &str, trusted: bool| {
        let arguments = [argument.to_owned()];
        let launch = Launch {
            arguments: &arguments,
            trusted,
            ..launch(None, None)
        };
        check_arguments(run_of(agent).spec(), &launch)
    };
    let reserved = |argument: &str| Err(WrongArgument::Reserved(argument.to_owned()));
    for (agent, argument) in [
        ("claude", "--resume"),
        ("claude", "--output-format=json"),
        ("codex", "--json"),
        ("gemini", "-o"),
        ("opencode", "--session=x"),
        ("qwen", "--continue"),
    ] {
        assert_eq!(check(agent, argument, true), reserved(argument));
    }
    assert_eq!(check("claude", "--model", true), Ok(()));
    assert_eq!(check("claude", "--resume-nothing", true), Ok(()));
    assert_eq!(check("claude", "--", true), Err(WrongArgument::Separator));
    let sources = "--setting-sources=project".to_owned();
    assert_eq!(check("claude", &sources, true), Ok(()));
    assert_eq!(
        check("claude", &sources, false),
        Err(WrongArgument::Untrusted(sources))
    );
}

#[test]
fn an_agent_is_stopped_by_the_signal_that_ends_its_tools() {
    for row in ADAPTERS {
        let Some(run) = &row.runs else { continue };
        let expected = if row.name == "codex" {
            StopSignal::Interrupt
        } else {
            StopSignal::Terminate
        };
        assert_eq!(run.spec().stop, expected, "{}", row.name);
    }
}
