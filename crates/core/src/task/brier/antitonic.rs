//! The non-increasing curve with the least Brier loss, by pooling adjacent violators.

/// Pooled pieces of a curve, in the order of time.
///
/// A piece with the curve value s loses s²·p + (1 − s)²·q, which is least at s = q/(p + q).
/// Neighbouring pieces whose minimisers increase are pooled (Barlow, Bartholomew, Bremner, Brunk
/// 1972). Amortised O(1) per piece. No two of p and q are multiplied: of very short times both may
/// be so small that their product is 0.
#[derive(Clone, Debug, Default)]
pub struct Fit {
    /// p, q and s of every piece.
    pieces: Vec<[f64; 3]>,
}

impl Fit {
    /// Removes all pieces.
    pub fn clear(&mut self) {
        self.pieces.clear();
    }

    /// Appends the next piece.
    #[inline]
    pub fn push(&mut self, p: f64, q: f64) {
        if p + q <= 0.0 {
            return;
        }
        let mut last = [p, q, q / (p + q)];
        while let Some(&[p, q, s]) = self.pieces.last() {
            if last[2] <= s {
                break;
            }
            let (p, q) = (last[0] + p, last[1] + q);
            last = [p, q, q / (p + q)];
            self.pieces.pop();
        }
        self.pieces.push(last);
    }

    /// Loss of the fitted curve: Σ p·q/(p + q).
    pub fn loss(&self) -> f64 {
        self.pieces.iter().map(|[p, _, s]| p * s).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_pooled_and_lose_the_same_in_any_unit() {
        let loss = |unit: f64| {
            let mut fit = Fit::default();
            for (p, q) in [(1.0, 3.0), (3.0, 1.0), (1.0, 1.0), (0.0, 0.0), (2.0, 6.0)] {
                fit.push(p * unit, q * unit);
            }
            fit.loss() / unit
        };
        // All but the first are pooled: 6 and 8.
        for exponent in [0, -500, -900, 900] {
            assert_eq!(loss(2f64.powi(exponent)), 0.75 + 6.0 * (8.0 / 14.0), "2^{exponent}");
        }
    }
}
