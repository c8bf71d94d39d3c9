//! The recursion against hand-worked instances and against the list of all trees.

use bristlecone_oracle::accuracy::misclassified;
use bristlecone_oracle::instances::{Instance, Random};
use bristlecone_oracle::{
    Limits, Real, Tree, admit_tree, all_costs, all_trees, best, best_by_leaves, best_tree, free,
    pareto_front, price_tree, score_tree,
};

fn limits(max_depth: usize, max_leaves: Option<usize>, min_leaf: usize) -> Limits {
    Limits { max_depth, max_leaves, min_leaf }
}

/// Two features and their exclusive or as labels.
fn exclusive_or() -> (Vec<Vec<bool>>, Vec<usize>) {
    let features = vec![vec![false, false], vec![false, true], vec![true, false], vec![true, true]];
    (features, vec![0, 1, 1, 0])
}

#[test]
fn exclusive_or_needs_depth_two_and_four_leaves() {
    let (features, labels) = exclusive_or();
    let (rows, weight) = ([0, 1, 2, 3], [1.0, 2.0, 4.0, 8.0]);
    let errors = |leaf: &[usize]| misclassified(leaf, &labels, &weight);
    let least = |limits: &Limits| best(&features, &rows, limits, errors);
    // One leaf: class 0 (weight 9) wins over class 1 (weight 6).
    assert_eq!(least(&limits(0, None, 1)), 6.0);
    // The first feature parts rows {2, 3 | 0, 1}, at a cost of 4 + 1; the second parts
    // {1, 3 | 0, 2}, at 2 + 1.
    assert_eq!(least(&limits(1, None, 1)), 3.0);
    let by_leaves = best_by_leaves(&features, &rows, &limits(9, None, 1), errors, free);
    assert_eq!(by_leaves, [6., 3., 1., 0.]);
    assert_eq!(least(&limits(2, Some(3), 1)), 1.0);
    assert_eq!(least(&limits(2, None, 2)), 3.0);
    assert_eq!(least(&limits(2, None, 3)), 6.0);
    assert_eq!(least(&limits(2, None, 5)), f64::INFINITY);
    // A penalty of 1.5 per leaf: 7.5, 6, 5.5, 6.
    let penalised = |leaf: &[usize]| errors(leaf) + Real::from(1.5);
    assert_eq!(best(&features, &rows, &limits(2, None, 1), penalised), 5.5);
}

#[test]
fn misclassified_weight_is_that_outside_the_heaviest_class() {
    let labels = [0, 1, 2, 1];
    assert_eq!(misclassified(&[0, 1, 2, 3], &labels, &[1.0; 4]), 2.0);
    assert_eq!(misclassified(&[0, 1, 2, 3], &labels, &[1.0, 1.0, 5.0, 2.0]), 4.0);
    assert_eq!(misclassified(&[], &labels, &[1.0; 4]), 0.0);
}

#[test]
fn the_left_child_holds_the_rows_whose_feature_is_true() {
    let (features, _) = exclusive_or();
    let tree = Tree::split(1, &Tree::leaf(), &Tree::split(0, &Tree::leaf(), &Tree::leaf()));
    assert_eq!(tree.feature, [1, -2, 0, -2, -2]);
    assert_eq!(tree.left, [1, -1, 3, -1, -1]);
    assert_eq!(tree.right, [2, -1, 4, -1, -1]);
    assert_eq!(tree.depths(), Ok(vec![0, 1, 1, 2, 2]));
    let leaves = tree.leaves(&features, &[0, 1, 2, 3]).unwrap();
    assert_eq!(leaves, [vec![1, 3], vec![2], vec![0]]);
    let size_squared = |leaf: &[usize]| (leaf.len() * leaf.len()) as f64;
    assert_eq!(score_tree(&tree, &features, &[0, 1, 2, 3], size_squared), Ok(6.0));
}

#[test]
fn malformed_arrays_are_refused() {
    let well = Tree::split(0, &Tree::leaf(), &Tree::leaf());
    assert!(well.depths().is_ok());
    let broken = |change: fn(&mut Tree)| {
        let mut tree = well.clone();
        change(&mut tree);
        tree.depths().is_err()
    };
    assert!(broken(|t| t.left.truncate(2)));
    assert!(broken(|t| t.left[0] = 0));
    assert!(broken(|t| t.right[0] = 1));
    assert!(broken(|t| t.right[0] = 3));
    assert!(broken(|t| (t.left[0], t.right[0]) = (2, 1)));
    assert!(broken(|t| t.feature[0] = -2));
    assert!(broken(|t| t.feature[1] = -1));
    assert!(broken(|t| t.left[2] = 0));
    assert!(Tree { feature: vec![], left: vec![], right: vec![] }.depths().is_err());
    let (features, _) = exclusive_or();
    assert!(Tree::split(2, &well, &well).leaves(&features, &[0]).is_err());
}

#[test]
fn limits_admit_what_they_say() {
    let (features, _) = exclusive_or();
    let tree = Tree::split(0, &Tree::leaf(), &Tree::split(1, &Tree::leaf(), &Tree::leaf()));
    let admits = |l: &Limits| admit_tree(&tree, &features, &[0, 1, 2, 3], l).is_ok();
    assert!(admits(&limits(2, Some(3), 1)));
    assert!(!admits(&limits(1, Some(3), 1)));
    assert!(!admits(&limits(2, Some(2), 1)));
    assert!(!admits(&limits(2, Some(3), 2)));
    assert!(admit_tree(&tree, &features, &[0, 2, 3], &limits(2, None, 0)).is_err());
}

/// Every tree over the features up to the depth, empty leaves and all.
fn listed_trees(n_features: usize, max_depth: usize) -> Vec<Tree> {
    let mut trees = vec![Tree::leaf()];
    if max_depth > 0 {
        let subtrees = listed_trees(n_features, max_depth - 1);
        for feature in 0..n_features {
            for left in &subtrees {
                trees.extend(subtrees.iter().map(|right| Tree::split(feature, left, right)));
            }
        }
    }
    trees
}

#[test]
fn trees_are_counted() {
    assert_eq!(listed_trees(3, 2).len(), 1 + 3 * (1 + 3) * (1 + 3));
    assert_eq!(listed_trees(2, 3).len(), 1 + 2 * 19 * 19);
}

/// Small random problems: instance, limits, and every tree the limits admit.
fn listed() -> impl Iterator<Item = (Instance, Limits, Vec<Tree>)> {
    (0..400).map(|seed| {
        let random = &mut Random::new(!seed);
        let instance = Instance::random(seed, 12, 3);
        let max_depth = random.below(if instance.n_features() < 3 { 4 } else { 3 });
        let max_leaves = random.chance(0.5).then(|| 1 + random.below(6));
        let limits = limits(max_depth, max_leaves, random.below(4));
        let mut trees = listed_trees(instance.n_features(), max_depth);
        trees.retain(|t| admit_tree(t, &instance.features, &instance.rows(), &limits).is_ok());
        (instance, limits, trees)
    })
}

#[test]
fn the_optimum_is_the_least_of_all_trees() {
    for (instance, limits, trees) in listed() {
        let (features, rows) = (&instance.features, &instance.rows());
        let (hazard, penalty) = (instance.sample.baseline_hazard(), Real::from(0.1));
        let cost = |leaf: &[usize]| instance.sample.likelihood_loss(&hazard, leaf) + penalty;
        let score = |tree: &Tree| score_tree(tree, features, rows, cost).unwrap();
        let least = |leaves: usize| {
            let small = trees.iter().filter(|tree| tree.n_leaves() <= leaves);
            small.map(score).fold(Real::INFINITY, Real::min)
        };
        let close = |a: Real, b: Real| a == b || (a - b).abs() < b * Real::from(1e-140);

        let by_leaves = best_by_leaves(features, rows, &limits, cost, free);
        for (k, &found) in by_leaves.iter().enumerate() {
            assert!(close(found, least(k + 1)), "{found}, {} leaves, {instance:?}", k + 1);
        }
        assert!(trees.iter().all(|tree| tree.n_leaves() <= by_leaves.len()));
        let Some((found, tree)) = best_tree(features, rows, &limits, cost) else {
            assert!(trees.is_empty());
            continue;
        };
        assert!(close(found, least(usize::MAX)));
        assert!(close(found, score(&tree)));
        assert_eq!(admit_tree(&tree, features, rows, &limits), Ok(()));
    }
}

#[test]
fn prices_of_splits_count_where_they_stand() {
    for (instance, limits, trees) in listed() {
        let (features, rows) = (&instance.features, &instance.rows());
        let cost = |leaf: &[usize]| misclassified(leaf, &instance.labels, &vec![1.0; rows.len()]);
        // The price is half for a feature that was tested above.
        let price = |feature: usize, above: &[usize], rows: &[usize]| {
            let whole = Real::from((1 + feature) as f64 * rows.len() as f64 / 64.0);
            if above.contains(&feature) { whole / Real::from(2.0) } else { whole }
        };
        let least = |leaves: usize| {
            let small = trees.iter().filter(|tree| tree.n_leaves() <= leaves);
            let score = |tree: &Tree| score_tree(tree, features, rows, cost).unwrap();
            small
                .map(|tree| score(tree) + price_tree(tree, features, rows, &price))
                .fold(Real::INFINITY, Real::min)
        };
        // All of these are sums of powers of two.
        for (k, found) in best_by_leaves(features, rows, &limits, cost, price).iter().enumerate() {
            assert_eq!(*found, least(k + 1), "{} leaves, {instance:?}", k + 1);
        }
    }
}

#[test]
fn all_trees_are_those_listed_but_for_splits_that_are_alike() {
    for (instance, limits, mut trees) in listed() {
        let (features, rows) = (&instance.features, &instance.rows());
        let size = |leaf: &[usize]| (leaf.len() * leaf.len()) as f64;
        // Whether every split is the first feature that splits its rows as it does.
        let first = |tree: &Tree| {
            let later = |feature: usize, _: &[usize], rows: &[usize]| {
                let side = |f: usize| rows.iter().map(move |&row| features[row][f]);
                let alike = |f: usize| {
                    let same = side(f).zip(side(feature)).filter(|(a, b)| a == b).count();
                    same == 0 || same == rows.len()
                };
                if (0..feature).any(alike) { 1.0 } else { 0.0 }
            };
            price_tree(tree, features, rows, &later) == 0.0
        };
        trees.retain(first);
        let mut found = all_trees(features, rows, &limits, size);
        let order = |tree: &Tree| (tree.n_leaves(), tree.feature.clone());
        trees.sort_by_key(order);
        found.sort_by_key(|(_, tree)| order(tree));
        let scored: Vec<(f64, Tree)> = trees
            .into_iter()
            .map(|tree| (score_tree(&tree, features, rows, size).unwrap(), tree))
            .collect();
        assert_eq!(found, scored, "{instance:?} {limits:?}");
    }
}

#[test]
fn the_front_is_what_no_tree_dominates() {
    let mut longest = 0;
    for (instance, limits, trees) in listed() {
        let (features, rows) = (&instance.features, &instance.rows());
        // False positives and false negatives of class 0 against the others.
        let candidates = |leaf: &[usize]| {
            let positive = leaf.iter().filter(|&&i| instance.labels[i] == 0).count() as f64;
            [[0.0, positive], [leaf.len() as f64 - positive, 0.0]]
        };
        let mut reached: Vec<[f64; 2]> = vec![];
        for tree in &trees {
            let mut sums = vec![[0.0, 0.0]];
            for leaf in tree.leaves(features, rows).unwrap() {
                let plus = |s: &[f64; 2]| candidates(&leaf).map(|c| [s[0] + c[0], s[1] + c[1]]);
                sums = sums.iter().flat_map(plus).collect();
            }
            reached.extend(sums);
        }
        let dominated =
            |p: &[f64; 2]| reached.iter().any(|q| q[0] <= p[0] && q[1] <= p[1] && q != p);
        let mut expected: Vec<[f64; 2]> =
            reached.iter().filter(|p| !dominated(p)).copied().collect();
        expected.sort_by(|a, b| a[0].total_cmp(&b[0]));
        expected.dedup();
        let front = pareto_front(features, rows, &limits, |leaf| candidates(leaf).to_vec());
        assert_eq!(front, expected, "{instance:?} {limits:?}");
        longest = longest.max(front.len());
        let mut all = all_costs(features, rows, &limits, |leaf| candidates(leaf).to_vec()).concat();
        for costs in [&mut all, &mut reached] {
            costs.sort_by(|a, b| a.partial_cmp(b).unwrap());
            costs.dedup();
        }
        assert_eq!(all, reached, "{instance:?} {limits:?}");
    }
    assert!(longest > 3, "no front of more than {longest} pairs");
}

#[test]
fn random_instances_are_varied_and_reproducible() {
    let instances: Vec<Instance> = (0..500).map(|seed| Instance::random(seed, 40, 6)).collect();
    assert_eq!(instances[7], Instance::random(7, 40, 6));
    let some = |property: &dyn Fn(&Instance) -> bool| instances.iter().any(property);
    assert!(some(&|i| i.rows().len() == 1) && some(&|i| i.rows().len() == 40));
    assert!(some(&|i| i.n_features() == 0) && some(&|i| i.n_features() == 6));
    assert!(some(&|i| i.sample.time.contains(&0.0)));
    assert!(some(&|i| i.sample.event.iter().filter(|e| **e).count() * 8 < i.rows().len()));
    assert!(some(&|i| i.sample.weight.iter().any(|w| w.fract() != 0.0)));
    assert!(some(&|i| i.sample.weight.contains(&0.0)));
    assert!(some(&|i| i.sample.entry.as_ref().is_some_and(|v| v.iter().any(|t| *t > 0.0))));
    for instance in &instances {
        let sample = &instance.sample;
        assert!(!sample.event_times(&instance.rows()).is_empty());
        assert!(sample.time.iter().all(|t| *t >= 0.0 && t.is_finite()));
        assert!(sample.weight.iter().all(|w| *w >= 0.0 && w.is_finite()));
        assert!(sample.entry.iter().flatten().zip(&sample.time).all(|(v, t)| 0.0 <= *v && v < t));
        assert!(instance.labels.iter().all(|l| *l < instance.n_classes));
    }
}

#[test]
fn a_failure_is_reduced_to_what_it_needs() {
    let wide = |i: &Instance| i.rows().len() >= 3 && i.n_features() >= 2;
    let instance = (0..).map(|seed| Instance::random(seed, 40, 6)).find(wide).unwrap();
    let smallest = instance.minimise(wide);
    assert_eq!((smallest.rows().len(), smallest.n_features()), (3, 2));
}
