//! Leaves whose first two statistics come from a survival curve: stores the rows of a node in the
//! order of time, next to its distinct rows.

use crate::data::{BinaryMatrix, Column, Sample};
use crate::error::Error;
use crate::search::Settings;
use crate::search::curve::kernel::{Kernel, Splits};
use crate::search::curve::rows::{Rows, Tables};
use crate::task::brier::exact::{leaf_loss, restricted_mean};
use crate::task::curve::{CurveStatistics, LeafCurve};
use crate::tree::{LEAF, Tree};

/// Rows in the order of time, and how leaves are computed from them.
pub(super) struct Curves<'a> {
    task: &'a dyn CurveStatistics,
    tables: Tables,
    kernel: Kernel,
    /// All rows.
    pub all: Rows,
}

/// Loss and restricted mean of a leaf.
type Leaf = (f64, f64);

impl<'a> Curves<'a> {
    pub fn new(
        task: &'a dyn CurveStatistics,
        features: &BinaryMatrix,
        settings: &Settings,
    ) -> Result<Self, Error> {
        let (all, tables) = Tables::new(task, features, false, None, task.leaf_by_leaf())?;
        // Cells that are too small for a leaf are kept, because they belong to splits with cells
        // that are not.
        let kernel = Kernel { backend: settings.backend(), curve: task.curve(), min_leaf: 1 };
        Ok(Curves { task, tables, kernel, all })
    }

    /// Statistics 0 and 1 of a leaf, if its statistics 2 and 3 differ by `share`.
    pub fn statistics(&self, (loss, mean): Leaf, share: i64) -> [i64; 2] {
        self.task.of_leaf(loss, mean, share)
    }

    /// Rows as one leaf.
    pub fn leaf(&self, rows: &Rows) -> Leaf {
        let Tables { code, weight, .. } = &self.tables;
        match &self.tables.exact {
            None => self.tables.times.kaplan_meier(rows.ids().map(|id| (code[id], weight[id]))),
            Some(exact) => {
                let rows: Vec<_> = rows.ids().map(|id| (code[id], exact.weight[id])).collect();
                let loss = leaf_loss(&exact.timeline, LeafCurve::KaplanMeier, &rows);
                let mean = |end| restricted_mean(&exact.timeline, end, &rows);
                (loss, self.task.horizon().map_or(0.0, mean))
            }
        }
    }

    /// The column in the tables, and whether it is true where this one is.
    fn place(&self, column: Column) -> (usize, bool) {
        let columns = &self.tables.columns;
        let at = columns.binary_search_by_key(&column.feature, |column| column.feature);
        let at = at.expect("a column of all rows");
        (at, columns[at].flipped == column.flipped)
    }

    /// The rows where a column is false, and the rows where it is true.
    pub fn sides(&self, rows: &Rows, column: Column) -> [Rows; 2] {
        let (at, same) = self.place(column);
        let [mut no, mut yes] = [Rows::default(), Rows::default()];
        rows.split(at, &self.tables, (0.0, 0.0), &mut yes, &mut no);
        for side in [&mut no, &mut yes] {
            side.count = side.ids().map(|id| self.tables.about[id].count).sum();
        }
        if same { [no, yes] } else { [yes, no] }
    }

    /// Losses and restricted means of all single splits; O(rows · columns).
    pub fn splits(&self, rows: &Rows, out: &mut Splits) {
        self.kernel.splits(rows, &self.tables, None, false, out);
    }

    /// The leaves on the false and the true side of a column; `None` if one side is empty.
    pub fn of_column(&self, splits: &Splits, column: Column) -> Option<[Leaf; 2]> {
        let (at, same) = self.place(column);
        let lane = splits.columns.binary_search(&at).ok()?;
        let [no, yes] = &splits.means;
        let sides = [(splits.no[lane], no[lane]), (splits.yes[lane], yes[lane])];
        Some(if same { sides } else { [sides[1], sides[0]] })
    }

    /// Every leaf of a tree over the columns of `sample`, which has these rows; `None` at splits
    /// and for leaves without rows.
    pub fn leaves(&self, sample: &Sample, rows: &Rows, tree: &Tree) -> Vec<Option<Leaf>> {
        let mut leaves = vec![None; tree.n_nodes()];
        let mut open = vec![(0, rows.clone())];
        while let Some((node, rows)) = open.pop() {
            if tree.feature[node] == LEAF {
                leaves[node] = Some(self.leaf(&rows));
            } else if let Some((c, nodes)) = sample.split_of(tree, node) {
                open.extend(nodes.into_iter().zip(self.sides(&rows, sample.columns[c])));
            } else {
                // A feature that does not split the rows counts as false.
                open.push((tree.right[node] as usize, rows));
            }
        }
        leaves
    }
}
