//! Which files and directories exist, in bounded time.
//!
//! A file server that does not answer blocks its caller for minutes or forever. So a thread checks,
//! and the caller continues when the time is up: a path whose state is still unknown counts as
//! existing. The thread is left until the process exits. *Not covered*: on a kernel where a waiting
//! thread cannot be killed, the process stays.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use crate::clock;

/// How long checking all paths together may take.
const PATIENCE: Duration = Duration::from_millis(200);

/// Whether each exists; yes if unknown.
pub fn of(paths: &[String]) -> Vec<bool> {
    asked(paths, PATIENCE, |path| {
        Path::new(path).try_exists().unwrap_or(true)
    })
}

fn asked(
    paths: &[String],
    patience: Duration,
    look: impl Fn(&str) -> bool + Send + 'static,
) -> Vec<bool> {
    let mut found = vec![true; paths.len()];
    let (tell, told) = mpsc::channel();
    let asked = paths.to_vec();
    let thread = std::thread::Builder::new().spawn(move || {
        for path in &asked {
            if tell.send(look(path)).is_err() {
                return;
            }
        }
    });
    if thread.is_err() {
        return found;
    }
    let until = clock::instant() + patience;
    for one in &mut found {
        let left = until.saturating_duration_since(clock::instant());
        match told.recv_timeout(left) {
            Ok(is_there) => *one = is_there,
            Err(_) => break,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exists_is_told_from_what_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().display().to_string();
        let paths = [here.clone(), format!("{here}/none"), here];
        assert_eq!(of(&paths), [true, false, true]);
        assert_eq!(of(&[]), [true; 0]);
    }

    /// Opening a pipe without a writer blocks forever, like a dead file server.
    #[test]
    fn a_path_that_does_not_answer_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let paths = [
            "/none".to_owned(),
            pipe.display().to_string(),
            "/none".into(),
        ];
        let opens = |path: &str| fs_err::File::open(path).is_ok();
        assert_eq!(
            asked(&paths, Duration::from_millis(100), opens),
            [false, true, true]
        );
    }
}
