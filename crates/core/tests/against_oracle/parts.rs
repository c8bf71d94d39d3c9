//! Sums over parts of the rows give the same tree as all rows at once.

use bristlecone_core::data::BinaryMatrix;
use bristlecone_core::registry::{self, Column, Columns, Problem};
use bristlecone_core::search::partial::{Adder, Leaves, Shape, Table};
use bristlecone_core::search::{Monitor, Solution, Stop};
use bristlecone_core::simd::Backend;
use bristlecone_oracle::instances::{Instance, Random};
use std::cell::Cell;
use std::collections::BTreeMap;

use crate::harness::{Answer, CERTIFIED, Case, SCALE, agree, ensure, for_each_of, matrix};
use crate::tasks::{Arrays, of_cells};

/// Columns with one entry per row.
const PER_ROW: [&str; 11] = [
    "weight", "time", "event", "entry", "smoothed", "labels", "shares", "costs", "rewards",
    "target", "exposure",
];

/// An owned column of records.
enum Held {
    Numbers(Vec<f64>),
    Codes(Vec<i64>),
    Flags(Vec<bool>),
    Table(Vec<f64>, usize),
}

impl Held {
    fn of(column: Column, rows: &[usize]) -> Held {
        match column {
            Column::Numbers(values) => Held::Numbers(rows.iter().map(|&r| values[r]).collect()),
            Column::Codes(values) => Held::Codes(rows.iter().map(|&r| values[r]).collect()),
            Column::Flags(values) => Held::Flags(rows.iter().map(|&r| values[r]).collect()),
            Column::Table { values, width } => {
                let of_row = |&r: &usize| &values[r * width..][..width];
                Held::Table(rows.iter().flat_map(of_row).copied().collect(), width)
            }
            _ => unreachable!("an entry per row"),
        }
    }

    fn column(&self) -> Column<'_> {
        match self {
            Held::Numbers(values) => Column::Numbers(values),
            Held::Codes(values) => Column::Codes(values),
            Held::Flags(values) => Column::Flags(values),
            Held::Table(values, width) => Column::Table { values, width: *width },
        }
    }
}

/// Key of a row's outcome; equal for equal outcomes.
fn key(column: Column, row: usize) -> Vec<u64> {
    match column {
        Column::Numbers(values) => vec![values[row].to_bits()],
        Column::Codes(values) => vec![values[row] as u64],
        Column::Flags(values) => vec![u64::from(values[row])],
        Column::Table { values, width } => {
            values[row * width..][..width].iter().map(|v| v.to_bits()).collect()
        }
        _ => unreachable!("an entry per row"),
    }
}

/// The best tree from sums over parts of the rows, which are written to bytes and read again.
fn in_parts(case: &Case, random: &mut Random) -> Result<Solution, String> {
    let (instance, question) = (&case.instance, &case.question);
    let arrays = Arrays::new(instance, question);
    let (n_rows, n_features) = (instance.rows().len(), instance.n_features());
    let is_per_row = |name: &str| PER_ROW.contains(&name) || name == "cause";
    let per_row: Vec<(&str, Column)> =
        arrays.columns().filter(|(name, _)| is_per_row(name)).collect();
    let mut records: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
    let (mut first_rows, mut counts) = (Vec::new(), Vec::new());
    let record_of: Vec<u32> = (0..n_rows)
        .map(|row| {
            let of_row = per_row.iter().flat_map(|&(_, column)| key(column, row)).collect();
            let record = *records.entry(of_row).or_insert_with(|| {
                first_rows.push(row);
                counts.push(0i64);
                counts.len() - 1
            });
            counts[record] += 1;
            record as u32
        })
        .collect();
    let held: Vec<(&str, Held)> =
        per_row.iter().map(|&(name, column)| (name, Held::of(column, &first_rows))).collect();
    let mut columns = Columns::default();
    arrays
        .columns()
        .filter(|(name, _)| !is_per_row(name))
        .for_each(|(name, c)| columns.insert(name, c));
    held.iter().for_each(|(name, held)| columns.insert(name, held.column()));
    columns.insert("count", Column::Codes(&counts));
    let settings = case.settings();
    let problem = Problem {
        columns,
        n_rows: counts.len(),
        n_features,
        leaf_penalty: question.leaf_penalty,
        max_leaves: settings.limits.most_leaves(),
    };
    let text = |error: bristlecone_core::error::Error| error.to_string();
    let task = registry::prepare_sums(question.task, &problem).map_err(text)?;
    let records = task.records();
    let shape = Shape {
        n_features,
        depth: settings.limits.max_depth.max(1),
        channels: records.channels,
        flipped: (0..n_features).map(|_| random.chance(0.5)).collect(),
        task: 7,
    };
    let never = || false;
    let monitor = Monitor::new(None, &never);
    let mut whole = Table::new(shape.clone(), None).map_err(text)?;
    let (mut rest, mut adder) = ((0..n_rows).collect::<Vec<_>>(), Adder::default());
    let features = matrix(instance);
    while !rest.is_empty() {
        let rows: Vec<usize> = rest.drain(..1 + random.below(rest.len())).collect();
        let of_rows: Vec<u32> = rows.iter().map(|&row| record_of[row]).collect();
        let mut part = Table::new(shape.clone(), None).map_err(text)?;
        let mut features: BinaryMatrix = features.take(&rows);
        let backend = Backend::best();
        let added = adder.add(&mut part, records, &mut features, &of_rows, backend, &monitor);
        added.map_err(text)?.expect("nothing stops it");
        let part = Table::from_bytes(&part.to_bytes()).map_err(text)?;
        whole.merge(&part).map_err(text)?;
    }
    let found = task.search(&whole, &settings, &monitor).map_err(text)?;
    let mut counted: BTreeMap<(usize, usize), i64> = BTreeMap::new();
    for (&record, leaf) in record_of.iter().zip(found.tree.partition(&features)) {
        *counted.entry((record as usize, leaf)).or_default() += 1;
    }
    let mut leaves = Leaves::default();
    for ((record, leaf), count) in counted {
        leaves.record.push(record);
        leaves.leaf.push(leaf);
        leaves.count.push(count);
    }
    task.certify(&whole, &settings, &monitor, &found, Some(&leaves)).map_err(text)
}

/// The same case, except that some rows have equal outcomes and some are equal.
fn with_equal_outcomes(case: &Case, random: &mut Random) -> Case {
    let n_rows = case.instance.rows().len();
    let few = 1 + random.below(n_rows);
    let rows: Vec<usize> = (0..n_rows).map(|_| random.below(few)).collect();
    let columns: Vec<usize> = (0..case.instance.n_features()).collect();
    let mut same = case.select(&rows, &columns);
    let features = case.instance.features.clone();
    same.instance.features = (0..n_rows).map(|_| features[random.below(n_rows)].clone()).collect();
    // A minimum of rows per class is not supported for parts.
    same.question.parameters.fewest = 0;
    Case::new(&same.instance, &same.question)
}

#[test]
fn a_tree_from_partial_sums_is_that_of_the_whole() {
    let compared = Cell::new(0);
    let check = |case: &Case| {
        let random = &mut Random::new(case.instance.rows().len() as u64 + 1);
        let case = with_equal_outcomes(case, random);
        // With a trivial bound, trees of the start might be kept if others are equally good.
        let settings = case.settings().with_switches(|s| s.trivial_bound = false);
        let (whole, parts) = (case.solve(&settings), in_parts(&case, random));
        let (whole, parts) = match (whole, parts) {
            (Ok(whole), Ok(parts)) => (whole, Answer::from(parts)),
            (Err(_), Err(_)) => return Ok(()),
            // Only rows can be summed again in finer numbers.
            (Ok(_), Err(reason)) if reason.contains("too wide a range") => return Ok(()),
            (whole, parts) => return Err(format!("{:?}, {:?}", whole.err(), parts.err())),
        };
        let of = |answer: &Answer| (answer.objective, answer.status);
        let (one, other) = (of(&whole), of(&parts));
        ensure(one == other, || format!("{other:?} in parts, {one:?} as a whole"))?;
        // Partial sums are finer than lanes.
        agree("bound", parts.lower_bound, whole.lower_bound, CERTIFIED * case.size(&whole)?)?;
        compared.set(compared.get() + 1);
        ensure(whole.tree == parts.tree, || format!("{:?}, {:?}", parts.tree, whole.tree))
    };
    let n_tasks = of_cells().len() as u64;
    for_each_of(&of_cells(), 60 * SCALE, (40, 6, &[0, 1, 2, 3, 4]), check);
    for_each_of(&of_cells(), SCALE, (60, 20, &[3]), check);
    assert!(compared.get() > 40 * SCALE * n_tasks, "{} compared", compared.get());
}

#[test]
fn a_table_that_lacks_rows_is_refused() {
    let instance = Instance::of_labels(vec![vec![true], vec![false]], vec![0, 1], 2);
    let columns = |labels| {
        let mut columns = Columns::default();
        columns.insert("labels", Column::Codes(labels));
        columns.insert("n_classes", Column::Number(2.0));
        columns
    };
    let (labels, never) = ([0, 1], || false);
    let problem = Problem {
        columns: columns(&labels),
        n_rows: 2,
        n_features: 1,
        leaf_penalty: 0.0,
        max_leaves: 2,
    };
    let task = registry::prepare_sums("accuracy", &problem).expect("complete");
    let records = task.records();
    let shape = Shape { n_features: 1, depth: 1, channels: 2, flipped: vec![false], task: 0 };
    let monitor = Monitor::new(None, &never);
    let settings = bristlecone_core::search::Settings::default().with_limits(|s| s.max_depth = 1);
    let mut table = Table::new(shape.clone(), None).expect("small");
    let add = |table: &mut Table, record_of: &[u32]| {
        let mut features = matrix(&instance).take(&(0..record_of.len()).collect::<Vec<_>>());
        let (mut adder, backend) = (Adder::default(), Backend::best());
        adder.add(table, records, &mut features, record_of, backend, &monitor).map(|_| ())
    };
    let refusal = |table: &Table| {
        task.search(table, &settings, &monitor).err().map(|error| error.to_string())
    };
    let reason = "sums hold 0 rows, the outcomes are those of 2";
    assert_eq!(refusal(&table).as_deref(), Some(reason));
    add(&mut table, &[0, 0]).unwrap();
    let reason = "sums are not those of the outcomes: rows have changed, or were counted twice";
    assert_eq!(refusal(&table).as_deref(), Some(reason));
    let reason = "outcome: row 1 has outcome 2 of 2";
    assert_eq!(add(&mut table, &[0, 2]).unwrap_err().to_string(), reason);
    let mut table = Table::new(shape.clone(), None).expect("small");
    add(&mut table, &[0, 1]).unwrap();
    assert_eq!(refusal(&table), None);
    assert_eq!(table.smallest_cell(&monitor), Ok(Some((1, vec![(0, false)]))));
    // 30 features have too many sets of four to visit them without a look at the clock.
    let wide = Shape { n_features: 30, depth: 4, flipped: vec![false; 30], ..shape.clone() };
    let wide = Table::new(wide, None).expect("a few megabytes");
    let stopped = Monitor::new(None, &|| true);
    assert_eq!(wide.smallest_cell(&stopped), Err(Stop::Interrupt));
    // Bytes are checked, and tables of different data cannot be added.
    let bytes = table.to_bytes();
    let error = |bytes: &[u8]| Table::from_bytes(bytes).unwrap_err().to_string();
    let mut changed = bytes.clone();
    changed[50] ^= 1;
    assert_eq!(error(&changed), "bytes are damaged");
    assert_eq!(error(&bytes[..bytes.len() - 3]), "bytes are damaged");
    let mut newer = bytes.clone();
    newer[7] += 1;
    assert_eq!(error(&newer), "bytes are of another version");
    assert_eq!(error(b"something else"), "bytes are no partial sums");
    let other = Table::new(Shape { task: 1, ..shape.clone() }, None).expect("small");
    let reason = "sums are of another task or other outcomes";
    assert_eq!(table.merge(&other).unwrap_err().to_string(), reason);
    let deep = Shape { n_features: 150, depth: 4, flipped: vec![false; 150], ..shape };
    let reason = Table::new(deep, Some(200_000_000)).unwrap_err().to_string();
    assert!(reason.ends_with("max_depth=3 fits"), "{reason}");
}
