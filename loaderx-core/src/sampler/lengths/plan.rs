//! Batches from groups of neighbours in length, in an order that mixes the groups.

use super::{ByLength, Group};
use crate::sampler::permutation::Layout;
use crate::sampler::random::{Domain, Stream};
use crate::sampler::{clip, prepare};
use std::ops::Range;
use std::sync::Arc;

/// Cuts each group into batches of its own size, each cycle after another shuffle of the group's members, and
/// delivers the batches of all groups in an order that each cycle shuffles as well.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    groups: Arc<[Planned]>,
    batches: Layout,
    per_cycle: u64,
    seed: u64,
}

#[derive(Clone, Debug)]
struct Planned {
    /// The place of the first member in the order of lengths.
    first_place: u64,
    members: u64,
    batch: usize,
    /// The number of the first of this group's batches.
    first_batch: u64,
    seed: u64,
    layout: Layout,
}

/// One batch: its group, the cycle, and its members' positions in the cycle's shuffle.
pub(super) struct Batch<'a> {
    group: &'a Planned,
    cycle: u64,
    positions: Range<u64>,
}

impl Plan {
    /// `groups` with the batch size of each; `short` says whether what remains of a group becomes a short batch or
    /// is dropped. At least one group has a batch.
    pub(super) fn new(groups: impl IntoIterator<Item = (Group, usize)>, short: bool, seed: u64) -> Self {
        let mut per_cycle = 0;
        let mut planned = Vec::new();
        for (number, (group, batch)) in groups.into_iter().enumerate() {
            let members = u64::from(group.len());
            planned.push(Planned {
                first_place: u64::from(group.places.start),
                members,
                batch,
                first_batch: per_cycle,
                seed: Stream::new(seed, Domain::Members, number as u64).word(0),
                layout: Layout::new(members),
            });
            per_cycle += if short { members.div_ceil(batch as u64) } else { members / batch as u64 };
        }
        Self { groups: planned.into(), batches: Layout::new(per_cycle), per_cycle, seed }
    }

    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn steps_per_cycle(&self) -> u64 {
        self.per_cycle
    }

    /// The batch of `step`.
    pub(super) fn batch(&self, step: u64) -> Batch<'_> {
        let cycle = step / self.per_cycle;
        let number = self.batches.keyed(self.seed, Domain::Batches, cycle).at(step % self.per_cycle);
        let behind = self.groups.partition_point(|group| group.first_batch <= number);
        let group = &self.groups[behind - 1];
        let start = (number - group.first_batch) * group.batch as u64;
        Batch { group, cycle, positions: start..group.members.min(start + group.batch as u64) }
    }
}

impl Batch<'_> {
    pub(super) fn len(&self) -> usize {
        crate::sampler::index(self.positions.end - self.positions.start)
    }

    /// The records at `positions` of this batch.
    pub(super) fn draw(&self, order: &ByLength, positions: &Range<usize>, out: &mut Vec<u64>) {
        let (start, count) = clip(positions, self.len());
        let out = prepare(out, count);
        let shuffle = self.group.layout.keyed(self.group.seed, Domain::Cycle, self.cycle);
        shuffle.fill(self.positions.start + start as u64, out);
        out.iter_mut().for_each(|place| *place += self.group.first_place);
        order.map(out);
    }
}
