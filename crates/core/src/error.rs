//! Errors of the input. The search itself does not fail: its input was checked here.

use thiserror::Error;

/// Rejected input.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// A parameter or array is not acceptable; `name` is the user's name for it.
    #[error("{name}: {reason}")]
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

/// Refuses what is negative or no number.
pub fn not_negative(name: &'static str, values: &[f64]) -> Result<(), Error> {
    match values.iter().position(|v| !v.is_finite() || *v < 0.0) {
        Some(row) => Err(Error::invalid(name, format!("row {row} is not a number >= 0"))),
        None => Ok(()),
    }
}
