//! Asking for the records of later steps ahead, while reading them costs the disk.
//!
//! A gather from a store that is not in memory waits for the disk record by record. Asked for one or two batches
//! ahead, the system reads all of them at once, several times faster. For data that is in memory the asking is
//! pure loss, and as dear as a small batch. So each thread that makes batches watches whether its work makes the disk
//! read, and asks ahead only then.

use std::fs;
use std::ops::Range;

/// How many steps ahead to ask for, beside those that the other workers are at.
pub(super) const LEAD: u64 = 2;

/// How many steps pass between two looks, which cost some microseconds each.
const INTERVAL: u32 = 32;

/// Decides, for one thread that makes batches, which steps to ask for.
#[derive(Debug)]
pub(super) struct Readahead<R> {
    /// Bytes that this thread has made the disk read so far, where that is known.
    bytes_read: R,
    seen: Option<u64>,
    active: bool,
    /// Whether the last step was asked for ahead, and so the next ones are on their way.
    asking: bool,
    /// Steps until the next look, and from that look to the one after it.
    left: u32,
    interval: u32,
}

impl<R: Fn() -> Option<u64>> Readahead<R> {
    /// Takes the data for warm until the first step has shown otherwise: asking for the first steps in vain would cost
    /// a millisecond, which a short loader never earns back.
    pub(super) fn new(bytes_read: R) -> Self {
        let seen = bytes_read();
        Self { bytes_read, seen, active: false, asking: false, left: 1, interval: 1 }
    }

    /// The steps to ask for before `step` is made, `ahead` being the lead; called once for each step.
    pub(super) fn steps(&mut self, step: u64, ahead: u64) -> Range<u64> {
        // Where nothing can be seen, asking might cost as much as the batch itself at every step.
        let Some(before) = self.seen else { return step..step };
        if self.left == 0 {
            let now = (self.bytes_read)();
            self.active = now.is_some_and(|now| now > before);
            self.seen = now;
            // Soon at first, so that a cold start is noticed at the second step.
            self.interval = (self.interval * 2).min(INTERVAL);
            self.left = self.interval;
        }
        self.left -= 1;
        let under_way = std::mem::replace(&mut self.asking, self.active);
        let last = step.saturating_add(ahead);
        match (self.active, under_way) {
            (false, _) => step..step,
            (true, false) => step..last.saturating_add(1),
            (true, true) => last..last.saturating_add(1),
        }
    }
}

/// What the calling thread has made the disk read, asking ahead included. Known on Linux only.
pub(super) fn thread_bytes_read() -> Option<u64> {
    let counters = fs::read_to_string("/proc/thread-self/io").ok()?;
    counters.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const AHEAD: u64 = 2;

    #[test]
    fn a_cold_second_step_is_asked_for_with_its_successors_and_then_one_more_at_a_time() {
        let disk = Cell::new(Some(7_000));
        let mut readahead = Readahead::new(|| disk.get());
        assert!(readahead.steps(9, AHEAD).is_empty(), "what was read before the first step does not count");
        disk.set(Some(11_096));
        assert_eq!(readahead.steps(10, AHEAD), 10..13);
        for step in 11..300 {
            disk.set(disk.get().map(|before| before + 4096));
            assert_eq!(readahead.steps(step, AHEAD), step + 2..step + 3);
        }
    }

    #[test]
    fn asking_ends_soon_after_the_last_read_and_begins_again_with_the_next() {
        let disk = Cell::new(Some(7_000));
        let mut readahead = Readahead::new(|| disk.get());
        let mut asked =
            |steps: u64| (0..steps).filter(|&step| !readahead.steps(step, AHEAD).is_empty()).count();
        let read = |bytes: u64| disk.set(disk.get().map(|before| before + bytes));
        assert_eq!(asked(100), 0, "data in memory are not asked for");
        read(4096);
        assert!(asked(u64::from(INTERVAL) + 1) > 0, "data that went cold are noticed again");
        assert!(asked(300) <= 2 * INTERVAL as usize, "still asking long after the last read");
        assert_eq!(asked(200), 0);
    }

    #[test]
    fn where_nothing_is_known_nothing_is_asked_for() {
        let mut readahead = Readahead::new(|| None);
        assert!((0..100).all(|step| readahead.steps(step, AHEAD).is_empty()));
    }

    #[test]
    fn looks_are_rare() {
        let looks = Cell::new(0);
        let mut readahead = Readahead::new(|| {
            looks.set(looks.get() + 1);
            Some(0)
        });
        for step in 0..3200 {
            readahead.steps(step, AHEAD);
        }
        assert!(looks.get() <= 1 + 6 + 100, "{} looks", looks.get());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_read_from_memory_is_not_counted() {
        // The counters themselves are such a file. Now and then the disk is read all the same, for a page of code.
        let unchanged = (0..100).any(|_| {
            let before = thread_bytes_read().unwrap();
            fs::read_to_string("/proc/self/status").unwrap();
            thread_bytes_read().unwrap() == before
        });
        assert!(unchanged);
    }
}
