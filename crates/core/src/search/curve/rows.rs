//! Rows of a node in the order of time, and the tables that all nodes share.

use crate::data::{BinaryMatrix, Column, Sample, column_bitsets, n_words, ones, random_number};
use crate::error::Error;
use crate::precise::Precise;
use crate::survival::timeline::{Code, Timeline};
use crate::task::brier::exact;
use crate::task::brier::passes::Times;
use crate::task::curve::{CurveTask, LeafCurve, Rounding};

/// Distinct rows of a node, as a set of rows of the tables.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// One bit per row.
    pub mask: Vec<u64>,
    /// Identifies the set of rows.
    pub hash: u128,
    /// Number of the caller's rows.
    pub count: f64,
    /// A lower bound on the loss of every tree on these rows, without the price of its leaves.
    pub floor: f64,
}

impl Rows {
    /// The rows of the tables, ascending.
    pub fn ids(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        ones(&self.mask)
    }

    /// Splits into the rows where column `c` is true and those where it is false; `count` and
    /// `floor` belong to the former.
    pub fn split(
        &self,
        c: usize,
        tables: &Tables,
        (count, floor): (f64, f64),
        yes: &mut Rows,
        no: &mut Rows,
    ) {
        let column = tables.column(c);
        yes.mask.clear();
        yes.mask.extend(self.mask.iter().zip(column).map(|(rows, column)| rows & column));
        no.mask.clear();
        no.mask.extend(self.mask.iter().zip(column).map(|(rows, column)| rows & !column));
        yes.hash = tables.hash(&yes.mask);
        // The hash is a sum over the rows.
        no.hash = self.hash.wrapping_sub(yes.hash);
        (yes.count, yes.floor) = (count, floor);
        (no.count, no.floor) = (self.count - count, (self.floor - floor).max(0.0));
    }
}

/// Values that are summed over rows, apart from their weight.
///
/// Rows with equal columns are never separated. The floor of such a group is stored at its first
/// row, and is zero at the others.
#[derive(Clone, Copy, Debug, Default)]
pub struct About {
    /// Number of the caller's rows.
    pub count: f64,
    /// Smallest loss of any non-increasing curve on the group (or the loss of the reference model).
    pub floor: f64,
}

/// Total weight of equal rows.
#[derive(Clone, Copy)]
struct Merged {
    /// Rounded to whole numbers.
    whole: f64,
    /// Not rounded.
    exact: Precise,
}

/// The tables of a search.
#[derive(Debug)]
pub struct Tables {
    /// Position in time and kind of each row, ascending.
    pub code: Vec<Code>,
    /// Weight of each row, rounded to whole numbers.
    pub weight: Vec<f64>,
    /// For each code, the first row with a later code; ascending.
    pub run_end: Vec<u32>,
    /// Weight of each row in 16 bits, if these hold the weight of all rows of any code.
    pub small_weight: Option<Vec<u16>>,
    /// Whether weights count the caller's rows, and their total fits into 16 bits.
    pub countable: bool,
    /// Whether nodes are counted by time before their losses are computed.
    pub histograms: bool,
    /// Rows that contribute to more than counts: they have a floor, or their weight differs from
    /// their count.
    pub adding: Vec<u64>,
    /// Number of events of the rows, by binary digit: for each digit, the rows in which it is set.
    events: Vec<Vec<u64>>,
    bits: Vec<u64>,
    /// Words per row.
    pub words: usize,
    /// For each column, the rows where it is true, as [`Rows::mask`].
    column_masks: Vec<u64>,
    /// A random number for each word of a mask.
    random: Vec<u128>,
    /// The times.
    pub times: Times,
    /// Further values of each row.
    pub about: Vec<About>,
    /// Columns of the search.
    pub columns: Vec<Column>,
    /// Whether the weight of any row differs from its count.
    pub weighted: bool,
    /// Whether floors come from a reference model.
    pub reference: bool,
    /// Number of groups of rows with equal columns.
    pub n_groups: usize,
    /// Floor of all rows without the reference model.
    pub free_floor: f64,
    /// Number of groups with a floor.
    pub n_floors: usize,
    /// Data for losses that are computed leaf by leaf, if they are.
    pub exact: Option<Exact>,
    /// End of restricted means, if they are needed.
    pub end: Option<f64>,
}

/// Data for losses that are computed [leaf by leaf](exact).
#[derive(Debug)]
pub struct Exact {
    /// Times, with inverse-probability-of-censoring weights.
    pub timeline: Timeline,
    /// Unrounded weight of each row.
    pub weight: Vec<f64>,
    /// Error of passes, if only leaves that passes cannot rule out are computed leaf by leaf.
    pub passes: Option<Rounding>,
}

/// Nodes are counted in histograms if there are at least this many distinct rows per time.
const ROWS_PER_TIME: usize = 16;

impl Tables {
    /// The root and the tables.
    ///
    /// `floors` asks for the floor of every group of equal rows; `losses` are those of a reference
    /// model on each row. `leaf_by_leaf` is slow and exact.
    pub fn new(
        task: &(impl CurveTask + ?Sized),
        features: &BinaryMatrix,
        floors: bool,
        losses: Option<&[f64]>,
        leaf_by_leaf: bool,
    ) -> Result<(Rows, Tables), Error> {
        let timeline = task.timeline();
        let n = timeline.n_rows();
        if n != features.n_rows() {
            return Err(Error::invalid("y", "does not have a row for every row of X"));
        }
        if u32::try_from(n).is_err() {
            return Err(Error::invalid("X", "more than 2^32 rows"));
        }
        let columns = Sample::new(features, &[], 0).columns;
        let words = n_words(columns.len());
        let bits = packed_rows(features, &columns);
        let codes: Vec<Code> = (0..n).map(|r| timeline.code(r)).collect();
        let weights = timeline.whole_weights();
        let packed = |r: u32| &bits[r as usize * words..(r as usize + 1) * words];
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_unstable_by(|&r, &s| {
            packed(r).cmp(packed(s)).then(codes[r as usize].cmp(&codes[s as usize]))
        });
        // Merge equal rows, group by group.
        let (mut merged, mut group): (Vec<(u32, Merged, About)>, Vec<u32>) = Default::default();
        let mut reference = Vec::new();
        for (at, &r) in order.iter().enumerate() {
            let i = r as usize;
            let before = at.checked_sub(1).map(|at| order[at]);
            let same_group = before.is_some_and(|b| packed(b) == packed(r));
            if !same_group {
                reference.push(0.0);
            }
            if let Some(losses) = losses {
                *reference.last_mut().expect("a group was begun") += losses[i] * timeline.weight[i];
            }
            match merged.last_mut() {
                Some((first, weight, about))
                    if same_group && codes[*first as usize] == codes[i] =>
                {
                    weight.whole += weights[i];
                    weight.exact.add(timeline.weight[i]);
                    about.count += 1.0;
                }
                _ => {
                    let about = About { count: 1.0, ..About::default() };
                    let (whole, exact) = (weights[i], timeline.weight[i].into());
                    merged.push((r, Merged { whole, exact }, about));
                    group.push(reference.len() as u32 - 1);
                }
            }
        }
        let total: f64 = merged.iter().map(|row| row.1.whole).sum();
        let weighted = merged.iter().any(|(_, weight, about)| weight.whole != about.count);
        let mut tables = Tables {
            code: Vec::new(),
            weight: Vec::new(),
            run_end: Vec::new(),
            small_weight: None,
            countable: false,
            histograms: false,
            adding: Vec::new(),
            events: Vec::new(),
            bits: Vec::new(),
            words,
            column_masks: Vec::new(),
            random: Vec::new(),
            times: Times::new(timeline, total, task.horizon()),
            about: Vec::new(),
            columns,
            weighted,
            reference: losses.is_some(),
            n_groups: reference.len(),
            free_floor: 0.0,
            n_floors: 0,
            exact: None,
            end: task.horizon(),
        };
        let mut start = 0;
        while start < merged.len() {
            let len = group[start..].iter().take_while(|&&g| g == group[start]).count();
            let rows = merged[start..start + len].iter();
            let floor = match (floors, leaf_by_leaf) {
                (false, _) => 0.0,
                (_, false) => {
                    let rows = rows.map(|(r, weight, _)| (codes[*r as usize], weight.whole));
                    tables.times.leaf(LeafCurve::BrierOptimal, rows)
                }
                (_, true) => {
                    let rows =
                        rows.map(|(r, weight, _)| (codes[*r as usize], weight.exact.value()));
                    let rows: Vec<(Code, f64)> = rows.collect();
                    exact::leaf_loss(timeline, LeafCurve::BrierOptimal, &rows)
                }
            };
            tables.free_floor += floor;
            let head = &mut merged[start].2;
            head.floor = floor.max(reference[group[start] as usize] / timeline.total_weight());
            tables.n_floors += usize::from(head.floor > 0.0);
            start += len;
        }
        let mut by_time: Vec<u32> = (0..merged.len() as u32).collect();
        by_time.sort_by_key(|&m| codes[merged[m as usize].0 as usize]);
        let (mut root, mut weight_of) = (Rows::default(), Vec::new());
        for m in by_time {
            let (r, weight, about) = merged[m as usize];
            weight_of.push(weight.exact.value());
            tables.bits.extend_from_slice(packed(r));
            tables.code.push(codes[r as usize]);
            tables.weight.push(weight.whole);
            tables.about.push(about);
            root.count += about.count;
            root.floor += about.floor;
        }
        let n_distinct = merged.len();
        root.mask = vec![u64::MAX; n_distinct.div_ceil(64)];
        if !n_distinct.is_multiple_of(64) {
            *root.mask.last_mut().expect("a row") = (1 << (n_distinct % 64)) - 1;
        }
        tables.random = (0..root.mask.len() as u64).map(random_number).collect();
        root.hash = tables.hash(&root.mask);
        let row = |r: usize| &tables.bits[r * words..(r + 1) * words];
        column_bitsets(n_distinct, tables.columns.len(), row, &mut tables.column_masks);
        tables.run_end = vec![0; 2 * timeline.grid.len()];
        let mut of_run = vec![0.0; 2 * timeline.grid.len()];
        for (id, (&code, &weight)) in tables.code.iter().zip(&tables.weight).enumerate() {
            tables.run_end[code as usize] = id as u32 + 1;
            of_run[code as usize] += weight;
        }
        let mut last = 0;
        for end in &mut tables.run_end {
            last = last.max(*end);
            *end = last;
        }
        tables.adding = vec![0; root.mask.len()];
        for (id, about) in tables.about.iter().enumerate() {
            tables.adding[id / 64] |= u64::from(weighted || about.floor > 0.0) << (id % 64);
        }
        for (id, (&code, about)) in tables.code.iter().zip(&tables.about).enumerate() {
            let mut number = if code % 2 == 0 { about.count as u64 } else { 0 };
            while number > 0 {
                let bit = number.ilog2() as usize;
                number -= 1 << bit;
                if tables.events.len() <= bit {
                    tables.events.resize(bit + 1, vec![0; root.mask.len()]);
                }
                tables.events[bit][id / 64] |= 1 << (id % 64);
            }
        }
        if timeline.weight_scale() == 1.0
            && of_run.iter().all(|&weight| weight <= f64::from(u16::MAX))
        {
            tables.small_weight = Some(tables.weight.iter().map(|&w| w as u16).collect());
            tables.histograms = n_distinct >= ROWS_PER_TIME * timeline.grid.len();
            tables.countable = !weighted && total <= f64::from(u16::MAX);
        }
        tables.exact = leaf_by_leaf.then(|| Exact {
            timeline: timeline.clone(),
            weight: weight_of,
            passes: None,
        });
        Ok((root, tables))
    }

    /// Number of the caller's rows with an event where column `c` is false, and where it is true;
    /// O(rows / 64) for every binary digit of the largest number of rows merged into one.
    pub fn events(&self, rows: &Rows, c: usize) -> [u64; 2] {
        let column = self.column(c);
        let mut sides = [0; 2];
        for (bit, with_bit) in self.events.iter().enumerate() {
            for ((&rows, &column), &with_bit) in rows.mask.iter().zip(column).zip(with_bit) {
                let events = rows & with_bit;
                sides[0] += u64::from((events & !column).count_ones()) << bit;
                sides[1] += u64::from((events & column).count_ones()) << bit;
            }
        }
        sides
    }

    /// Sum over the words of a mask, each multiplied by its random number.
    fn hash(&self, mask: &[u64]) -> u128 {
        mask.iter().zip(&self.random).fold(0, |sum: u128, (&word, &random)| {
            sum.wrapping_add(random.wrapping_mul(u128::from(word)))
        })
    }

    /// The rows where column `c` is true, as [`Rows::mask`].
    pub fn column(&self, c: usize) -> &[u64] {
        let words = self.random.len();
        &self.column_masks[c * words..][..words]
    }

    /// Columns of row `id`.
    #[inline(always)]
    pub fn row(&self, id: u32) -> &[u64] {
        &self.bits[id as usize * self.words..][..self.words]
    }

    /// Columns of row `id` from `first` on, up to the end of its word.
    #[inline(always)]
    pub fn word(&self, id: u32, first: usize) -> u64 {
        self.bits[id as usize * self.words + first / 64] >> (first % 64)
    }
}

/// Bits of every row over these columns, via the transposed matrix, whose words hold 64 rows.
fn packed_rows(features: &BinaryMatrix, columns: &[Column]) -> Vec<u64> {
    let (n, row) = (features.n_rows(), |r| features.row(r));
    let (mut by_feature, mut bits) = (Vec::new(), Vec::new());
    column_bitsets(n, features.n_features(), row, &mut by_feature);
    let words = n_words(n);
    for Column { feature, .. } in columns.iter().filter(|column| column.flipped) {
        by_feature[feature * words..][..words].iter_mut().for_each(|word| *word = !*word);
    }
    let column = |c: usize| &by_feature[columns[c].feature * words..][..words];
    column_bitsets(columns.len(), n, column, &mut bits);
    bits
}
