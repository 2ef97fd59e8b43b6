//! The headers of a delivery.

/// Headers, with names in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut found = self
            .0
            .iter()
            .filter(|(own, _)| own.eq_ignore_ascii_case(name));
        let (_, value) = found.next()?;
        // With two values it is unclear which one the sender meant, so neither counts.
        found.next().is_none().then_some(value.as_str())
    }

    /// Whether it was sent, even with an unusable value.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
    }

    /// The value of the first of these headers that was sent.
    pub fn first(&self, names: &[&str]) -> Option<&str> {
        let sent = names.iter().find(|name| self.has(name))?;
        self.get(sent)
    }

    /// Those of them that have one of these names.
    pub(crate) fn only(&self, names: &[&str]) -> Headers {
        let is_named =
            |(own, _): &&(String, String)| names.iter().any(|name| own.eq_ignore_ascii_case(name));
        Headers(self.0.iter().filter(is_named).cloned().collect())
    }

    /// Names and values.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// Whether the content type is JSON.
    pub fn says_json(&self) -> bool {
        let sent = self.get("content-type").unwrap_or_default();
        let kind = sent.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("application/json")
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(sent: I) -> Self {
        let text = |value: &[u8]| String::from_utf8_lossy(value).trim().to_owned();
        let pairs = sent.into_iter();
        let pairs =
            pairs.map(|(name, value)| (name.as_ref().to_ascii_lowercase(), text(value.as_ref())));
        Self(pairs.collect())
    }
}
