//! The samplers against the vectors of `docs/sampling.md` and against a plain second implementation.
#![forbid(unsafe_code)]

use loaderx_core::sampler::{
    Bucketed, Cyclic, Iid, IndexMap, Mixture, Pass, Sampler, Sequential, Subset, Tail, TokenBudget, Weighted,
    split,
};
use loaderx_tests::sampler_oracle as oracle;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const DOCUMENT: &str = include_str!("../../../docs/sampling.md");

fn draw(sampler: &dyn Sampler, step: u64) -> Vec<u64> {
    let mut out = Vec::new();
    sampler.draw(step, &mut out);
    out
}

fn tail(name: &str) -> Tail {
    [Tail::Drop, Tail::Wrap, Tail::Short].into_iter().find(|tail| tail.to_string() == name).unwrap()
}

/// One line of the document: `mode key=value ... step=s: index index ...`.
struct Vector<'a> {
    mode: &'a str,
    fields: BTreeMap<&'a str, &'a str>,
    indices: Vec<u64>,
}

impl<'a> Vector<'a> {
    fn parse(line: &'a str) -> Self {
        let (left, right) = line.split_once(": ").expect("a colon before the indices");
        let mut words = left.split_whitespace();
        let mode = words.next().expect("a mode");
        let fields = words.map(|word| word.split_once('=').expect("key=value")).collect();
        Self { mode, fields, indices: right.split_whitespace().map(|word| word.parse().unwrap()).collect() }
    }

    fn number(&self, key: &str) -> u64 {
        self.fields[key].parse().unwrap_or_else(|_| panic!("{key} of a {}", self.mode))
    }

    fn size(&self, key: &str) -> usize {
        usize::try_from(self.number(key)).unwrap()
    }

    fn list<T: std::str::FromStr<Err: std::fmt::Debug>>(&self, key: &str) -> Vec<T> {
        self.fields[key].split(',').map(|word| word.parse().unwrap()).collect()
    }

    /// Pairs such as `100:0.75,10:0.25`.
    fn sources(&self) -> Vec<(u64, f64)> {
        let pairs = self.fields["sources"].split(',').map(|pair| pair.split_once(':').unwrap());
        pairs.map(|(len, weight)| (len.parse().unwrap(), weight.parse().unwrap())).collect()
    }

    /// What the library draws, and what the oracle draws.
    fn draw(&self) -> [Vec<u64>; 2] {
        let step = self.number("step");
        let (library, oracle): (Box<dyn Sampler>, _) = match self.mode {
            "sequential" => {
                let (len, batch) = (self.number("len"), self.size("batch"));
                (Box::new(Sequential::new(len, batch).unwrap()), oracle::sequential(len, batch as u64, step))
            }
            "pass" => {
                let (len, batch) = (self.number("len"), self.size("batch"));
                (Box::new(Pass::new(len, batch).unwrap()), oracle::pass(len, batch as u64, step))
            }
            "iid" => {
                let (len, batch, seed) = (self.number("len"), self.size("batch"), self.number("seed"));
                (Box::new(Iid::new(len, batch, seed).unwrap()), oracle::iid(len, batch as u64, seed, step))
            }
            "cyclic" => {
                let (len, batch, seed) = (self.number("len"), self.size("batch"), self.number("seed"));
                let name = self.fields["tail"];
                let sampler = Cyclic::new(len, batch, seed).unwrap().tail(tail(name));
                (Box::new(sampler), oracle::cyclic(len, batch as u64, seed, name, step))
            }
            "shard" => {
                let (len, batch, seed) = (self.number("len"), self.size("batch"), self.number("seed"));
                let (rank, world) = (self.size("rank"), self.size("world"));
                let sampler = Cyclic::new(len, batch, seed).unwrap().sharded(rank, world).unwrap();
                let global = oracle::cyclic(len, batch as u64, seed, "drop", step);
                // Rank after rank takes its share from the front.
                let mut rest = global;
                for before in 0..rank {
                    rest.drain(..batch / world + usize::from(before < batch % world));
                }
                rest.truncate(batch / world + usize::from(rank < batch % world));
                (Box::new(sampler), rest)
            }
            "split" => {
                let (records, seed, part) = (self.number("records"), self.number("seed"), self.size("part"));
                let fractions: Vec<f64> = self.list("fractions");
                let own = match *fractions.as_slice() {
                    [a, b] => split(records, [a, b], seed).unwrap()[part].clone(),
                    [a, b, c] => split(records, [a, b, c], seed).unwrap()[part].clone(),
                    _ => panic!("two or three fractions"),
                };
                let sampler = Pass::new(own.len(), self.size("batch")).unwrap().over(own).unwrap();
                let list = oracle::split(records, &fractions, seed, part);
                let batch = list.chunks(self.size("batch")).nth(usize::try_from(step).unwrap()).unwrap();
                (Box::new(sampler), batch.to_vec())
            }
            "subset" => {
                let indices: Vec<u64> = self.list("indices");
                let (batch, seed) = (self.size("batch"), self.number("seed"));
                let subset = Subset::new(self.number("records"), indices.clone()).unwrap();
                let sampler = Cyclic::new(subset.len(), batch, seed).unwrap().over(subset).unwrap();
                let positions = oracle::cyclic(indices.len() as u64, batch as u64, seed, "drop", step);
                let mapped =
                    positions.into_iter().map(|position| indices[usize::try_from(position).unwrap()]);
                (Box::new(sampler), mapped.collect())
            }
            "weighted" => {
                let weights: Vec<f64> = self.list("weights");
                let (batch, seed) = (self.size("batch"), self.number("seed"));
                let sampler = Weighted::new(&weights, batch, seed).unwrap();
                (Box::new(sampler), oracle::weighted(&weights, batch as u64, seed, step))
            }
            "mixture" => {
                let (sources, batch, seed) = (self.sources(), self.size("batch"), self.number("seed"));
                let sampler = Mixture::new(&sources, batch, seed).unwrap();
                (Box::new(sampler), oracle::mixture(&sources, batch as u64, seed, step))
            }
            "bucketed" => {
                let lengths: Vec<u32> = self.list("lengths");
                let (buckets, batch) = (self.size("buckets"), self.size("batch"));
                let (seed, name) = (self.number("seed"), self.fields["tail"]);
                let sampler = Bucketed::new(&lengths, buckets, batch, tail(name), seed).unwrap();
                (Box::new(sampler), oracle::bucketed(&lengths, buckets, batch, name, seed, step))
            }
            "padded" => {
                let lengths: Vec<u32> = self.list("lengths");
                let (tokens, seed) = (self.number("tokens"), self.number("seed"));
                let sampler = TokenBudget::padded(&lengths, tokens, seed).unwrap();
                (Box::new(sampler), oracle::padded(&lengths, tokens, seed, step))
            }
            "packed" => {
                let lengths: Vec<u32> = self.list("lengths");
                let (tokens, seed) = (self.number("tokens"), self.number("seed"));
                let sampler = TokenBudget::packed(&lengths, tokens, seed).unwrap();
                (Box::new(sampler), oracle::packed(&lengths, tokens, seed, step))
            }
            other => panic!("no mode is named {other}"),
        };
        [draw(&library, step), oracle]
    }
}

/// The lines of the document's blocks that are marked as vectors.
fn vectors() -> Vec<&'static str> {
    let blocks = DOCUMENT.split("```vectors\n").skip(1);
    blocks.flat_map(|block| block.split("```").next().unwrap().lines()).collect()
}

#[test]
fn the_document_s_vectors_are_what_is_drawn() {
    let lines = vectors();
    let mut modes = BTreeSet::new();
    let mut wrong = Vec::new();
    for line in &lines {
        let vector = Vector::parse(line);
        modes.insert(vector.mode);
        let [library, oracle] = vector.draw();
        assert_eq!(library, oracle, "the oracle disagrees: {line}");
        if library != vector.indices {
            let list: Vec<String> = library.iter().map(u64::to_string).collect();
            wrong.push(format!("{}: {}", line.split_once(": ").unwrap().0, list.join(" ")));
        }
    }
    assert!(wrong.is_empty(), "drawn instead of what the document says:\n{}", wrong.join("\n"));
    let all = "bucketed cyclic iid mixture packed padded pass sequential shard split subset weighted";
    assert_eq!(modes.into_iter().collect::<Vec<_>>(), all.split(' ').collect::<Vec<_>>());
    assert!(lines.len() >= 40, "{} vectors", lines.len());
}

#[test]
fn the_document_s_words_are_those_of_the_generator() {
    let block = DOCUMENT.split("```words\n").nth(1).unwrap().split("```").next().unwrap();
    let mut count = 0;
    for line in block.lines() {
        let numbers: Vec<&str> = line.split_whitespace().collect();
        let [seed, domain, counter, index, word] = numbers[..] else { panic!("five columns: {line}") };
        let words =
            oracle::Words::new(seed.parse().unwrap(), domain.parse().unwrap(), counter.parse().unwrap());
        assert_eq!(format!("{:016x}", words.word(index.parse().unwrap())), word, "{line}");
        count += 1;
    }
    assert!(count >= 4);
}

fn any_tail() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("drop"), Just("wrap"), Just("short")]
}

/// Lengths of all three kinds of permutation, their limits among them.
fn any_len() -> impl Strategy<Value = u64> {
    let limits = [4_095, 4_096, 4_097, 5_041, (1 << 24) + 1, (1 << 28) - 1, 1 << 28, (1 << 28) + 1, 1 << 40];
    prop_oneof![
        1_u64..200,
        200_u64..5_000,
        5_000_u64..(1 << 28),
        (1_u64 << 28)..(1 << 40),
        proptest::sample::select(limits.to_vec())
    ]
}

fn any_step() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..100, any::<u64>(), Just(u64::MAX), Just(u64::MAX - 1)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn cyclic_draws_are_the_oracle_s(
        len in any_len(), batch in 1_u64..150, seed: u64, name in any_tail(), step in any_step(),
    ) {
        let batch = batch.min(len);
        let sampler = Cyclic::new(len, usize::try_from(batch).unwrap(), seed).unwrap().tail(tail(name));
        prop_assert_eq!(draw(&sampler, step), oracle::cyclic(len, batch, seed, name, step));
    }

    #[test]
    fn plain_draws_are_the_oracle_s(
        len in prop_oneof![any_len(), any::<u64>().prop_map(|len| len.max(1))],
        batch in 1_u64..150,
        seed: u64,
        step in any_step(),
    ) {
        let batch = batch.min(len);
        let size = usize::try_from(batch).unwrap();
        prop_assert_eq!(draw(&Iid::new(len, size, seed).unwrap(), step), oracle::iid(len, batch, seed, step));
        let sequential = Sequential::new(len, size).unwrap();
        prop_assert_eq!(draw(&sequential, step), oracle::sequential(len, batch, step));
        for step in [step, step % len.div_ceil(batch)] {
            prop_assert_eq!(draw(&Pass::new(len, size).unwrap(), step), oracle::pass(len, batch, step));
        }
    }

    #[test]
    fn weighted_draws_are_the_oracle_s(
        weights in prop::collection::vec(prop_oneof![Just(0.0), 0.0_f64..3.0, 1e-12_f64..1e12], 1..40),
        seed: u64,
        step in any_step(),
    ) {
        prop_assume!(weights.iter().any(|weight| *weight > 0.0));
        let sampler = Weighted::new(&weights, weights.len(), seed).unwrap();
        prop_assert_eq!(draw(&sampler, step), oracle::weighted(&weights, weights.len() as u64, seed, step));
    }

    #[test]
    fn mixed_draws_are_the_oracle_s(
        sources in prop::collection::vec((any_len(), prop_oneof![Just(0.0), Just(1.0), 0.0_f64..9.0]), 1..8),
        batch in 1_u64..60,
        seed: u64,
        step in any_step(),
    ) {
        prop_assume!(sources.iter().any(|(_, weight)| *weight > 0.0));
        let batch = batch.min(sources.iter().map(|(len, _)| len).sum());
        let sampler = Mixture::new(&sources, usize::try_from(batch).unwrap(), seed).unwrap();
        prop_assert_eq!(draw(&sampler, step), oracle::mixture(&sources, batch, seed, step));
    }

    #[test]
    fn batches_by_length_are_the_oracle_s(
        lengths in prop::collection::vec(prop_oneof![0_u32..20, 0_u32..300], 12..200),
        buckets in 1_usize..5,
        batch in 1_usize..4,
        tokens in 300_u64..2_000,
        seed: u64,
        step in any_step(),
    ) {
        for name in ["drop", "short"] {
            let sampler = Bucketed::new(&lengths, buckets, batch, tail(name), seed).unwrap();
            prop_assert_eq!(draw(&sampler, step), oracle::bucketed(&lengths, buckets, batch, name, seed, step));
        }
        let padded = TokenBudget::padded(&lengths, tokens, seed).unwrap();
        prop_assert_eq!(draw(&padded, step), oracle::padded(&lengths, tokens, seed, step));
        let packed = TokenBudget::packed(&lengths, tokens, seed).unwrap();
        prop_assert_eq!(draw(&packed, step), oracle::packed(&lengths, tokens, seed, step));
    }

    #[test]
    fn splits_are_the_oracle_s(records in 20_u64..9_000, seed: u64, part in 0_usize..3) {
        let fractions = [0.6, 0.3, 0.1];
        let own = split(records, fractions, seed).unwrap()[part].clone();
        let mut positions: Vec<u64> = (0..own.len()).collect();
        own.map(&mut positions);
        prop_assert_eq!(positions, oracle::split(records, &fractions, seed, part));
    }
}

#[test]
fn every_tail_batch_and_step_of_small_data_is_the_oracle_s() {
    for len in 1..24 {
        for batch in 1..=len {
            for name in ["drop", "wrap", "short"] {
                let sampler = Cyclic::new(len, usize::try_from(batch).unwrap(), 3).unwrap().tail(tail(name));
                for step in 0..12 {
                    assert_eq!(draw(&sampler, step), oracle::cyclic(len, batch, 3, name, step));
                }
            }
        }
    }
}
