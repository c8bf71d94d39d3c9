//! Comparisons of every task with an exhaustive reference, on thousands of small random instances.

mod brier;
mod front_laws;
mod fronts;
mod harness;
mod kernels;
mod lanes;
mod laws;
mod losses;
mod near;
mod optimum;
mod outside;
mod own;
mod parts;
mod priced;
mod promises;
mod smoothed;
mod sparse;
mod stopped;
mod switches;
mod tasks;
mod threads;
mod thresholds;
mod watch;
