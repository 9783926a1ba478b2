use std::ops::Range;
use std::sync::Arc;

use loaderx_core::sampler::Sampler;

/// A share of each step's batch, in place of a share of the steps.
///
/// burn cuts an epoch for its devices by positions, `start..end` of `of` items. The same fraction of every batch is
/// as many items, and leaves each device with all of the steps: data-parallel training that waits for every device
/// at every step cannot stall. Shares that touch do not overlap and leave nothing out.
pub(super) struct Part {
    whole: Arc<dyn Sampler>,
    start: u64,
    end: u64,
    of: u64,
}

impl Part {
    pub(super) fn new(whole: Arc<dyn Sampler>, start: u64, end: u64, of: u64) -> Self {
        let end = end.min(of);
        Self { whole, start: start.min(end), end, of }
    }

    fn positions(&self, batch: usize) -> Range<usize> {
        let cut = |at: u64| {
            let cut = batch as u128 * u128::from(at) / u128::from(self.of.max(1));
            // At most the batch, since `at` is at most `of`.
            usize::try_from(cut).unwrap_or(batch)
        };
        cut(self.start)..cut(self.end)
    }
}

impl Sampler for Part {
    fn len(&self) -> u64 {
        self.whole.len()
    }

    fn batch_size(&self) -> usize {
        self.positions(self.whole.batch_size()).len()
    }

    fn draw_slice(&self, step: u64, positions: Range<usize>, out: &mut Vec<u64>) {
        let share = self.positions(self.whole.batch_len(step));
        let at = |position: usize| share.start.saturating_add(position).min(share.end);
        self.whole.draw_slice(step, at(positions.start)..at(positions.end), out);
    }

    fn batch_len(&self, step: u64) -> usize {
        self.positions(self.whole.batch_len(step)).len()
    }

    fn first_position(&self, step: u64) -> usize {
        self.whole.first_position(step) + self.positions(self.whole.batch_len(step)).start
    }

    fn steps(&self) -> Option<u64> {
        self.whole.steps()
    }

    fn steps_per_cycle(&self) -> Option<u64> {
        self.whole.steps_per_cycle()
    }

    fn describe(&self) -> String {
        let Self { whole, start, end, of } = self;
        format!("{} items {start}..{end} of {of}", whole.describe())
    }

    // Every device's state is that of the whole, and resumes any number of devices.
    fn describe_global(&self) -> String {
        self.whole.describe_global()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loaderx_core::sampler::Cyclic;

    #[test]
    fn devices_draw_the_batch_between_them_and_know_their_places_in_it() {
        let whole: Arc<dyn Sampler> = Arc::new(Cyclic::new(60, 13, 7).unwrap());
        for devices in 1..=5 {
            for step in [0, 3, 1000] {
                let (mut batch, mut found, mut part, mut slice) = (vec![], vec![], vec![], vec![]);
                whole.draw(step, &mut batch);
                for device in 0..devices {
                    let sampler = Part::new(Arc::clone(&whole), device, device + 1, devices);
                    assert_eq!(sampler.first_position(step), found.len());
                    sampler.draw(step, &mut part);
                    assert_eq!((part.len(), part.len()), (sampler.batch_len(step), sampler.batch_size()));
                    sampler.draw_slice(step, 1..usize::MAX, &mut slice);
                    assert_eq!(slice, part[1..]);
                    found.extend_from_slice(&part);
                }
                assert_eq!(found, batch, "{devices} devices at step {step}");
            }
        }
    }
}
