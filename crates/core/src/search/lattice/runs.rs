//! Runs: neighbouring columns of which each has all rows of the one before, or of the one after, as
//! the thresholds of a number have.
//!
//! Sums over the rows of such a column are those of the column before plus those of the rows that it
//! adds. So a row is visited once for a number, not once for every threshold that it meets.

/// Most columns of a run, for sums are kept for every one of them.
pub const LONGEST: usize = 8;

/// Columns `first..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub first: usize,
    pub end: usize,
    /// Whether later columns have more rows.
    rises: bool,
}

/// A column of a run in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    pub column: usize,
    /// The column before, of which this one has all rows.
    pub inner: Option<usize>,
    /// Which of so many columns this is.
    pub at: usize,
    pub of: usize,
}

impl Visit {
    /// A column by itself.
    pub fn alone(column: usize) -> Self {
        Visit { column, inner: None, at: 0, of: 1 }
    }

    /// Along its run, or else by itself.
    #[inline(always)]
    pub fn along(self, its_run: bool) -> Self {
        if its_run { self } else { Visit::alone(self.column) }
    }
}

impl Run {
    /// Number of columns.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.end - self.first
    }

    /// The columns, from the one with the fewest rows to that with the most.
    #[inline(always)]
    pub fn visits(self) -> impl Iterator<Item = Visit> {
        let column = move |i: usize| if self.rises { self.first + i } else { self.end - 1 - i };
        (0..self.len()).map(move |at| Visit {
            column: column(at),
            inner: if at > 0 { Some(column(at - 1)) } else { None },
            at,
            of: self.len(),
        })
    }

    /// First lane beyond a column, or beyond those that are visited after it.
    #[inline(always)]
    pub fn first_lane(self, column: usize) -> usize {
        1 + if self.rises { column } else { self.first }
    }

    /// The column of the two that has fewer rows: those where both are true.
    #[inline(always)]
    pub fn both(self, a: usize, b: usize) -> usize {
        if self.rises { a.min(b) } else { a.max(b) }
    }
}

/// All columns in runs, those without nested neighbours by themselves.
pub fn runs_of<'a>(n_columns: usize, column: impl Fn(usize) -> &'a [u64]) -> Vec<Run> {
    let within = |a: usize, b: usize| {
        a.max(b) < n_columns && column(a).iter().zip(column(b)).all(|(a, b)| a & !b == 0)
    };
    let mut runs: Vec<Run> = Vec::new();
    for c in 0..n_columns {
        match runs.last_mut() {
            Some(run) if run.len() == 1 && within(c - 1, c) => (run.end, run.rises) = (c + 1, true),
            Some(run) if run.len() == 1 && within(c, c - 1) => {
                (run.end, run.rises) = (c + 1, false)
            }
            Some(run)
                if (2..LONGEST).contains(&run.len())
                    && if run.rises { within(c - 1, c) } else { within(c, c - 1) } =>
            {
                run.end = c + 1;
            }
            _ => runs.push(Run { first: c, end: c + 1, rises: true }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_run_are_visited_after_those_that_they_hold() {
        let columns = [0b1, 0b11, 0b111, 0b1000, 0b11110000, 0b11000000, 0b10000000, 0b1010];
        let runs = runs_of(columns.len(), |c| std::slice::from_ref(&columns[c]));
        let visits: Vec<Vec<usize>> =
            runs.iter().map(|run| run.visits().map(|visit| visit.column).collect()).collect();
        assert_eq!(visits, [vec![0, 1, 2], vec![3], vec![6, 5, 4], vec![7]]);
        for run in runs {
            let mut before = None;
            for visit in run.visits() {
                assert_eq!(visit.inner, before);
                before = Some(visit.column);
                for other in run.visits() {
                    let both = columns[visit.column] & columns[other.column];
                    assert_eq!(columns[run.both(visit.column, other.column)], both);
                }
            }
            let lanes = run.visits().map(|visit| run.first_lane(visit.column));
            assert!(
                lanes.is_sorted() && run.visits().all(|v| run.first_lane(v.column) <= v.column + 1)
            );
        }
    }

    #[test]
    fn runs_are_not_longer_than_sums_are_kept() {
        let columns: Vec<u64> = (0..64).map(|k| u64::MAX >> k).collect();
        let runs = runs_of(64, |c| std::slice::from_ref(&columns[c]));
        assert!(runs.iter().all(|run| run.len() <= LONGEST && !run.rises));
        assert_eq!(runs.iter().map(|run| run.len()).sum::<usize>(), 64);
    }
}
