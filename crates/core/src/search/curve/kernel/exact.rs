//! The splits of a node leaf by leaf, for weights whose range is too wide for one pass.

use super::super::rows::{Rows, Tables};
use super::Splits;
use crate::survival::timeline::{Code, Timeline};
use crate::task::brier::exact::{leaf_loss, restricted_mean};
use crate::task::curve::LeafCurve;

/// Losses of all single splits, and restricted means where they are wanted; O(rows · columns).
pub(super) fn all_splits(
    rows: &Rows,
    tables: &Tables,
    timeline: &Timeline,
    curve: LeafCurve,
    out: &mut Splits,
) {
    let n_columns = tables.columns.len();
    out.columns.clear();
    out.columns.extend(0..n_columns);
    let [mut yes, mut no]: [Vec<(Code, f64)>; 2] = Default::default();
    for c in 0..n_columns {
        let column = tables.column(c);
        let (mut count, mut floor) = (0.0, 0.0);
        yes.clear();
        no.clear();
        for id in rows.ids() {
            let row = (tables.code[id], tables.weight[id]);
            if column[id / 64] >> (id % 64) & 1 == 1 {
                count += tables.about[id].count;
                floor += tables.about[id].floor;
                yes.push(row);
            } else {
                no.push(row);
            }
        }
        out.yes[c] = leaf_loss(timeline, curve, &yes);
        out.no[c] = leaf_loss(timeline, curve, &no);
        if let Some(end) = tables.end {
            out.means[0][c] = restricted_mean(timeline, end, &no);
            out.means[1][c] = restricted_mean(timeline, end, &yes);
        }
        (out.count[c], out.floor[c]) = (count, floor);
    }
}
