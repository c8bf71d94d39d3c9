//! The search against the exhaustive reference, on thousands of small random instances.

mod all;
mod brier;
mod fronts;
mod harness;
mod optimum;
mod stopped;
mod switches;
