//! Nonparametric estimators under right-censoring, defined once for the whole project.
//!
//! Everything starts from a [`RiskTable`]: the weight at risk, of events and of censorings at every
//! distinct time. Sums are taken in the order of (time, weight), so the result does not depend on
//! the order of the rows.

pub mod timeline;

use crate::data::Ranks;
use crate::precise::Precise;

/// Right-censored (and optionally left-truncated) observations, borrowed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observations<'a> {
    /// Time of event or censoring, finite and non-negative.
    pub time: &'a [f64],
    /// Whether the event was observed.
    pub event: &'a [bool],
    /// Row weights; `None` means one each.
    pub weight: Option<&'a [f64]>,
    /// Delayed entry: row `i` is at risk at `t` only when `entry[i] < t <= time[i]`.
    pub entry: Option<&'a [f64]>,
    /// Number of equal rows that each row stands for; `None` means one.
    pub count: Option<&'a [i64]>,
    /// Position of every time among the distinct times, if known. It is checked; if it is wrong,
    /// the times are sorted.
    pub place: Option<&'a [i64]>,
}

impl Observations<'_> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Weight of row `i`.
    pub fn weight(&self, i: usize) -> f64 {
        self.weight.map_or(1.0, |w| w[i])
    }

    /// Number of rows that row `i` stands for.
    pub fn count(&self, i: usize) -> f64 {
        self.count.map_or(1.0, |count| count[i] as f64)
    }
}

/// Weight at risk, of events and of censorings at every distinct time, ascending.
#[derive(Clone, Debug, Default)]
pub struct RiskTable {
    /// Distinct times.
    pub time: Vec<f64>,
    /// Weight of the rows at risk at that time.
    pub at_risk: Vec<f64>,
    /// Weight of the events at that time.
    pub events: Vec<f64>,
    /// Weight of the censorings at that time.
    pub censored: Vec<f64>,
    /// Weight at risk that does not leave at that time. It is a sum and never a difference, so
    /// nothing cancels if weights differ in size.
    staying: Vec<f64>,
    /// Position of each time among the times of all groups.
    place: Vec<u32>,
}

impl RiskTable {
    /// Builds the table; O(n), or O(n log n) with weights.
    pub fn new(obs: &Observations) -> Self {
        RiskTable::of_all(obs, &Places::of(obs))
    }

    /// One table for the rows of every group in `0..n_groups`; rows of other groups are ignored.
    /// The times are sorted once.
    pub fn by_group(obs: &Observations, group: &[u32], n_groups: usize) -> Vec<Self> {
        RiskTable::of_groups(obs, &Places::of(obs), |row| group[row], n_groups)
    }

    fn with_capacity(n: usize) -> Self {
        let column = || Vec::with_capacity(n);
        let (time, events, censored, place) = (column(), column(), column(), Vec::with_capacity(n));
        RiskTable { time, events, censored, place, ..RiskTable::default() }
    }

    fn of_all(obs: &Observations, places: &Places) -> Self {
        RiskTable::of_groups(obs, places, |_| 0, 1).remove(0)
    }

    fn of_groups(
        obs: &Observations,
        places: &Places,
        group: impl Fn(usize) -> u32,
        n_groups: usize,
    ) -> Vec<Self> {
        if let Observations { weight: None, entry: None, count: None, .. } = obs {
            return counted(obs.event, places, group, n_groups);
        }
        let mut rows_of = vec![Vec::new(); n_groups];
        for placed in places.in_order(obs.weight) {
            if let Some(rows) = rows_of.get_mut(group(placed.row as usize) as usize) {
                rows.push(placed);
            }
        }
        rows_of.iter().map(|rows| weighed(obs, &places.times, rows)).collect()
    }

    /// Σ weight · value over the rows, with twice the precision. `values` has an entry for every
    /// distinct time of all groups. `None` if it has fewer.
    pub fn sum_of(&self, values: &[f64]) -> Option<f64> {
        let mut sum = Precise::default();
        for ((&place, &events), &censored) in
            self.place.iter().zip(&self.events).zip(&self.censored)
        {
            sum.add_times(*values.get(place as usize)?, events + censored);
        }
        Some(sum.value())
    }

    /// Nelson–Aalen cumulative hazard Λ at every distinct time: Σ d/n.
    pub fn nelson_aalen(&self) -> Vec<f64> {
        self.nelson_aalen_precise().into_iter().map(Precise::value).collect()
    }

    /// As [`nelson_aalen`](Self::nelson_aalen) with twice the precision, for computing differences.
    pub fn nelson_aalen_precise(&self) -> Vec<Precise> {
        let mut hazard = Precise::default();
        let step = |k: usize| {
            if self.events[k] > 0.0 {
                hazard.add(self.events[k] / self.at_risk[k]);
            }
            hazard
        };
        (0..self.time.len()).map(step).collect()
    }

    /// Kaplan–Meier survival at every distinct time: Π (n − d)/n.
    pub fn kaplan_meier(&self) -> Vec<f64> {
        self.product(|k| (self.events[k], self.censored[k] + self.staying[k]))
    }

    /// Kaplan–Meier estimate G of the censoring distribution, right-continuous.
    ///
    /// With `events_leave_first`, the events of a time are no longer at risk for the censorings of
    /// that time (the convention of scikit-survival). Without it, every row with `time >= t` is at
    /// risk (OSST, Zhang et al. 2024).
    pub fn censoring(&self, events_leave_first: bool) -> Vec<f64> {
        self.product(|k| {
            let others = if events_leave_first { 0.0 } else { self.events[k] };
            (self.censored[k], others + self.staying[k])
        })
    }

    /// Product, up to every distinct time, of the share of the weight that stays. `at` returns the
    /// weights that leave and stay; no share exceeds one.
    fn product(&self, at: impl Fn(usize) -> (f64, f64)) -> Vec<f64> {
        let mut survival = 1.0;
        let step = |k: usize| {
            let (go, stay) = at(k);
            if go > 0.0 {
                survival *= stay / (stay + go);
            }
            survival
        };
        (0..self.time.len()).map(step).collect()
    }
}

/// A row, and the position of its time among the distinct times.
#[derive(Clone, Copy)]
struct Placed {
    row: u32,
    place: u32,
}

/// The distinct times, ascending, and the position of every row's time among them.
struct Places {
    times: Vec<f64>,
    of_row: Vec<u32>,
}

impl Places {
    fn of(obs: &Observations) -> Self {
        let known = obs.place.and_then(|place| Places::checked(place, obs.time));
        known.unwrap_or_else(|| {
            let Ranks { ranks, distinct } = Ranks::new(obs.time);
            Places { times: distinct, of_row: ranks }
        })
    }

    /// Accepts the positions if they match the times.
    fn checked(place: &[i64], time: &[f64]) -> Option<Self> {
        let n_times = usize::try_from(place.iter().max()?.checked_add(1)?).ok()?;
        if place.len() != time.len() || n_times > time.len() {
            return None;
        }
        let mut times = vec![f64::NAN; n_times];
        for (&place, &time) in place.iter().zip(time) {
            // Adding 0 turns −0 into 0.
            *times.get_mut(usize::try_from(place).ok()?)? = time + 0.0;
        }
        let own = |(&place, &time): (&i64, &f64)| times[place as usize] == time;
        (times.is_sorted_by(|a, b| a < b) && place.iter().zip(time).all(own))
            .then(|| Places { times, of_row: place.iter().map(|&place| place as u32).collect() })
    }

    /// Where the rows of every time begin if rows are ordered by time.
    fn starts(&self) -> Vec<u32> {
        let mut starts = vec![0; self.times.len() + 1];
        self.of_row.iter().for_each(|&place| starts[place as usize + 1] += 1);
        (1..starts.len()).for_each(|place| starts[place] += starts[place - 1]);
        starts
    }

    /// The rows ordered by time, or with weights by (time, weight), so that no sum over them
    /// depends on the order of the caller's rows.
    fn in_order(&self, weight: Option<&[f64]>) -> Vec<Placed> {
        let mut next = self.starts();
        let mut rows = vec![Placed { row: 0, place: 0 }; self.of_row.len()];
        for (row, &place) in (0..).zip(&self.of_row) {
            let at = &mut next[place as usize];
            rows[*at as usize] = Placed { row, place };
            *at += 1;
        }
        if let Some(weight) = weight {
            for tied in rows.chunk_by_mut(|a, b| a.place == b.place) {
                tied.sort_by(|a, b| weight[a.row as usize].total_cmp(&weight[b.row as usize]));
            }
        }
        rows
    }
}

/// Λ at every row's own time, for training: Nelson–Aalen, or 1/(W + 1) if that is zero.
///
/// With delayed entry it is the hazard between entry and time, with the same floor.
pub fn baseline_hazard(obs: &Observations) -> Vec<f64> {
    let places = Places::of(obs);
    let table = RiskTable::of_all(obs, &places);
    let hazard = table.nelson_aalen_precise();
    let total_weight: f64 = table.events.iter().chain(&table.censored).sum();
    let floor = 1.0 / (total_weight + 1.0);
    let floored = |increase: f64| if increase > 0.0 { increase } else { floor };
    let Some(entry) = obs.entry else {
        let at_time: Vec<f64> = hazard.into_iter().map(|h| floored(h.value())).collect();
        return places.of_row.iter().map(|&k| at_time[k as usize]).collect();
    };
    // After a late entry little of the hazard remains, and it must keep all its digits.
    let increase = |(&k, &entry): (&u32, &f64)| {
        let before = step_value(&table.time, &hazard, Precise::default(), entry);
        floored(hazard[k as usize].minus(before).value())
    };
    places.of_row.iter().zip(entry).map(increase).collect()
}

/// The tables of groups of rows without weights or delayed entry.
fn counted(
    event: &[bool],
    places: &Places,
    group: impl Fn(usize) -> u32,
    n_groups: usize,
) -> Vec<RiskTable> {
    // For every row in the order of time: twice its group, plus one for an event.
    let mut codes = vec![0; event.len()];
    let mut ends = places.starts();
    let mut sizes = vec![0; n_groups + 1];
    for (row, &place) in places.of_row.iter().enumerate() {
        let (group, end) = (group(row).min(n_groups as u32), &mut ends[place as usize]);
        codes[*end as usize] = 2 * group + u32::from(event[row]);
        *end += 1;
        sizes[group as usize] += 1;
    }
    let table = |&size: &usize| RiskTable::with_capacity(size.min(places.times.len()));
    let mut tables: Vec<RiskTable> = sizes[..n_groups].iter().map(table).collect();
    let mut begin = 0;
    for ((place, &time), end) in (0..).zip(&places.times).zip(ends) {
        for code in &codes[begin..end as usize] {
            let Some(table) = tables.get_mut(*code as usize / 2) else { continue };
            if table.place.last() != Some(&place) {
                table.place.push(place);
                table.time.push(time);
                table.events.push(0.0);
                table.censored.push(0.0);
            }
            let counts = if code % 2 == 1 { &mut table.events } else { &mut table.censored };
            counts[table.place.len() - 1] += 1.0;
        }
        begin = end as usize;
    }
    for table in &mut tables {
        let mut sum = 0.0;
        let n = table.time.len();
        (table.staying, table.at_risk) = (vec![0.0; n], vec![0.0; n]);
        for k in (0..n).rev() {
            table.staying[k] = sum;
            sum += table.events[k] + table.censored[k];
            table.at_risk[k] = sum;
        }
    }
    tables
}

/// The table of the given rows, which are ordered by time. Sums have twice the precision.
fn weighed(obs: &Observations, times: &[f64], rows: &[Placed]) -> RiskTable {
    let mut place = Vec::new();
    // Position of every row in the table.
    let mut at = Vec::with_capacity(rows.len());
    for placed in rows {
        if place.last() != Some(&placed.place) {
            place.push(placed.place);
        }
        at.push(place.len() as u32 - 1);
    }
    let time: Vec<f64> = place.iter().map(|&place| times[place as usize]).collect();
    let n = time.len();
    let mut columns = [vec![Precise::default(); n], vec![Precise::default(); n]];
    for (placed, &at) in rows.iter().zip(&at) {
        let i = placed.row as usize;
        columns[usize::from(obs.event[i])][at as usize].add_times(obs.weight(i), obs.count(i));
    }
    let [censored, events] = columns;
    let staying = match obs.entry {
        None => later(events.iter().zip(&censored).map(|(&e, &c)| e.plus(c)).collect()),
        Some(entry) => staying(obs, entry, (rows, &at), &time),
    };
    let at_risk = |k: usize| staying[k].plus(events[k].plus(censored[k])).value();
    let at_risk = (0..n).map(at_risk).collect();
    let values = |sums: &[Precise]| sums.iter().map(|sum| sum.value()).collect();
    let [events, censored, staying] = [&events, &censored, &staying].map(|sums| values(sums));
    RiskTable { time, at_risk, events, censored, staying, place }
}

/// Sums of all later values.
fn later(mut values: Vec<Precise>) -> Vec<Precise> {
    let mut sum = Precise::default();
    for value in values.iter_mut().rev() {
        let own = std::mem::replace(value, sum);
        sum = sum.plus(own);
    }
    values
}

/// Weight with `entry < t < time` at each distinct time `t`; O(n log n).
///
/// The nodes of a binary tree over the times hold the weight of the rows that are at risk at all
/// times below the node. The weight at a time is the sum over the nodes above it. Differences of
/// running sums would cancel if late rows weigh much more than early ones.
fn staying(
    obs: &Observations,
    entry: &[f64],
    (rows, at): (&[Placed], &[u32]),
    time: &[f64],
) -> Vec<Precise> {
    let n = time.len();
    let mut nodes = vec![Precise::default(); 2 * n];
    for (placed, &at) in rows.iter().zip(at) {
        let i = placed.row as usize;
        let mut first = n + time.partition_point(|&t| t <= entry[i]);
        let mut end = n + at as usize;
        while first < end {
            if first % 2 == 1 {
                nodes[first].add_times(obs.weight(i), obs.count(i));
                first += 1;
            }
            if end % 2 == 1 {
                end -= 1;
                nodes[end].add_times(obs.weight(i), obs.count(i));
            }
            (first, end) = (first / 2, end / 2);
        }
    }
    for node in 2..2 * n {
        nodes[node] = nodes[node].plus(nodes[node / 2]);
    }
    nodes.split_off(n)
}

/// Value at `t` of the right-continuous step function through `(times, values)`; `before` is its
/// value to the left of the first time.
pub fn step_value<T: Copy>(times: &[f64], values: &[T], before: T, t: f64) -> T {
    match times.partition_point(|&u| u <= t) {
        0 => before,
        k => values[k - 1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bristlecone_oracle::instances::Random;

    #[test]
    fn curves_of_a_hand_worked_sample() {
        let obs = Observations {
            time: &[2.0, 1.0, 2.0, 3.0, 2.0],
            event: &[true, true, false, true, true],
            ..Observations::default()
        };
        let table = RiskTable::new(&obs);
        assert_eq!(table.time, [1.0, 2.0, 3.0]);
        assert_eq!(table.at_risk, [5.0, 4.0, 1.0]);
        let expected = [0.2, 0.2 + 0.5, 0.2 + 0.5 + 1.0];
        assert_eq!(table.nelson_aalen(), expected);
        assert_eq!(table.kaplan_meier(), [0.8, 0.4, 0.0]);
        assert_eq!(table.censoring(false), [1.0, 0.75, 0.75]);
        assert_eq!(table.censoring(true), [1.0, 0.5, 0.5]);
    }

    #[test]
    fn late_heavy_rows_leave_light_ones_their_digits() {
        let obs = Observations {
            time: &[2.0, 4.0, 2.0, 9.0, 9.0, 9.0],
            event: &[true, true, true, true, true, false],
            weight: Some(&[1e-5, 1e-8, 1e10, 1.0, 1e-7, 1e30]),
            entry: Some(&[0.0, 1.0, 0.0, 5.0, 6.0, 4.0]),
            ..Observations::default()
        };
        let table = RiskTable::new(&obs);
        let (first, last) = (1e10 + 1e-5 + 1e-8, 1e30 + 1.0 + 1e-7);
        assert_eq!(table.at_risk, [first, 1e-8, last]);
        assert_eq!(table.nelson_aalen()[1], (1e10 + 1e-5) / first + 1.0);
        assert_eq!(table.kaplan_meier()[1..], [0.0, 0.0]);
    }

    #[test]
    fn a_row_is_at_risk_only_after_its_entry() {
        let obs = Observations {
            time: &[1.0, 2.0, 3.0],
            event: &[true, true, true],
            weight: None,
            entry: Some(&[0.0, 1.0, 0.0]),
            ..Observations::default()
        };
        assert_eq!(RiskTable::new(&obs).at_risk, [2.0, 2.0, 1.0]);
    }

    #[test]
    fn weights_count_as_repetition() {
        let obs = Observations {
            time: &[1.0, 2.0],
            event: &[true, false],
            weight: Some(&[2.0, 3.0]),
            ..Observations::default()
        };
        let table = RiskTable::new(&obs);
        assert_eq!(table.at_risk, [5.0, 3.0]);
        assert_eq!(table.kaplan_meier(), [0.6, 0.6]);
    }

    #[test]
    fn tables_by_group_are_those_of_their_rows() {
        for seed in 0..200 {
            let random = &mut Random::new(seed);
            let n = 40;
            let time: Vec<f64> = (0..n).map(|_| random.below(15) as f64).collect();
            let event: Vec<bool> = (0..n).map(|_| random.chance(0.5)).collect();
            let weight: Vec<f64> = (0..n).map(|_| 10f64.powf(12.0 * random.unit() - 6.0)).collect();
            let entry: Vec<f64> = time.iter().map(|t| (t * random.unit()).floor() - 1.0).collect();
            let group: Vec<u32> = (0..n).map(|_| random.below(4) as u32).collect();
            let obs = Observations {
                time: &time,
                event: &event,
                weight: random.chance(0.5).then_some(&weight),
                entry: random.chance(0.5).then_some(&entry),
                ..Observations::default()
            };
            let mut distinct = time.clone();
            distinct.sort_by(f64::total_cmp);
            distinct.dedup();
            let tables = RiskTable::by_group(&obs, &group, 3);
            for (k, table) in tables.iter().enumerate() {
                let rows: Vec<usize> = (0..n).filter(|&i| group[i] == k as u32).rev().collect();
                let take = |values: &[f64]| rows.iter().map(|&i| values[i]).collect::<Vec<f64>>();
                let (weight, entry) = (obs.weight.map(take), obs.entry.map(take));
                let own = Observations {
                    time: &take(&time),
                    event: &rows.iter().map(|&i| event[i]).collect::<Vec<bool>>(),
                    weight: weight.as_deref(),
                    entry: entry.as_deref(),
                    ..Observations::default()
                };
                let alone = RiskTable::new(&own);
                assert_eq!(table.time, alone.time);
                assert_eq!(table.at_risk, alone.at_risk);
                assert_eq!(table.events, alone.events);
                assert_eq!(table.kaplan_meier(), alone.kaplan_meier());
                let value: Vec<f64> = distinct.iter().map(|time| 1.0 / (1.0 + time)).collect();
                let each = (0..own.len()).map(|i| own.weight(i) / (1.0 + own.time[i]));
                let (sum, expected) = (table.sum_of(&value).unwrap(), Precise::of(each).value());
                assert!((sum - expected).abs() <= 1e-15 * expected);
            }
        }
    }

    #[test]
    fn known_places_are_used_and_wrong_ones_are_not() {
        let time = [3.0, 1.0, -0.0, 1.0, 0.0];
        let event = [true, false, true, true, false];
        let obs = Observations { time: &time, event: &event, ..Observations::default() };
        let alone = RiskTable::new(&obs);
        let places: [&[i64]; 8] = [
            &[2, 1, 0, 1, 0],
            &[2, 1, 0, 1],
            &[3, 1, 0, 1, 0],
            &[2, 1, -1, 1, 0],
            &[1, 0, 1, 0, 1],
            &[1, 2, 0, 2, 0],
            &[9, 1, 0, 1, 0],
            &[i64::MAX, 1, 0, 1, 0],
        ];
        for (k, place) in places.into_iter().enumerate() {
            assert_eq!(Places::checked(place, &time).is_some(), k == 0, "{place:?}");
            let table = RiskTable::new(&Observations { place: Some(place), ..obs });
            assert_eq!((table.time, table.at_risk), (alone.time.clone(), alone.at_risk.clone()));
        }
    }

    #[test]
    fn no_curve_rises() {
        for seed in 0..300 {
            let random = &mut Random::new(seed);
            let n = 30;
            let time: Vec<f64> = (0..n).map(|_| random.below(20) as f64).collect();
            let event: Vec<bool> = (0..n).map(|_| random.chance(0.5)).collect();
            let weight: Vec<f64> = (0..n).map(|_| 10f64.powf(12.0 * random.unit() - 6.0)).collect();
            let entry: Vec<f64> = time.iter().map(|t| (t * random.unit()).floor() - 1.0).collect();
            for entry in [None, Some(&entry[..])] {
                let (time, event, weight) = (&time[..], &event[..], Some(&weight[..]));
                let obs = Observations { time, event, weight, entry, ..Observations::default() };
                let table = RiskTable::new(&obs);
                for curve in [table.kaplan_meier(), table.censoring(true), table.censoring(false)] {
                    assert!(curve[0] <= 1.0 && curve.is_sorted_by(|a, b| a >= b), "{curve:?}");
                }
            }
        }
    }
}
