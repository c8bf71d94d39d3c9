//! Slow, obvious, exhaustive reference for optimal trees over binary features.
//!
//! Everything follows its definition: every feature, every division of the leaf budget, every row,
//! without bounds, caches or code of the engine. The engine is right if it agrees with this crate.
//! Losses are numbers of 512 bits ([`Real`]), so their rounding cannot hide an error of the engine.
//! A search also accepts costs in `f64`.
//!
//! Conventions: `features[row][feature]`; the left child of a node contains the rows whose feature
//! is true. The cost of a tree is the sum of a cost over the rows of each leaf, so a mean loss with
//! a leaf penalty is `|rows| loss(rows) / total_weight + leaf_penalty`.

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
