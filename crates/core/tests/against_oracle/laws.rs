//! For every task: the laws that make it separable and its bounds admissible.

use bristlecone_core::registry::{SUMS, Visitor};
use bristlecone_core::search::Allowed;
use bristlecone_core::task::{LaneTask, Placed, Swept, Task};
use bristlecone_oracle::instances::Random;

use crate::harness::{Case, EVALUATED, SCALE, agree, ensure, for_each_of};

/// Checks the laws with random parts of the rows.
struct Laws<'a>(&'a Case);

fn sums<T: LaneTask>(task: &T, rows: &[usize]) -> Vec<i64> {
    let mut sums = vec![0; task.channels()];
    for &i in rows {
        let record = &task.statistics()[i * task.channels()..];
        for (sum, v) in sums.iter_mut().zip(record) {
            *sum += v;
        }
    }
    sums
}

impl Visitor for Laws<'_> {
    type Output = Result<(), String>;
    fn visit<T: Swept + 'static>(self, task: T) -> Self::Output {
        let task = &task;
        let Laws(case) = self;
        let rows = case.instance.rows();
        let allowed = Allowed { depth: 2, leaves: 3 };
        let resolution = task.resolution(allowed);
        let random = &mut Random::new(rows.len() as u64);
        for _ in 0..5 {
            // Three parts of the rows; a part may be empty.
            let part: Vec<usize> = rows.iter().map(|_| random.below(3)).collect();
            let of_part = |k: usize| -> Vec<usize> {
                rows.iter().copied().filter(|&i| part[i] == k).collect()
            };
            let parts = [0, 1, 2].map(|k| sums(task, &of_part(k)));
            let [a, b, c] = [0, 1, 2].map(|k| task.leaf_cost(&parts[k]));
            // Up to rounding, smaller parts never cost more in total, and neither does a leaf when
            // one of its parts leaves it.
            let union: Vec<i64> = parts[0].iter().zip(&parts[1]).map(|(x, y)| x + y).collect();
            let (whole, rounding) = (task.leaf_cost(&union), 3 * task.cost_rounding());
            let [part_a, part_b] = [0, 1].map(|k| task.part_cost(&parts[k]));
            let both = task.part_cost(&union) + rounding;
            ensure(part_a + part_b <= both, || format!("{part_a} + {part_b} > {both}: parts"))?;
            ensure(a + part_b <= whole + rounding, || format!("{a} + {part_b} > {whole}: leaf"))?;
            ensure(part_a <= a + rounding, || format!("{part_a} > {a}: a part above its leaf"))?;
            // Rows that join a leaf add at most their worst cost.
            if let Some(worst) = task.worst_cost(&parts[1]) {
                ensure(whole <= a + worst, || format!("{whole} > {a} + {worst}: worst"))?;
            }
            ensure(task.splits_help(&union) || a + b + rounding >= whole, || "help".into())?;
            // Costs are the objective in fixed point. Prices larger than any gain are capped.
            let all = task.combine(&task.combine(&a, &b), &c);
            let by_cost = task.objective_of_cost(all - 2 * task.tie_price());
            let objective = task.objective(Placed::rows(&part, 3)).objective;
            let single_leaf = task.leaf_cost(&sums(task, &rows));
            let charged =
                task.split_price() < single_leaf.abs().max(1) && task.split_price() < 1 << 54;
            let leaves = [0, 1, 2].map(of_part).to_vec();
            let size = case.terms_of(&leaves, &[]).max(objective.abs());
            let size = size + task.addends(by_cost, task.objective_of_cost(0));
            let apart = resolution + EVALUATED * size;
            if charged {
                agree("objective", by_cost, objective, apart)?;
            } else {
                ensure(by_cost <= objective + apart, || format!("{by_cost} above {objective}"))?;
            }
            let rounded = EVALUATED * case.terms_of(&leaves, &[]).max(objective.abs());
            let least = task.least_objective(3);
            ensure(objective + rounded >= least, || format!("{objective} below {least}"))?;
        }
        Ok(())
    }
}

#[test]
fn every_task_obeys_the_laws() {
    for_each_of(SUMS, 70 * SCALE, (40, 2, &[1]), |case| case.visit(Laws(case)));
}
