//! The rules of `docs/sampling.md`: tails, ranks, finite passes, refusals, resuming at any step.
#![forbid(unsafe_code)]

use loaderx_core::sampler::{Cyclic, Iid, IndexMap, Pass, Sampler, Sequential, Subset, Tail, split};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

fn draw(sampler: &impl Sampler, step: u64) -> Vec<u64> {
    let mut out = vec![u64::MAX; 3]; // what was there before must not matter
    sampler.draw(step, &mut out);
    out
}

fn steps(sampler: &impl Sampler, steps: Range<u64>) -> Vec<Vec<u64>> {
    steps.map(|step| draw(sampler, step)).collect()
}

fn sorted(mut indices: Vec<u64>) -> Vec<u64> {
    indices.sort_unstable();
    indices
}

fn all(len: u64) -> Vec<u64> {
    (0..len).collect()
}

#[test]
fn sequential_batches_wrap_and_never_truncate() {
    let sampler = Sequential::new(10, 4).unwrap();
    assert_eq!(steps(&sampler, 0..4), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1], [2, 3, 4, 5]]);
}

#[test]
fn a_pass_gives_every_record_once_and_ends() {
    for len in 1..40_u64 {
        for batch in 1..45 {
            let pass = Pass::new(len, batch).unwrap();
            let count = pass.steps().unwrap();
            let batches = steps(&pass, 0..count);
            assert_eq!(batches.concat(), all(len));
            assert!(batches.iter().rev().skip(1).all(|b| b.len() == batch), "only the last batch is short");
            for step in [count, count + 1, u64::MAX - 1, u64::MAX] {
                assert!(draw(&pass, step).is_empty());
                assert_eq!(pass.batch_len(step), 0);
            }
        }
    }
}

#[test]
fn drop_delivers_full_batches_without_repeats_and_drops_another_remainder_each_cycle() {
    let sampler = Cyclic::new(10, 4, 42).unwrap();
    assert_eq!(sampler.steps_per_cycle(), Some(2));
    let mut dropped = BTreeSet::new();
    for cycle in 0..50 {
        let cycle = sorted(steps(&sampler, cycle * 2..cycle * 2 + 2).concat());
        assert_eq!(cycle.len(), 8);
        assert!(cycle.is_sorted_by(|a, b| a < b), "a record twice in a cycle: {cycle:?}");
        dropped.insert((0..10).filter(|i| !cycle.contains(i)).collect::<Vec<u64>>());
    }
    assert!(dropped.len() > 20, "the same records are dropped again and again: {dropped:?}");
}

#[test]
fn wrap_delivers_full_batches_and_every_record_once_a_cycle() {
    for len in 1..30 {
        for batch in 1..=len {
            let sampler = Cyclic::new(len, usize::try_from(batch).unwrap(), 7).unwrap().tail(Tail::Wrap);
            let stream = steps(&sampler, 0..(4 * len).div_ceil(batch)).concat();
            for cycle in stream.chunks_exact(usize::try_from(len).unwrap()) {
                assert_eq!(sorted(cycle.to_vec()), all(len));
            }
        }
    }
}

#[test]
fn short_delivers_every_record_once_a_cycle_within_its_own_batches() {
    for len in 1..30 {
        for batch in 1..=len {
            let size = usize::try_from(batch).unwrap();
            let sampler = Cyclic::new(len, size, 7).unwrap().tail(Tail::Short);
            let per_cycle = sampler.steps_per_cycle().unwrap();
            for cycle in 0..4 {
                let batches = steps(&sampler, cycle * per_cycle..(cycle + 1) * per_cycle);
                assert_eq!(sorted(batches.concat()), all(len));
                assert!(batches.iter().rev().skip(1).all(|b| b.len() == size));
            }
        }
    }
}

#[test]
fn tails_share_the_order_of_a_cycle() {
    for len in [10, 5_000] {
        let cyclic = |tail| Cyclic::new(len, 4, 3).unwrap().tail(tail);
        let size = usize::try_from(len).unwrap();
        let cycle = steps(&cyclic(Tail::Short), 0..len.div_ceil(4)).concat();
        assert_eq!(steps(&cyclic(Tail::Wrap), 0..len.div_ceil(4)).concat()[..size], cycle);
        assert_eq!(steps(&cyclic(Tail::Drop), 0..len / 4).concat()[..], cycle[..size - size % 4]);
    }
}

/// Every kind over `len` positions in global batches of `batch`.
fn every_kind(len: u64, batch: usize) -> Vec<Arc<dyn Sampler>> {
    let cyclic = |tail| Arc::new(Cyclic::new(len, batch, 5).unwrap().tail(tail)) as Arc<dyn Sampler>;
    let [part, _] = split(2 * len, [0.5, 0.5], 9).unwrap();
    vec![
        Arc::new(Sequential::new(len, batch).unwrap()),
        Arc::new(Pass::new(len, batch).unwrap()),
        Arc::new(Iid::new(len, batch, 5).unwrap()),
        cyclic(Tail::Drop),
        cyclic(Tail::Wrap),
        cyclic(Tail::Short),
        Arc::new(Cyclic::new(part.len(), batch, 5).unwrap().over(part).unwrap()),
    ]
}

#[test]
fn the_slices_of_all_ranks_are_the_global_batch_for_every_world_size() {
    for (len, batch) in [(10, 7), (12, 12), (5_000, 33), (70_000, 64)] {
        for global in every_kind(len, batch) {
            for world in 1..=batch.min(9) {
                for step in [0, 1, 2, 7, 150, 151, 152, u64::MAX - 1, u64::MAX] {
                    let mut slices = Vec::new();
                    for rank in 0..world {
                        let shard = global.clone().sharded(rank, world).unwrap();
                        let slice = draw(&shard, step);
                        assert_eq!(slice.len(), shard.batch_len(step));
                        assert!(slice.len() <= shard.batch_size());
                        assert_eq!(shard.steps(), global.steps(), "ranks agree on the number of steps");
                        assert_eq!(shard.describe_global(), global.describe());
                        slices.push(slice);
                    }
                    assert_eq!(slices.concat(), draw(&global, step), "{} {world} {step}", global.describe());
                    let sizes = slices.iter().map(Vec::len);
                    assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
                }
            }
        }
    }
}

#[test]
fn a_slice_of_a_batch_is_that_part_of_the_batch() {
    for (len, batch) in [(10, 7), (5_000, 100)] {
        for sampler in every_kind(len, batch) {
            for step in [0, 1, 49, 50, u64::MAX] {
                let whole = draw(&sampler, step);
                assert_eq!(whole.len(), sampler.batch_len(step));
                for start in 0..batch + 2 {
                    for end in [start, start + 1, start + 40, usize::MAX] {
                        let mut out = vec![9; 5];
                        sampler.draw_slice(step, start..end, &mut out);
                        let clipped = start.min(whole.len())..end.min(whole.len());
                        assert_eq!(out, whole[clipped], "{} {step} {start}..{end}", sampler.describe());
                    }
                }
            }
        }
    }
}

#[test]
fn a_run_goes_on_with_another_world_size_as_if_nothing_had_happened() {
    let global = Cyclic::new(1_000, 12, 3).unwrap().tail(Tail::Wrap);
    let straight = steps(&global, 0..40);
    let mut resumed = Vec::new();
    for (from, world) in [(0, 1), (10, 2), (20, 3), (30, 1)] {
        for step in from..from + 10 {
            let ranks = (0..world).map(|rank| draw(&global.clone().sharded(rank, world).unwrap(), step));
            resumed.push(ranks.collect::<Vec<_>>().concat());
        }
    }
    assert_eq!(resumed, straight);
}

#[test]
fn ten_records_on_four_ranks_of_three() {
    // Training: a global batch of 12 cannot be filled from 10 records.
    let error = Cyclic::new(10, 4 * 3, 1).unwrap_err();
    assert!(error.message().contains("12") && error.message().contains("10"), "{error}");
    // Evaluation: the one batch is short and its records are dealt out 3 + 3 + 2 + 2, none of them twice.
    let rank = |rank| draw(&Pass::new(10, 12).unwrap().sharded(rank, 4).unwrap(), 0);
    assert_eq!([rank(0), rank(1), rank(2), rank(3)], [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7], vec![8, 9]]);
    assert_eq!(Pass::new(10, 12).unwrap().sharded(3, 4).unwrap().steps(), Some(1));
}

#[test]
fn refusals_name_the_numbers() {
    let cases = [
        (Sequential::new(3, 4).unwrap_err(), ["3", "4"]),
        (Iid::new(3, 4, 0).unwrap_err(), ["3", "4"]),
        (Cyclic::new(3, 4, 0).unwrap_err(), ["3", "4"]),
        (Cyclic::new(7, 0, 0).unwrap_err(), ["7", "0"]),
        (Pass::new(7, 0).unwrap_err(), ["7", "0"]),
        (Pass::new(0, 7).unwrap_err(), ["7", "0"]),
        (Cyclic::new((1 << 40) + 1, 4, 0).unwrap_err(), ["1099511627777", "1099511627776"]),
        (Cyclic::new(10, 4, 0).unwrap().sharded(5, 5).unwrap_err(), ["rank 5", "5 ranks"]),
        (Cyclic::new(10, 4, 0).unwrap().sharded(0, 5).unwrap_err(), ["4", "5"]),
        (Cyclic::new(10, 4, 0).unwrap().sharded(0, 0).unwrap_err(), ["rank 0", "0 ranks"]),
        (Subset::new(5, vec![1, 2, 5]).unwrap_err(), ["index 5", "entry 2"]),
        (Subset::new(5, vec![]).unwrap_err(), ["5", "none"]),
        (Cyclic::new(4, 4, 0).unwrap().over(Subset::new(9, vec![1]).unwrap()).unwrap_err(), ["4", "1"]),
        (split(10, [0.5, -0.1], 0).unwrap_err(), ["-0.1", "1"]),
        (split(10, [f64::NAN], 0).unwrap_err(), ["NaN", "0"]),
        (split(10, [f64::INFINITY], 0).unwrap_err(), ["inf", "0"]),
        (split(10, [0.7, 0.4], 0).unwrap_err(), ["1.1", "1"]),
        (split(10, [0.99, 0.01], 0).unwrap_err(), ["0.01", "10"]),
    ];
    for (error, numbers) in cases {
        for number in numbers {
            assert!(error.message().contains(number), "{number} is missing from: {error}");
        }
    }
}

#[test]
fn parts_of_a_split_are_disjoint_and_leave_nothing_out() {
    for records in [10, 1_000, 4_096, 4_097, 70_001] {
        for seed in [1, 2] {
            let lists = split(records, [0.7, 0.2, 0.1], seed).unwrap().map(|part| {
                let pass = Pass::new(part.len(), 64).unwrap().over(part).unwrap();
                assert_eq!(pass.len(), records);
                steps(&pass, 0..pass.steps().unwrap()).concat()
            });
            assert_eq!(sorted(lists.concat()), all(records));
            assert!(!lists[0].is_sorted());
        }
    }
}

#[test]
fn a_part_of_a_split_does_not_depend_on_the_parts_behind_it() {
    let [train, validation] = split(1_000, [0.9, 0.1], 4).unwrap();
    let [alone] = split(1_000, [0.9], 4).unwrap();
    let list = |part: &dyn IndexMap| {
        let mut positions = all(part.len());
        part.map(&mut positions);
        positions
    };
    assert_eq!(list(&train), list(&alone));
    assert_eq!(validation.len(), 100);
}

#[test]
fn a_subset_draws_only_its_records() {
    let indices: Vec<u64> = (0..100).step_by(7).collect();
    let subset = Subset::new(100, indices.clone()).unwrap();
    let sampler = Cyclic::new(subset.len(), 5, 1).unwrap().over(subset).unwrap();
    assert_eq!(sorted(steps(&sampler, 0..3).concat()), indices);
}

#[test]
fn texts_tell_apart_whatever_changes_the_order() {
    let cyclic = |len, batch, seed| Cyclic::new(len, batch, seed).unwrap();
    let subset = |list: &[u64]| cyclic(2, 1, 1).over(Subset::new(9, list).unwrap()).unwrap().describe();
    let [train, validation] = split(20, [0.5, 0.5], 1).unwrap();
    let texts = [
        cyclic(10, 4, 1).describe(),
        cyclic(11, 4, 1).describe(),
        cyclic(10, 5, 1).describe(),
        cyclic(10, 4, 2).describe(),
        cyclic(10, 4, 1).tail(Tail::Short).describe(),
        cyclic(10, 4, 1).tail(Tail::Wrap).describe(),
        cyclic(10, 4, 1).sharded(0, 2).unwrap().describe(),
        cyclic(10, 4, 1).sharded(1, 2).unwrap().describe(),
        cyclic(10, 4, 1).over(train).unwrap().describe(),
        cyclic(10, 4, 1).over(validation).unwrap().describe(),
        Iid::new(10, 4, 1).unwrap().describe(),
        Pass::new(10, 4).unwrap().describe(),
        Sequential::new(10, 4).unwrap().describe(),
        subset(&[1, 2]),
        subset(&[2, 1]),
        subset(&[1, 3]),
    ];
    assert_eq!(texts.iter().collect::<BTreeSet<_>>().len(), texts.len(), "{texts:#?}");
}

#[test]
fn two_seeds_differ_and_one_seed_agrees() {
    for len in [100, 5_000] {
        let cycle = |seed| steps(&Cyclic::new(len, 50, seed).unwrap(), 0..2).concat();
        let draws = |seed| steps(&Iid::new(len, 50, seed).unwrap(), 0..2).concat();
        assert_eq!((cycle(1), draws(1)), (cycle(1), draws(1)));
        assert_ne!(cycle(1), cycle(2));
        assert_ne!(draws(1), draws(2));
    }
}

#[test]
fn every_cycle_has_another_order() {
    for len in [10, 5_000] {
        let sampler = Cyclic::new(len, 5, 1).unwrap().tail(Tail::Short);
        let per_cycle = sampler.steps_per_cycle().unwrap();
        let cycles = (0..5).map(|c| steps(&sampler, c * per_cycle..(c + 1) * per_cycle).concat());
        assert_eq!(cycles.collect::<BTreeSet<_>>().len(), 5);
    }
}
