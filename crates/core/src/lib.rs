//! Exact search for optimal trees under any separable objective.
//!
//! The crate does not depend on Python, prints nothing and keeps no global state.

pub mod data;
pub mod error;
pub mod greedy;
mod precise;
pub mod registry;
pub mod search;
pub mod simd;
pub mod survival;
pub mod task;
pub mod tree;
