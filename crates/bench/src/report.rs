//! Rows, judged, as a table for people and as a file for programs.

use serde_json::{Map, Value, json};

use crate::sample::Sample;

/// What a row must keep to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    AtMost(f64),
    AtLeast(f64),
    /// There is none: the row informs.
    None,
}

/// What the judged number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Times the baseline.
    Times,
    Millis,
    Mebibytes,
    Kilobytes,
    /// Seconds of processor time in an hour.
    CpuSecondsPerHour,
    RoundTrips,
    Statements,
    Connections,
    /// Millions of instructions.
    Millions,
    /// System calls.
    Calls,
}

impl Unit {
    fn shown(self, number: f64) -> String {
        match self {
            Unit::Times => format!("{number:.2} x"),
            Unit::Millis => format!("{number:.1} ms"),
            Unit::Mebibytes => format!("{number:.1} MiB"),
            Unit::Kilobytes => format!("{number:.0} kB"),
            Unit::CpuSecondsPerHour => format!("{number:.2} s/h"),
            Unit::RoundTrips => format!("{number:.0} trips"),
            Unit::Statements => format!("{number:.1}/s"),
            Unit::Connections | Unit::Calls => format!("{number:.0}"),
            Unit::Millions => format!("{number:.2} M"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Unit::Times => "times",
            Unit::Millis => "ms",
            Unit::Mebibytes => "MiB",
            Unit::Kilobytes => "kB",
            Unit::CpuSecondsPerHour => "cpu_s_per_hour",
            Unit::RoundTrips => "round_trips",
            Unit::Statements => "statements/s",
            Unit::Connections => "connections",
            Unit::Millions => "millions",
            Unit::Calls => "calls",
        }
    }
}

/// One line of the table.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// Which kind of row it is; `--only` names it.
    pub group: &'static str,
    pub what: String,
    pub ours: String,
    /// What it is compared with, for people.
    pub baseline: String,
    /// The number that is judged.
    pub number: f64,
    pub unit: Unit,
    /// What it must keep to.
    pub budget: Budget,
    /// Everything else, for the file.
    pub more: Map<String, Value>,
}

impl Measurement {
    /// Compares two samples by their medians.
    pub fn ratio(
        group: &'static str,
        what: impl Into<String>,
        ours: &Sample,
        baseline: &Sample,
        budget: Budget,
    ) -> Self {
        let mut row = Measurement {
            group,
            what: what.into(),
            ours: ours.shown(),
            baseline: baseline.shown(),
            number: divide(ours.median(), baseline.median()),
            unit: Unit::Times,
            budget,
            more: Map::new(),
        };
        row.add("ours", ours.json());
        row.add("baseline", baseline.json());
        row
    }

    /// Keeps something for the file.
    pub fn add(&mut self, name: &str, value: impl Into<Value>) {
        self.more.insert(name.to_owned(), value.into());
    }

    /// Whether the judged number is one.
    pub fn is_measured(&self) -> bool {
        self.number.is_finite()
    }

    fn verdict(&self) -> &'static str {
        if !self.is_measured() {
            return "FAIL";
        }
        let kept = match self.budget {
            Budget::AtMost(most) => self.number <= most,
            Budget::AtLeast(least) => self.number >= least,
            Budget::None => return "-",
        };
        if kept { "pass" } else { "MISS" }
    }

    fn budget_shown(&self) -> String {
        match self.budget {
            Budget::AtMost(most) => format!("<= {}", self.unit.shown(most)),
            Budget::AtLeast(least) => format!(">= {}", self.unit.shown(least)),
            Budget::None => String::new(),
        }
    }

    fn cells(&self) -> [String; 7] {
        [
            self.group.to_owned(),
            self.what.clone(),
            self.ours.clone(),
            self.baseline.clone(),
            self.unit.shown(self.number),
            self.budget_shown(),
            self.verdict().to_owned(),
        ]
    }

    /// As the file has it.
    pub fn json(&self) -> Value {
        let budget = match self.budget {
            Budget::AtMost(most) => json!({"at_most": most}),
            Budget::AtLeast(least) => json!({"at_least": least}),
            Budget::None => Value::Null,
        };
        json!({
            "group": self.group,
            "what": self.what,
            "number": (self.number * 1000.0).round() / 1000.0,
            "unit": self.unit.name(),
            "budget": budget,
            "verdict": self.verdict(),
            "more": self.more,
        })
    }
}

/// A ratio; without something to compare with it is no number, and the row fails.
pub fn divide(ours: f64, baseline: f64) -> f64 {
    if baseline > 0.0 {
        ours / baseline
    } else {
        f64::NAN
    }
}

pub fn table(rows: &[Measurement]) -> String {
    let head = [
        "row",
        "what",
        "ours (median / p99)",
        "baseline (median / p99)",
        "judged",
        "budget",
        "",
    ]
    .map(str::to_owned);
    let lines: Vec<[String; 7]> = std::iter::once(head)
        .chain(rows.iter().map(Measurement::cells))
        .collect();
    let width = |column: usize| {
        let widths = lines.iter().map(|line| line[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..7).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let mut shown = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            shown.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(shown.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: f64, budget: Budget) -> Measurement {
        Measurement {
            group: "g",
            what: "w".into(),
            ours: String::new(),
            baseline: String::new(),
            number,
            unit: Unit::Times,
            budget,
            more: Map::new(),
        }
    }

    #[test]
    fn a_row_is_judged_by_its_budget() {
        assert_eq!(row(1.3, Budget::AtMost(1.3)).verdict(), "pass");
        assert_eq!(row(1.4, Budget::AtMost(1.3)).verdict(), "MISS");
        assert_eq!(row(0.7, Budget::AtLeast(0.8)).verdict(), "MISS");
        assert_eq!(row(9.0, Budget::None).verdict(), "-");
    }

    #[test]
    fn what_has_nothing_to_compare_with_fails() {
        let nothing = Sample::default();
        let some = Sample::of([std::time::Duration::from_millis(3)]);
        for (ours, baseline) in [(&some, &nothing), (&nothing, &some)] {
            for budget in [Budget::AtMost(1.3), Budget::AtLeast(0.8), Budget::None] {
                let row = Measurement::ratio("g", "w", ours, baseline, budget);
                assert_eq!(row.verdict(), "FAIL");
                assert!(!row.is_measured());
            }
        }
    }
}
