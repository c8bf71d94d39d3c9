//! Converts tables to bytes, to be sent, stored and added up elsewhere.

use super::{Shape, Table};
use crate::error::Error;

/// First bytes of every table, with the version of the format.
const MAGIC: &[u8; 8] = b"bcsums01";

impl Table {
    /// Version, shape, sums, and a checksum over everything; little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Shape { n_features, depth, channels, flipped, task } = &self.shape;
        let mut bytes = Vec::with_capacity(self.shape.bytes() + flipped.len() + 64);
        bytes.extend_from_slice(MAGIC);
        for number in [*n_features as u64, *depth as u64, *channels as u64, *task] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend(flipped.iter().map(|&flipped| u8::from(flipped)));
        for sum in &self.sums {
            bytes.extend_from_slice(&sum.to_le_bytes());
        }
        let checksum = checksum(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a table from its bytes.
    ///
    /// # Errors
    ///
    /// For bytes of another version, and for bytes that were truncated or changed.
    pub fn from_bytes(bytes: &[u8]) -> Result<Table, Error> {
        let wrong = |reason: &str| Error::invalid("bytes", reason);
        let damaged = || wrong("are damaged");
        let (magic, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
        if magic != MAGIC {
            let same_kind = magic[..6] == MAGIC[..6];
            let reason = if same_kind { "are of another version" } else { "are no partial sums" };
            return Err(wrong(reason));
        }
        let (_, end) = bytes.split_last_chunk().ok_or_else(damaged)?;
        if checksum(&bytes[..bytes.len() - 8]) != u64::from_le_bytes(*end) {
            return Err(damaged());
        }
        let mut rest = &rest[..rest.len() - 8];
        let mut number = || {
            let (number, after) = rest.split_first_chunk().ok_or_else(damaged)?;
            rest = after;
            Ok(u64::from_le_bytes(*number))
        };
        let [n_features, depth, channels, task] = [number()?, number()?, number()?, number()?];
        let small = |n: u64| usize::try_from(n).ok().filter(|n| *n <= bytes.len());
        let (Some(n_features), Some(depth), Some(channels)) =
            (small(n_features), small(depth), small(channels))
        else {
            return Err(damaged());
        };
        let (flipped, sums) = rest.split_at_checked(n_features).ok_or_else(damaged)?;
        let flipped = flipped.iter().map(|&flipped| flipped != 0).collect();
        let shape = Shape { n_features, depth, channels, flipped, task };
        if shape.check().is_err() || shape.bytes() != sums.len() {
            return Err(damaged());
        }
        let mut table = Table::new(shape, None)?;
        for (sum, bytes) in table.sums.iter_mut().zip(sums.as_chunks().0) {
            *sum = i64::from_le_bytes(*bytes);
        }
        Ok(table)
    }
}

/// FNV-1a over words of eight bytes. It detects damage, not forgery.
pub fn checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let all = words.iter().chain([&last]);
    all.fold(0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64, |hash, word| {
        (hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x100_0000_01b3).rotate_left(23)
    })
}
