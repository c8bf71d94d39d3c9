//! The splits of a node leaf by leaf, for weights whose range is too wide for one pass.

use super::super::rows::{Rows, Tables};
use super::Splits;
use crate::data::ones;
use crate::survival::timeline::{Code, Timeline};
use crate::task::brier::exact::leaf_loss;
use crate::task::curve::LeafCurve;

/// Losses of all single splits; O(rows · columns).
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
    let mut side: Vec<(Code, f64)> = Vec::new();
    for c in 0..n_columns {
        let column = tables.column(c);
        let (mut count, mut floor) = (0.0, 0.0);
        let yes: Vec<u64> =
            rows.mask.iter().zip(column).map(|(rows, column)| rows & column).collect();
        let no: Vec<u64> = rows.mask.iter().zip(&yes).map(|(rows, yes)| rows & !yes).collect();
        for id in ones(&yes) {
            count += tables.about[id].count;
            floor += tables.about[id].floor;
        }
        let mut loss = |mask: &[u64]| {
            side.clear();
            let of_row = |id: usize| (tables.code[id], tables.weight[id]);
            side.extend(ones(mask).map(of_row).filter(|row| row.1 > 0.0));
            leaf_loss(timeline, curve, &side)
        };
        (out.yes[c], out.no[c]) = (loss(&yes), loss(&no));
        (out.count[c], out.floor[c]) = (count, floor);
    }
}
