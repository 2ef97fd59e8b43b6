//! Serving the dashboard and the HTTP API in the foreground.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use tenure_cli::app::App;
use tenure_cli::child::signal_exit;
use tenure_cli::exit::Exit;
use tenure_cli::lines::Lines;
use tenure_cli::output::{Outcome, Output, put, warn};
use tenure_cli::verbs::serve::Args;
use tenure_core::ignore::Ignore;
use tenure_host::env;
use tenure_web::serve::{self, Invitation, LOG_IN, Options, Place, Serving};

/// Where it listens if nothing else is said.
const PORT: u16 = 7420;

pub fn serve(args: &Args, app: &App) -> Outcome {
    // Logins are kept in memory.
    tenure_host::secrecy::hide_memory();
    tenure_host::watch::catch_signals().ignore("the server tries again, and says it");
    if args.open {
        let mut context = app.open()?;
        context.service().only_person(LOG_IN)?;
        if let Some(invitation) = serve::ask(&context)? {
            return Ok(invited(&invitation));
        }
    }
    let serving = Serving::start(&options(args))?;
    say_serving(app, &serving)?;
    if args.open {
        let invitation = serving.invite()?;
        let shown = invited(&invitation);
        if app.style.json {
            put(&json!({"v": 1, "login": invitation}).to_string())?;
        } else {
            put(shown.text.as_str())?;
        }
    }
    let signal = serving.work()?;
    let asked = [rustix::process::Signal::INT, rustix::process::Signal::TERM];
    let exit = if asked.iter().any(|one| one.as_raw() == signal) {
        Exit::DONE
    } else {
        signal_exit(signal)
    };
    Ok(Output::silent(exit))
}

fn options(args: &Args) -> Options {
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    Options {
        place: match &args.socket {
            Some(path) => Place::Socket(path.clone()),
            None => Place::Tcp(args.listen.unwrap_or(usual)),
        },
        public_url: args.public_url.clone(),
    }
}

fn say_serving(app: &App, serving: &Serving) -> Result<bool, tenure_cli::output::CliError> {
    let socket = serving.socket().map(|path| path.display().to_string());
    if app.style.json {
        let said = json!({"v": 1, "serving": {"url": serving.url(), "socket": socket}});
        return put(&said.to_string());
    }
    let line = match socket {
        Some(socket) => format!("serving {} at {socket}", serving.url()),
        None => format!("serving {}", serving.url()),
    };
    put(Lines::from(line).as_str())
}

/// Opens a browser, and shows the address for another one.
fn invited(invitation: &Invitation) -> Output {
    if let Err(why) = open_browser(&invitation.file) {
        warn(format!(
            "note: no browser was opened ({why}); use the address in one"
        ));
    }
    let text = format!("open {} (once, within a minute)", invitation.url);
    Output::new("login", invitation, text)
}

/// The browser gets the file as its argument, which other users may see; they cannot read it.
fn open_browser(file: &Path) -> std::io::Result<()> {
    let program = env::var("BROWSER").filter(|name| !name.is_empty());
    let program = program.unwrap_or_else(|| "xdg-open".into());
    let mut command = Command::new(program);
    command
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut browser = command.spawn()?;
    // Nobody waits for it: it may stay open. Its end is read so that nothing is left of it.
    std::thread::Builder::new()
        .name("browser".to_owned())
        .spawn(move || {
            browser.wait().ignore("it was not ours to wait for");
        })?;
    Ok(())
}
