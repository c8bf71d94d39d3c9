//! Compares whole trees with those of a slow and simple grower.

use super::*;
use crate::data::Ranks;
use crate::survival::{Observations, baseline_hazard};
use crate::task::{ScalarTask, likelihood};
use bristlecone_oracle::instances::Random;

/// A small sample with ties in the times and the columns.
#[derive(Clone)]
pub(super) struct Problem {
    pub codes: Vec<Vec<u32>>,
    pub time: Vec<f64>,
    pub event: Vec<bool>,
    pub weight: Vec<f64>,
    pub entry: Option<Vec<f64>>,
    /// Events that the likelihood counts instead of the observed ones.
    pub smoothed: Option<Vec<f64>>,
}

impl Problem {
    pub fn random(seed: u64, max_rows: usize) -> Self {
        let random = &mut Random::new(seed);
        let n = 2 + random.below(max_rows - 1);
        let n_times = 1 + random.below(n);
        let time: Vec<f64> = (0..n).map(|_| random.below(n_times) as f64 + 1.0).collect();
        let delayed = random.below(3) == 0;
        let fractional = random.below(2) == 0;
        let levels = [2, 2, 3, 5, n, n];
        let codes = levels.map(|levels| {
            let values: Vec<f64> = (0..n).map(|_| random.below(levels) as f64).collect();
            Ranks::new(&values).ranks
        });
        let share = |random: &mut Random| random.below(9) as f64 / 8.0;
        let mut event: Vec<bool> = (0..n).map(|_| random.below(3) > 0).collect();
        event[random.below(n)] = true;
        Problem {
            codes: codes.to_vec(),
            entry: delayed
                .then(|| time.iter().map(|&t| random.below(t as usize) as f64 * 0.5).collect()),
            time,
            event,
            weight: (0..n)
                .map(|_| (1 + random.below(3)) as f64 * if fractional { 0.3 } else { 1.0 })
                .collect(),
            smoothed: (random.below(2) == 0).then(|| (0..n).map(|_| share(random)).collect()),
        }
    }

    pub fn observations(&self) -> Observations<'_> {
        Observations {
            time: &self.time,
            event: &self.event,
            weight: Some(&self.weight),
            entry: self.entry.as_deref(),
            ..Observations::default()
        }
    }

    fn columns(&self) -> Vec<Codes<'_>> {
        self.codes.iter().map(|codes| Codes::Ranks(codes.into())).collect()
    }

    fn take(&self, rows: &[usize]) -> Problem {
        let pick = |values: &[f64]| rows.iter().map(|&i| values[i]).collect();
        Problem {
            codes: self.codes.iter().map(|c| rows.iter().map(|&i| c[i]).collect()).collect(),
            time: pick(&self.time),
            event: rows.iter().map(|&i| self.event[i]).collect(),
            weight: pick(&self.weight),
            entry: self.entry.as_deref().map(pick),
            smoothed: self.smoothed.as_deref().map(pick),
        }
    }

    fn grow(&self, by: By, limits: &Limits) -> Grown {
        self.grow_under(by, 0.0, limits)
    }

    /// Grows by likelihood with a prior of `prior` pseudo-events.
    fn grow_under(&self, by: By, prior: f64, limits: &Limits) -> Grown {
        let (obs, columns) = (self.observations(), self.columns());
        match by {
            By::LogRank => grow_by_logrank(columns, &obs, limits, || false),
            By::Likelihood => grow_by_costs(&self.task(prior, 0.0), columns, limits, || false),
        }
        .unwrap()
    }

    pub fn task(&self, prior: f64, leaf_penalty: f64) -> likelihood::Likelihood {
        let (obs, smoothed) = (self.observations(), self.smoothed.as_deref());
        likelihood::Likelihood::of_smoothed(&obs, smoothed, prior, leaf_penalty).unwrap()
    }

    /// Gain of a split of some rows, straight from the definitions.
    fn gain(&self, by: By, prior: f64, rows: &[usize], left: &dyn Fn(usize) -> bool) -> f64 {
        match by {
            By::LogRank => self.log_rank(rows, left),
            By::Likelihood => {
                let hazard = baseline_hazard(&self.observations());
                let fit = |inside: &dyn Fn(usize) -> bool| {
                    let part = rows.iter().filter(|&&i| inside(i));
                    let (mut events, mut sum) = (0.0, 0.0);
                    for &i in part {
                        let observed = f64::from(u8::from(self.event[i]));
                        events +=
                            self.weight[i] * self.smoothed.as_ref().map_or(observed, |e| e[i]);
                        sum += self.weight[i] * hazard[i];
                    }
                    let (events, sum) = (events + prior, sum + prior);
                    if events > 0.0 { events * f64::ln(events / sum) } else { 0.0 }
                };
                let gain = fit(left) + fit(&|i| !left(i)) - fit(&|_| true);
                if gain > 1e-12 { gain } else { 0.0 }
            }
        }
    }

    /// U²/V summed over the event times.
    pub fn log_rank(&self, rows: &[usize], left: &dyn Fn(usize) -> bool) -> f64 {
        let entry = |i: usize| self.entry.as_ref().map_or(-1.0, |v| v[i]);
        let sum = |inside: &dyn Fn(usize) -> bool| -> f64 {
            rows.iter().filter(|&&i| inside(i)).map(|&i| self.weight[i]).sum()
        };
        let mut times: Vec<f64> = rows.iter().map(|&i| self.time[i]).collect();
        times.sort_by(f64::total_cmp);
        times.dedup();
        let (mut u, mut v) = (0.0, 0.0);
        for t in times {
            let at_risk = |i: usize| entry(i) < t && t <= self.time[i];
            let happens = |i: usize| self.event[i] && self.time[i] == t;
            let (n, n_left) = (sum(&at_risk), sum(&|i| at_risk(i) && left(i)));
            let (d, d_left) = (sum(&happens), sum(&|i| happens(i) && left(i)));
            if d == 0.0 || n - d < 1e-12 {
                continue;
            }
            u += d_left - d * n_left / n;
            let ties = if d > 1.0 { (n - d) / (n - 1.0) } else { 1.0 };
            v += d * ties * (n_left / n) * (1.0 - n_left / n);
        }
        if v > 1e-12 && u * u / v > 1e-12 { u * u / v } else { 0.0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Likelihood,
    LogRank,
}

const CRITERIA: [By; 2] = [By::Likelihood, By::LogRank];
const ANY: Smallest = Smallest { rows: 1, events: 0 };

const FREE: Limits = Limits { max_depth: None, max_leaf_nodes: None, smallest: ANY };

/// (column, below, above) of every node in preorder, `None` at leaves.
type Preorder = Vec<Option<(usize, u32, u32)>>;

fn preorder(grown: &Grown) -> Preorder {
    let split = |node: usize| {
        let column = usize::try_from(grown.tree.feature[node]).ok()?;
        Some((column, grown.below[node], grown.above[node]))
    };
    (0..grown.tree.n_nodes()).map(split).collect()
}

struct SlowNode {
    rows: Vec<usize>,
    depth: usize,
    split: Option<(usize, u32, u32)>,
    children: Option<[usize; 2]>,
}

/// The first of the best splits of a node, and its gain.
fn slow_best(
    problem: &Problem,
    by: By,
    prior: f64,
    rows: &[usize],
    smallest: Smallest,
) -> (f64, (usize, u32, u32)) {
    let mut best = (0.0, (0, 0, 0));
    for (column, codes) in problem.codes.iter().enumerate() {
        let mut present: Vec<u32> = rows.iter().map(|&i| codes[i]).collect();
        present.sort_unstable();
        present.dedup();
        for pair in present.windows(2) {
            let left = |i: usize| codes[i] <= pair[0];
            let allows = |side: bool| {
                let inside = || rows.iter().filter(|&&i| left(i) == side);
                let events = inside().filter(|&&i| problem.event[i]).count();
                inside().count() as i64 >= smallest.rows && events as i64 >= smallest.events
            };
            let gain = problem.gain(by, prior, rows, &left);
            if allows(true) && allows(false) && gain > best.0 * (1.0 + TIE) {
                best = (gain, (column, pair[0], pair[1]));
            }
        }
    }
    best
}

fn slow_grow(problem: &Problem, by: By, prior: f64, limits: &Limits) -> Preorder {
    let all = (0..problem.time.len()).collect();
    let mut nodes = vec![SlowNode { rows: all, depth: 0, split: None, children: None }];
    for _ in 1..limits.max_leaf_nodes.unwrap_or(usize::MAX) {
        let best = |node: &SlowNode| {
            if node.children.is_some() || limits.max_depth.is_some_and(|most| node.depth >= most) {
                return (0.0, (0, 0, 0));
            }
            slow_best(problem, by, prior, &node.rows, limits.smallest)
        };
        let splits: Vec<_> = nodes.iter().map(best).collect();
        let most = splits.iter().map(|split| split.0).fold(0.0, f64::max);
        if most == 0.0 {
            break;
        }
        let next = splits.iter().position(|split| split.0 >= most * (1.0 - TIE)).unwrap();
        let (_, (column, below, above)) = splits[next];
        let (left, right) =
            nodes[next].rows.iter().partition::<Vec<_>, _>(|&&i| problem.codes[column][i] <= below);
        nodes[next].split = Some((column, below, above));
        nodes[next].children = Some([nodes.len(), nodes.len() + 1]);
        let depth = nodes[next].depth + 1;
        for rows in [left, right] {
            nodes.push(SlowNode { rows, depth, split: None, children: None });
        }
    }
    fn walk(nodes: &[SlowNode], node: usize, out: &mut Preorder) {
        out.push(nodes[node].split);
        for child in nodes[node].children.into_iter().flatten() {
            walk(nodes, child, out);
        }
    }
    let mut out = Vec::new();
    walk(&nodes, 0, &mut out);
    out
}

#[test]
fn trees_are_those_of_the_slow_grower() {
    for seed in 0..200 {
        let problem = Problem::random(seed, 40);
        let random = &mut Random::new(seed + 1);
        let limits = Limits {
            max_depth: [None, Some(0), Some(1), Some(3)][random.below(4)],
            max_leaf_nodes: [None, Some(1), Some(2), Some(5)][random.below(4)],
            smallest: Smallest {
                rows: 1 + random.below(4) as i64,
                events: random.pick(&[0, 0, 1, 3]),
            },
        };
        let prior = random.pick(&[0.0, 0.5, 6.0]);
        for by in CRITERIA {
            let fast = preorder(&problem.grow_under(by, prior, &limits));
            let slow = slow_grow(&problem, by, prior, &limits);
            assert_eq!(fast, slow, "seed {seed}, {by:?}, {prior}, {limits:?}");
        }
    }
}

#[test]
fn the_order_of_rows_does_not_matter() {
    for seed in 0..50 {
        let problem = Problem::random(seed, 400);
        let n = problem.time.len();
        let order = Random::new(seed).permutation(n);
        for by in CRITERIA {
            assert_eq!(problem.grow(by, &FREE), problem.take(&order).grow(by, &FREE));
        }
    }
}

#[test]
fn sums_run_in_one_order_of_rows() {
    for seed in 0..50 {
        let problem = Problem::random(seed, 60);
        let shuffled = problem.take(&Random::new(seed).permutation(problem.time.len()));
        let sorted = |problem: &Problem| {
            let order = canonical_order(&problem.observations());
            let sorted = problem.take(&order.iter().map(|&i| i as usize).collect::<Vec<_>>());
            (sorted.time, sorted.event, sorted.weight, sorted.entry)
        };
        assert_eq!(sorted(&problem), sorted(&shuffled));
    }
}

#[test]
fn integer_weights_are_repetition() {
    for seed in 0..100 {
        let mut problem = Problem::random(seed, 60);
        for weight in &mut problem.weight {
            *weight = (*weight * 10.0).round();
        }
        let n = problem.time.len();
        let rows: Vec<usize> =
            (0..n).flat_map(|i| std::iter::repeat_n(i, problem.weight[i] as usize)).collect();
        let mut repeated = problem.take(&rows);
        repeated.weight.fill(1.0);
        for by in CRITERIA {
            assert_eq!(problem.grow(by, &FREE), repeated.grow(by, &FREE), "seed {seed}, {by:?}");
        }
    }
}

#[test]
fn of_equal_splits_the_first_is_taken() {
    for seed in 0..50 {
        let mut problem = Problem::random(seed, 60);
        for by in CRITERIA {
            let single = Limits { max_depth: Some(1), ..FREE };
            let Some((column, below, above)) = preorder(&problem.grow(by, &single))[0] else {
                continue;
            };
            // The same split again, and with exchanged sides.
            let side: Vec<u32> =
                problem.codes[column].iter().map(|&code| u32::from(code > below)).collect();
            let exchanged = side.iter().map(|code| 1 - code).collect();
            let codes = problem.codes.clone();
            problem.codes.extend([side, exchanged]);
            assert_eq!(preorder(&problem.grow(by, &single))[0], Some((column, below, above)));
            problem.codes.rotate_right(1);
            assert_eq!(preorder(&problem.grow(by, &single))[0], Some((0, 0, 1)));
            problem.codes = codes;
        }
    }
}

#[test]
fn nothing_to_gain_is_a_leaf() {
    let mut problem = Problem::random(3, 40);
    problem.time.fill(1.0);
    problem.event.fill(true);
    (problem.entry, problem.smoothed) = (None, None);
    for by in CRITERIA {
        assert_eq!(problem.grow(by, &FREE).tree, Tree::leaf());
    }
}

#[test]
fn equal_sides_are_not_split() {
    for seed in 0..50 {
        let problem = Problem::random(seed, 40);
        let n = problem.time.len();
        let mut twice = problem.take(&(0..2 * n).map(|i| i % n).collect::<Vec<_>>());
        twice.codes = vec![(0..2 * n as u32).map(|i| u32::from(i >= n as u32)).collect()];
        for by in CRITERIA {
            assert_eq!(twice.grow(by, &FREE).tree, Tree::leaf());
        }
    }
}

#[test]
fn an_interrupt_stops_between_columns() {
    let problem = Problem::random(5, 40);
    let mut asked = 0;
    let interrupted = || {
        asked += 1;
        asked == 3
    };
    let grown = grow_by_logrank(problem.columns(), &problem.observations(), &FREE, interrupted);
    assert_eq!((grown, asked), (Err(Interrupted), 3));
}

/// Sum of the costs of the leaves and the prices of the splits.
fn cost(task: &impl ScalarTask, problem: &Problem, nodes: &Preorder) -> i64 {
    fn walk(
        (task, problem, nodes): (&impl ScalarTask, &Problem, &Preorder),
        at: &mut usize,
        rows: &[usize],
    ) -> i64 {
        let node = nodes[*at];
        *at += 1;
        let Some((column, below, _)) = node else {
            let mut sums = vec![0; task.channels()];
            for &row in rows {
                let record = &task.statistics()[row * sums.len()..];
                sums.iter_mut().zip(record).for_each(|(sum, value)| *sum += value);
            }
            return task.leaf_cost(&sums);
        };
        let (left, right): (Vec<usize>, Vec<usize>) =
            rows.iter().partition(|&&row| problem.codes[column][row] <= below);
        let tree = (task, problem, nodes);
        walk(tree, at, &left) + walk(tree, at, &right) + task.split_price()
    }
    let all: Vec<usize> = (0..problem.time.len()).collect();
    walk((task, problem, nodes), &mut 0, &all)
}

#[test]
fn subtrees_are_no_worse_than_trees_that_stop() {
    let mut better = 0;
    for seed in 0..200 {
        let problem = Problem::random(seed, 60);
        let random = &mut Random::new(seed + 1);
        let limits = Limits {
            max_depth: [None, Some(1), Some(2), Some(4)][random.below(4)],
            max_leaf_nodes: [None, Some(1), Some(3), Some(5)][random.below(4)],
            smallest: Smallest { rows: 1 + random.below(4) as i64, events: random.below(3) as i64 },
        };
        let (penalty, prior) = ([0.0, 0.02][random.below(2)], [0.0, 6.0][random.below(2)]);
        let task = problem.task(prior, penalty);
        let pruned = subtree_by_costs(&task, problem.columns(), &limits, || false);
        let most = limits.max_leaf_nodes.unwrap_or(usize::MAX);
        assert!(pruned.tree.n_leaves() <= most);
        let stopping = problem.grow_under(By::Likelihood, prior, &limits);
        let costs = [pruned, stopping].map(|tree| cost(&task, &problem, &preorder(&tree)));
        // The two prunings of a tie differ by rounding.
        assert!(costs[0] <= costs[1] + 256, "seed {seed}, {limits:?}");
        better += usize::from(costs[0] + 1_000_000 < costs[1]);
    }
    assert!(better > 20);
}

#[test]
fn what_was_grown_before_a_stop_is_a_tree() {
    let problem = Problem::random(5, 40);
    let task = problem.task(0.0, 0.0);
    let mut sizes = Vec::new();
    for most in 1..60 {
        let mut asked = 0;
        let interrupted = || {
            asked += 1;
            asked >= most
        };
        sizes.push(subtree_by_costs(&task, problem.columns(), &FREE, interrupted).tree.n_leaves());
    }
    assert_eq!(sizes[0], 1);
    assert!(sizes.contains(&2) && sizes[58] > 3);
}
