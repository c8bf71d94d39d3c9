//! Slow, obvious, exhaustive reference for optimal trees over binary features.
//!
//! Everything is written down as it is defined: every feature, every split of the leaf budget,
//! every row, with no bound, no cache and no code of the engine. The engine is right when it
//! agrees with this crate. Losses are numbers of 512 bits ([`Real`]), so no rounding of theirs
//! hides one of the engine's; a search takes costs in `f64`, too.
//!
//! Conventions: `features[row][feature]`; the left child of a node holds the rows whose
//! feature is true. The cost of a tree is the sum over its leaves of a cost of the leaf's
//! rows, so a mean loss with a leaf penalty is
//! `|rows| loss(rows) / total_weight + leaf_penalty`.

pub mod accuracy;
pub mod brier;
pub mod instances;
pub mod measures;
mod real;
mod search;
pub mod sums;
pub mod survival;
mod tree;

pub use real::Real;
pub use search::{
    Cost, Limits, Number, all_costs, all_trees, best, best_by_leaves, best_tree, free, pareto_front,
};
pub use tree::{Tree, admit_tree, price_tree, score_tree};
