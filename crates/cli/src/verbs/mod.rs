//! The verbs, one file each; none imports another. docs/adding-a-verb.md has the steps to a new one.
//!
//! Help, completions, manual pages and `schema` follow from a row of the table; tests name what is missing.

mod adopt;
mod alive;
mod answer;
mod claim;
mod claims;
mod completions;
mod config;
mod conversation;
mod demo;
mod dismiss;
pub mod dispatch;
mod doctor;
mod end;
mod export;
mod gc;
mod goto;
mod guard;
mod handoff;
mod help;
pub(crate) mod hook;
pub(crate) mod import;
mod install;
mod keeper;
pub(crate) mod lock;
mod locks;
mod log;
mod man;
pub mod mcp;
mod meta;
mod mission;
mod notify;
mod ps;
mod queue;
mod register;
mod release;
mod rename;
mod renew;
mod resume;
mod run;
mod runs;
mod schema;
pub mod serve;
mod show;
mod skill;
mod status;
pub mod statusline;
mod store;
mod table;
mod takeover;
mod tell;
mod timeline;
mod token;
mod top;
mod transcript;
mod uninstall;
mod usage;
mod verify;
mod wait;
mod watch;
mod who;
mod whoami;
mod why;

use crate::app::App;
use crate::command;
use crate::exit::Exit;
use crate::output::{Outcome, Output, put};

table::verbs! { enum Verb {
    "Inspect":
        Ps(ps) changes never, answers "sessions|remembered", shown 1, alias "sessions";
        Top(top) changes never, answers "sessions|remembered";
        Status(status) changes never, answers "status|remembered", shown 2;
        Who(who) changes never, answers "sessions";
        Whoami(whoami) changes never, answers "session";
        Show(show) changes never, answers "session";
        Goto(goto) changes known, answers "session";
        Alive(alive) changes never, answers "alive";
        Wait(wait) changes never, answers "session";
        Log(log) changes never, answers "events", shown 7;
        Usage(usage) changes never, answers "usage";
        Timeline(timeline) changes never, answers "holds|written";
        Watch(watch) changes never, answers "";
    "Work on an item":
        Claim(claim) changes claim::Args::changes, answers "claim|claims", shown 3;
        Release(release) changes known, answers "claim|spooled", shown 4;
        Renew(renew) changes known, answers "session|claim";
        Guard(guard) changes never, answers "claim|permitted";
        Handoff(handoff) changes known, answers "claim";
        Takeover(takeover) changes known, answers "claim", shown 6;
        Claims(claims) changes never, answers "claims";
        Why(why) changes never, answers "why|remembered", shown 5;
    "Locks and transcripts":
        Lock(lock) changes never, answers "lock", shown 9;
        Locks(locks) changes never, answers "locks";
        Transcript(transcript) changes transcript::Args::changes, answers "transcript";
    "Sessions":
        Register(register) changes always, answers "session";
        Adopt(adopt) changes always, answers "session";
        Resume(resume) changes never, answers "resume", shown 8;
        Dismiss(dismiss) changes known, answers "sessions";
        End(end) changes known, answers "session|spooled";
        Tell(tell) changes known, answers "session";
        Answer(answer) changes known, answers "questions|sent";
        Rename(rename) changes known, answers "session";
        Meta(meta) changes meta::Args::changes, answers "session|meta";
        Verify(verify) changes verify::Args::changes, answers "verified|openclaw";
        Hook(hook) changes never, answers "";
        Statusline(statusline) changes never, answers "statusline";
    "Work together":
        Mission(mission) changes mission::Args::changes,
            answers "participant|left|use|pointer|mission|missions|check";
    "Run agents":
        Run(run) changes always, answers "run|job";
        Runs(runs) changes runs::Args::changes, answers "run|runs|jobs";
        Queue(queue) changes queue::Args::changes, answers "job|jobs|deliveries";
        Conversation(conversation) changes conversation::Args::changes, answers "conversation|conversations|link";
        Skill(skill) changes skill::Args::changes, answers "skill|skills";
        Dispatch(dispatch) changes dispatch::Args::changes, answers "dispatch_config|dispatch_init|dispatch_status|explained|pinged|replayed|stopped";
    "Set up":
        Install(install) changes install::Args::changes, answers "agents", shown 10;
        Uninstall(uninstall) changes uninstall::Args::changes, answers "agents";
        Doctor(doctor) changes never, answers "doctor";
        Gc(gc) changes gc::Args::changes, answers "gc";
        Export(export) changes never, answers "exported";
        Import(import) changes import::Args::changes, answers "import";
        Config(config) changes never, answers "config";
        Notify(notify) changes never, answers "channels|notified";
        Store(store) changes store::Args::changes, answers "store|views|backup|restored";
        Serve(serve) changes known, answers "serving|login";
        Token(token) changes token::Args::changes, answers "api_token|api_tokens";
        Mcp(mcp) changes known, answers "";
        Keeper(keeper) changes keeper::Args::changes, answers "keeper|keeper_unit";
        Schema(schema) changes never, answers "schema";
        Completions(completions) changes never, answers "completions";
        Man(man) changes never, answers "man";
        Demo(demo) changes never, answers "demo", shown 11;
        Help(help) changes never, answers "help|exit_codes";
} }

/// How the program beside `tenure` runs the verbs that only it has.
#[derive(Clone, Copy)]
pub struct ServerVerbs {
    pub dispatch: dispatch::RunDispatch,
    pub mcp: mcp::RunMcp,
    pub serve: serve::RunServe,
}

/// What tenure starts itself as; not for people, and not part of the command line that they see.
#[derive(Debug, clap::Parser)]
#[command(name = "tenure")]
pub enum Internal {
    #[command(name = "__demo-worker")]
    Worker(demo::WorkerArgs),
    #[command(name = "__complete")]
    Complete(completions::AskArgs),
    #[command(name = "__exec")]
    Exec(command::ExecArgs),
    #[command(name = "__runner")]
    Runner(RunnerArgs),
    #[command(name = "__credential")]
    Credential(CredentialArgs),
    #[command(name = "__keeper")]
    Keeper(keeper::StageArgs),
    #[command(name = "__notify")]
    Notify(notify::StageArgs),
    #[command(name = "__webhook")]
    Webhook,
}

/// The runner's own arguments.
#[derive(Debug, clap::Args)]
pub struct RunnerArgs {
    /// The directory of the run
    #[arg(long)]
    dir: std::path::PathBuf,
}

/// What git is told to start where it needs a credential.
#[derive(Debug, clap::Args)]
pub struct CredentialArgs {
    /// The account that the token is for
    #[arg(long)]
    user: String,

    /// The file with the token
    #[arg(long)]
    file: std::path::PathBuf,

    /// What git wants
    action: String,
}

/// Runs what tenure started itself as.
pub fn run_internal(verb: &Internal, grammar: fn() -> clap::Command) -> Outcome {
    match verb {
        Internal::Complete(args) => completions::ask(args, grammar()),
        Internal::Worker(args) => demo::run_worker(args),
        Internal::Exec(args) => command::exec(args),
        Internal::Keeper(args) => keeper::run_stage(args),
        Internal::Notify(args) => notify::run_stage(args),
        Internal::Webhook => notify::run_webhook(),
        Internal::Runner(args) => {
            tenure_runs::process::main(&args.dir);
            Ok(Output::silent(Exit::DONE))
        }
        Internal::Credential(args) => {
            put(&tenure_runs::credential::answer(
                &args.user,
                &args.file,
                &args.action,
            )?)?;
            Ok(Output::silent(Exit::DONE))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs list a verb by its module; clap names it after its variant.
    #[test]
    fn a_row_has_one_name() {
        let grammar = <Verb as clap::Subcommand>::augment_subcommands(clap::Command::new("tenure"));
        let typed: Vec<&str> = grammar
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        let rows = JOBS.iter().flat_map(|(_, verbs)| verbs.iter());
        let listed: Vec<&str> = rows.map(|(name, _)| *name).collect();
        assert_eq!(
            typed, listed,
            "the module of a verb has the name of its variant"
        );
    }
}
