//! Many measurements of one thing, and what they come to.

use std::time::Duration;

use serde_json::{Value, json};

/// Measurements in the order of their size, in microseconds.
#[derive(Debug, Clone, Default)]
pub struct Sample(Vec<f64>);

impl Sample {
    pub fn of(times: impl IntoIterator<Item = Duration>) -> Self {
        let mut sorted: Vec<f64> = times
            .into_iter()
            .map(|time| time.as_secs_f64() * 1e6)
            .collect();
        sorted.sort_by(f64::total_cmp);
        Self(sorted)
    }

    /// The value below which this part of the measurements lies; no number where there are none.
    pub fn quantile(&self, part: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a place in a list of a few thousand"
        )]
        let place = (last as f64 * part).ceil() as usize;
        self.0.get(place).copied().unwrap_or(f64::NAN)
    }

    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// What one in a hundred exceeds.
    pub fn p99(&self) -> f64 {
        self.quantile(0.99)
    }

    pub fn max(&self) -> f64 {
        self.quantile(1.0)
    }

    /// As the table shows it: median and p99.
    pub fn shown(&self) -> String {
        format!("{} / {}", micros(self.median()), micros(self.p99()))
    }

    /// As the file has it.
    pub fn json(&self) -> Value {
        json!({
            "n": self.0.len(),
            "median_us": round(self.median()),
            "p99_us": round(self.p99()),
            "max_us": round(self.max()),
        })
    }
}

fn round(micros: f64) -> f64 {
    (micros * 10.0).round() / 10.0
}

/// Microseconds for people.
pub fn micros(micros: f64) -> String {
    if micros >= 100_000.0 {
        format!("{:.0} ms", micros / 1000.0)
    } else if micros >= 1000.0 {
        format!("{:.2} ms", micros / 1000.0)
    } else if micros >= 10.0 {
        format!("{micros:.0} µs")
    } else {
        format!("{micros:.2} µs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_ends() {
        let sample = Sample::of((1..=101).rev().map(Duration::from_micros));
        assert_eq!(sample.median().round(), 51.0);
        assert_eq!(sample.p99().round(), 100.0);
        assert_eq!(sample.max().round(), 101.0);
        assert!(Sample::default().median().is_nan());
    }
}
