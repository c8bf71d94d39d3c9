//! Binary features as bytes: from columns to a matrix, and back to counts.

/// Rows that are encoded at once: the bytes stay in the cache.
const ROWS: usize = 64;

/// Neighbouring features that ask about one column.
pub enum Questions<'a> {
    /// Whether the rank of a row is at most so much.
    Cuts(&'a [u32], Vec<u32>),
    /// Answers of the rows, for so many features that are the same.
    Answers(&'a [bool], usize),
}

impl Questions<'_> {
    fn len(&self) -> usize {
        match self {
            Questions::Cuts(_, gaps) => gaps.len(),
            Questions::Answers(_, copies) => *copies,
        }
    }
}

/// Features of `n_rows` rows, row-major, a byte each: 1 where it holds, else 0.
pub fn encode(n_rows: usize, questions: &[Questions]) -> Vec<u8> {
    let width: usize = questions.iter().map(Questions::len).sum();
    let mut features = vec![0; n_rows * width];
    if width == 0 {
        return features;
    }
    for (block, bytes) in features.chunks_mut(ROWS * width).enumerate() {
        let rows = block * ROWS..n_rows.min((block + 1) * ROWS);
        let mut begin = 0;
        for own in questions {
            let places = bytes.chunks_exact_mut(width).map(|row| &mut row[begin..][..own.len()]);
            match own {
                Questions::Cuts(ranks, gaps) => {
                    for (row, &rank) in places.zip(&ranks[rows.clone()]) {
                        for (byte, &gap) in row.iter_mut().zip(gaps) {
                            *byte = u8::from(rank <= gap);
                        }
                    }
                }
                Questions::Answers(answers, _) => {
                    for (row, &answer) in places.zip(&answers[rows.clone()]) {
                        row.fill(u8::from(answer));
                    }
                }
            }
            begin += own.len();
        }
    }
    features
}

/// In how many rows, of those `among`, every feature holds. Bytes are 0 or 1.
pub fn count_true(bytes: &[u8], n_features: usize, among: Option<&[bool]>) -> Vec<i64> {
    let mut counts = vec![0i64; n_features];
    if n_features == 0 {
        return counts;
    }
    // A byte holds the sum of so many rows.
    let block = usize::from(u8::MAX);
    let mut sums = vec![0u8; n_features];
    for (b, rows) in bytes.chunks(block * n_features).enumerate() {
        sums.fill(0);
        for (r, row) in rows.chunks_exact(n_features).enumerate() {
            if among.is_none_or(|among| among[b * block + r]) {
                sums.iter_mut().zip(row).for_each(|(sum, byte)| *sum += byte);
            }
        }
        counts.iter_mut().zip(&sums).for_each(|(count, &sum)| *count += i64::from(sum));
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_those_of_the_columns() {
        for n in [0, 1, 63, 64, 65, 1000] {
            let ranks: Vec<u32> = (0..n).map(|i| i * 7 % 13).collect();
            let answers: Vec<bool> = (0..n).map(|i| i % 3 == 0).collect();
            let cuts = || Questions::Cuts(&ranks, vec![5, 0, 12]);
            let n = n as usize;
            let found = encode(n, &[cuts(), Questions::Answers(&answers, 2), cuts()]);
            let row = |i: usize| {
                let cuts = [5, 0, 12].map(|gap| ranks[i] <= gap);
                [cuts.as_slice(), &[answers[i]; 2], &cuts].concat()
            };
            let expected: Vec<u8> = (0..n).flat_map(row).map(u8::from).collect();
            assert_eq!(found, expected);
            let odd: Vec<bool> = (0..n).map(|i| i % 2 == 1).collect();
            for among in [None, Some(odd.as_slice())] {
                let counts = count_true(&found, 8, among);
                for (feature, &count) in counts.iter().enumerate() {
                    let holds = |&i: &usize| {
                        among.is_none_or(|among| among[i]) && found[i * 8 + feature] == 1
                    };
                    assert_eq!(count, (0..n).filter(holds).count() as i64);
                }
            }
        }
        assert!(encode(3, &[]).is_empty() && count_true(&[], 0, None).is_empty());
    }
}
