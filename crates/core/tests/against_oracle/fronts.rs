//! The search over fronts, for partial and total orders.

use bristlecone_core::data::{Sample, Smallest};
use bristlecone_core::registry::Visitor;
use bristlecone_core::search::fronts::plain as fronts;
use bristlecone_core::task::{FreeQuestions, Statistics, Task};
use bristlecone_oracle::instances::Instance;
use bristlecone_oracle::{Limits, Tree, admit_tree, pareto_front, score_tree};

use crate::harness::{CERTIFIED, SCALE, agree, ensure, for_each, matrix, oracle_tree};

/// False positives and false negatives, one candidate per label.
struct Errors {
    statistics: Vec<i64>,
}

impl Statistics for Errors {
    fn channels(&self) -> usize {
        2
    }

    fn statistics(&self) -> &[i64] {
        &self.statistics
    }
}

impl Task for Errors {
    type Cost = [i64; 2];

    fn leaf_candidates(&self, sums: &[i64], out: &mut Vec<[i64; 2]>) {
        out.extend([[sums[0], 0], [0, sums[1]]]);
    }

    fn combine(&self, a: &[i64; 2], b: &[i64; 2]) -> [i64; 2] {
        [a[0] + b[0], a[1] + b[1]]
    }

    fn dominates(&self, a: &[i64; 2], b: &[i64; 2]) -> bool {
        a[0] <= b[0] && a[1] <= b[1]
    }
}

#[test]
fn fronts_of_a_two_valued_cost_equal_the_oracle() {
    for_each(100 * SCALE, (20, 5), &[0, 1, 2, 3], |instance, question| {
        let positive = |i: usize| instance.labels[i] == 0;
        let of_row = |i: usize| [i64::from(!positive(i)), i64::from(positive(i))];
        let task = Errors { statistics: instance.rows().into_iter().flat_map(of_row).collect() };
        let limits = &question.limits;
        let expected = pareto_front(&instance.features, &instance.rows(), limits, |leaf| {
            let positives = leaf.iter().filter(|&&i| positive(i)).count();
            vec![[(leaf.len() - positives) as f64, 0.0], [0.0, positives as f64]]
        });
        let sample = Sample::new(&matrix(instance), task.statistics(), 2);
        let leaves = limits.max_leaves.unwrap_or(usize::MAX);
        let smallest = Smallest { rows: limits.min_leaf as i64, events: 0 };
        let points = fronts::solve(&task, &sample, limits.max_depth, leaves, smallest);
        let mut front: Vec<[f64; 2]> = points.iter().map(|p| p.cost.map(|c| c as f64)).collect();
        front.sort_by(|a, b| a[0].total_cmp(&b[0]));
        ensure(front == expected, || format!("{front:?} instead of {expected:?}"))
    });
}

/// The best tree by the search over fronts.
struct ByFronts<'a>(&'a Instance, &'a Limits, Smallest);

impl Visitor for ByFronts<'_> {
    type Output = Option<Tree>;
    fn visit<T: FreeQuestions + 'static>(self, task: T) -> Self::Output {
        let task = &task;
        let ByFronts(instance, limits, smallest) = self;
        let (statistics, channels) = (task.statistics(), task.channels());
        let matrix = matrix(instance);
        let sample = Sample::with_kinds(&matrix, statistics, channels, &[], task.events());
        let leaves = limits.max_leaves.unwrap_or(usize::MAX);
        let points = fronts::solve(task, &sample, limits.max_depth, leaves, smallest);
        points.first().map(|point| oracle_tree(&point.tree))
    }
}

#[test]
fn fronts_of_a_total_order_equal_the_oracle() {
    for_each(100 * SCALE, (20, 5), &[0, 1, 2, 3], |instance, question| {
        let limits = &question.limits;
        let settings = question.settings();
        let by_fronts = ByFronts(instance, limits, settings.smallest());
        let tree = question.visit(instance, &settings, by_fronts);
        let optimum = question.optimum(instance);
        let Some(tree) = tree.map_err(|e| e.to_string())? else {
            return ensure(optimum.is_infinite(), || "no tree".into());
        };
        let (features, rows) = (&instance.features, &instance.rows());
        admit_tree(&tree, features, rows, limits)?;
        let score = score_tree(&tree, features, rows, question.cost(instance))?;
        agree("objective", score, optimum, CERTIFIED)
    });
}
