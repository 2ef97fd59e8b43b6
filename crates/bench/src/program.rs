//! The programs that are compared, and how long one run of them takes.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Failed;

/// The executables, all built the same way.
#[derive(Debug, Clone)]
pub struct Programs {
    pub tenure: PathBuf,
    /// A program that does nothing.
    pub empty: PathBuf,
    /// The hand-written SQLite.
    pub bare: PathBuf,
    /// The least that a hook can be.
    pub floor: PathBuf,
    /// The bare listener for deliveries.
    pub listener: PathBuf,
    /// This one, for workers.
    pub own: PathBuf,
}

impl Programs {
    pub fn find() -> Result<Self, Failed> {
        let own = std::env::current_exe()?;
        let beside = |name: &str| -> Result<PathBuf, Failed> {
            let path = own.with_file_name(name);
            if path.is_file() {
                return Ok(path);
            }
            Err(format!("{} is missing; run scripts/bench", path.display()).into())
        };
        Ok(Self {
            tenure: beside("tenure")?,
            empty: beside("bench-empty")?,
            bare: beside("bench-bare")?,
            floor: beside("bench-floor")?,
            listener: beside("bench-listener")?,
            own: own.clone(),
        })
    }
}

/// Where programs run: a private home, a state directory, and a git worktree to work in.
#[derive(Debug, Clone)]
pub struct Surroundings {
    home: PathBuf,
    state: PathBuf,
    work: PathBuf,
}

impl Surroundings {
    /// Makes home and worktree below `root`, for this state directory.
    pub fn make(root: &Path, state: &Path) -> Result<Self, Failed> {
        let (home, work) = (root.join("home"), root.join("work"));
        fs_err::create_dir_all(&home)?;
        fs_err::create_dir_all(work.join(".git/objects"))?;
        fs_err::create_dir_all(work.join(".git/refs"))?;
        fs_err::write(work.join(".git/HEAD"), "ref: refs/heads/main\n")?;
        fs_err::write(
            work.join(".git/config"),
            "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://github.com/acme/web.git\n",
        )?;
        Ok(Self {
            home,
            state: state.to_owned(),
            work,
        })
    }

    /// Fails if an event was not recorded here: a hook that gives up is a fast one.
    pub fn check_outages(&self) -> Result<(), Failed> {
        let log = self.outages();
        match fs_err::read_to_string(&log) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.into()),
            Ok(lines) => {
                let count = lines.lines().count();
                let last = lines.lines().last().unwrap_or_default();
                Err(format!("{count} events were not recorded, the last: {last}").into())
            }
        }
    }

    fn outages(&self) -> PathBuf {
        self.state.join("outages.log")
    }

    /// A run of a program here.
    pub fn call<A: Into<String>>(
        &self,
        program: &Path,
        args: impl IntoIterator<Item = A>,
    ) -> ProgramCall {
        ProgramCall {
            program: program.to_owned(),
            args: args.into_iter().map(Into::into).collect(),
            around: self.clone(),
            env: Vec::new(),
            stdin: None,
        }
    }
}

/// One program with its arguments.
#[derive(Debug, Clone)]
pub struct ProgramCall {
    program: PathBuf,
    args: Vec<String>,
    around: Surroundings,
    env: Vec<(&'static str, String)>,
    stdin: Option<PathBuf>,
}

impl ProgramCall {
    #[must_use]
    pub fn env(mut self, name: &'static str, value: String) -> Self {
        self.env.push((name, value));
        self
    }

    /// Gives it a file to read.
    #[must_use]
    pub fn stdin(mut self, file: &Path) -> Self {
        self.stdin = Some(file.to_owned());
        self
    }

    /// The command, with nothing of our own environment but PATH.
    pub fn command(&self) -> Result<Command, Failed> {
        self.under(&[])
    }

    /// The command, run by another program that is given it as its last arguments.
    pub fn under(&self, wrapper: &[OsString]) -> Result<Command, Failed> {
        let mut command = match wrapper.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        let input = match &self.stdin {
            Some(file) => fs_err::File::open(file)?.into_file().into(),
            None => Stdio::null(),
        };
        command
            .args(&self.args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.around.home)
            .env("TENURE_HOME", &self.around.state)
            .env("LANG", "C.UTF-8")
            .current_dir(&self.around.work)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(input)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(command)
    }

    /// The size of the list of events that were not recorded where it runs.
    pub fn outages(&self) -> u64 {
        std::fs::metadata(self.around.outages()).map_or(0, |meta| meta.len())
    }

    /// Runs it and says how long that took, from before its start until after its end.
    pub fn timed(&self) -> Result<Duration, Failed> {
        let mut command = self.command()?;
        let began = Instant::now();
        let status = command.spawn().and_then(|mut child| child.wait());
        let took = began.elapsed();
        match status {
            Ok(status) if status.success() => Ok(took),
            Ok(status) => Err(self.explain(&status.to_string())),
            Err(error) => Err(self.explain(&error.to_string())),
        }
    }

    /// Runs it for what it does.
    pub fn run(&self) -> Result<(), Failed> {
        self.timed().map(|_| ())
    }

    fn explain(&self, what: &str) -> Failed {
        let said = self
            .command()
            .and_then(|mut command| Ok(command.stderr(Stdio::piped()).output()?));
        let said = match said {
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        format!("{self}: {what}; run again it says: {said}").into()
    }
}

impl fmt::Display for ProgramCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.program.display(), self.args.join(" "))
    }
}
