//! What was seen of a run so far, line by line.
//!
//! Bounded whatever the agent writes: texts are cut, names are counted beyond a few. The same lines give the same
//! result, so that a log can be read again after a crash. Times are shown only.

use crate::id::NativeId;
use crate::run::Usage;
use crate::run::failure::{AgentFailure, ErrorClass};
use crate::run::line::{Final, RunLine, Spent, SpentBy, Tokens};
use crate::text;
use crate::time::Timestamp;

/// Steps in a row without a result after which a run is in a loop.
pub const LOOP_AFTER: u32 = 25;

/// The answer is kept up to this many bytes.
pub const MAX_ANSWER: usize = 1 << 20;

/// Names of denied tools that are kept.
const MAX_DENIED: usize = 20;

/// Characters that are kept of what an agent does or waits for.
const MAX_SHOWN: usize = 200;

/// What a conversation had used in all when a run began.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Totals {
    pub tokens: Option<Tokens>,
    pub cost_usd: Option<f64>,
}

impl Totals {
    /// Before the first turn.
    pub const NOTHING: Totals = Totals {
        tokens: Some(Tokens {
            input: 0,
            output: 0,
        }),
        cost_usd: Some(0.0),
    };
}

/// Waiting for the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitReport {
    pub since: Timestamp,
    pub why: String,
}

/// A usage limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// When it is over, if the provider reports it in a field of its own.
    pub resets_at: Option<Timestamp>,
}

/// Everything that a run's lines reported.
#[derive(Debug, Clone, PartialEq)]
pub struct RunProgress {
    before: Totals,
    totals: Totals,
    first_id: Option<NativeId>,
    last_id: Option<NativeId>,
    turn_began: bool,
    model_answered: bool,
    tools: u64,
    denials: u64,
    denied: Vec<String>,
    doing: Option<String>,
    answer: String,
    answer_is_open: bool,
    used: Totals,
    steps: u32,
    idle_steps: u32,
    tool_in_step: bool,
    waiting: Option<WaitReport>,
    limit: Option<Limit>,
    problem: Option<AgentFailure>,
    failure: Option<AgentFailure>,
    last: Option<Final>,
    unreadable: u64,
}

impl RunProgress {
    /// Nothing yet; `before` is what the conversation had used, [`Totals::NOTHING`] for a new one.
    pub fn new(before: Totals) -> Self {
        Self {
            before,
            totals: Totals::default(),
            first_id: None,
            last_id: None,
            turn_began: false,
            model_answered: false,
            tools: 0,
            denials: 0,
            denied: Vec::new(),
            doing: None,
            answer: String::new(),
            answer_is_open: false,
            used: Totals::default(),
            steps: 0,
            idle_steps: 0,
            tool_in_step: false,
            waiting: None,
            limit: None,
            problem: None,
            failure: None,
            last: None,
            unreadable: 0,
        }
    }

    /// Takes the next line, which came at `at`.
    pub fn feed(&mut self, line: RunLine, at: Timestamp) {
        match line {
            RunLine::Named(id) => {
                self.first_id.get_or_insert_with(|| id.clone());
                self.last_id = Some(id);
            }
            RunLine::TurnBegan => {
                self.turn_began = true;
                self.last = None;
            }
            RunLine::Thought => self.progress(),
            RunLine::Tool { what } => {
                self.progress();
                self.tools += 1;
                self.tool_in_step = true;
                self.answer_is_open = false;
                self.doing = Some(text::clipped(&what, MAX_SHOWN));
            }
            RunLine::Denied { what } => {
                self.denials += 1;
                self.deny(what);
            }
            RunLine::Text { text, part } => {
                self.progress();
                self.doing = None;
                self.say(&text, part);
            }
            RunLine::WaitsForProvider { why } => {
                self.turn_began = true;
                let why = text::clipped(&why, MAX_SHOWN);
                let since = self.waiting.as_ref().map_or(at, |waiting| waiting.since);
                self.waiting = Some(WaitReport { since, why });
            }
            RunLine::StepEnded {
                finished,
                used_tokens,
            } => self.step(finished, used_tokens),
            RunLine::Spent(spent) => self.count(spent),
            RunLine::Limit { resets_at } => self.limit = Some(Limit { resets_at }),
            RunLine::Problem(failure) => self.failed(failure),
            RunLine::Failure(failure) => {
                self.waiting = None;
                self.failure = Some(failure);
            }
            RunLine::Final(mut last) => {
                self.waiting = None;
                if let Some(text) = &mut last.text {
                    text.truncate(cut(text, MAX_ANSWER));
                }
                self.doing = None;
                // Some agents write their own error as text of the model, too.
                let told = last.error.as_ref().map(|error| error.text.as_str());
                if told.is_some_and(|told| !told.is_empty() && told == self.answer.trim()) {
                    self.answer.clear();
                }
                for what in &last.denied {
                    self.deny(what.clone());
                }
                let listed = u64::try_from(last.denied.len()).unwrap_or(u64::MAX);
                self.denials = self.denials.max(listed);
                self.last = Some(last);
            }
            RunLine::Unreadable => self.unreadable += 1,
        }
    }

    /// The model works: what it waited for and what went wrong before is over.
    fn progress(&mut self) {
        self.turn_began = true;
        self.model_answered = true;
        self.waiting = None;
        self.limit = None;
        self.problem = None;
    }

    fn deny(&mut self, what: String) {
        if self.denied.len() < MAX_DENIED && !self.denied.contains(&what) {
            self.denied.push(what);
        }
    }

    fn say(&mut self, text: &str, part: bool) {
        if !(part && self.answer_is_open) {
            self.answer.clear();
        }
        self.answer_is_open = part;
        let end = cut(text, MAX_ANSWER - self.answer.len());
        self.answer.push_str(&text[..end]);
    }

    fn step(&mut self, finished: bool, used_tokens: bool) {
        self.turn_began = true;
        self.steps = self.steps.saturating_add(1);
        // A tool that ran is work, even if the provider gives no reason for the end of its answer.
        if self.tool_in_step || (finished && used_tokens) {
            self.idle_steps = 0;
        } else {
            self.idle_steps += 1;
        }
        self.tool_in_step = false;
        if finished {
            self.progress();
        }
    }

    fn count(&mut self, spent: Spent) {
        match spent.of {
            SpentBy::Step => {
                self.used.tokens = merged(self.used.tokens, spent.tokens, Tokens::plus);
                self.used.cost_usd = merged(self.used.cost_usd, spent.cost_usd, |a, b| a + b);
            }
            SpentBy::Run => {
                self.used.tokens = spent.tokens.or(self.used.tokens);
                self.used.cost_usd = spent.cost_usd.or(self.used.cost_usd);
            }
            SpentBy::Conversation => {
                self.totals.tokens = spent.tokens.or(self.totals.tokens);
                self.totals.cost_usd = spent.cost_usd.or(self.totals.cost_usd);
            }
        }
    }

    /// A class that comes after a failed final event is more exact than that event: it is from the agent's files.
    fn failed(&mut self, failure: AgentFailure) {
        let known = failure.class != ErrorClass::Other;
        if let Some(error) = self.last.as_mut().and_then(|last| last.error.as_mut())
            && known
        {
            error.class = failure.class;
        }
        self.problem = Some(failure);
    }

    /// The id that the agent named last.
    pub fn id(&self) -> Option<&NativeId> {
        self.last_id.as_ref()
    }

    /// Whether the agent named more than one id.
    pub fn id_changed(&self) -> bool {
        self.first_id != self.last_id
    }

    pub fn turn_began(&self) -> bool {
        self.turn_began
    }

    /// How many lines could not be read.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// How many tools were called, refused calls included.
    pub fn tools(&self) -> u64 {
        self.tools
    }

    /// The tools that were refused; only some of them if there are many.
    pub fn denied(&self) -> &[String] {
        &self.denied
    }

    /// Whether tools were refused and none ran.
    pub fn was_only_denied(&self) -> bool {
        self.denials > 0 && self.tools <= self.denials
    }

    /// The tool that runs, as far as the stream shows it.
    pub fn doing(&self) -> Option<&str> {
        self.doing.as_deref()
    }

    pub fn waiting(&self) -> Option<&WaitReport> {
        self.waiting.as_ref()
    }

    /// Whether the model is asked again and again without a result.
    pub fn loops(&self) -> bool {
        self.idle_steps >= LOOP_AFTER
    }

    pub fn final_event(&self) -> Option<&Final> {
        self.last.as_ref()
    }

    /// Whether the agent reported success and the model answered at least once.
    pub fn succeeded(&self) -> bool {
        let says_so = |last: &Final| last.ok && last.turns != Some(0);
        self.last.as_ref().is_some_and(says_so) && self.model_answered && self.failure.is_none()
    }

    /// The answer: what the final event reports, else the model's last text.
    pub fn answer(&self) -> Option<&str> {
        let last = self.last.as_ref().and_then(|last| last.text.as_deref());
        let said = Some(self.answer.as_str());
        last.or(said).filter(|text| !text.is_empty())
    }

    /// An error that stands by itself, whatever the exit: the final event's, else one that rules success out.
    pub fn settled_error(&self) -> Option<&AgentFailure> {
        let last = self.last.as_ref().and_then(|last| last.error.as_ref());
        let exact = |failure: &&AgentFailure| failure.class != ErrorClass::Other;
        let failed = self.last.as_ref().is_some_and(|last| !last.ok);
        let problem = self.problem.as_ref().filter(|_| failed);
        last.filter(exact)
            .or(self.failure.as_ref().filter(exact))
            .or(problem.filter(exact))
            .or(last)
            .or(self.failure.as_ref())
    }

    /// An error that counts when the agent ended by itself without a final event.
    pub fn open_error(&self) -> Option<&AgentFailure> {
        self.problem.as_ref()
    }

    /// The usage limit that the model did not answer after.
    pub fn limit(&self) -> Option<Limit> {
        self.limit
    }

    /// What this run used, as far as the agent reports it.
    pub fn usage(&self) -> Usage {
        let tokens = self.tokens();
        Usage {
            turns: self.turns().map(u64::from),
            tokens_in: tokens.map(|tokens| tokens.input),
            tokens_out: tokens.map(|tokens| tokens.output),
            cost: self.cost_usd(),
        }
    }

    fn turns(&self) -> Option<u32> {
        let counted = self.last.as_ref().and_then(|last| last.turns);
        counted.or((self.steps > 0).then_some(self.steps))
    }

    fn tokens(&self) -> Option<Tokens> {
        let counted = self.totals.tokens.zip(self.before.tokens);
        let counted = counted.map(|(now, before)| now.since(before));
        self.used.tokens.or(counted)
    }

    fn cost_usd(&self) -> Option<f64> {
        let difference = |(now, before): (f64, f64)| if now < before { now } else { now - before };
        let counted = self.totals.cost_usd.zip(self.before.cost_usd);
        self.used.cost_usd.or(counted.map(difference))
    }

    /// What the conversation has used in all, for the next run of it.
    pub fn totals(&self) -> Totals {
        self.totals
    }
}

/// Where a text is cut that may have so many bytes.
fn cut(text: &str, most: usize) -> usize {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

fn merged<T>(a: Option<T>, b: Option<T>, both: impl Fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(both(a, b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1000)
    }

    fn seen(lines: Vec<RunLine>) -> RunProgress {
        let mut seen = RunProgress::new(Totals::NOTHING);
        for line in lines {
            seen.feed(line, at(0));
        }
        seen
    }

    fn text(text: &str, part: bool) -> RunLine {
        let text = text.to_owned();
        RunLine::Text { text, part }
    }

    fn tool(what: &str) -> RunLine {
        let what = what.to_owned();
        RunLine::Tool { what }
    }

    #[test]
    fn the_answer_is_the_last_text() {
        let parts = vec![
            text("I look.", true),
            tool("ls"),
            text("All ", true),
            text("good", true),
        ];
        assert_eq!(seen(parts).answer(), Some("All good"));
        let whole = vec![text("one", false), text("two", false)];
        assert_eq!(seen(whole.clone()).answer(), Some("two"));
        let mut with_final = whole;
        with_final.push(RunLine::Final(Final::success(Some("three".into()))));
        assert_eq!(seen(with_final).answer(), Some("three"));
        assert_eq!(seen(vec![]).answer(), None);
    }

    #[test]
    fn an_endless_answer_is_cut() {
        let mut seen = seen(vec![]);
        for _ in 0..5 {
            seen.feed(text(&"ä".repeat(MAX_ANSWER / 3), true), at(0));
        }
        let answer = seen.answer().unwrap().len();
        assert!((MAX_ANSWER - 1..=MAX_ANSWER).contains(&answer), "{answer}");
        let long = Final::success(Some("ä".repeat(MAX_ANSWER)));
        seen.feed(RunLine::Final(long), at(0));
        assert!(seen.answer().unwrap().len() <= MAX_ANSWER);
    }

    #[test]
    fn an_error_that_the_agent_writes_as_text_is_not_the_answer() {
        let error = |text: &str| AgentFailure::new(ErrorClass::Server, text);
        let ended = |said: &str, told: &str| {
            let last = RunLine::Final(Final::failed(error(told)));
            let seen = seen(vec![text(said, false), last]);
            seen.answer().map(str::to_owned)
        };
        assert_eq!(ended("[API Error: 500]", "[API Error: 500]"), None);
        let other = ended("half of it", "[API Error: 500]");
        assert_eq!(other.as_deref(), Some("half of it"));
    }

    #[test]
    fn waiting_counts_from_its_first_line_and_ends_with_an_answer() {
        let waits = |why: &str| RunLine::WaitsForProvider { why: why.into() };
        let mut seen = seen(vec![]);
        seen.feed(waits("500"), at(10));
        seen.feed(waits("529"), at(40));
        let waiting = seen.waiting().unwrap();
        assert_eq!((waiting.since, waiting.why.as_str()), (at(10), "529"));
        seen.feed(text("hello", false), at(50));
        assert_eq!(seen.waiting(), None);
        seen.feed(waits("500"), at(60));
        assert_eq!(seen.waiting().unwrap().since, at(60));
    }

    #[test]
    fn steps_without_a_reason_or_without_anything_done_are_a_loop() {
        let step = |finished, used_tokens| RunLine::StepEnded {
            finished,
            used_tokens,
        };
        for idle in [step(false, false), step(true, false), step(false, true)] {
            let mut seen = seen(vec![]);
            for _ in 1..LOOP_AFTER {
                seen.feed(idle.clone(), at(0));
            }
            assert!(!seen.loops(), "{idle:?}");
            seen.feed(idle.clone(), at(0));
            assert!(seen.loops(), "{idle:?}");
        }
    }

    #[test]
    fn steps_that_run_tools_are_no_loop_whatever_their_reason() {
        let step = RunLine::StepEnded {
            finished: false,
            used_tokens: false,
        };
        let mut seen = seen(vec![]);
        for _ in 0..4 * LOOP_AFTER {
            seen.feed(tool("make"), at(0));
            seen.feed(step.clone(), at(0));
            assert!(!seen.loops());
        }
    }

    #[test]
    fn a_step_that_does_something_breaks_the_row() {
        let idle = RunLine::StepEnded {
            finished: false,
            used_tokens: false,
        };
        let with_tool = RunLine::StepEnded {
            finished: true,
            used_tokens: false,
        };
        let mut seen = seen(vec![]);
        for _ in 0..10 {
            for _ in 1..LOOP_AFTER {
                seen.feed(idle.clone(), at(0));
            }
            seen.feed(tool("ls"), at(0));
            seen.feed(with_tool.clone(), at(0));
            assert!(!seen.loops());
        }
    }

    #[test]
    fn usage_is_this_runs() {
        let tokens = |input, output| Some(Tokens { input, output });
        let spent = |of, tokens, cost_usd| {
            RunLine::Spent(Spent {
                of,
                tokens,
                cost_usd,
            })
        };
        let used = |before: Totals, lines: Vec<RunLine>| {
            let mut seen = RunProgress::new(before);
            for line in lines {
                seen.feed(line, at(0));
            }
            let usage = seen.usage();
            (usage.tokens_in, usage.tokens_out, usage.cost)
        };
        let thread =
            |input, output| vec![spent(SpentBy::Conversation, tokens(input, output), None)];
        let before = Totals {
            tokens: tokens(30, 15),
            cost_usd: Some(0.5),
        };
        assert_eq!(used(before, thread(40, 20)), (Some(10), Some(5), None));
        // Compacted.
        assert_eq!(used(before, thread(20, 10)), (Some(20), Some(10), None));
        let unknown = Totals::default();
        assert_eq!(used(unknown, thread(40, 20)), (None, None, None));
        assert_eq!(
            used(Totals::NOTHING, thread(40, 20)),
            (Some(40), Some(20), None)
        );
        let cost = vec![spent(SpentBy::Conversation, None, Some(0.75))];
        assert_eq!(used(before, cost), (None, None, Some(0.25)));
        let steps = vec![spent(SpentBy::Step, tokens(10, 5), Some(0.5)); 3];
        assert_eq!(used(before, steps), (Some(30), Some(15), Some(1.5)));
        let run = vec![spent(SpentBy::Run, tokens(7, 3), Some(0.1))];
        assert_eq!(used(before, run), (Some(7), Some(3), Some(0.1)));
        assert_eq!(used(Totals::NOTHING, vec![]), (None, None, None));
    }

    #[test]
    fn an_id_that_changes_is_noticed_and_the_last_one_counts() {
        let id = |text: &str| NativeId::parse(text).unwrap();
        let mut seen = seen(vec![RunLine::Named(id("a")), RunLine::Named(id("a"))]);
        assert!(!seen.id_changed());
        seen.feed(RunLine::Named(id("b")), at(0));
        assert!(seen.id_changed());
        assert_eq!(seen.id(), Some(&id("b")));
    }

    #[test]
    fn a_new_turn_voids_the_final_event_before_it() {
        let done = RunLine::Final(Final::success(None));
        let mut seen = seen(vec![RunLine::TurnBegan, RunLine::Thought, done]);
        assert!(seen.succeeded());
        seen.feed(RunLine::TurnBegan, at(0));
        assert!(!seen.succeeded());
    }
}
