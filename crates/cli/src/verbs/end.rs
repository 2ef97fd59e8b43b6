use serde_json::json;
use tenure_app::background::{self, typed};
use tenure_app::kill::EndedBy;
use tenure_app::open::Context;
use tenure_app::survivors::{self, EndedSurvivors};
use tenure_app::{keeper, kill};
use tenure_core::reason::Reason;
use tenure_core::time::Span;
use tenure_service::answer::{Class, Hint};
use tenure_service::{ActFor, Answer, Killable};

use crate::app::App;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output};
use crate::render::spooled;
use crate::survivors::ended as survivors_ended;

/// End a session and release everything it holds
///
/// Without SESSION, ends the session this command runs in. The session's process keeps running unless --kill is
/// given. Use --kill for an agent you can't reach any more because its terminal is gone; its conversation can be
/// resumed afterwards.
///
/// An agent that was killed may leave processes running. --kill-survivors lists those of a session that is over, and
/// ends each that started in the session's last life and has its TENURE_SESSION or TENURE_RUN in its environment. The
/// others are only listed.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("kills").args(["kill", "kill_survivors"]).multiple(true))]
#[command(after_help = "\
Examples:
  tenure end
  tenure end claude-k7qd --reason 'laptop was stolen'
  tenure end gemini-m3zk --kill --reason 'its window was closed'
  tenure end claude-k7qd --kill-survivors     end what it left running")]
pub struct Args {
    /// Session to end: handle, id, or a unique part of either
    #[arg(value_name = "SESSION")]
    name: Option<String>,

    /// Also kill its process (SIGTERM, then SIGKILL)
    #[arg(long, requires = "reason")]
    kill: bool,

    /// End the processes that it left running (SIGTERM, then SIGKILL)
    #[arg(long, requires = "name")]
    kill_survivors: bool,

    /// How long to wait after SIGTERM before SIGKILL
    #[arg(long, value_name = "TIME", default_value = "5s", requires = "kills")]
    grace: Span,

    /// Reason, logged (required for a session other than your own, and with --kill)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut act_for = app.act_for(args.reason.as_ref());
    if args.name.is_some() {
        act_for.session.clone_from(&args.name);
    }
    if let (true, Some(reason)) = (args.kill, &args.reason) {
        return end_and_kill(args, &act_for, reason, &mut app.open()?);
    }
    if args.kill_survivors {
        return kill_survivors(args, &act_for, &mut app.open()?);
    }
    let ended = app.open().and_then(|mut context| {
        let ended = keeper::end(&mut context, &act_for);
        ended.map_err(CliError::from)
    });
    let answer = match ended {
        Ok(answer) => answer,
        Err(failure) if act_for.session.is_none() => return spooled::end(failure),
        Err(failure) => return Err(failure),
    };
    let session = &answer.value;
    let mut text = Lines::from(format!("{} ended", session.handle));
    if let Some(kept) = background::kept_session(session) {
        let stop = typed(&kept.stop);
        text.line(format!(
            "its process is still running; run `{stop}` to end it"
        ));
    }
    Ok(Output::new("session", session, text).told(&answer))
}

fn end_and_kill(args: &Args, act_for: &ActFor, reason: &Reason, context: &mut Context) -> Outcome {
    let named = act_for.session.as_deref();
    let found: Answer<Killable> = context.service().killable(named, reason)?;
    let found = &found.value;
    refuse_kept(found)?;
    let Span(grace) = args.grace;
    let pid = found.process.pid;
    let ended_by = kill::end(&found.process, grace)?;
    let how = how(pid, ended_by);
    let answer = keeper::end_killed(context, act_for, found, &how)?;
    let session = &answer.value;
    let text = format!("{} ended: {how}", session.handle);
    let killed = json!({"pid": pid, "signal": ended_by.signal()});
    let mut output = Output::new("session", session, text).with("killed", &killed);
    if args.kill_survivors {
        let ended = survivors::end(context, act_for, grace)?;
        output.text.extend(&survivors_ended(&ended));
        output = with_survivors(output, &ended);
    }
    Ok(output.told(&answer))
}

fn kill_survivors(args: &Args, act_for: &ActFor, context: &mut Context) -> Outcome {
    let Span(grace) = args.grace;
    let ended = survivors::end(context, act_for, grace)?;
    let output = Output::new(
        "session",
        &ended.left.value.session,
        survivors_ended(&ended),
    );
    Ok(with_survivors(output, &ended).told(&ended.left))
}

fn with_survivors(output: Output, done: &EndedSurvivors) -> Output {
    let ended = done.ended.iter().map(|(one, by)| {
        json!({"pid": one.pid, "command": one.command, "since": one.since, "signal": by.signal()})
    });
    let left = done.left.value.found.iter().map(|one| &one.shown);
    output
        .with("ended", &ended.collect::<Vec<_>>())
        .with("survivors", &left.collect::<Vec<_>>())
}

/// What ended a process.
fn how(pid: u32, ended_by: EndedBy) -> String {
    match ended_by.signal() {
        Some(signal) => {
            let signal = format!("SIG{signal}");
            format!("pid {pid} ended by {signal}")
        }
        None => format!("pid {pid} had already exited"),
    }
}

/// What a service of its agent's runs is ended by the agent's own command: killed, it would be started again.
fn refuse_kept(found: &Killable) -> Result<(), CliError> {
    let session = &found.session;
    let Some(kept) = background::running(&session.agent, &found.process) else {
        return Ok(());
    };
    let message = format!(
        "{} restarts {} when it is killed",
        kept.service, session.handle
    );
    let hint = Hint::step(format!("run `{}` to end it", typed(&kept.stop)));
    Err(CliError::new(Class::Refused, "kept", message, hint))
}
