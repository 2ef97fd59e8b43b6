//! Prompt templates: a small part of Jinja that always terminates and stays within bounds.
//!
//! A template may print variables, filter them, choose (`if`) and repeat (`for`). It cannot include
//! other templates, call functions, use macros or combine values, because repeated concatenation
//! doubles a text with each step. So no value is larger than the input, each step costs fuel, and
//! the output is limited to `MOST_OUTPUT`. A value is plain text: template syntax in it is not
//! interpreted.
//!
//! A variable that is not set is an error with its name and line. The engine's syntax tree of a
//! template is checked before anything is compiled, because compiling folds constants, which could
//! allocate without limit.

use std::collections::BTreeMap;
use std::io;

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt};
use minijinja::machinery::{Span, Token, WhitespaceConfig, parse, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};
use tenure_core::run::prompt;

/// The largest template.
pub const MOST_TEMPLATE: u64 = 1 << 20;
/// The largest prompt that is rendered.
const MOST_OUTPUT: usize = 1 << 20;
/// Instructions of the engine; a loop over 10,000 lines needs less than half.
const FUEL: u64 = 500_000;
/// The engine parses chains of operators and of `elif` recursively, so a long chain would exhaust
/// the stack.
const MOST_TOKENS: usize = 300;
const MOST_ELIFS: usize = 60;

/// The variables of a template.
pub type Variables = BTreeMap<String, String>;

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Counted from one; none if it concerns the whole template.
    pub line: Option<usize>,
    pub what: String,
    /// The variable that is not set.
    pub variable: Option<String>,
}

impl Fault {
    fn at(line: usize, what: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            what: what.into(),
            variable: None,
        }
    }
}

/// Renders a template.
pub fn render(source: &str, variables: &Variables) -> Result<String, Fault> {
    check_chains(source)?;
    let tree = parse(source, "skill", SyntaxConfig, spaces()).map_err(|error| syntax(&error))?;
    let mut names = Names::default();
    names.statement(&tree)?;
    let environment = environment();
    let template = environment.template_from_str(source);
    let template = template.map_err(|error| syntax(&error))?;
    let mut out = Bounded(Vec::new());
    match template.render_captured_to(variables, &mut out) {
        Ok(_) => Ok(String::from_utf8_lossy(&out.0).into_owned()),
        Err(error) => Err(failed(&error, source, &names, variables)),
    }
}

fn spaces() -> WhitespaceConfig {
    WhitespaceConfig {
        keep_trailing_newline: true,
        lstrip_blocks: true,
        trim_blocks: true,
    }
}

/// The engine with only the functions that a template may call.
fn environment<'a>() -> Environment<'a> {
    let mut environment = Environment::empty();
    let WhitespaceConfig {
        keep_trailing_newline,
        lstrip_blocks,
        trim_blocks,
    } = spaces();
    environment.set_keep_trailing_newline(keep_trailing_newline);
    environment.set_lstrip_blocks(lstrip_blocks);
    environment.set_trim_blocks(trim_blocks);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    environment.set_debug(true);
    environment.add_filter("default", |value: &Value, other: &Value| {
        if value.is_undefined() {
            other.clone()
        } else {
            value.clone()
        }
    });
    environment.add_filter("fenced", |text: String| prompt::fenced(&text));
    environment.add_filter("length", |text: String| text.chars().count());
    environment.add_filter("lines", |text: String| -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    });
    environment.add_filter("lower", |text: String| text.to_lowercase());
    environment.add_filter("trim", |text: String| text.trim().to_owned());
    environment.add_filter("upper", |text: String| text.to_uppercase());
    environment.add_test("defined", |value: &Value| !value.is_undefined());
    environment.add_test("undefined", Value::is_undefined);
    environment
}

/// Refuses a template whose tags are too long for the engine's parser.
fn check_chains(source: &str) -> Result<(), Fault> {
    let (mut tokens, mut elifs, mut is_first) = (0, 0, false);
    for read in tokenize(source, false, SyntaxConfig, spaces()) {
        let (token, span) = read.map_err(|error| syntax(&error))?;
        let line = usize::from(span.start_line);
        match token {
            Token::VariableStart | Token::BlockStart => {
                tokens = 0;
                is_first = true;
                continue;
            }
            Token::Ident("elif") if is_first => elifs += 1,
            _ => {}
        }
        is_first = false;
        tokens += 1;
        if tokens > MOST_TOKENS {
            return Err(Fault::at(
                line,
                format!("a tag has more than {MOST_TOKENS} parts"),
            ));
        }
        if elifs > MOST_ELIFS {
            return Err(Fault::at(
                line,
                format!("there are more than {MOST_ELIFS} elif branches"),
            ));
        }
    }
    Ok(())
}

/// The variables that a template names.
#[derive(Default)]
struct Names {
    /// Each with its position.
    named: Vec<(String, Span)>,
    /// Those that a loop sets.
    bound: Vec<String>,
}

impl Names {
    /// Checks a statement; refuses anything outside the supported language.
    fn statement(&mut self, statement: &Stmt<'_>) -> Result<(), Fault> {
        match statement {
            Stmt::Template(all) => self.statements(&all.children),
            Stmt::EmitRaw(_) => Ok(()),
            Stmt::EmitExpr(emit) => self.expression(&emit.expr),
            Stmt::IfCond(choice) => {
                self.expression(&choice.expr)?;
                self.statements(&choice.true_body)?;
                self.statements(&choice.false_body)
            }
            Stmt::ForLoop(each) if !each.recursive => {
                self.bind(&each.target);
                self.expression(&each.iter)?;
                if let Some(condition) = &each.filter_expr {
                    self.expression(condition)?;
                }
                self.statements(&each.body)?;
                self.statements(&each.else_body)
            }
            Stmt::ForLoop(each) => Err(unavailable(each.span(), "for … recursive")),
            Stmt::WithBlock(block) => Err(unavailable(block.span(), "with")),
            Stmt::Set(set) => Err(unavailable(set.span(), "set")),
            Stmt::SetBlock(block) => Err(unavailable(block.span(), "set")),
            Stmt::AutoEscape(block) => Err(unavailable(block.span(), "autoescape")),
            Stmt::FilterBlock(block) => Err(unavailable(block.span(), "filter")),
            Stmt::Do(call) => Err(unavailable(call.span(), "do")),
        }
    }

    fn bind(&mut self, target: &Expr<'_>) {
        self.bound.push("loop".to_owned());
        match target {
            Expr::Var(name) => self.bound.push(name.id.to_owned()),
            Expr::List(list) => list.items.iter().for_each(|one| self.bind(one)),
            _ => {}
        }
    }

    fn statements(&mut self, all: &[Stmt<'_>]) -> Result<(), Fault> {
        all.iter().try_for_each(|one| self.statement(one))
    }

    fn expression(&mut self, expression: &Expr<'_>) -> Result<(), Fault> {
        match expression {
            Expr::Const(_) => Ok(()),
            Expr::Var(name) => {
                self.named.push((name.id.to_owned(), name.span()));
                Ok(())
            }
            Expr::UnaryOp(one) => self.expression(&one.expr),
            Expr::BinOp(two) => {
                if let Some(sign) = sign(two.op) {
                    return Err(unavailable(two.span(), sign));
                }
                self.expression(&two.left)?;
                self.expression(&two.right)
            }
            Expr::Compare(compare) => {
                self.expression(&compare.expr)?;
                compare
                    .ops
                    .iter()
                    .try_for_each(|op| self.expression(&op.expr))
            }
            Expr::IfExpr(choice) => {
                self.expression(&choice.test_expr)?;
                self.expression(&choice.true_expr)?;
                choice
                    .false_expr
                    .as_ref()
                    .map_or(Ok(()), |other| self.expression(other))
            }
            Expr::Filter(filter) => {
                if let Some(of) = &filter.expr {
                    self.expression(of)?;
                }
                self.arguments(&filter.args)
            }
            Expr::Test(test) => {
                self.expression(&test.expr)?;
                self.arguments(&test.args)
            }
            Expr::GetAttr(part) => self.expression(&part.expr),
            Expr::GetItem(part) => {
                self.expression(&part.expr)?;
                self.expression(&part.subscript_expr)
            }
            // Lists of lists grow with each level of a loop; a list of constants has a fixed
            // length.
            Expr::List(list) if list.as_const().is_some() => Ok(()),
            Expr::List(list) => Err(unavailable(list.span(), "a list with variables in it")),
            Expr::Map(map) => Err(unavailable(map.span(), "{…}")),
            Expr::Slice(slice) => Err(unavailable(slice.span(), "[…:…]")),
            Expr::Call(call) => Err(unavailable(call.span(), "a call")),
        }
    }

    fn arguments(&mut self, all: &[CallArg<'_>]) -> Result<(), Fault> {
        all.iter().try_for_each(|one| match one {
            CallArg::Pos(value)
            | CallArg::Kwarg(_, value)
            | CallArg::PosSplat(value)
            | CallArg::KwargSplat(value) => self.expression(value),
        })
    }

    /// The variable that is not set, by the part of the source where the engine stopped. That part
    /// may be only the filter after the variable.
    fn missing_at(&self, part: &std::ops::Range<usize>, variables: &Variables) -> Option<&str> {
        let is_missing =
            |name: &String| !variables.contains_key(name) && !self.bound.contains(name);
        let before = |span: &Span| (span.start_offset as usize) < part.end;
        let inside = |span: &Span| part.contains(&(span.start_offset as usize));
        let missing = || self.named.iter().filter(|(name, _)| is_missing(name));
        let found = missing().find(|(_, span)| inside(span));
        let found = found.or_else(|| missing().rfind(|(_, span)| before(span)));
        found.map(|(name, _)| name.as_str())
    }
}

/// The sign of an operator that combines values or calculates; none for one that only compares.
fn sign(op: BinOpKind) -> Option<&'static str> {
    match op {
        BinOpKind::Eq
        | BinOpKind::Ne
        | BinOpKind::Lt
        | BinOpKind::Lte
        | BinOpKind::Gt
        | BinOpKind::Gte
        | BinOpKind::ScAnd
        | BinOpKind::ScOr
        | BinOpKind::In => None,
        BinOpKind::Add => Some("+"),
        BinOpKind::Sub => Some("-"),
        BinOpKind::Mul => Some("*"),
        BinOpKind::Div => Some("/"),
        BinOpKind::FloorDiv => Some("//"),
        BinOpKind::Rem => Some("%"),
        BinOpKind::Pow => Some("**"),
        BinOpKind::Concat => Some("~"),
    }
}

fn unavailable(span: Span, what: &str) -> Fault {
    let what = format!("{what} is not available in skills; they have if, for and filters");
    Fault::at(usize::from(span.start_line), what)
}

fn syntax(error: &Error) -> Fault {
    Fault {
        line: error.line(),
        what: detail(error),
        variable: None,
    }
}

fn detail(error: &Error) -> String {
    let detail = error.detail().map(str::to_owned);
    detail.unwrap_or_else(|| error.kind().to_string())
}

fn failed(error: &Error, source: &str, names: &Names, variables: &Variables) -> Fault {
    let (what, variable) = match error.kind() {
        ErrorKind::UndefinedError => {
            let part = error
                .range()
                .filter(|part| source.get(part.clone()).is_some());
            let part = part.unwrap_or(0..source.len());
            let written = source[part.clone()].to_owned();
            let name = names.missing_at(&part, variables).map(str::to_owned);
            let name = name.unwrap_or(written);
            (format!("the variable {name} is not set"), Some(name))
        }
        ErrorKind::OutOfFuel => ("it takes too many steps".to_owned(), None),
        ErrorKind::WriteFailure => ("its text is longer than 1 MiB".to_owned(), None),
        _ => (detail(error), None),
    };
    Fault {
        line: error.line(),
        what,
        variable,
    }
}

/// Accepts output up to the size limit of a prompt.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_OUTPUT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(source: &str, variables: &[(&str, &str)]) -> Result<String, Fault> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        render(source, &variables.iter().map(own).collect())
    }

    fn fault(source: &str) -> Fault {
        with(source, &[("a", "x"), ("b", "y")]).unwrap_err()
    }

    #[test]
    fn variables_choices_and_loops_are_rendered() {
        let source = "# {{ title | trim }}\n{% if kind == 'bug' or kind in ['fix'] %}\nBug.\n{% else %}\nOther.\n{% endif %}\n{% for line in body|lines %}\n- {{ loop.index }} {{ line | upper }}\n{% endfor %}\n";
        let text = with(
            source,
            &[("title", " T "), ("kind", "fix"), ("body", "a\nb")],
        );
        assert_eq!(text.unwrap(), "# T\nBug.\n- 1 A\n- 2 B\n");
        assert_eq!(
            with(
                "{{ x | default('none') }}{% if x is defined %}no{% endif %}",
                &[]
            )
            .unwrap(),
            "none"
        );
        assert_eq!(
            with("{{ a | length }}{{ a | lower }}", &[("a", "ÄB")]).unwrap(),
            "2äb"
        );
        assert_eq!(with("", &[]).unwrap(), "");
    }

    #[test]
    fn text_that_looks_like_a_template_stays_text() {
        let value = "{{ secret }} {% include '/etc/passwd' %} {# x #} <b>&";
        let text = with("{{ body }}", &[("body", value), ("secret", "s3cret")]).unwrap();
        assert_eq!(text, value);
        let fenced = with("x {{ body | fenced }} y", &[("body", "a\n```\n@b")]).unwrap();
        assert_eq!(fenced, "x \n````\na\n```\n@\u{200b}b\n````\n y");
    }

    #[test]
    fn a_variable_that_is_not_set_is_named_with_its_line() {
        for (source, line) in [
            ("one\ntwo {{ missing }}", 2),
            ("{{ a }}\n\n{{ missing | upper }}", 3),
            ("{% if a == missing %}x{% endif %}", 1),
            ("{% if missing %}x{% endif %}", 1),
            ("\n{% for x in missing %}{{ x }}{% endfor %}", 2),
            ("{{ a | default(missing) | upper }}\n{{ missing.part }}", 2),
            (
                "{% for x in a|lines %}{{ x|upper }}{{ missing|upper }}{% endfor %}",
                1,
            ),
        ] {
            let found = fault(source);
            assert_eq!(
                found.variable.as_deref(),
                Some("missing"),
                "{source}: {found:?}"
            );
            assert_eq!(
                (found.what.as_str(), found.line),
                ("the variable missing is not set", Some(line)),
                "{source}"
            );
        }
    }

    #[test]
    fn what_could_grow_or_reach_elsewhere_is_refused_with_its_line() {
        for source in [
            "{% set x = a %}",
            "{% set x %}{{ a }}{% endset %}",
            "{% with x = a %}{{ x }}{% endwith %}",
            "{% include 'x' %}",
            "{% import 'x' as y %}",
            "{% extends 'x' %}",
            "{% macro x() %}{% endmacro %}",
            "{% filter upper %}x{% endfilter %}",
            "{% autoescape true %}x{% endautoescape %}",
            "{% for x in a recursive %}{% endfor %}",
            "{{ a ~ a }}",
            "{{ a + a }}",
            "{{ 'x' * 1000000000000 }}",
            "{{ 9 ** 9 ** 9 }}",
            "{{ range(9) }}",
            "{{ a.upper() }}",
            "{{ [a, a] }}",
            "{{ {'x': a} }}",
            "{{ a[0:1] }}",
            "{% for x in 'abc' ~ a %}{% endfor %}",
            "{% if a is defined and b ~ a %}{% endif %}",
            "{{ a | default(a ~ a) }}",
            "{{ a | nothing }}",
            "{{ a is nothing }}",
        ] {
            let found = fault(&format!("\n{source}"));
            assert_eq!(found.line, Some(2), "{source}: {found:?}");
            assert_eq!(found.variable, None, "{source}");
        }
    }

    #[test]
    fn a_template_that_does_not_end_is_stopped() {
        let digits = "'0123456789'";
        let mut source = "x".to_owned();
        for depth in 0..12 {
            source = format!("{{% for c{depth} in {digits} %}}{source}{{% endfor %}}");
        }
        let found = fault(&source);
        assert!(
            found.what.contains("too many steps") || found.what.contains("1 MiB"),
            "{found:?}"
        );
        let silent = source.replace('x', "");
        assert_eq!(fault(&silent).what, "it takes too many steps");
    }

    #[test]
    fn the_output_is_bounded() {
        let most = "x".repeat(MOST_OUTPUT);
        assert_eq!(with("{{ a }}", &[("a", &most)]).unwrap().len(), MOST_OUTPUT);
        let found = with("{{ a }}{{ a }}", &[("a", &most)]).unwrap_err();
        assert_eq!(found.what, "its text is longer than 1 MiB");
        assert_eq!(with(&most, &[]).unwrap().len(), MOST_OUTPUT);
    }

    #[test]
    fn long_chains_do_not_exhaust_the_stack() {
        let many = 100_000;
        for source in [
            format!("{{{{ a{} }}}}", "|trim".repeat(many)),
            format!("{{{{ a{} }}}}", " and a".repeat(many)),
            format!("{{{{ {}a }}}}", "not ".repeat(many)),
            format!("{{{{ {}a{} }}}}", "(".repeat(many), ")".repeat(many)),
            format!("{{{{ a{} }}}}", ".b".repeat(many)),
            format!(
                "{{% if a %}}{}{{% endif %}}",
                "{% elif a %}".repeat(many / 2)
            ),
            format!(
                "{}x{}",
                "{% if a %}".repeat(many / 2),
                "{% endif %}".repeat(many / 2)
            ),
            "{% if a %}".repeat(many / 2),
            "{{ a }}\n".repeat(many),
        ] {
            // The result does not matter, as long as there is one.
            drop(with(&source, &[("a", "x")]));
        }
        let fits = format!("{{{{ a{} }}}}", "|trim".repeat(140));
        assert_eq!(with(&fits, &[("a", "x")]).unwrap(), "x");
    }

    #[test]
    fn broken_syntax_is_named_with_its_line() {
        for source in [
            "\n{{ a",
            "\n{% if a %}",
            "\n{% for %}",
            "\n{{ a b }}",
            "\n{% endif %}",
        ] {
            let found = fault(source);
            assert_eq!(found.line, Some(2), "{source}: {found:?}");
            assert!(!found.what.is_empty());
        }
    }
}
