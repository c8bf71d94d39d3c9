//! What makes a task with several components separable (STreeD, definition 4.2), on random
//! leaves: combination is associative and keeps dominance, thresholds worsen, bounds hold.

use bristlecone_core::survival::Observations;
use bristlecone_core::task::FrontTask;
use bristlecone_core::task::capacity::Capacity;
use bristlecone_core::task::confusion::Confusion;
use bristlecone_core::task::fair_survival::FairSurvival;
use bristlecone_core::task::parity::{Criterion, Parity};
use bristlecone_oracle::instances::{Instance, Random};

/// Sums of three random sets of rows that have none in common.
fn leaves_of<T: FrontTask<K>, const K: usize>(task: &T, random: &mut Random) -> Vec<Vec<i64>> {
    let channels = task.channels();
    let mut leaves = vec![vec![0; channels]; 4];
    for record in task.statistics().chunks_exact(channels) {
        for (sum, v) in leaves[random.below(4)].iter_mut().zip(record) {
            *sum += v;
        }
    }
    leaves.truncate(3);
    leaves
}

fn candidates<T: FrontTask<K>, const K: usize>(task: &T, sums: &[i64]) -> Vec<[i64; K]> {
    let mut out = Vec::new();
    task.leaf_candidates(sums, &mut out);
    out
}

fn check<T: FrontTask<K>, const K: usize>(task: &T, random: &mut Random) {
    let leaves = leaves_of(task, random);
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
    // Order: whatever dominates still does next to the same sibling, and only then.
    for other in candidates(task, &leaves[0]) {
        let beside = task.dominates(&task.combine(&a, &c), &task.combine(&other, &c));
        assert_eq!(task.dominates(&a, &other), beside);
    }
    assert!(task.dominates(&a, &a));
    // The attainable range holds every candidate, and the range of a union those of its parts.
    let price = task.price();
    for (sums, cost) in leaves.iter().zip(&costs) {
        for ((low, high), c) in task.reach(sums).iter().zip(cost) {
            assert!(low <= c && c <= high, "{c} not in [{low}, {high}]");
        }
    }
    let union: Vec<i64> = leaves[0].iter().zip(&leaves[1]).map(|(x, y)| x + y).collect();
    let (joined, reach) = (task.combine(&a, &b), task.reach(&union));
    for (k, (low, _)) in reach.iter().enumerate() {
        let paid = if k == 0 { price } else { 0 };
        assert!(joined[k] - paid >= *low);
    }
    // Linear forms give the weighted cost of every label.
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
    let mut checked = 0;
    for seed in 0..200 {
        let instance = Instance::random(seed, 24, 2);
        let random = &mut Random::new(seed + 1);
        let n = instance.rows().len();
        let flags = |random: &mut Random| (0..n).map(|_| random.chance(0.5)).collect::<Vec<_>>();
        let (positive, group) = (flags(random), flags(random));
        let weight = Some(instance.sample.weight.as_slice());
        let penalty = random.pick(&[0.0, 0.01]);
        check(&Confusion::new(&positive, weight).expect("some weight"), random);
        for criterion in [Criterion::DemographicParity, Criterion::EqualityOfOpportunity] {
            if let Ok(task) = Parity::new(criterion, &positive, &group, weight, 0.1, penalty) {
                check(&task, random);
                checked += 1;
            }
        }
        let costs: Vec<f64> = (0..3 * n).map(|_| random.unit()).collect();
        let capacity = [f64::INFINITY, 3.0, 1.5];
        check(&Capacity::<3>::new(&costs, &capacity, weight, penalty).expect("costs"), random);
        let obs = Observations {
            time: &instance.sample.time,
            event: &instance.sample.event,
            weight,
            entry: instance.sample.entry.as_deref(),
        };
        let prior = random.pick(&[0.0, 0.3, 20.0]);
        if let Ok(task) = FairSurvival::new(&obs, &group, 1.0, 2.0, prior, penalty) {
            check(&task, random);
            checked += 1;
        }
    }
    assert!(checked > 300, "only {checked} tasks with groups");
}
