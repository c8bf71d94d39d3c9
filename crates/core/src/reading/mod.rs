//! Text files, as far as reading them takes a pass over every byte: where the cells of a table
//! begin and end, the numbers in them, and which of them are equal.

mod cells;
mod levels;
mod numbers;

pub use cells::split;
pub use levels::{Levels, levels};
pub use numbers::{Numbers, integers, numbers};
