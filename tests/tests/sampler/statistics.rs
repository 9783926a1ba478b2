//! Whether draws and permutations look random: fixed seeds, stated thresholds, lengths from 1 to 2^40.
//!
//! Each statistic is a z value: how many standard deviations a count or a chi-square lies from what it is for truly
//! random orders. All seeds are fixed, so a run always gives the same values. Truly random orders would stay within
//! [`LIMIT`] with all of the some 2,700 statistics here for about nine choices of the seeds in ten; networks of too
//! few rounds miss it by factors (`docs/sampling.md` has the figures).
#![forbid(unsafe_code)]

use loaderx_core::sampler::{Cyclic, Iid, Sampler};
use loaderx_tests::sampler_oracle::sides;

/// No statistic may be further out.
const LIMIT: f64 = 5.0;

/// Cells of a histogram.
const CELLS: u64 = 64;

fn usize_of(x: u64) -> usize {
    usize::try_from(x).unwrap()
}

/// The chi-square of counts against expected ones, in standard deviations from its mean.
fn chi_square(counts: &[u64], expected: impl Fn(usize) -> f64, degrees: f64) -> f64 {
    let sum: f64 = counts
        .iter()
        .enumerate()
        .map(|(cell, count)| {
            let expected = expected(cell);
            if expected == 0.0 { *count as f64 * 1e9 } else { (*count as f64 - expected).powi(2) / expected }
        })
        .sum();
    (sum - degrees) / (2.0 * degrees).sqrt()
}

/// A histogram of values below `n` in cells of (nearly) equal width.
struct Histogram {
    n: u64,
    cells: u64,
    counts: Vec<u64>,
}

impl Histogram {
    fn new(n: u64) -> Self {
        let cells = n.min(CELLS);
        Self { n, cells, counts: vec![0; usize_of(cells)] }
    }

    fn add(&mut self, value: u64) {
        let cell = u128::from(value) * u128::from(self.cells) / u128::from(self.n);
        self.counts[usize::try_from(cell).unwrap()] += 1;
    }

    fn z(&self) -> f64 {
        if self.cells == 1 {
            return 0.0;
        }
        let total: u64 = self.counts.iter().sum();
        // The number of values that fall into a cell is not the same for all when the cells do not divide them.
        let bound = |cell: usize| (cell as u128 * u128::from(self.n)).div_ceil(u128::from(self.cells));
        let share = |cell| (bound(cell + 1) - bound(cell)) as f64 / self.n as f64;
        chi_square(&self.counts, |cell| share(cell) * total as f64, (self.cells - 1) as f64)
    }
}

/// Pairs of the low three bits of two values below `n`.
struct LowBits {
    n: u64,
    counts: [u64; 64],
}

impl LowBits {
    fn new(n: u64) -> Self {
        Self { n, counts: [0; 64] }
    }

    fn add(&mut self, a: u64, b: u64) {
        self.counts[usize_of((a & 7) << 3 | b & 7)] += 1;
    }

    /// `distinct` says that the two values of a pair are never the same, `covered` which part of all values has been
    /// on either side: how often each class occurs is then fixed to that degree.
    fn z(&self, distinct: bool, covered: f64) -> f64 {
        let (total, n) = (self.counts.iter().sum::<u64>() as f64, self.n as f64);
        let class = |low: usize| ((self.n + 7 - low as u64) / 8) as f64;
        let expected = |cell: usize| {
            let (a, b) = (cell >> 3, cell & 7);
            let own = if distinct && a == b { 1.0 } else { 0.0 };
            total * class(a) * (class(b) - own) / (n * (n - f64::from(u8::from(distinct))))
        };
        let free = self.n.min(8) as f64 - 1.0;
        let degrees = free * free + 2.0 * free * (1.0 - covered);
        if free == 0.0 { 0.0 } else { chi_square(&self.counts, expected, degrees) }
    }
}

/// Reads any stretch of any cycle: one batch is a whole cycle, and a slice costs its own length.
struct Cycles(Cyclic);

impl Cycles {
    fn new(n: u64, seed: u64) -> Self {
        Self(Cyclic::new(n, usize_of(n), seed).unwrap())
    }

    fn read(&self, cycle: u64, start: u64, count: u64, out: &mut Vec<u64>) {
        self.0.draw_slice(cycle, usize_of(start)..usize_of(start + count), out);
    }
}

/// The statistics of positions `start..start + count` of `cycles` cycles.
fn permutation_statistics(n: u64, seed: u64, cycles: u64, start: u64, count: u64) -> Vec<(String, f64)> {
    const CHUNK: u64 = 1 << 14;
    let source = Cycles::new(n, seed);
    // The sides of the network: positions that far apart share one half.
    let (a, b) = sides(n);
    let mut lags = vec![1, 2, 256, a, b, b + 1, 2 * b];
    lags.sort_unstable();
    lags.dedup();
    lags.retain(|lag| lag * 2 < n);
    let mut at_lag: Vec<Histogram> = lags.iter().map(|_| Histogram::new(n - 1)).collect();
    let mut bits_at_lag: Vec<LowBits> = lags.iter().map(|_| LowBits::new(n)).collect();
    let mut next_cycle = Histogram::new(n);
    let mut shift = Histogram::new(n);
    let mut bits_next_cycle = LowBits::new(n);
    let mut fixed = 0_u64;
    let mut seen = 0_u64;
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for cycle in 0..cycles {
        let mut position = start;
        while position < start + count {
            let chunk = CHUNK.min(start + count - position);
            source.read(cycle, position, chunk, &mut here);
            for (value, position) in here.iter().zip(position..) {
                fixed += u64::from(*value == position);
                shift.add((n + value - position) % n);
            }
            for ((lag, histogram), bits) in lags.iter().zip(&mut at_lag).zip(&mut bits_at_lag) {
                let chunk = chunk.min(n.saturating_sub(position + lag));
                source.read(cycle, position + lag, chunk, &mut there);
                for (value, later) in here.iter().zip(&there) {
                    // Never 0 in a permutation, so 1..n becomes 0..n - 1.
                    histogram.add((n + later - value) % n - 1);
                    bits.add(*value, *later);
                }
            }
            source.read(cycle + 1, position, chunk, &mut there);
            for (value, other) in here.iter().zip(&there) {
                next_cycle.add((n + other - value) % n);
                bits_next_cycle.add(*value, *other);
            }
            seen += chunk;
            position += chunk;
        }
    }
    let covered = count as f64 / n as f64;
    // Each position is a fixed point with probability 1/n, nearly independently of the others.
    let expected = seen as f64 / n as f64;
    let mut z = vec![
        ("value minus position".to_string(), shift.z()),
        ("difference to the next cycle".to_string(), next_cycle.z()),
        ("low bits against the next cycle".to_string(), bits_next_cycle.z(false, covered)),
    ];
    if expected >= 20.0 {
        z.push(("fixed points".to_string(), (fixed as f64 - expected) / expected.sqrt()));
    }
    for ((lag, histogram), bits) in lags.iter().zip(at_lag).zip(bits_at_lag) {
        z.push((format!("difference at lag {lag}"), histogram.z()));
        z.push((format!("low bits at lag {lag}"), bits.z(true, covered)));
    }
    z
}

#[track_caller]
fn check(what: &str, statistics: Vec<(String, f64)>) {
    for (name, z) in statistics {
        assert!(z.abs() < LIMIT, "{what}: {name} is {z:.1} standard deviations off");
    }
}

/// Powers of two and their neighbours.
fn powers(exponents: std::ops::RangeInclusive<u32>) -> impl Iterator<Item = u64> {
    exponents.flat_map(|k| [(1 << k) - 1, 1 << k, (1 << k) + 1])
}

#[test]
fn a_cycle_is_a_permutation_at_every_length_and_a_whole_one_up_to_2_pow_24() {
    let mut seen = vec![false; (1 << 24) + 1];
    let mut out = Vec::new();
    let lengths = (1..=300).chain(4_080..=4_300).chain(powers(9..=20)).chain(powers(24..=24));
    for n in lengths.chain([5_000, 60_000, 1_000_003, 9_999_991]) {
        let cycles = Cycles::new(n, n ^ 0x5eed);
        for cycle in [0, 1, u64::MAX].into_iter().take(if n > 1 << 20 { 1 } else { 3 }) {
            seen[..usize_of(n)].fill(false);
            let mut position = 0;
            while position < n {
                cycles.read(cycle, position, 5_000, &mut out);
                for value in &out {
                    assert!(*value < n, "{value} is past the length {n}");
                    assert!(!std::mem::replace(&mut seen[usize_of(*value)], true), "{value} twice among {n}");
                }
                position += out.len() as u64;
            }
            assert_eq!(position, n);
        }
    }
}

#[test]
fn stretches_of_long_cycles_have_no_value_twice() {
    let mut out = Vec::new();
    for n in powers(25..=39).chain([(1 << 40) - 1, 1 << 40, 268_435_457, 10_u64.pow(12)]) {
        let cycles = Cycles::new(n, 1);
        let mut values = Vec::new();
        for start in [0, n / 3, n - 20_000] {
            cycles.read(7, start, 20_000, &mut out);
            assert_eq!(out.len(), 20_000);
            values.append(&mut out);
        }
        values.sort_unstable();
        assert!(values.is_sorted_by(|a, b| a < b), "a value twice at {n}");
        assert!(values.last().unwrap() < &n);
    }
}

#[test]
fn every_order_of_a_few_records_is_equally_likely() {
    for n in 1..=6_u64 {
        let orders = (1..=n).product::<u64>();
        let cycles = orders * 200;
        let source = Cycles::new(n, 99);
        let mut counts = std::collections::BTreeMap::new();
        let mut pairs = std::collections::BTreeMap::new();
        let (mut out, mut before) = (Vec::new(), Vec::new());
        for cycle in 0..cycles {
            source.read(cycle, 0, n, &mut out);
            *counts.entry(out.clone()).or_insert(0_u64) += 1;
            if n <= 4 && cycle > 0 {
                *pairs.entry((before, out.clone())).or_insert(0_u64) += 1;
            }
            before = out.clone();
        }
        if n == 1 {
            assert_eq!(counts.len(), 1);
            continue;
        }
        let counts: Vec<u64> = counts.into_values().collect();
        assert_eq!(counts.len() as u64, orders, "some order of {n} never occurs");
        let z = chi_square(&counts, |_| 200.0, orders as f64 - 1.0);
        assert!(z.abs() < LIMIT, "orders of {n}: {z:.1}");
        if n <= 4 {
            // An order says nothing about the next cycle's.
            let mut pairs: Vec<u64> = pairs.into_values().collect();
            pairs.resize(usize_of(orders * orders), 0);
            let expected = (cycles - 1) as f64 / (orders * orders) as f64;
            let z = chi_square(&pairs, |_| expected, (orders * orders) as f64 - 1.0);
            assert!(z.abs() < LIMIT, "consecutive orders of {n}: {z:.1}");
        }
    }
}

#[test]
fn every_record_is_equally_likely_at_every_position() {
    // 64 cells of positions times 64 cells of values, or each on its own where there are fewer.
    for n in (2..=40).chain(powers(6..=7)).chain([1_000, 4_096, 4_097, 5_042, 10_007]) {
        let source = Cycles::new(n, 2_024);
        let cells = usize_of(n.min(CELLS));
        let cycles = if n > 1_000 { 300 } else { 3_000 };
        let mut counts = vec![0_u64; cells * cells];
        let mut out = Vec::new();
        let cell = |x: u64| usize_of(x * cells as u64 / n);
        let mut size = vec![0_u64; cells];
        (0..n).for_each(|x| size[cell(x)] += 1);
        for cycle in 0..cycles {
            source.read(cycle, 0, n, &mut out);
            for (value, position) in out.iter().zip(0..) {
                counts[cell(position) * cells + cell(*value)] += 1;
            }
        }
        let expected = |at: usize| (cycles * size[at / cells] * size[at % cells]) as f64 / n as f64;
        // Rows and columns have fixed sums. Where a cell is a single value the squares are larger by n / (n - 1).
        let degrees = ((cells - 1) * (cells - 1)) as f64;
        let scale = (n - 1) as f64 / n as f64;
        let z = (chi_square(&counts, expected, degrees) * (2.0 * degrees).sqrt() + degrees) * scale;
        let z = (z - degrees) / (2.0 * degrees).sqrt();
        assert!(z.abs() < LIMIT, "positions of {n} records: {z:.1}");
    }
}

#[test]
fn neighbours_and_cycles_are_unrelated_in_short_cycles() {
    for n in (8..=70).chain(powers(7..=11)).chain([1_000]) {
        check(&format!("{n} records"), permutation_statistics(n, 31, 300_000 / n, 0, n));
    }
}

#[test]
fn neighbours_and_cycles_are_unrelated_in_whole_cycles_up_to_2_pow_24() {
    for n in powers(12..=17).chain([5_000, 5_042, 60_000]) {
        check(&format!("{n} records"), permutation_statistics(n, 32, (800_000 / n).max(3), 0, n));
    }
    for n in [1_000_003, (1 << 24) - 1, 1 << 24, (1 << 24) + 1] {
        check(&format!("{n} records"), permutation_statistics(n, 33, 1, 0, n));
    }
}

#[test]
fn neighbours_and_cycles_are_unrelated_in_stretches_of_cycles_up_to_2_pow_40() {
    let powers = [25, 28, 29, 32, 36].into_iter().flat_map(|k| powers(k..=k));
    for n in powers.chain([190_000_000, 270_000_000, (1 << 40) - 1, 1 << 40]) {
        for start in [0, n / 3] {
            check(&format!("{n} records from {start}"), permutation_statistics(n, 34, 2, start, 200_000));
        }
    }
}

#[test]
fn independent_draws_are_uniform_and_unrelated() {
    const BATCH: usize = 4_096;
    let large = [3 << 30, 3 << 38, 1_000_000_007, 10_u64.pow(12), 1 << 40, (1 << 40) + 1];
    for n in powers(13..=39).chain(large).chain([60_000, 1_000_003]) {
        let sampler = Iid::new(n, BATCH, 77).unwrap();
        let (mut values, mut neighbours, mut steps) =
            (Histogram::new(n), Histogram::new(n), Histogram::new(n));
        let (mut bits, mut bits_steps) = (LowBits::new(n), LowBits::new(n));
        let (mut here, mut before) = (Vec::new(), Vec::new());
        for step in 0..60 {
            sampler.draw(step, &mut here);
            here.iter().for_each(|value| values.add(*value));
            for pair in here.windows(2) {
                neighbours.add((n + pair[1] - pair[0]) % n);
                bits.add(pair[0], pair[1]);
            }
            for (value, earlier) in here.iter().zip(&before) {
                steps.add((n + value - earlier) % n);
                bits_steps.add(*value, *earlier);
            }
            std::mem::swap(&mut here, &mut before);
        }
        let statistics = [
            ("single draws", values.z()),
            ("difference of neighbours", neighbours.z()),
            ("difference to the next step", steps.z()),
            ("low bits of neighbours", bits.z(false, 0.0)),
            ("low bits against the next step", bits_steps.z(false, 0.0)),
        ];
        check(&format!("{n} records"), statistics.map(|(name, z)| (name.to_string(), z)).to_vec());
    }
}

#[test]
fn independent_draws_from_a_few_records_are_uniform() {
    for n in 1..=300_u64 {
        let sampler = Iid::new(n, 1, 5).unwrap();
        let mut histogram = Histogram::new(n);
        let mut out = Vec::new();
        for step in 0..20_000 {
            sampler.draw(step, &mut out);
            histogram.add(out[0]);
        }
        assert!(histogram.z().abs() < LIMIT, "{n} records: {:.1}", histogram.z());
    }
}

#[test]
fn bounding_a_draw_leaves_no_bias_where_the_length_is_a_large_part_of_all_words() {
    // A quarter of all words is in excess of 3 * 2^62. Kept, they would give one third of the records half of the
    // draws.
    let sampler = Iid::new(3 << 62, 5_000, 1).unwrap();
    let mut counts = [0_u64; 3];
    let mut out = Vec::new();
    for step in 0..20 {
        sampler.draw(step, &mut out);
        out.iter().for_each(|value| counts[usize_of(value % 3)] += 1);
    }
    let z = chi_square(&counts, |_| 100_000.0 / 3.0, 2.0);
    assert!(z.abs() < LIMIT, "{counts:?}");
}
