//! Stores trees with labelled leaves as plans, which share their parts.

use crate::data::Sample;
use crate::tree::Tree;

/// A tree with the label of every leaf, sharing its parts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Plan {
    Leaf {
        label: u32,
    },
    /// The caller's feature, and the plans of the rows where it is true and where it is false.
    Split {
        feature: u32,
        yes: u32,
        no: u32,
    },
}

/// Number of plans in one piece of memory. A single growing list would be copied, and would exist
/// twice during the copy.
const PIECE: usize = 1 << 14;

/// All plans of a search; a plan is identified by its position.
#[derive(Debug, Default)]
pub(super) struct Plans {
    pieces: Vec<Vec<Plan>>,
    /// For every label, the plan of a leaf with this label.
    of_labels: Vec<u32>,
}

impl Plans {
    /// Bytes of the plans.
    pub fn bytes(&self) -> usize {
        self.pieces.len() * PIECE * size_of::<Plan>()
    }

    fn of(&self, plan: u32) -> Plan {
        self.pieces[plan as usize / PIECE][plan as usize % PIECE]
    }

    fn push(&mut self, plan: Plan) -> u32 {
        if self.pieces.last().is_none_or(|piece| piece.len() == PIECE) {
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        let full = (self.pieces.len() - 1) * PIECE;
        let piece = self.pieces.last_mut().expect("one that is not full");
        piece.push(plan);
        (full + piece.len() - 1) as u32
    }

    /// The feature at the root; `None` for a leaf.
    pub fn root(&self, plan: u32) -> Option<usize> {
        match self.of(plan) {
            Plan::Leaf { .. } => None,
            Plan::Split { feature, .. } => Some(feature as usize),
        }
    }

    /// A leaf.
    pub fn leaf(&mut self, label: usize) -> u32 {
        while self.of_labels.len() <= label {
            let plan = self.push(Plan::Leaf { label: self.of_labels.len() as u32 });
            self.of_labels.push(plan);
        }
        self.of_labels[label]
    }

    /// A split on column `c` of `sample`.
    pub fn split(&mut self, sample: &Sample, c: usize, yes: u32, no: u32) -> u32 {
        let column = sample.columns[c];
        let [no, yes] = column.turned([no, yes]);
        self.push(Plan::Split { feature: column.feature as u32, yes, no })
    }

    /// The tree of a plan, and the label of every leaf (−1 at splits).
    pub fn tree(&self, plan: u32) -> (Tree, Vec<i64>) {
        match self.of(plan) {
            Plan::Leaf { label } => (Tree::leaf(), vec![i64::from(label)]),
            Plan::Split { feature, yes, no } => {
                let ((yes, yes_labels), (no, no_labels)) = (self.tree(yes), self.tree(no));
                let labels = [vec![-1], yes_labels, no_labels].concat();
                (Tree::split(feature as usize, &yes, &no), labels)
            }
        }
    }
}
