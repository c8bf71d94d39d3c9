//! Tests on random leaves that tasks with several components are separable (STreeD, definition
//! 4.2): costs combine in any order, dominance is kept, and ranges of costs are valid.

use bristlecone_core::survival::Observations;
use bristlecone_core::task::FrontTask;
use bristlecone_core::task::capacity::Capacity;
use bristlecone_core::task::confusion::Confusion;
use bristlecone_core::task::fair_brier::FairBrier;
use bristlecone_core::task::fair_survival::FairSurvival;
use bristlecone_core::task::parity::{Criterion, GroupLimit, Parity};
use bristlecone_oracle::brier::Brier;
use bristlecone_oracle::instances::{Instance, Random};

use crate::losses::restricted_mean;

/// The oracle's loss and restricted mean of rows, for tasks whose leaves are curves.
type Curve<'a> = dyn Fn(&[usize]) -> (f64, f64) + 'a;

/// Statistics of a leaf that contains the rows of these parts; every row is in one of four.
fn sums<T: FrontTask<K>, const K: usize>(
    task: &T,
    curve: &Curve,
    part: &[u8],
    parts: &[u8],
) -> Vec<i64> {
    let mut sums = vec![0; task.channels()];
    for (record, part) in task.statistics().chunks_exact(task.channels()).zip(part) {
        if parts.contains(part) {
            sums.iter_mut().zip(record).for_each(|(sum, v)| *sum += v);
        }
    }
    if let Some(curves) = task.curve_statistics() {
        let rows: Vec<usize> = (0..part.len()).filter(|&r| parts.contains(&part[r])).collect();
        let (loss, mean) = curve(&rows);
        let leaf = curves.of_leaf(loss, mean, sums[2] - sums[3]);
        sums[..2].copy_from_slice(&leaf);
    }
    sums
}

fn candidates<T: FrontTask<K>, const K: usize>(task: &T, sums: &[i64]) -> Vec<[i64; K]> {
    let mut out = Vec::new();
    task.leaf_candidates(sums, &mut out);
    out
}

fn check<T: FrontTask<K>, const K: usize>(task: &T, curve: &Curve, random: &mut Random) {
    // Three leaves without common rows; the rows of the fourth part are not used.
    let n = task.statistics().len() / task.channels();
    let part: Vec<u8> = (0..n).map(|_| random.below(4) as u8).collect();
    let leaves = [0, 1, 2].map(|k| sums(task, curve, &part, &[k]));
    let costs: Vec<[i64; K]> = leaves
        .iter()
        .map(|sums| {
            let all = candidates(task, sums);
            all[random.below(all.len())]
        })
        .collect();
    let [a, b, c] = [costs[0], costs[1], costs[2]];
    assert_eq!(task.combine(&a, &b), task.combine(&b, &a));
    assert_eq!(task.combine(&task.combine(&a, &b), &c), task.combine(&a, &task.combine(&b, &c)));
    // One cost dominates another if and only if it does so next to the same sibling.
    for other in candidates(task, &leaves[0]) {
        let beside = task.dominates(&task.combine(&a, &c), &task.combine(&other, &c));
        assert_eq!(task.dominates(&a, &other), beside);
    }
    assert!(task.dominates(&a, &a));
    // The range contains the costs of trees with one, two and three leaves.
    let within = |parts: &[u8], cost: [i64; K], splits: i64| {
        let reach = task.reach(&sums(task, curve, &part, parts));
        for (k, (low, high)) in reach.into_iter().enumerate() {
            let cost = cost[k] - if k == 0 { splits * task.price() } else { 0 };
            assert!(low <= cost && cost <= high, "{k}: {cost} not in [{low}, {high}]");
        }
    };
    let of_leaf = leaves.each_ref().map(|sums| candidates(task, sums));
    for x in &of_leaf[0] {
        within(&[0], *x, 0);
        for y in &of_leaf[1] {
            let two = task.combine(x, y);
            within(&[0, 1], two, 1);
            of_leaf[2].iter().for_each(|z| within(&[0, 1, 2], task.combine(&two, z), 2));
        }
    }
    // Linear forms return the weighted cost of every label.
    let weights: [f64; K] = std::array::from_fn(|k| if k == 0 { 1.0 } else { random.unit() - 0.5 });
    if let Some(forms) = task.linear(&weights) {
        let all = candidates(task, &leaves[0]);
        assert_eq!(forms.len(), all.len());
        for (form, cost) in forms.iter().zip(all) {
            let linear: f64 = form.iter().zip(&leaves[0]).map(|(f, &s)| f * s as f64).sum();
            let direct: f64 = weights.iter().zip(cost).map(|(w, c)| w * c as f64).sum();
            assert!((linear - direct).abs() <= 1e-12 * direct.abs().max(1e15));
        }
    }
}

#[test]
fn tasks_of_several_components_are_separable() {
    // Tasks with parity, and both kinds of survival trees.
    let mut checked = [0; 3];
    for seed in 0..200 {
        let instance = Instance::random(seed, 24, 2);
        let random = &mut Random::new(seed + 1);
        let n = instance.rows().len();
        let flags = |random: &mut Random| (0..n).map(|_| random.chance(0.5)).collect::<Vec<_>>();
        let (positive, group) = (flags(random), flags(random));
        let weight = Some(instance.sample.weight.as_slice());
        let penalty = random.pick(&[0.0, 0.01]);
        let (brier, tau) = (Brier::new(&instance.sample), 2.0);
        let curve = |rows: &[usize]| {
            let mean = restricted_mean(&instance.sample, rows, tau) / tau;
            (brier.kaplan_meier(rows).to_f64(), mean)
        };
        check(&Confusion::new(&positive, weight).expect("some weight"), &curve, random);
        for criterion in [
            Criterion::DemographicParity,
            Criterion::EqualityOfOpportunity,
            Criterion::EqualizedOdds,
        ] {
            let n_groups = random.pick(&[2, 3, 4]);
            let groups: Vec<usize> = (0..n).map(|_| random.below(n_groups)).collect();
            let limit = GroupLimit { criterion, group: &groups, weights: weight, most: 0.1 };
            if let Ok(task) = Parity::<7>::new(&limit, &positive, weight, penalty, 8) {
                check(&task, &curve, random);
                checked[0] += 1;
            }
        }
        let rewards: Vec<f64> = (0..3 * n).map(|_| random.unit() - 0.5).collect();
        let capacity = [f64::INFINITY, 3.0, 1.5];
        check(
            &Capacity::<3>::new(&rewards, &capacity, weight, penalty, None).expect("rewards"),
            &curve,
            random,
        );
        let obs = Observations {
            time: &instance.sample.time,
            event: &instance.sample.event,
            weight,
            entry: instance.sample.entry.as_deref(),
            ..Observations::default()
        };
        let prior = random.pick(&[0.0, 0.3, 20.0]);
        if let Ok(task) = FairSurvival::new(&obs, &group, 1.0, tau, prior, penalty) {
            check(&task, &curve, random);
            checked[1] += 1;
        }
        let obs = Observations { entry: None, ..obs };
        if let Ok(task) = FairBrier::new(&obs, &group, 1.0, tau, penalty) {
            check(&task, &curve, random);
            checked[2] += 1;
        }
    }
    assert!(checked.into_iter().all(|n| n > 100), "only {checked:?} tasks with groups");
}
