/// Random numbers for one record of one batch: a pure function of (seed, step, position).
///
/// A record map that draws from it gives the same batch for any number of workers and threads, and after a resume.
/// Records of one batch, and the same position in different steps, get independent numbers.
///
/// The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011):
/// the key is the seed, the counter is (step, position, block), so no two records ever share a part of one sequence.
/// It yields 2^33 numbers of 64 bits for a record. What it gives is fixed for ever by test vectors.
///
/// For distributions that are not here, seed a generator of the `rand` crate with [`RecordRng::next_u64`].
///
/// ```
/// use loaderx_core::view::RecordRng;
///
/// let mut rng = RecordRng::new(7, 1000, 3);
/// let flip = rng.chance(0.5);
/// let shift = rng.below(5); // 0..=4
/// let gain = rng.uniform(0.8, 1.2);
/// assert!(shift < 5 && (0.8..1.2).contains(&gain));
///
/// let mut again = RecordRng::new(7, 1000, 3);
/// assert_eq!((again.chance(0.5), again.below(5), again.uniform(0.8, 1.2)), (flip, shift, gain));
/// ```
#[derive(Clone, Debug)]
pub struct RecordRng {
    key: [u32; 2],
    // Step (two words), position, block.
    counter: [u32; 4],
    // The second half of the last block, until it is drawn.
    spare: Option<u64>,
}

const ROUNDS: usize = 10;
const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

impl RecordRng {
    /// The numbers for the record at `position` in the batch of `step`.
    #[must_use]
    pub fn new(seed: u64, step: u64, position: u32) -> Self {
        let [s0, s1] = halves(seed);
        let [c0, c1] = halves(step);
        Self { key: [s0, s1], counter: [c0, c1, position, 0], spare: None }
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let [a, b, c, d] = philox(self.counter, self.key);
        let [step_low, step_high, position, block] = self.counter;
        self.counter = [step_low, step_high, position, block.wrapping_add(1)];
        self.spare = Some(join(c, d));
        join(a, b)
    }

    /// 32 random bits: the upper half of [`RecordRng::next_u64`].
    pub fn next_u32(&mut self) -> u32 {
        let [_, high] = halves(self.next_u64());
        high
    }

    /// Uniform in `0.0..1.0`: a multiple of 2^-24.
    #[expect(clippy::cast_precision_loss, reason = "24 bits are exact in an f32")]
    pub fn next_f32(&mut self) -> f32 {
        (self.next_u64() >> 40) as f32 * (1.0 / (1_u32 << 24) as f32)
    }

    /// Uniform in `0.0..1.0`: a multiple of 2^-53.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact in an f64")]
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in `0..bound`, exactly: no value is likelier than another. 0 when `bound` is 0.
    #[expect(clippy::cast_possible_truncation, reason = "the lower half of the product is what decides")]
    pub fn below(&mut self, bound: u64) -> u64 {
        // Lemire's method: the upper half of draw * bound, redrawn where the lower half is in the uneven remainder.
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            let uneven = bound.wrapping_neg() % bound;
            while (product as u64) < uneven {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// Uniform in `low..high`; always below `high` unless rounding leaves no other number.
    pub fn uniform(&mut self, low: f32, high: f32) -> f32 {
        let value = low + (high - low) * self.next_f32();
        // The sum may round up to the end that is excluded.
        if value < high { value } else { high.next_down().max(low) }
    }

    /// True with this probability: never at 0 and below, always at 1 and above.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.next_f64() < probability
    }
}

fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let [c0, c1, c2, c3] = counter;
        let [low0, high0] = halves(u64::from(c0) * u64::from(MULTIPLIERS[0]));
        let [low1, high1] = halves(u64::from(c2) * u64::from(MULTIPLIERS[1]));
        counter = [high1 ^ c1 ^ key[0], low1, high0 ^ c3 ^ key[1], low0];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// The lower and the upper 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
fn halves(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

fn join(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that the authors published with their library.
    #[test]
    fn the_published_test_vectors_hold() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn seed_step_and_position_each_change_the_numbers() {
        let draw = |seed, step, position| {
            let mut rng = RecordRng::new(seed, step, position);
            [rng.next_u64(), rng.next_u64(), rng.next_u64()]
        };
        let mut seen = std::collections::HashSet::new();
        for seed in [0, 1, 1 << 32] {
            for step in [0, 1, 1 << 32, u64::MAX] {
                for position in [0, 1, u32::MAX] {
                    assert_eq!(draw(seed, step, position), draw(seed, step, position));
                    seen.extend(draw(seed, step, position));
                }
            }
        }
        assert_eq!(seen.len(), 3 * 4 * 3 * 3);
    }

    #[test]
    fn numbers_below_a_bound_are_even_and_in_range() {
        let mut rng = RecordRng::new(1, 2, 3);
        let mut counts = [0_u32; 6];
        for _ in 0..60_000 {
            counts[usize::try_from(rng.below(6)).unwrap()] += 1;
        }
        // Six standard deviations.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 560), "{counts:?}");
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
        // Half of all draws would be uneven here without the redraw.
        assert!((0..1000).all(|_| rng.below((1 << 63) + 1) <= 1 << 63));
    }

    #[test]
    fn floats_stay_below_their_end() {
        let mut rng = RecordRng::new(9, 9, 9);
        for _ in 0..10_000 {
            assert!((0.0..1.0).contains(&rng.next_f32()));
            assert!((0.0..1.0).contains(&rng.next_f64()));
            assert!((1.0..1.000_000_2).contains(&rng.uniform(1.0, 1.000_000_2)));
        }
        assert_eq!(rng.uniform(2.0, 2.0), 2.0);
        assert!(!rng.chance(0.0) && rng.chance(1.0));
    }
}
