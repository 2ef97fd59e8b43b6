//! From an order to a running agent.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::Path;

use tenure_agents::run::{Keeps, Launch, OwnFile, Untrusted, check_arguments};
use tenure_core::conversation::Home;
use tenure_core::conversation::fitness::{Existence, Left};
use tenure_core::id::{NativeId, RunId, SessionToken};
use tenure_core::ignore::Ignore;
use tenure_core::run::{Outcome, Usage};
use tenure_core::session::Workdir;
use tenure_core::text;
use tenure_core::witness::StoredConversation;
use tenure_core::world::World;
use tenure_host::git::{self, Worktree};
use tenure_host::{digest, memfd};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::view::RunView;
use tenure_service::{Begin, EndRun, PlanRequest, Planned, StartRun, StartTurn, Started};

use super::agent::{AgentProcess, Setup};
use super::environment::{self, AgentRow, OwnRow, StartedBy, Variables};
use super::log::{Bounds, Output};
use super::runner::{Runner, cannot};
use super::wait::Patience;
use super::wire::Message;
use super::{existence, listing, model, program, settle, trust, wrap};
use crate::places::{Place, PlaceAnswer};
use tenure_app::location::locks;
use tenure_app::unfinished::Unfinished;
use tenure_app::witness::kept;

/// A running agent.
pub(super) struct Begun {
    pub agent: AgentProcess,
    pub output: Output,
    pub errors: Output,
    pub begin: Begin,
    pub home: Home,
    /// What the previous run left in the same conversation.
    pub left: Option<Left>,
    /// How many times in a row the agent was parked without a stated end.
    pub parked: u32,
}

/// What a run would start with.
struct PreparedRun {
    planned: Planned,
    begin: Begin,
    workdir: Workdir,
    home: Home,
    intended: Option<NativeId>,
    prompt: String,
    /// What became of a conversation that is elsewhere.
    moved: Option<String>,
}

/// Names and values of variables.
type NamedValues = Vec<(OsString, OsString)>;

/// One process of the agent.
pub(super) struct Attempt<'a> {
    pub resume: Option<&'a NativeId>,
    pub intended: Option<&'a NativeId>,
    pub dir: &'a str,
    pub prompt: &'a str,
    pub output: &'a Output,
    pub errors: &'a Output,
}

impl Runner {
    /// Starts the agent as soon as it may start.
    pub fn begin(&mut self, window: &mut io::Stdout) -> Result<Begun, Unfinished> {
        let mut patience = Patience::new(self.order.wait(), self.own.clone());
        let output = Output::create(&self.files.output(), Bounds::OUTPUT);
        let output = output.map_err(|error| cannot("make the log", &error))?;
        let errors = Output::create(&self.files.errors(), Bounds::ERRORS);
        let errors = errors.map_err(|error| cannot("make the log", &error))?;
        if let Some(model) = &self.order.model {
            let opened = model::open(self.context.dir(), self.id.as_str(), model);
            opened.map_err(|error| cannot("open the socket to the model", &error))?;
        }
        let mut kept = None;
        loop {
            let ready = match kept.take() {
                Some(ready) => ready,
                None => self.ready()?,
            };
            let (mut agent, turn) = self.turn(&ready, &output, &errors, &mut patience)?;
            let mut started = match turn {
                StartTurn::Started(started) => started,
                StartTurn::Wait(wait) => {
                    drop(agent);
                    patience.for_turn(&mut self.context, wait)?;
                    // A turn in line is short; the start itself finds what changed meanwhile.
                    kept = Some(ready);
                    continue;
                }
                StartTurn::Held { error, watch } => {
                    drop(agent);
                    patience.wait(&mut self.context, error, &watch)?;
                    continue;
                }
                StartTurn::Settle(over) => {
                    drop(agent);
                    settle::one(&mut self.context, &over)?;
                    continue;
                }
                StartTurn::Replan => continue,
            };
            match self.release(&mut agent, started.token) {
                Ok(begun) => started.run = begun,
                Err(problem) => {
                    drop(agent);
                    self.never_began(&problem);
                    return Err(problem.into());
                }
            }
            if let Some(moved) = &ready.moved {
                self.files.note(moved);
            }
            self.tell_started(*started, ready.moved, window);
            return Ok(Begun {
                agent,
                output,
                errors,
                begin: ready.begin,
                home: ready.home,
                left: ready.planned.left,
                parked: ready.planned.parked,
            });
        }
    }

    /// What the run would start with now.
    fn ready(&mut self) -> Result<PreparedRun, Unfinished> {
        let (mut planned, mut moved) = self.plan()?;
        if let Some(current) = &planned.current
            && self.is_outside(&current.home)?
        {
            let old = text::name(&current.home.dir);
            if self.driver.runs().spec().resumes_anywhere {
                moved = Some(format!("the conversation was in {old}; it goes on here"));
            } else {
                moved = Some(format!(
                    "the conversation is in {old}, and {} resumes it only there; a new one was begun",
                    self.agent
                ));
                planned.current = None;
                planned.left = None;
            }
        }
        let existence = self.existence(&planned);
        let begin = planned.begin(existence).map_err(Problem::from)?;
        let workdir = self.workdir(&planned, &begin)?;
        if self.order.trusted && !self.order.dispatched {
            // The conversation's directory may be in another repository than the caller's.
            let found = git::worktree(Path::new(&workdir.dir));
            self.order.trusted = self.context.trusts(found.as_ref())?;
        }
        Ok(PreparedRun {
            home: self.home(&workdir.dir)?,
            intended: self.intended(&begin),
            prompt: self.prompt(begin.resumed().is_some()).to_owned(),
            moved,
            planned,
            begin,
            workdir,
        })
    }

    /// Tries to start it: its process waits, and becomes the agent only if the start is allowed.
    fn turn(
        &mut self,
        ready: &PreparedRun,
        output: &Output,
        errors: &Output,
        patience: &mut Patience,
    ) -> Result<(AgentProcess, StartTurn), Unfinished> {
        patience.looks(&mut self.context)?;
        let agent = self.start(&Attempt {
            resume: ready.begin.resumed(),
            intended: ready.intended.as_ref(),
            dir: &ready.workdir.dir,
            prompt: &ready.prompt,
            output,
            errors,
        })?;
        let request = self.request(ready, &agent)?;
        let mut service = self.context.service();
        let turn = service.start_run(&request, patience.waiting())?.value;
        Ok((agent, turn))
    }

    fn request(&self, ready: &PreparedRun, agent: &AgentProcess) -> Result<StartRun, Problem> {
        Ok(StartRun {
            id: self.id.clone(),
            begin: ready.begin.clone(),
            intended: ready.intended.clone(),
            chain: agent.chain.clone(),
            runner: self.own.clone(),
            workdir: ready.workdir.clone(),
            shares_dir: self.order.shares_dir,
            exclusive: self.order.exclusive,
            timeout: self.order.timeout(),
            trigger: self.order.trigger()?,
            goes_on: self.order.goes_on()?,
            skill: self.order.skill.clone(),
            prompt_hash: digest::sha256(ready.prompt.as_bytes()),
            log: self.files.dir().to_string_lossy().into_owned(),
            planned: ready.planned.clone(),
            job: self.order.job()?,
        })
    }

    /// What the run would continue. A dispatched run begins anew where the conversation cannot be
    /// resumed by this user, or is kept elsewhere; that is also returned in words.
    fn plan(&mut self) -> Result<(Planned, Option<String>), Problem> {
        let mut request = PlanRequest {
            agent: self.agent.clone(),
            role: self.order.role()?,
            item: self.item.clone(),
            here: self.home(self.order.dir.as_deref().unwrap_or(&self.order.here))?,
            fresh: self.order.fresh,
        };
        match self.context.service().plan_run(&request) {
            Ok(planned) => Ok((planned.value, None)),
            Err(failure) => {
                let problem = Problem::from(failure);
                if !self.order.dispatched || problem.kind != "elsewhere" {
                    return Err(problem);
                }
                request.fresh = true;
                let planned = self.context.service().plan_run(&request)?.value;
                let said = format!("{}; a new one was begun", problem.message);
                Ok((planned, Some(said)))
            }
        }
    }

    /// Whether the agent has the conversation to resume.
    fn existence(&self, planned: &Planned) -> Existence {
        match &planned.current {
            Some(current) => self.looks_for(&current.native_id, &current.home),
            None => Existence::CannotTell,
        }
    }

    pub fn looks_for(&self, native_id: &NativeId, home: &Home) -> Existence {
        if self.is_wrapped() {
            let place = self.place(Path::new(&home.dir));
            return match existence::ask(&place, &self.agent, native_id) {
                PlaceAnswer::Yes => Existence::Present,
                PlaceAnswer::No => Existence::Absent,
                PlaceAnswer::CannotTell(_) => Existence::CannotTell,
            };
        }
        if let Keeps::Listed { found, .. } = self.driver.runs().spec().keeps {
            let printed = self.listing(&home.dir);
            return printed.map_or(Existence::CannotTell, |all| found(&all, native_id));
        }
        let kept = StoredConversation {
            agent: self.agent.clone(),
            native_id: native_id.clone(),
            home: home.clone(),
        };
        let found = kept::look(&[kept]);
        found.first().copied().unwrap_or(Existence::CannotTell)
    }

    /// The agent's conversation with the title of this run, if the agent can find one by title.
    pub fn titled(&self, dir: &str) -> Option<NativeId> {
        let Keeps::Listed { titled, .. } = self.driver.runs().spec().keeps else {
            return None;
        };
        titled(&self.listing(dir)?, &title(&self.id))
    }

    /// The agent's own list of its conversations in a directory.
    fn listing(&self, dir: &str) -> Option<String> {
        let Keeps::Listed {
            command,
            apart,
            without,
            ..
        } = self.driver.runs().spec().keeps
        else {
            return None;
        };
        if self.is_wrapped() {
            return None;
        }
        let title = title(&self.id);
        let launch = Launch {
            // A list needs nothing from the repository.
            trusted: false,
            ..self.launch_of(&title, dir)
        };
        let mut variables = self.variables(&launch).ok()?;
        let own = variables.get(OsStr::new("TMPDIR")).cloned()?;
        variables.extend(apart.iter().map(|name| ((*name).into(), own.clone())));
        variables.retain(|name, _| without.iter().all(|other| name != other));
        let machine = self.context.machine();
        listing::printed(command, &variables, Path::new(dir), &self.files, machine)
    }

    /// A start in this directory.
    fn launch_of<'a>(&'a self, title: &'a str, dir: &'a str) -> Launch<'a> {
        Launch {
            resume: None,
            intended: None,
            title,
            dir,
            trusted: self.order.trusted,
            budget_usd: self.order.budget_usd,
            arguments: &self.order.arguments,
            prompt_file: None,
        }
    }

    /// The id for a new conversation, if the agent lets us choose it.
    pub fn intended(&self, begin: &Begin) -> Option<NativeId> {
        let chooses = begin.resumed().is_none() && self.driver.runs().spec().chooses_id;
        chooses.then(|| NativeId::random(self.context.machine().random()))
    }

    pub fn prompt(&self, resumes: bool) -> &str {
        if resumes {
            &self.order.prompts.resume
        } else {
            &self.order.prompts.fresh
        }
    }

    /// Starts a process that waits to become the agent.
    pub fn start(&self, attempt: &Attempt<'_>) -> Result<AgentProcess, Unfinished> {
        let runs = self.driver.runs();
        let prompt_file = self.files.prompt().to_string_lossy().into_owned();
        let title = title(&self.id);
        let launch = Launch {
            resume: attempt.resume,
            intended: attempt.intended,
            prompt_file: self.driver.wants_file().then_some(prompt_file.as_str()),
            ..self.launch_of(&title, attempt.dir)
        };
        check_arguments(runs.spec(), &launch)
            .map_err(|error| wrong_argument(&error.to_string()))?;
        let mut variables = self.variables(&launch)?;
        if !self.order.trusted {
            variables.extend(self.distrust(runs.spec().untrusted, attempt.dir)?);
        }
        let mut words = runs.command(&launch);
        let path = variables.get(std::ffi::OsStr::new("PATH"));
        let path = path.map(AsRef::as_ref);
        let dir = Path::new(attempt.dir);
        if self.is_wrapped() {
            // The agent's program is looked for inside, and its directory is set there.
            let mut wrapped = self.wrap_words(dir);
            program::resolve(&mut wrapped, path, Path::new("/"), &[])?;
            wrapped.append(&mut wrap::enter(dir));
            wrapped.push("env".into());
            wrapped.append(&mut environment::set_inside(
                &variables,
                &self.rule_variables(),
            ));
            wrapped.append(&mut words);
            words = wrapped;
        } else {
            program::resolve(&mut words, path, dir, runs.spec().program_below_script)?;
        }
        let input = self.input(attempt.prompt)?;
        let setup = Setup {
            words: &words,
            variables: &variables,
            dir: if self.is_wrapped() {
                Path::new("/")
            } else {
                dir
            },
            input,
            output: attempt.output,
            errors: attempt.errors,
        };
        Ok(AgentProcess::wait_at_gate(setup, self.context.machine())?)
    }

    pub fn is_wrapped(&self) -> bool {
        !self.order.wrap.is_empty()
    }

    /// A place as it is reached under the wrap.
    fn place(&self, dir: &Path) -> Place {
        Place {
            dir: dir.to_owned(),
            wrap: self.wrap_words(dir),
            home: Some(wrap::home(dir)),
            is_theirs: true,
        }
    }

    /// The words of the wrap, for a place.
    pub fn wrap_words(&self, dir: &Path) -> Vec<OsString> {
        let socket = model::socket(self.context.dir(), self.id.as_str());
        let shown = wrap::WrapWords {
            dir,
            socket: &socket,
            run: self.id.as_str(),
        };
        wrap::words(&self.order.wrap, &shown)
    }

    /// Keeps a repository that is not trusted from giving the agent orders: variables for that.
    fn distrust(&self, how: Untrusted, dir: &str) -> Result<NamedValues, Problem> {
        if self.is_wrapped() {
            return self.distrust_inside(how, dir);
        }
        // A place is not asked what it is.
        let is_place = self.order.place.is_some();
        let of = (!is_place).then(|| git::worktree(Path::new(dir))).flatten();
        let of = of.as_ref();
        match how {
            Untrusted::Config(file) => distrust(file, dir, of).map(|()| Vec::new()),
            Untrusted::UnlessOff(switch) => {
                trust::require_switch(&self.agent, &switch, of, &tenure_host::env::var)?;
                Ok(Vec::new())
            }
            Untrusted::Machine(settings) => {
                let dir = self.files.dir();
                let env = &tenure_host::env::var;
                trust::machine_settings(&self.agent, &settings, (dir, of), env)
            }
            Untrusted::Switches | Untrusted::NoSwitch => Ok(Vec::new()),
        }
    }

    /// The same under a wrap, in the agent's home there. Nothing of this user's settings counts inside.
    fn distrust_inside(&self, how: Untrusted, dir: &str) -> Result<NamedValues, Problem> {
        let place = self.place(Path::new(dir));
        let write = |below: &str, marker: &str, text: &str| match place
            .ask(DISTRUST, &[below, marker, text])
        {
            PlaceAnswer::Yes => Ok(()),
            PlaceAnswer::No => Err(cannot_distrust("it said no")),
            PlaceAnswer::CannotTell(why) => Err(cannot_distrust(&why)),
        };
        match how {
            Untrusted::Config(file) => {
                let name = toml::Value::String(dir.to_owned()).to_string();
                let marker = format!("[projects.{name}]");
                let text = format!("\n{marker}\ntrust_level = \"untrusted\"\n");
                write(&format!("{}/{}", file.home, file.name), &marker, &text)?;
                Ok(Vec::new())
            }
            Untrusted::Machine(settings) => {
                let below = ".tenure-machine-settings.json";
                write(below, settings.text, settings.text)?;
                let file = wrap::home(Path::new(dir)).join(below);
                Ok(vec![(settings.file.0.into(), file.into_os_string())])
            }
            Untrusted::UnlessOff(_) | Untrusted::Switches | Untrusted::NoSwitch => Ok(Vec::new()),
        }
    }

    /// The agent's standard input: the whole prompt, which is kept beside the log as well.
    fn input(&self, prompt: &str) -> Result<File, Problem> {
        let kept = tenure_host::file::write_private(&self.files.prompt(), prompt.as_bytes());
        kept.map_err(|error| cannot("keep the prompt", &error))?;
        let bytes = if self.driver.wants_file() {
            &b""[..]
        } else {
            prompt.as_bytes()
        };
        memfd::whole(self.files.dir(), bytes).map_err(|error| cannot("pass on the prompt", &error))
    }

    fn variables(&self, launch: &Launch<'_>) -> Result<Variables, Problem> {
        let temporary = environment::make_temporary(self.context.dir(), self.id.as_str());
        let temporary = temporary.map_err(|error| cannot("make a directory", &error))?;
        let runs = self.driver.runs();
        // What this user has set for the agent does not count under a wrap.
        let inherited = |name: &str| {
            let own = tenure_host::env::var(name).filter(|_| !self.is_wrapped());
            own?.into_string().ok()
        };
        let set = runs.environment(launch, &inherited);
        let set: Vec<(&str, &str)> = set
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let agent = AgentRow {
            passed: runs.spec().keys,
            set: &set,
        };
        let own = OwnRow {
            run: self.id.as_str(),
            temporary: &temporary,
            state: self.context.dir(),
            store: self.context.settings.store.as_deref(),
        };
        let theirs = environment::here();
        if self.order.dispatched {
            let rule = self.rule_variables();
            let home = wrap::home(Path::new(launch.dir));
            let by = if self.is_wrapped() {
                StartedBy::Wrap {
                    rule: &rule,
                    home: &home,
                }
            } else {
                StartedBy::Dispatcher(&rule)
            };
            return Ok(environment::made(by, &theirs, &agent, &own));
        }
        Ok(environment::made(StartedBy::Person, &theirs, &agent, &own))
    }

    /// The variables that the rule names.
    fn rule_variables(&self) -> Variables {
        let named = |name: &String| match name.split_once('=') {
            Some((name, value)) => Some((name.into(), value.into())),
            None => Some((name.into(), tenure_host::env::var(name)?)),
        };
        self.order.env.iter().filter_map(named).collect()
    }

    /// Records that the run begins, and only then lets the agent go.
    pub fn release(
        &mut self,
        agent: &mut AgentProcess,
        token: SessionToken,
    ) -> Result<RunView, Problem> {
        let begun = self.context.service().run_begins(&self.id)?.value;
        agent.release(token)?;
        Ok(begun)
    }

    /// Ends a run whose agent was never let go.
    fn never_began(&mut self, problem: &Problem) {
        let end = EndRun {
            id: self.id.clone(),
            outcome: Outcome::Failed,
            why: format!("the agent was not started: {}", problem.message),
            exit_code: None,
            left: Left::Sound,
            after: None,
            usage: Usage::default(),
            parked: None,
        };
        self.context
            .service()
            .end_run(&end)
            .ignore("the next reader finds that both of its processes are gone");
    }

    fn tell_started(&self, started: Started, moved: Option<String>, window: &mut io::Stdout) {
        let mut notes = Vec::from_iter(moved);
        if !started.released.is_empty() {
            let keys: Vec<&str> = started
                .released
                .iter()
                .map(|held| held.key.as_str())
                .collect();
            notes.push(format!(
                "{} already held {}; the run does not take it over",
                started.run.session.as_deref().unwrap_or("its session"),
                keys.join(", ")
            ));
        }
        if !started.neighbours.is_empty() {
            let dir = text::name(&started.run.dir);
            let verb = if started.neighbours.len() == 1 {
                "works"
            } else {
                "work"
            };
            let names = started.neighbours.join(", ");
            notes.push(format!("{names} also {verb} in {dir}"));
        }
        let run = Box::new(started.run);
        Message::Started { run, notes }.send(window);
    }

    /// Removes files that only the agent needed.
    pub fn clean_up(&self) {
        environment::remove_temporary(self.context.dir(), self.id.as_str())
            .ignore("the file is private, and nothing refers to it");
        model::remove(self.context.dir(), self.id.as_str()).ignore("nobody listens there any more");
    }
}

/// Adds a text to a file below the home inside, unless the file has the marker.
const DISTRUST: &str = r#"f="$HOME/$2"; mkdir -p "${f%/*}" || exit 1
grep -qF -- "$3" "$f" 2>/dev/null || printf '%s' "$4" >>"$f" || exit 1
echo yes"#;

fn cannot_distrust(why: &str) -> Problem {
    let error = io::Error::other(text::line(why).into_owned());
    cannot("keep the repository from giving the agent orders", &error)
}

/// The title by which a conversation is found if the agent did not name it.
fn title(run: &RunId) -> String {
    format!("tenure-{run}")
}

/// Marks a directory as untrusted in the agent's own settings, before it starts there.
fn distrust(file: OwnFile, dir: &str, of: Option<&Worktree>) -> Result<(), Problem> {
    match trust::own_file(file, &tenure_host::env::var) {
        Some(config) => trust::distrust_in(&config, &[dir], of, &locks()?),
        // Without a home the agent has no settings either.
        None => Ok(()),
    }
}

fn wrong_argument(message: &str) -> Problem {
    let hint = Hint::step("run the same command without it");
    Problem::new(Class::Usage, "usage", message, hint)
}
