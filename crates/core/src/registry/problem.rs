//! The rows of a problem, in the form that tasks read.

use super::columns::Columns;
use crate::data::check_size;
use crate::error::{Error, not_negative};
use crate::survival::Observations;
use crate::task::Weights;
use crate::task::groups::Groups;
use crate::task::prices::FeaturePrices;

/// Most labels that the lattice kernels support.
const MOST_LABELS: usize = 32;

/// Most groups of rows.
const MOST_GROUPS: usize = 1 << 10;

/// Columns that have one entry per row in every task.
const PER_ROW: [&str; 17] = [
    "count",
    "cause",
    "weight",
    "labels",
    "costs",
    "target",
    "exposure",
    "time",
    "event",
    "entry",
    "place",
    "smoothed",
    "shares",
    "reference_loss",
    "group",
    "group_weight",
    "statistics",
];

/// Data and limits of a task.
#[derive(Clone, Debug)]
pub struct Problem<'a> {
    /// Values of the rows, and everything else that the task needs.
    pub columns: Columns<'a>,
    /// Number of rows.
    pub n_rows: usize,
    /// Number of features.
    pub n_features: usize,
    /// Price of a leaf in the normalised objective.
    pub leaf_penalty: f64,
    /// Most leaves of any allowed tree.
    pub max_leaves: usize,
}

impl<'a> Problem<'a> {
    /// Before anything is prepared, rejects limits that no tree can satisfy, data that are too
    /// large, and columns without one entry per row.
    pub(super) fn check(&self) -> Result<(), Error> {
        check_size(self.n_rows, self.n_features)?;
        if self.max_leaves == 0 {
            return Err(Error::invalid("max_leaf_nodes", "must be at least 1"));
        }
        self.columns.check_rows(&PER_ROW, self.n_rows)
    }

    /// Weight of each row; `None` if all rows weigh the same.
    pub fn weights(&self) -> Result<Option<&'a [f64]>, Error> {
        let weights = self.columns.numbers_if_any("weight")?;
        not_negative("sample_weight", weights.unwrap_or(&[]))?;
        Ok(weights)
    }

    /// Weights, and the number of rows that each record stands for.
    pub fn rows(&self) -> Result<Weights<'a>, Error> {
        let count = self.columns.codes_if_any("count")?;
        if let Some(at) = count.and_then(|count| count.iter().position(|&n| n < 1)) {
            return Err(Error::invalid("count", format!("record {at} stands for no row")));
        }
        Ok(Weights { weight: self.weights()?, count })
    }

    /// Class of every row, and the number of classes.
    pub fn labels(&self) -> Result<(Vec<usize>, usize), Error> {
        let codes = self.columns.codes("labels")?;
        let n_classes = self.count("n_classes")?;
        if n_classes > MOST_LABELS {
            let reason = format!("has {n_classes} classes; at most {MOST_LABELS} are supported");
            return Err(Error::invalid("y", reason));
        }
        let label = |(row, &code): (usize, &i64)| {
            usize::try_from(code)
                .map_err(|_| Error::invalid("y", format!("row {row} has label {code}")))
        };
        let labels = codes.iter().enumerate().map(label).collect::<Result<_, _>>()?;
        Ok((labels, n_classes))
    }

    /// Share of every class in every row, `[row][class]`, and the number of classes; `None` if rows
    /// have labels.
    pub fn shares(&self) -> Result<Option<(&'a [f64], usize)>, Error> {
        let given = self.columns.table_if_any("shares")?.is_some();
        given.then(|| self.of_labels("shares")).transpose()
    }

    /// A number for every label of every row, `[row][label]`, and the number of labels.
    pub fn of_labels(&self, name: &'static str) -> Result<(&'a [f64], usize), Error> {
        let (values, n_labels) = self.columns.table(name)?;
        if n_labels == 0 || n_labels > MOST_LABELS {
            let reason = format!("{n_labels} labels are not within 1..{MOST_LABELS}");
            return Err(Error::invalid(name, reason));
        }
        Ok((values, n_labels))
    }

    /// Prices of the features, if the objective contains the costs of questions.
    pub fn prices(&self) -> Result<FeaturePrices, Error> {
        let columns = &self.columns;
        let cost = columns.numbers("feature_cost")?;
        let (n, n_features) = (cost.len(), self.n_features);
        if n != n_features {
            let reason = format!("has {n} entries, X has {n_features} columns");
            return Err(Error::invalid("feature_cost", reason));
        }
        FeaturePrices::new(
            cost,
            columns.numbers_if_any("feature_discount")?,
            columns.codes_if_any("feature_origin")?,
            columns.codes_if_any("feature_group")?,
        )
    }

    /// Right-censored outcomes.
    pub fn observations(&self) -> Result<Observations<'a>, Error> {
        let observations = Observations {
            time: self.columns.numbers("time")?,
            event: self.columns.flags("event")?,
            weight: self.weights()?,
            entry: self.columns.numbers_if_any("entry")?,
            place: self.columns.codes_if_any("place")?,
            ..Observations::default()
        };
        not_negative("time", observations.time)?;
        not_negative("entry", observations.entry.unwrap_or(&[]))?;
        Ok(observations)
    }

    /// As [`observations`](Self::observations), for records that may stand for several rows.
    pub fn counted_observations(&self) -> Result<Observations<'a>, Error> {
        Ok(Observations { count: self.rows()?.count, ..self.observations()? })
    }

    /// Loss of a reference model on each row.
    pub fn reference_loss(&self) -> Result<Option<&'a [f64]>, Error> {
        let losses = self.columns.numbers_if_any("reference_loss")?;
        not_negative("reference_loss", losses.unwrap_or(&[]))?;
        Ok(losses)
    }

    /// A column of zeros and ones.
    pub fn binary(&self, name: &'static str) -> Result<Vec<bool>, Error> {
        let codes = self.columns.codes(name)?;
        match codes.iter().position(|code| !(0..=1).contains(code)) {
            Some(row) => Err(Error::invalid(name, format!("row {row} is not 0 or 1"))),
            None => Ok(codes.iter().map(|&code| code == 1).collect()),
        }
    }

    /// Group of every row, and the number of groups.
    pub fn groups(&self) -> Result<(Vec<usize>, usize), Error> {
        let group = |(row, &code): (usize, &i64)| match usize::try_from(code) {
            Ok(group) if group < MOST_GROUPS => Ok(group),
            _ => Err(Error::invalid("group", format!("row {row} has group {code}"))),
        };
        let codes = self.columns.codes("group")?.iter().enumerate();
        let groups: Vec<usize> = codes.map(group).collect::<Result<_, _>>()?;
        let n_groups = groups.iter().max().map_or(0, |most| most + 1);
        Ok((groups, n_groups))
    }

    /// Minimum number of rows of every group in a leaf; without groups if there is no minimum.
    pub fn minimum(&self) -> Result<Groups, Error> {
        if self.columns.number_if_any("fewest")?.is_none() {
            return Ok(Groups::default());
        }
        let (groups, n_groups) = self.groups()?;
        if n_groups > MOST_LABELS {
            let reason = format!("has {n_groups} groups, {MOST_LABELS} at most");
            return Err(Error::invalid("group", reason));
        }
        Groups::new(groups, n_groups, self.count("fewest")? as i64)
    }

    /// A non-negative number.
    pub fn amount(&self, name: &'static str) -> Result<f64, Error> {
        let value = self.columns.number(name)?;
        if value.is_finite() && value >= 0.0 {
            Ok(value)
        } else {
            Err(Error::invalid(name, format!("{value} is not a number >= 0")))
        }
    }

    /// Pseudo-events of the prior of every leaf; 0 if not given.
    pub fn prior(&self) -> Result<f64, Error> {
        Ok(self.columns.number_if_any("prior")?.unwrap_or(0.0))
    }

    fn count(&self, name: &'static str) -> Result<usize, Error> {
        let value = self.columns.number(name)?;
        if value >= 0.0 && value.fract() == 0.0 && value < 1e15 {
            Ok(value as usize)
        } else {
            Err(Error::invalid(name, format!("{value} is not a whole number >= 0")))
        }
    }
}
