//! The state directory as many processes, and odd ones, find it.

use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use tenure_host::state_dir::StateDir;

use crate::child::{Owned, again, answers};

#[test]
fn processes_that_start_at_once_agree_on_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/tenure");
    let task = format!("open {}", path.display());
    let children: Vec<Owned> = (0..32)
        .map(|_| {
            Owned(
                again(&["env"], &task)
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap(),
            )
        })
        .collect();
    let mut hosts: Vec<String> = Vec::new();
    for mut child in children {
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut child.0.stdout.take().unwrap(), &mut text).unwrap();
        let status = child.0.wait().unwrap();
        let output = std::process::Output {
            status,
            stdout: text,
            stderr: Vec::new(),
        };
        assert!(status.success());
        hosts.extend(answers(&output));
    }
    assert_eq!(hosts.len(), 32);
    hosts.dedup();
    assert_eq!(hosts, [StateDir::open(&path).unwrap().host().to_string()]);
    let left: Vec<_> = std::fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["host-id"]);
}

#[test]
fn no_umask_changes_the_modes() {
    for umask in ["0000", "0077", "0777"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tenure");
        let script = format!("umask {umask} && exec \"$@\"");
        let output = again(
            &["sh", "-c", &script, "sh"],
            &format!("open {}", path.display()),
        )
        .output()
        .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(
            std::fs::metadata(&path).unwrap().mode() & 0o7777,
            0o700,
            "{umask}"
        );
        assert_eq!(
            std::fs::metadata(path.join("host-id")).unwrap().mode() & 0o7777,
            0o600,
            "{umask}"
        );
    }
}
