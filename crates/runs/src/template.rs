//! Prompt templates: a small part of Jinja that always terminates and stays within bounds.
//!
//! A template may print variables, filter them, choose (`if`) and repeat (`for`). It cannot include
//! other templates, call functions, use macros or combine values, because repeated concatenation
//! doubles a text with each step. So no value is larger than the input, each step costs fuel, and
//! the output is limited to `MAX_OUTPUT`. A value is plain text: template syntax in it is not
//! interpreted.
//!
//! A variable that is not set is an error with its name and line. The `tags` of a template are
//! checked before anything is compiled, because compiling folds constants, which could allocate
//! without limit.

mod tags;

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::ops::Range;

use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};
use tenure_core::run::prompt;

/// The largest template.
pub const MAX_TEMPLATE: u64 = 1 << 20;
/// The largest prompt that is rendered.
const MAX_OUTPUT: usize = 1 << 20;
/// Instructions of the engine; a loop over 10,000 lines needs less than half.
const FUEL: u64 = 500_000;

/// The variables of a template.
pub type Variables = BTreeMap<String, String>;

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFault {
    /// Counted from one; none if it concerns the whole template.
    pub line: Option<usize>,
    pub what: String,
    /// The variable that is not set.
    pub variable: Option<String>,
}

impl TemplateFault {
    fn at(line: usize, what: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            what: what.into(),
            variable: None,
        }
    }
}

/// Renders a template.
pub fn render(source: &str, variables: &Variables) -> Result<String, TemplateFault> {
    tags::check(source)?;
    let environment = environment();
    let template = environment.template_from_str(source);
    let template = template.map_err(|error| syntax(&error))?;
    let mut out = Bounded(Vec::new());
    match template.render_captured_to(variables, &mut out) {
        Ok(_) => Ok(String::from_utf8_lossy(&out.0).into_owned()),
        Err(error) => {
            let mut missing = template.undeclared_variables(false);
            missing.retain(|name| !variables.contains_key(name));
            Err(failed(&error, source, &missing))
        }
    }
}

/// The engine with only the functions that a template may call.
fn environment<'a>() -> Environment<'a> {
    let mut environment = Environment::empty();
    environment.set_keep_trailing_newline(true);
    environment.set_lstrip_blocks(true);
    environment.set_trim_blocks(true);
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

fn syntax(error: &Error) -> TemplateFault {
    TemplateFault {
        line: error.line(),
        what: detail(error),
        variable: None,
    }
}

fn detail(error: &Error) -> String {
    let detail = error.detail().map(str::to_owned);
    detail.unwrap_or_else(|| error.kind().to_string())
}

fn failed(error: &Error, source: &str, missing: &HashSet<String>) -> TemplateFault {
    let (what, variable) = match error.kind() {
        ErrorKind::UndefinedError => {
            let part = error
                .range()
                .filter(|part| source.get(part.clone()).is_some());
            let part = part.unwrap_or(0..source.len());
            let name = missing_at(&part, source, missing);
            let name = name.unwrap_or(&source[part]).to_owned();
            (format!("the variable {name} is not set"), Some(name))
        }
        ErrorKind::OutOfFuel => ("it takes too many steps".to_owned(), None),
        ErrorKind::WriteFailure => ("its text is longer than 1 MiB".to_owned(), None),
        _ => (detail(error), None),
    };
    TemplateFault {
        line: error.line(),
        what,
        variable,
    }
}

/// The variable that is not set, by the part of the source where the engine stopped. That part may
/// be only the filter after the variable.
fn missing_at<'s>(
    part: &Range<usize>,
    source: &'s str,
    missing: &HashSet<String>,
) -> Option<&'s str> {
    let is_other = |c: char| !c.is_alphanumeric() && c != '_';
    let is_missing = |word: &&str| missing.contains(*word);
    let inside = source[part.clone()].split(is_other).find(is_missing);
    inside.or_else(|| source[..part.end].rsplit(is_other).find(is_missing))
}

/// Accepts output up to the size limit of a prompt.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_OUTPUT {
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

    fn with(source: &str, variables: &[(&str, &str)]) -> Result<String, TemplateFault> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        render(source, &variables.iter().map(own).collect())
    }

    fn fault(source: &str) -> TemplateFault {
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
    fn what_only_compares_or_chooses_is_rendered() {
        for (source, text) in [
            ("{{ a in ('x', 'y') }}", "True"),
            ("{{ a in [('x'), -1, none] }}", "True"),
            ("{{ (a|lines)[-1] }}", "x"),
            ("{{ a if not (a == b) else 'no' }}", "x"),
            ("{% if a == b %}{% elif (a) %}y{% endif %}", "y"),
            ("{{ a is defined and (b is not undefined) }}", "True"),
            (
                "{% for if_a in a|lines if if_a %}{{ loop.first }}{% endfor %}",
                "True",
            ),
            (
                "{% raw %}{{ a ~ a }}{% set %}{% endraw %}{{ a }}",
                "{{ a ~ a }}{% set %}x",
            ),
            ("{# {{ a ~ a }} #}{{ '{{ a ~ a }}' }}", "{{ a ~ a }}"),
            ("{{-a-}} {%- if a -%} y {%+ endif +%}", "xy "),
        ] {
            let said = with(source, &[("a", "x"), ("b", "y")]);
            assert_eq!(said.as_deref(), Ok(text), "{source}");
        }
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
            "{{ (a, a) }}",
            "{{ 1in[a, a] }}",
            "{{ 0x1in[a, a] }}",
            "{{ 1.5in[a, a] }}",
            "{% if a %}{% elif [a, a] %}{% endif %}",
            "{{ [['x', (a)]] }}",
            "{{ a | default(b | upper(a ~ a)) }}",
            "{{ a[b * 2] }}",
            "{{ a.b(a) }}",
            "{{ a - 1 }}",
            "{#- {{ -#}{%- raw -%} {{ a ~ a }} {%+ endraw +%}{{- a ~ a }}",
            "{{ '\\'' }}{{ \"'\" }}{{ '\"' ~ a }}",
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
        let most = "x".repeat(MAX_OUTPUT);
        assert_eq!(with("{{ a }}", &[("a", &most)]).unwrap().len(), MAX_OUTPUT);
        let found = with("{{ a }}{{ a }}", &[("a", &most)]).unwrap_err();
        assert_eq!(found.what, "its text is longer than 1 MiB");
        assert_eq!(with(&most, &[]).unwrap().len(), MAX_OUTPUT);
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
