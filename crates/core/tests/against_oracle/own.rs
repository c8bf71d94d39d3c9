//! Costs as users write them: functions of the weight, sum and sum of squares of a cell.

use bristlecone_core::search::Stop;
use bristlecone_core::search::batch::{BatchTask, Cells};
use bristlecone_oracle::instances::Instance;

pub type Cost = fn(&[f64]) -> f64;

pub struct User {
    pub leaf: Cost,
    pub split: Option<Cost>,
    pub bound: Option<Cost>,
}

pub const USERS: [User; 4] = [
    User { leaf: squared_error, split: None, bound: Some(|_| 0.0) },
    User { leaf: squared_error, split: Some(size_price), bound: Some(|_| 0.0) },
    User { leaf: odd, split: None, bound: None },
    User { leaf: heavy, split: Some(size_price), bound: None },
];

fn squared_error(s: &[f64]) -> f64 {
    // By rounding it may be negative, but the bound is 0.
    (s[2] - s[1] * s[1] / s[0]).max(0.0)
}

/// A cost of either sign that is not superadditive.
fn odd(s: &[f64]) -> f64 {
    (s[1] * 3.0 + s[0]).sin() * s[0].sqrt() - 0.3 * s[2]
}

/// Leaves with little weight are forbidden, and so are the roots of most instances.
fn heavy(s: &[f64]) -> f64 {
    if s[0] < 4.0 || s[0] > 40.0 { f64::INFINITY } else { squared_error(s) }
}

fn size_price(s: &[f64]) -> f64 {
    0.05 * s[0]
}

/// The statistics of all rows.
pub fn statistics(instance: &Instance) -> Vec<f64> {
    let of_row = |(w, costs): (&f64, &Vec<f64>)| {
        let y = (costs[0] * 4.0).round() * 0.37 % 3.0;
        [*w, w * y, w * y * y]
    };
    instance.sample.weight.iter().zip(&instance.costs).flat_map(of_row).collect()
}

pub fn sums(statistics: &[f64], rows: &[usize]) -> Vec<f64> {
    (0..3).map(|c| rows.iter().map(|r| statistics[3 * r + c]).sum()).collect()
}

/// Size of the terms of a leaf's cost.
pub fn size(instance: &Instance, leaf: &[usize]) -> f64 {
    let s = sums(&statistics(instance), leaf);
    s[2] + s[0].sqrt()
}

fn each(cells: &Cells, out: &mut [f64], f: Cost) {
    assert_eq!(cells.len(), out.len());
    for (i, out) in out.iter_mut().enumerate() {
        let sums: Vec<f64> = (0..cells.channels()).map(|c| cells.channel(c)[i]).collect();
        assert!(sums[0] > 0.0, "an empty cell was handed out");
        *out = f(&sums);
    }
}

impl BatchTask for User {
    fn leaf_costs(&self, cells: &Cells, costs: &mut [f64]) -> Result<(), Stop> {
        each(cells, costs, self.leaf);
        Ok(())
    }

    fn has_split_costs(&self) -> bool {
        self.split.is_some()
    }

    fn split_costs(&self, cells: &Cells, costs: &mut [f64]) -> Result<(), Stop> {
        each(cells, costs, self.split.expect("only with split costs"));
        Ok(())
    }

    fn lower_bounds(&self, cells: &Cells, bounds: &mut [f64]) -> Result<(), Stop> {
        each(cells, bounds, self.bound.unwrap_or(|_| f64::NEG_INFINITY));
        Ok(())
    }
}
