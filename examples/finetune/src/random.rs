//! Random numbers as a function of a key.
//!
//! candle's CPU generator cannot be seeded, so weights and dropout masks drawn from it would differ in every run
//! and after every resume. Here each value depends on its key alone: the seed and the parameter's name, or the
//! seed, the step and the place in the model.

/// A SplitMix64 sequence.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed and a path of further numbers; different paths give unrelated sequences.
    pub fn keyed(seed: u64, path: &[u64]) -> Self {
        let mut state = seed;
        for &part in path {
            state = mix(state.wrapping_add(GAMMA)) ^ mix(part.wrapping_mul(GAMMA).wrapping_add(1));
        }
        Self(mix(state))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// Uniform in `0.0..1.0`, with 53 bits.
    pub fn uniform(&mut self) -> f64 {
        let bits = self.next_u64() >> 11;
        // 53 bits fit an f64 exactly, as two parts that convert without loss.
        let (high, low) = split(bits);
        (f64::from(high) * 4_294_967_296.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    /// Normally distributed with mean 0 and standard deviation 1.
    pub fn normal(&mut self) -> f64 {
        // Box and Muller's transform; 1 - u keeps the logarithm's argument above 0.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// `count` values that are `1 / (1 - p)` with probability `1 - p` and 0 otherwise.
    pub fn dropout(&mut self, count: usize, p: f64) -> Vec<f32> {
        let keep = narrow(1.0 / (1.0 - p));
        // Compared against 32 random bits, two values from each draw.
        let limit = p * 4_294_967_296.0;
        let mut mask = Vec::with_capacity(count + 1);
        while mask.len() < count {
            let (high, low) = split(self.next_u64());
            for half in [high, low] {
                mask.push(if f64::from(half) < limit { 0.0 } else { keep });
            }
        }
        mask.truncate(count);
        mask
    }
}

/// A 64-bit digest of text (FNV-1a), to key sequences by a name.
pub fn digest(text: &[u8]) -> u64 {
    text.iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Rounds to single precision.
#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is what is asked for")]
pub fn narrow(value: f64) -> f32 {
    value as f32
}

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn split(bits: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = bits.to_le_bytes();
    (u32::from_le_bytes([e, f, g, h]), u32::from_le_bytes([a, b, c, d]))
}
