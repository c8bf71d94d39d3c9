//! The search against the exhaustive reference, on thousands of small random instances.

mod brier;
mod fronts;
mod harness;
mod laws;
mod near;
mod optimum;
mod priced;
mod stopped;
mod switches;
mod threads;
mod watch;
