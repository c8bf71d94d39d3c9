//! Known optima of sparse trees from OSDT (Hu, Rudin, Seltzer 2019), without a limit on depth if
//! the search is fast enough.

use bristlecone_core::search::Status;
use bristlecone_oracle::instances::Instance;

use crate::harness::{Case, Question};

/// The 124 training rows of the first MONK's problem (Thrun et al. 1991): eleven features,
/// lowest bit first, and the class.
const MONK: [u16; 124] = [
    0xe35, 0xa35, 0xd15, 0xa15, 0xd25, 0x925, 0xe45, 0xc45, 0x885, 0x8b9, 0x539, 0x639, 0x039,
    0xcd9, 0x659, 0x259, 0x059, 0x519, 0x019, 0x129, 0x249, 0x449, 0x049, 0x109, 0x609, 0x209,
    0x531, 0x431, 0x551, 0x451, 0x891, 0x111, 0x611, 0x411, 0x011, 0x121, 0x8c1, 0x141, 0x241,
    0x441, 0x041, 0xc81, 0x501, 0x401, 0x001, 0x636, 0x236, 0xcd6, 0x8d6, 0x156, 0x656, 0x456,
    0x056, 0x416, 0x126, 0x626, 0x026, 0x646, 0x046, 0x106, 0x406, 0xd3a, 0x93a, 0xe3a, 0xa5a,
    0xc9a, 0x89a, 0x91a, 0xa1a, 0x81a, 0xcaa, 0xa2a, 0xc2a, 0x82a, 0xd4a, 0xc0a, 0xcb2, 0xcd2,
    0x652, 0x892, 0x612, 0x012, 0x222, 0xcc2, 0x8c2, 0x542, 0x202, 0xcb4, 0x8b4, 0xcd4, 0x154,
    0x114, 0xca4, 0x124, 0x144, 0x244, 0x104, 0xcb8, 0x038, 0x8d8, 0x058, 0xca8, 0x8a8, 0x228,
    0xc88, 0x508, 0x408, 0xcb0, 0xd30, 0x830, 0xa50, 0x850, 0x890, 0xd10, 0x910, 0x810, 0xca0,
    0xa20, 0xc20, 0x820, 0x880, 0x900, 0xa00, 0x800,
];

/// ProPublica's COMPAS records with the binary features of OSDT: twelve features, lowest bit first,
/// and the number of rows of each class.
const COMPAS: [(u16, usize, usize); 123] = [
    (0x840, 3, 8),
    (0x860, 0, 3),
    (0x8e0, 157, 187),
    (0x4e0, 124, 53),
    (0x2e0, 139, 41),
    (0x1e0, 228, 46),
    (0x810, 11, 25),
    (0x850, 22, 63),
    (0x450, 1, 6),
    (0x250, 1, 1),
    (0x830, 27, 83),
    (0x430, 5, 4),
    (0x230, 3, 0),
    (0x870, 13, 49),
    (0x470, 8, 9),
    (0x270, 3, 2),
    (0x170, 2, 0),
    (0x8f0, 310, 542),
    (0x4f0, 274, 200),
    (0x2f0, 270, 133),
    (0x1f0, 486, 177),
    (0x818, 2, 9),
    (0x418, 1, 2),
    (0x858, 1, 13),
    (0x458, 2, 1),
    (0x258, 0, 1),
    (0x838, 11, 35),
    (0x438, 2, 8),
    (0x238, 2, 1),
    (0x878, 5, 24),
    (0x478, 8, 8),
    (0x278, 4, 8),
    (0x178, 6, 2),
    (0x8f8, 47, 118),
    (0x4f8, 61, 77),
    (0x2f8, 66, 56),
    (0x1f8, 123, 48),
    (0x81c, 3, 5),
    (0x85c, 1, 7),
    (0x45c, 2, 5),
    (0x25c, 1, 2),
    (0x83c, 2, 21),
    (0x43c, 4, 15),
    (0x23c, 3, 2),
    (0x87c, 4, 15),
    (0x47c, 7, 12),
    (0x27c, 6, 11),
    (0x17c, 2, 8),
    (0x8fc, 11, 27),
    (0x4fc, 20, 63),
    (0x2fc, 50, 45),
    (0x1fc, 106, 66),
    (0x81e, 0, 5),
    (0x41e, 1, 4),
    (0x85e, 0, 6),
    (0x45e, 4, 12),
    (0x25e, 5, 24),
    (0x83e, 1, 6),
    (0x43e, 5, 26),
    (0x23e, 8, 17),
    (0x87e, 0, 1),
    (0x47e, 1, 9),
    (0x27e, 8, 18),
    (0x17e, 19, 26),
    (0x8fe, 1, 8),
    (0x4fe, 13, 28),
    (0x2fe, 46, 56),
    (0x1fe, 108, 116),
    (0x841, 1, 0),
    (0x821, 0, 1),
    (0x861, 0, 1),
    (0x8e1, 29, 20),
    (0x4e1, 25, 9),
    (0x2e1, 37, 12),
    (0x1e1, 81, 15),
    (0x851, 2, 2),
    (0x251, 0, 1),
    (0x831, 5, 12),
    (0x431, 1, 0),
    (0x231, 1, 0),
    (0x871, 4, 5),
    (0x471, 2, 3),
    (0x271, 2, 0),
    (0x171, 1, 1),
    (0x8f1, 51, 105),
    (0x4f1, 70, 53),
    (0x2f1, 91, 35),
    (0x1f1, 188, 54),
    (0x859, 0, 1),
    (0x259, 1, 0),
    (0x839, 3, 1),
    (0x879, 0, 2),
    (0x479, 2, 0),
    (0x179, 2, 0),
    (0x8f9, 7, 17),
    (0x4f9, 12, 23),
    (0x2f9, 23, 13),
    (0x1f9, 52, 9),
    (0x41d, 1, 0),
    (0x85d, 0, 1),
    (0x83d, 0, 1),
    (0x43d, 1, 1),
    (0x23d, 2, 0),
    (0x87d, 0, 2),
    (0x27d, 3, 0),
    (0x17d, 0, 2),
    (0x8fd, 2, 3),
    (0x4fd, 9, 16),
    (0x2fd, 18, 3),
    (0x1fd, 47, 11),
    (0x21f, 0, 1),
    (0x25f, 2, 2),
    (0x83f, 0, 1),
    (0x43f, 4, 3),
    (0x23f, 0, 1),
    (0x13f, 0, 1),
    (0x47f, 0, 1),
    (0x27f, 1, 0),
    (0x17f, 1, 2),
    (0x8ff, 0, 3),
    (0x4ff, 4, 5),
    (0x2ff, 13, 7),
    (0x1ff, 40, 25),
];

/// Features and class of all rows.
type Table = (Vec<Vec<bool>>, Vec<usize>);

fn bits(row: u16, n: usize) -> Vec<bool> {
    (0..n).map(|bit| row >> bit & 1 == 1).collect()
}

fn monk() -> Table {
    MONK.iter().map(|&row| (bits(row, 11), usize::from(row >> 11))).unzip()
}

fn compas() -> Table {
    let rows = COMPAS.iter().flat_map(|&(row, no, yes)| {
        let labels = std::iter::repeat_n(0, no).chain(std::iter::repeat_n(1, yes));
        labels.map(move |label| (bits(row, 12), label))
    });
    rows.unzip()
}

/// All final boards of noughts and crosses, where crosses begin. For each field, the features are
/// whether it contains a nought and whether a cross. The class is whether crosses have won.
fn tic_tac_toe() -> Table {
    fn won(board: &[usize; 9], by: usize) -> bool {
        let lines = [
            [0, 1, 2],
            [3, 4, 5],
            [6, 7, 8],
            [0, 3, 6],
            [1, 4, 7],
            [2, 5, 8],
            [0, 4, 8],
            [2, 4, 6],
        ];
        lines.iter().any(|line| line.iter().all(|&field| board[field] == by))
    }
    fn play(
        board: &mut [usize; 9],
        turn: usize,
        ends: &mut std::collections::BTreeSet<[usize; 9]>,
    ) {
        if won(board, 1) || won(board, 2) || board.iter().all(|&field| field != 0) {
            ends.insert(*board);
            return;
        }
        for field in 0..9 {
            if board[field] == 0 {
                board[field] = turn;
                play(board, 3 - turn, ends);
                board[field] = 0;
            }
        }
    }
    let mut ends = std::collections::BTreeSet::new();
    play(&mut [0; 9], 2, &mut ends);
    let row = |board: &[usize; 9]| {
        let features = board.iter().flat_map(|&field| [field == 1, field == 2]).collect();
        (features, usize::from(won(board, 2)))
    };
    ends.iter().map(row).unzip()
}

/// Number of leaves of the best tree, and its accuracy in percent.
fn sparse((features, labels): Table, leaf_penalty: f64, max_depth: usize) -> (usize, f64) {
    let instance = Instance::of_labels(features, labels, 2);
    let question = Question { leaf_penalty, ..Question::of("accuracy", max_depth) };
    let case = Case::new(&instance, &question);
    let answer = case.solve(&case.settings()).expect("a tree");
    assert_eq!(answer.status, Status::Optimal);
    let leaves = answer.n_leaves();
    (leaves, 100.0 * (1.0 - answer.objective + leaf_penalty * leaves as f64))
}

#[test]
fn the_first_monk_takes_eight_leaves_without_error() {
    let (leaves, accuracy) = sparse(monk(), 0.025, usize::MAX);
    assert_eq!(leaves, 8);
    assert!((accuracy - 100.0).abs() < 1e-9);
}

#[test]
fn tic_tac_toe_has_an_accuracy_of_82_881_with_eight_leaves() {
    let (leaves, accuracy) = sparse(tic_tac_toe(), 0.01, 5);
    assert_eq!(leaves, 8);
    assert!((accuracy - 100.0 * 794.0 / 958.0).abs() < 1e-9, "{accuracy}");
}

#[test]
fn compas_has_an_accuracy_of_66_90() {
    let (_, accuracy) = sparse(compas(), 0.005, usize::MAX);
    assert!((accuracy - 66.90).abs() < 0.005, "{accuracy}");
}
