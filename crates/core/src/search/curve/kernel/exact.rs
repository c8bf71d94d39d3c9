//! Computes the splits of a node leaf by leaf, for weights whose range is too wide for one pass.

use super::super::rows::{Exact, Rows, Tables};
use super::Splits;
use crate::survival::timeline::Code;
use crate::task::brier::exact::{leaf_loss, restricted_mean};
use crate::task::curve::LeafCurve;

/// Position in time and weight of the rows where a column is false, and of those where it is true.
type Sides = [Vec<(Code, f64)>; 2];

fn divide(rows: &Rows, tables: &Tables, exact: &Exact, column: usize, sides: &mut Sides) {
    let mask = tables.column(column);
    sides.iter_mut().for_each(Vec::clear);
    for id in rows.ids() {
        let yes = mask[id / 64] >> (id % 64) & 1 == 1;
        sides[usize::from(yes)].push((tables.code[id], exact.weight[id]));
    }
}

/// Losses of the two sides of a split, false side first; O(rows).
pub fn split(
    rows: &Rows,
    tables: &Tables,
    exact: &Exact,
    curve: LeafCurve,
    column: usize,
) -> [f64; 2] {
    let mut sides = Sides::default();
    divide(rows, tables, exact, column, &mut sides);
    sides.map(|rows| leaf_loss(&exact.timeline, curve, &rows))
}

/// Losses of all single splits, and their restricted means if needed, without counts and floors;
/// O(rows · columns).
pub(super) fn all_splits(
    rows: &Rows,
    tables: &Tables,
    exact: &Exact,
    curve: LeafCurve,
    out: &mut Splits,
) {
    let (timeline, n_columns) = (&exact.timeline, tables.columns.len());
    out.columns.clear();
    out.columns.extend(0..n_columns);
    let mut sides = Sides::default();
    for c in 0..n_columns {
        divide(rows, tables, exact, c, &mut sides);
        let [no, yes] = &sides;
        out.yes[c] = leaf_loss(timeline, curve, yes);
        out.no[c] = leaf_loss(timeline, curve, no);
        if let Some(end) = tables.end {
            out.means[0][c] = restricted_mean(timeline, end, no);
            out.means[1][c] = restricted_mean(timeline, end, yes);
        }
    }
}
