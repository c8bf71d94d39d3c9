//! First trees: those of a search without limits, with labels that satisfy the limits.
//!
//! Without the limits, the faster searches can solve the problem. Their bound holds under the
//! limits, too, and their tree may be admissible with other labels.

use super::engine::{Engine, Point};
use super::node::FrontNode;
use super::points::Bounds;
use crate::search::Stop;
use crate::task::{ANY, FrontTask};
use crate::tree::{LEAF, Tree};

/// Number of labellings of a subtree that are kept.
const LABELLINGS: usize = 128;

impl<T: FrontTask<K>, const K: usize> Engine<'_, T, K> {
    /// Labellings of the leaves of a tree, by ascending weighted cost. If there are many, some are
    /// left out.
    pub fn labellings(&mut self, root: &FrontNode<K>, tree: &Tree) -> Result<Vec<Point<K>>, Stop> {
        let records = self.leaf_records(root, tree);
        self.labellings_at(root, tree, 0, &records)
    }

    fn labellings_at(
        &mut self,
        root: &FrontNode<K>,
        tree: &Tree,
        node: usize,
        records: &[Vec<i64>],
    ) -> Result<Vec<Point<K>>, Stop> {
        let all = Bounds { value: f64::INFINITY, window: [ANY; K], leaves: u32::MAX };
        if tree.feature[node] == LEAF {
            return self.leaf_points(&records[node], &all);
        }
        let Some((c, [no, yes])) = root.sample.split_of(tree, node) else {
            return Ok(Vec::new());
        };
        let sides = [
            self.labellings_at(root, tree, yes, records)?,
            self.labellings_at(root, tree, no, records)?,
        ];
        let mut gathered = self.gather(Vec::new());
        self.combine(root, c, &sides, &all, &mut gathered)?;
        self.settle(root, &mut gathered)?;
        gathered.points.truncate(LABELLINGS);
        Ok(gathered.points)
    }
}
