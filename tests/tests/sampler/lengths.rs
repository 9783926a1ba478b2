//! Batches by length: similar lengths, token budgets, every record once a cycle, seeking without a replay.
#![forbid(unsafe_code)]

use loaderx_core::sampler::{Bucketed, Cyclic, Sampler, Tail, TokenBudget};
use proptest::prelude::*;

fn draw(sampler: &impl Sampler, step: u64) -> Vec<u64> {
    let mut out = Vec::new();
    sampler.draw(step, &mut out);
    out
}

fn cycle(sampler: &impl Sampler, cycle: u64) -> Vec<Vec<u64>> {
    let per_cycle = sampler.steps_per_cycle().unwrap();
    (cycle * per_cycle..(cycle + 1) * per_cycle).map(|step| draw(sampler, step)).collect()
}

fn sorted(batches: &[Vec<u64>]) -> Vec<u64> {
    let mut indices = batches.concat();
    indices.sort_unstable();
    indices
}

fn lengths_of(lengths: &[u32], batch: &[u64]) -> Vec<u64> {
    batch.iter().map(|index| u64::from(lengths[usize::try_from(*index).unwrap()])).collect()
}

/// Many short records and a long tail, as texts have.
fn texts(records: u32) -> Vec<u32> {
    (0..records).map(|i| 1 + (i * 37 % 101) + if i % 13 == 0 { i * 7 % 900 } else { 0 }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_record_comes_once_a_cycle_within_the_budget(
        lengths in prop::collection::vec(0_u32..600, 1..400),
        budget in 600_u64..5_000,
        seed: u64,
    ) {
        let all: Vec<u64> = (0..lengths.len() as u64).collect();
        let padded = TokenBudget::padded(&lengths, budget, seed).unwrap();
        let packed = TokenBudget::packed(&lengths, budget, seed).unwrap();
        for number in [0, 1, 1_000_000] {
            let batches = cycle(&padded, number);
            prop_assert_eq!(sorted(&batches), &*all);
            for batch in batches {
                let longest = lengths_of(&lengths, &batch).into_iter().max().unwrap();
                prop_assert!(longest * batch.len() as u64 <= budget);
                prop_assert!(batch.len() <= padded.batch_size());
            }
            let batches = cycle(&packed, number);
            prop_assert_eq!(sorted(&batches), &*all);
            for batch in batches {
                prop_assert!(lengths_of(&lengths, &batch).iter().sum::<u64>() <= budget);
                prop_assert!(!batch.is_empty() && batch.len() <= packed.batch_size());
            }
        }
    }

    #[test]
    fn buckets_hold_neighbours_in_length(
        lengths in prop::collection::vec(0_u32..600, 40..400),
        buckets in 1_usize..6,
        batch in 1_usize..6,
        seed: u64,
    ) {
        let all: Vec<u64> = (0..lengths.len() as u64).collect();
        let mut order = lengths.clone();
        order.sort_unstable();
        let share = order.len().div_ceil(buckets);
        // What `share` neighbours in the order of lengths can be apart.
        let spread = order.windows(share).map(|part| part[share - 1] - part[0]).max().unwrap();
        let short = Bucketed::new(&lengths, buckets, batch, Tail::Short, seed).unwrap();
        let drop = Bucketed::new(&lengths, buckets, batch, Tail::Drop, seed).unwrap();
        prop_assert_eq!(short.buckets(), buckets);
        for number in [0, 1, 1_000_000] {
            prop_assert_eq!(sorted(&cycle(&short, number)), &*all);
            let full = cycle(&drop, number);
            let delivered = sorted(&full);
            prop_assert!(delivered.is_sorted_by(|a, b| a < b), "no record twice");
            prop_assert!(delivered.len() + buckets * (batch - 1) >= all.len());
            prop_assert!(full.iter().all(|part| part.len() == batch));
            for batch in full.iter().chain(&cycle(&short, number)) {
                let own = lengths_of(&lengths, batch);
                prop_assert!(own.iter().max().unwrap() - own.iter().min().unwrap() <= u64::from(spread));
            }
        }
    }
}

#[test]
fn bounds_are_kept() {
    let lengths = texts(2_000);
    let bounds = [20, 60, 100, 5_000];
    let sampler = Bucketed::with_bounds(&lengths, &bounds, 16, Tail::Short, 1).unwrap();
    assert_eq!(sampler.buckets(), 4);
    for batch in cycle(&sampler, 3) {
        let buckets: Vec<_> = lengths_of(&lengths, &batch)
            .into_iter()
            .map(|length| bounds.iter().filter(|bound| u64::from(**bound) <= length).count())
            .collect();
        assert!(buckets.iter().all(|bucket| *bucket == buckets[0]), "{buckets:?}");
    }
}

#[test]
fn companions_and_order_change_from_cycle_to_cycle() {
    let lengths = texts(20_000);
    let samplers: [Box<dyn Sampler>; 3] = [
        Box::new(Bucketed::new(&lengths, 10, 20, Tail::Short, 1).unwrap()),
        Box::new(TokenBudget::padded(&lengths, 4_000, 1).unwrap()),
        Box::new(TokenBudget::packed(&lengths, 4_000, 1).unwrap()),
    ];
    for sampler in samplers {
        let [first, second] = [0, 1].map(|number| cycle(&sampler, number));
        assert_ne!(first, second);
        // Of all pairs that shared a batch, few share one again.
        let pairs = |batches: &[Vec<u64>]| {
            let mut pairs = std::collections::BTreeSet::new();
            for batch in batches {
                let mut batch = batch.clone();
                batch.sort_unstable();
                pairs.extend(batch.windows(2).map(|pair| (pair[0], pair[1])));
            }
            pairs
        };
        let (first, second) = (pairs(&first), pairs(&second));
        let again = first.intersection(&second).count();
        assert!(again * 5 < first.len(), "{again} of {} pairs recur: {}", first.len(), sampler.describe());
    }
}

#[test]
fn batches_fill_most_of_the_budget() {
    let lengths = texts(20_000);
    let budget = 8_192;
    let used = |batches: &[Vec<u64>]| {
        let tokens: u64 = batches.iter().flat_map(|batch| lengths_of(&lengths, batch)).sum();
        tokens as f64 / (batches.len() as u64 * budget) as f64
    };
    let padded = used(&cycle(&TokenBudget::padded(&lengths, budget, 1).unwrap(), 0));
    let packed = used(&cycle(&TokenBudget::packed(&lengths, budget, 1).unwrap(), 0));
    assert!(padded > 0.6, "padded batches are {padded} full");
    assert!(packed > 0.94, "packed batches are {packed} full");
}

#[test]
fn padded_batches_of_sentences_hold_at_most_two_per_cent_of_padding() {
    let lengths: Vec<u32> = (0..10_000_u32).map(|i| 5 + i * 7919 % 31 + i * 104_729 % 29).collect();
    let padding = |batches: &[Vec<u64>]| {
        let (mut real, mut occupied) = (0, 0);
        for batch in batches {
            let lengths = lengths_of(&lengths, batch);
            real += lengths.iter().sum::<u64>();
            occupied += lengths.iter().max().unwrap() * lengths.len() as u64;
        }
        1.0 - real as f64 / occupied as f64
    };
    let by_budget = padding(&cycle(&TokenBudget::padded(&lengths, 1_024, 1).unwrap(), 0));
    let by_chance = padding(&cycle(&Cyclic::new(10_000, 32, 1).unwrap(), 0));
    assert!(by_budget <= 0.02, "padding is {by_budget}");
    assert!(by_chance > 0.3, "the lengths are too alike to show anything: {by_chance}");
}

#[test]
fn slices_and_lengths_agree_with_the_batch() {
    let lengths = texts(3_000);
    let samplers: [Box<dyn Sampler>; 3] = [
        Box::new(Bucketed::new(&lengths, 7, 20, Tail::Short, 1).unwrap()),
        Box::new(TokenBudget::padded(&lengths, 4_000, 1).unwrap()),
        Box::new(TokenBudget::packed(&lengths, 4_000, 1).unwrap()),
    ];
    for sampler in samplers {
        for step in [0, 1, 2, 3, 50, 10_u64.pow(9), u64::MAX - 1, u64::MAX] {
            let whole = draw(&sampler, step);
            assert!(!whole.is_empty());
            assert_eq!(whole.len(), sampler.batch_len(step));
            let mut out = vec![];
            sampler.draw_slice(step, 2..9, &mut out);
            assert_eq!(out, whole[2.min(whole.len())..9.min(whole.len())]);
            let slices = (0..3).flat_map(|rank| draw(&(&sampler).sharded(rank, 3).unwrap(), step));
            assert_eq!(slices.collect::<Vec<_>>(), whole);
        }
    }
}

#[test]
fn what_no_batch_can_hold_is_refused_with_the_numbers() {
    let says = |error: loaderx_core::Error, texts: &[&str]| {
        assert!(texts.iter().all(|text| error.message().contains(text)), "{error}");
    };
    says(TokenBudget::padded(&[5, 900, 7], 512, 0).unwrap_err(), &["record 1", "900", "512"]);
    says(TokenBudget::packed(&[5, 900, 7], 512, 0).unwrap_err(), &["record 1", "900", "512"]);
    says(TokenBudget::packed(&[0], 0, 0).unwrap_err(), &["record 0", "0"]);
    says(TokenBudget::packed(&[], 512, 0).unwrap_err(), &["0 records", "512"]);
    says(Bucketed::new(&[1; 10], 1, 11, Tail::Drop, 0).unwrap_err(), &["10", "11"]);
    says(Bucketed::new(&[1; 10], 0, 2, Tail::Drop, 0).unwrap_err(), &["10", "0 buckets"]);
    says(Bucketed::new(&[1; 10], 4, 3, Tail::Drop, 0).unwrap_err(), &["bucket 2", "2 records", "3"]);
    says(Bucketed::new(&[1; 10], 4, 2, Tail::Wrap, 0).unwrap_err(), &["Wrap"]);
    says(Bucketed::with_bounds(&[1; 10], &[4, 4], 2, Tail::Drop, 0).unwrap_err(), &["[4, 4]"]);
}

#[test]
fn a_record_as_long_as_the_budget_has_a_batch_of_its_own() {
    let lengths = [8, 3, 8];
    for sampler in
        [TokenBudget::padded(&lengths, 8, 1).unwrap(), TokenBudget::packed(&lengths, 8, 1).unwrap()]
    {
        let steps = sampler.steps_per_cycle().unwrap();
        let batches: Vec<Vec<u64>> = (0..steps).map(|step| draw(&sampler, step)).collect();
        assert!(batches.iter().all(|batch| batch.len() == 1), "{batches:?}");
        let mut records = batches.concat();
        records.sort_unstable();
        assert_eq!(records, [0, 1, 2]);
    }
}

#[test]
fn ten_million_records_at_step_a_million_are_the_same_batch_after_any_detour() {
    let lengths: Vec<u32> = (0..10_000_000_u32).map(|i| 16 + i.wrapping_mul(2_654_435_761) % 497).collect();
    let straight = TokenBudget::packed(&lengths, 16_384, 7).unwrap();
    let batch = draw(&straight, 1_000_000);
    let tokens: u64 = lengths_of(&lengths, &batch).iter().sum();
    assert!((14_000..=16_384).contains(&tokens), "{tokens}");
    draw(&straight, 3);
    assert_eq!(draw(&straight, 1_000_000), batch);
}

#[test]
fn texts_tell_lengths_and_buckets_apart() {
    let (a, b) = ([1, 2, 3, 4], [1, 2, 4, 3]);
    let texts = [
        Bucketed::new(&a, 2, 1, Tail::Drop, 0).unwrap().describe(),
        Bucketed::new(&b, 2, 1, Tail::Drop, 0).unwrap().describe(),
        Bucketed::new(&a, 1, 1, Tail::Drop, 0).unwrap().describe(),
        Bucketed::with_bounds(&a, &[2], 1, Tail::Drop, 0).unwrap().describe(),
        Bucketed::with_bounds(&a, &[4], 1, Tail::Drop, 0).unwrap().describe(),
        TokenBudget::padded(&a, 8, 0).unwrap().describe(),
        TokenBudget::packed(&a, 8, 0).unwrap().describe(),
        TokenBudget::packed(&b, 8, 0).unwrap().describe(),
        TokenBudget::packed(&a, 9, 0).unwrap().describe(),
        TokenBudget::packed(&a, 8, 1).unwrap().describe(),
    ];
    let unique: std::collections::BTreeSet<_> = texts.iter().collect();
    assert_eq!(unique.len(), texts.len(), "{texts:#?}");
}
