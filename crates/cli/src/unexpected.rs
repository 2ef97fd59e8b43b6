//! A panic, reported like any other error.

use std::any::Any;
use std::ffi::OsString;
use std::fmt::Display;

use tenure_service::answer::{Class, Hint};

use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{CliError, Style};
use crate::screen;
use crate::sink;

/// Tells people at once, with the place in the program, whichever thread it was.
pub fn report(info: &std::panic::PanicHookInfo<'_>) {
    // On a screen of ours nobody could read it.
    screen::give_back();
    sink::mention(told(info).as_str());
}

fn told(info: &dyn Display) -> Lines {
    let mut lines = Lines::default();
    lines.line(format!("error: tenure failed unexpectedly: {info}"));
    lines.line(format!("hint: {HINT}"));
    lines
}

/// Tells programs, which read one object whatever happens, and returns the exit code.
pub fn show(payload: &(dyn Any + Send), style: Style, arguments: &[OsString]) -> Exit {
    let failure = failure(payload, arguments);
    if style.json {
        return style.show_error(&failure).end(false);
    }
    failure.exit
}

const HINT: &str = "please report this message; no partial change was saved";

fn failure(payload: &(dyn Any + Send), arguments: &[OsString]) -> CliError {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = format!(
        "tenure failed unexpectedly: {}",
        text.unwrap_or("no message")
    );
    let mut failure = CliError::new(Class::Internal, "unexpected", message, Hint::step(HINT));
    // After `--` comes a command, to which stdout belongs.
    failure.to_stderr = arguments.iter().any(|word| word == "--");
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caught(act: fn(), words: &[&str]) -> CliError {
        let payload = std::panic::catch_unwind(act).expect_err("it panics");
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        failure(payload.as_ref(), &words)
    }

    #[test]
    fn a_panic_is_one_json_object_of_its_own_kind() {
        let acts: [fn(); 2] = [
            || panic!("seven of nine"),
            || panic!("seven of {}", std::hint::black_box("nine")),
        ];
        for act in acts {
            let failure = caught(act, &["tenure", "ps", "--json"]);
            let object = failure.object();
            assert_eq!(object["v"], 1);
            assert_eq!(object["error"]["kind"], "unexpected");
            let message = object["error"]["message"].as_str();
            assert_eq!(message, Some("tenure failed unexpectedly: seven of nine"));
            assert_eq!(object["error"]["hints"][0]["why"], HINT);
            assert_eq!(object["notices"].as_array().map(Vec::len), Some(0));
            assert_eq!((failure.exit, failure.to_stderr), (Exit(70), false));
        }
    }

    #[test]
    fn a_panic_beside_a_command_leaves_stdout_to_it() {
        let words = ["tenure", "--json", "claim", "wp:1", "--", "make"];
        assert!(caught(|| panic!("seven"), &words).to_stderr);
        let silent = caught(|| std::panic::panic_any(7), &words);
        assert!(silent.problem.message.ends_with("no message"));
    }
}
