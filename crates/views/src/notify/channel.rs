//! Sending one event on one channel. Nothing here waits longer than its limit, and nothing is left running.

use std::io::{self, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use tenure_app::settings::notify::{ChannelKind, NotifyChannel, TerminalForm, WebhookFormat};
use tenure_host::{clock, env, pause, system};

use super::event::Notification;
use super::terminal::{self, Target};

/// How long `notify-send` may take.
const DESKTOP_LIMIT: Duration = Duration::from_secs(3);
/// How long a command, or a webhook with its repetitions, may take.
const LIMIT: Duration = Duration::from_secs(30);
/// How often a process that should end is looked at.
const STEP: Duration = Duration::from_millis(10);
/// How much is kept of what a program prints about its failure.
const MAX_SAID: u64 = 400;
/// What reaches the store, and is no business of a channel.
const HIDDEN: &[&str] = &["PGPASSWORD", "PGPASSFILE"];
/// The program that speaks over a network.
const SERVER: &str = "tenure-server";

/// What `tenure-server` sends for a webhook.
#[derive(Debug, Serialize, Deserialize)]
pub struct Post {
    pub url: String,
    pub format: WebhookFormat,
    pub secret_file: Option<std::path::PathBuf>,
    pub title: String,
    pub body: String,
    /// The event as JSON text.
    pub event: String,
}

/// Sends an event; `own` is the terminal of a watch.
pub fn send(
    channel: &NotifyChannel,
    event: &Notification,
    own: Option<&Target>,
) -> Result<(), String> {
    let event = if channel.titles {
        event.clone()
    } else {
        event.clone().without_titles()
    };
    let (title, body) = (event.headline(), event.details());
    match &channel.kind {
        ChannelKind::Command { command } => {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", command]);
            run(shell, &format!("{}\n", event.json()), LIMIT)
        }
        ChannelKind::Desktop => {
            let mut program = Command::new("notify-send");
            program.args(["--app-name=tenure", "--", &title, &escaped(&body)]);
            run(program, "", DESKTOP_LIMIT)
        }
        ChannelKind::Terminal { form } => {
            let own = own.ok_or("stderr is not a terminal")?;
            let form = match form {
                TerminalForm::Auto => own.form,
                form => *form,
            };
            let bytes = terminal::bytes(form, own.in_tmux, &title, &body, &terminal::new_id());
            terminal::write(own, &bytes)
        }
        ChannelKind::Webhook {
            url,
            format,
            secret_file,
        } => {
            let post = Post {
                url: url.clone(),
                format: *format,
                secret_file: secret_file.clone(),
                title,
                body,
                event: event.json(),
            };
            let program = env::installed().map_err(|error| error.to_string())?;
            let mut server = Command::new(program.with_file_name(SERVER));
            server.arg("__webhook");
            let post = serde_json::to_string(&post).map_err(|error| error.to_string())?;
            run(server, &post, LIMIT)
        }
    }
}

/// A body for `notify-send`, which reads escape sequences, and then markup.
fn escaped(body: &str) -> String {
    let mut text = String::new();
    for c in body.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            c => text.push(c),
        }
    }
    text
}

/// A stdin with this text. It is a file without a name: a program that does not read it holds nobody up.
pub fn stdin_with(text: &str) -> io::Result<Stdio> {
    let mut file = system::unnamed_file("event")?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

/// Runs a program with this input for at most `limit`, then kills it and what it started.
fn run(mut command: Command, input: &str, limit: Duration) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let input =
        stdin_with(input).map_err(|error| format!("cannot tell {name} the event: {error}"))?;
    for variable in HIDDEN {
        command.env_remove(variable);
    }
    let mut child = command
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot start {name}: {error}"))?;
    let end = clock::instant() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => {
                return Err(format!("{name} failed: {status}{}", said(&mut child)));
            }
            Err(error) => return Err(error.to_string()),
            Ok(None) if clock::instant() >= end => {
                kill(&mut child);
                return Err(format!("{name} took longer than {} s", limit.as_secs()));
            }
            Ok(None) => pause::sleep(STEP),
        }
    }
}

/// What a program that ended printed about it. Others may hold the pipe open, so only what is there is read.
fn said(child: &mut Child) -> String {
    let Some(pipe) = child.stderr.take() else {
        return String::new();
    };
    let mut text = Vec::new();
    let is_ready = rustix::io::ioctl_fionbio(&pipe, true).is_ok();
    if !is_ready || pipe.take(MAX_SAID).read_to_end(&mut text).is_err() {
        // What was read before is kept.
    }
    let text = String::from_utf8_lossy(&text);
    match text.trim() {
        "" => String::new(),
        text => format!(": {}", super::event::plain(text)),
    }
}

fn kill(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group
        && kill_process_group(group, Signal::KILL).is_ok()
        && child.wait().is_err()
    {
        // Somebody else has reaped it.
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_says_what_was_written_and_no_markup() {
        assert_eq!(
            escaped(r"grep '\033' <a & b>"),
            r"grep '\\033' &lt;a &amp; b&gt;"
        );
    }

    #[test]
    fn a_command_that_reads_nothing_holds_nobody_up_and_gets_no_password() {
        let long = "x".repeat(1 << 20);
        let shell = |line: &str| {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", line]).env("PGPASSWORD", "secret");
            shell
        };
        let began = clock::instant();
        assert_eq!(run(shell("sleep 0.1"), &long, LIMIT), Ok(()));
        assert!(began.elapsed() < LIMIT);
        let reads = shell("test $(wc -c) = 1048576 && test -z \"$PGPASSWORD\"");
        assert_eq!(run(reads, &long, LIMIT), Ok(()));
    }
}
