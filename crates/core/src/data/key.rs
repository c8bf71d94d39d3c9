//! Numbers that identify sets of rows.

/// A fixed pseudo-random 128-bit number. The sum of the numbers of its rows identifies a set of
/// rows.
pub fn random_number(of: u64) -> u128 {
    let mix = |mut x: u64| {
        // splitmix64
        x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let low = mix(of);
    u128::from(low) | u128::from(mix(low ^ 0x5851_f42d_4c95_7f2d)) << 64
}
