//! Runs: neighbouring columns whose rows are nested, like those of the thresholds of a number.
//!
//! The sums of such a column are those of the next smaller column plus those of the rows that it
//! adds. So a row is visited once per number, and not once for every threshold that it satisfies.

/// Most columns of a run, because sums are kept for each of them.
pub const LONGEST: usize = 8;

/// Columns `first..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub first: usize,
    pub end: usize,
    /// Whether later columns have more rows.
    rises: bool,
}

/// One step along a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    pub column: usize,
    /// The previous column, whose rows are all among those of this one.
    pub inner: Option<usize>,
    /// Position of this column in the run.
    pub at: usize,
    pub of: usize,
}

impl Visit {
    /// A column without a run.
    pub fn alone(column: usize) -> Self {
        Visit { column, inner: None, at: 0, of: 1 }
    }

    /// The step along its run, or the column without a run.
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

    /// The columns, from the one with the fewest rows to the one with the most.
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

    /// First lane beyond a column, or beyond the columns that are visited after it.
    #[inline(always)]
    pub fn first_lane(self, column: usize) -> usize {
        1 + if self.rises { column } else { self.first }
    }

    /// The column of the two with fewer rows, which are the rows where both are true.
    #[inline(always)]
    pub fn both(self, a: usize, b: usize) -> usize {
        if self.rises { a.min(b) } else { a.max(b) }
    }
}

/// All columns in runs; columns without nested neighbours are alone. O(rows · columns / 64).
pub fn runs_of<'a>(n_columns: usize, rows: impl Iterator<Item = &'a [u64]>) -> Vec<Run> {
    // Whether a column is true in some row where the next one is not, and the reverse.
    let mut beyond = vec![[0u64; 2]; n_columns.div_ceil(64)];
    for row in rows {
        for (w, beyond) in beyond.iter_mut().enumerate() {
            let (own, next) = (row[w], neighbours(row, w)[1]);
            *beyond = [beyond[0] | own & !next, beyond[1] | next & !own];
        }
    }
    let nested = |c: usize, rises: bool| beyond[c / 64][usize::from(!rises)] >> (c % 64) & 1 == 0;
    let mut runs: Vec<Run> = Vec::new();
    for c in 0..n_columns {
        let grown = runs.last().copied().and_then(|run: Run| match run.len() {
            LONGEST.. => None,
            1 => [true, false].into_iter().find(|&rises| nested(c - 1, rises)),
            _ => Some(run.rises).filter(|&rises| nested(c - 1, rises)),
        });
        match (grown, runs.last_mut()) {
            (Some(rises), Some(run)) => (run.end, run.rises) = (c + 1, rises),
            _ => runs.push(Run { first: c, end: c + 1, rises: true }),
        }
    }
    runs
}

/// Number of rows by the number of runs that have a true column in the row.
pub fn true_runs<'a>(runs: &[Run], rows: impl Iterator<Item = &'a [u64]>) -> Vec<usize> {
    // Columns that contain all rows of the previous one, and of the next one.
    let words = runs.last().map_or(0, |run| run.end.div_ceil(64));
    let mut outer = vec![[0u64; 2]; words];
    for (run, visit) in runs.iter().flat_map(|run| run.visits().map(move |visit| (run, visit))) {
        if visit.inner.is_some() {
            outer[visit.column / 64][usize::from(!run.rises)] |= 1 << (visit.column % 64);
        }
    }
    let mut numbers = vec![0; runs.len() + 1];
    for row in rows {
        let first = |(w, outer): (usize, &[u64; 2])| {
            let [before, after] = neighbours(row, w);
            (row[w] & !(before & outer[0]) & !(after & outer[1])).count_ones() as usize
        };
        numbers[outer.iter().enumerate().map(first).sum::<usize>()] += 1;
    }
    numbers
}

/// Values of the columns before and after those of a word.
fn neighbours(row: &[u64], w: usize) -> [u64; 2] {
    let before = if w > 0 { row[w - 1] >> 63 } else { 0 };
    let after = if w + 1 < row.len() { row[w + 1] << 63 } else { 0 };
    [row[w] << 1 | before, row[w] >> 1 | after]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of two unrelated columns, 63 columns in three groups of equal ones, each group within
    /// the next, and five nested columns.
    fn rows() -> (Vec<[u64; 2]>, usize) {
        let below = |c: usize, r: u64| match c {
            0 => r % 7 == 1,
            1 => r % 5 == 1,
            2..65 => r % 64 < (c as u64 - 2) / 21,
            _ => r % 11 > c as u64 - 60,
        };
        let row = |r: u64| {
            let mut row = [0; 2];
            (0..70).filter(|&c| below(c, r)).for_each(|c| row[c / 64] |= 1 << (c % 64));
            row
        };
        ((0..300).map(row).collect(), 70)
    }

    fn holds(row: &[u64; 2], c: usize) -> bool {
        row[c / 64] >> (c % 64) & 1 == 1
    }

    #[test]
    fn columns_of_a_run_are_visited_after_those_that_they_hold() {
        let (rows, n) = rows();
        let runs = runs_of(n, rows.iter().map(|row| &row[..]));
        assert!(runs.iter().all(|run| run.len() <= LONGEST));
        assert!(runs.iter().any(|run| run.len() > 2 && run.rises));
        assert!(runs.iter().any(|run| run.len() > 2 && !run.rises && run.first > 63));
        assert!(runs.iter().any(|run| run.first < 64 && run.end > 64));
        let mut end = 0;
        for run in &runs {
            assert_eq!(run.first, std::mem::replace(&mut end, run.end));
            let mut before = None;
            for visit in run.visits() {
                assert_eq!((visit.inner, visit.of), (before, run.len()));
                before = Some(visit.column);
                for other in run.visits() {
                    let both = run.both(visit.column, other.column);
                    let of = |row| [visit.column, other.column].iter().all(|&c| holds(row, c));
                    assert!(rows.iter().all(|row| of(row) == holds(row, both)));
                }
            }
            assert!(run.visits().map(|visit| run.first_lane(visit.column)).is_sorted());
        }
        assert_eq!(end, n);
        let numbers = true_runs(&runs, rows.iter().map(|row| &row[..]));
        let of_row = |row| {
            let any = |run: &&Run| run.visits().any(|visit| holds(row, visit.column));
            runs.iter().filter(any).count()
        };
        for (number, count) in numbers.iter().enumerate() {
            assert_eq!(rows.iter().filter(|row| of_row(row) == number).count(), *count);
        }
    }
}
