//! A systemd user unit for people who want the keeper to run before any agent.

use std::path::Path;

/// The text of the unit for this program.
pub fn unit(program: &Path) -> String {
    format!(
        "[Unit]\n\
         Description=tenure keeper: answers for the agents of this machine on a shared store\n\
         After=network-online.target\n\
         \n\
         [Service]\n\
         ExecStart={program} keeper\n\
         ExecStop={program} keeper stop\n\
         Restart=on-failure\n\
         RestartSec=2\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        program = program.display(),
    )
}
