//! The non-increasing curve with the least Brier loss, by pooling adjacent violators.

/// Pooled pieces of a curve, in the order of time.
///
/// A piece with the curve value s loses s²·p + (1 − s)²·q, which is least at s = q/(p + q).
/// Neighbouring pieces whose minimisers increase are pooled (Barlow, Bartholomew, Bremner, Brunk
/// 1972). Amortised O(1) per piece.
#[derive(Clone, Debug, Default)]
pub struct Fit {
    pieces: Vec<[f64; 2]>,
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
        let mut last = [p, q];
        // While q/(p+q) of the new piece is above that of the previous one.
        while let Some(&[p, q]) = self.pieces.last() {
            if last[1] * p <= q * last[0] {
                break;
            }
            last = [last[0] + p, last[1] + q];
            self.pieces.pop();
        }
        self.pieces.push(last);
    }

    /// Loss of the fitted curve: Σ p·q/(p + q).
    pub fn loss(&self) -> f64 {
        self.pieces.iter().map(|[p, q]| p * q / (p + q)).sum()
    }
}
