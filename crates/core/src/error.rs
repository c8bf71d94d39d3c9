//! Errors in the input. Input is checked before a search starts, so the search itself cannot fail.

use thiserror::Error;

/// Rejected input.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// A parameter or array is not acceptable; `name` is what the user calls it.
    #[error("{name}{}{reason}", separator(reason))]
    Invalid {
        /// Parameter or array.
        name: &'static str,
        /// Description of the error.
        reason: String,
    },
}

impl Error {
    /// Shorthand for [`Error::Invalid`].
    pub fn invalid(name: &'static str, reason: impl Into<String>) -> Self {
        Error::Invalid { name, reason: reason.into() }
    }
}

/// A space if the name and the reason make a sentence, otherwise a colon and a space.
fn separator(reason: &str) -> &'static str {
    let verbs = ["are", "does", "give", "has", "hold", "is", "must", "takes"];
    let (first, _) = reason.split_once(' ').unwrap_or((reason, ""));
    if verbs.contains(&first) { " " } else { ": " }
}

/// Rejects negative values and NaN.
pub fn not_negative(name: &'static str, values: &[f64]) -> Result<(), Error> {
    match values.iter().position(|v| !v.is_finite() || *v < 0.0) {
        Some(row) => Err(Error::invalid(name, format!("row {row} is not a number >= 0"))),
        None => Ok(()),
    }
}
