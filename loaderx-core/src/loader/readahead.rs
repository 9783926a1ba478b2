//! Asking for the records of later steps ahead, while reading them costs the disk.
//!
//! A gather from a store that is not in memory waits for the disk record by record. Asked for one or two batches
//! ahead, the system reads all of them at once, several times faster. For data that is in memory the asking is
//! pure loss, and as dear as a small batch. So each worker watches whether its work makes the disk read, and asks
//! ahead only then.

use std::fs;

/// How many steps ahead to ask for, beside those that the other workers are at: one batch of lead is enough.
pub(super) const LEAD: u64 = 2;

/// How many steps pass between two looks, which cost some microseconds each.
const INTERVAL: u32 = 32;

/// Decides, for one worker, whether asking ahead pays.
#[derive(Debug)]
pub(super) struct Readahead<R> {
    /// Bytes that this thread has made the disk read so far, where that is known.
    bytes_read: R,
    seen: Option<u64>,
    active: bool,
    /// Steps until the next look, and from that look to the one after it.
    left: u32,
    interval: u32,
}

impl<R: Fn() -> Option<u64>> Readahead<R> {
    pub(super) fn new(bytes_read: R) -> Self {
        let seen = bytes_read();
        Self { bytes_read, seen, active: false, left: 1, interval: 1 }
    }

    /// Whether to ask for later steps now; called once for each step.
    pub(super) fn wanted(&mut self) -> bool {
        // Where nothing can be seen, asking might cost as much as the batch itself at every step.
        let Some(before) = self.seen else { return false };
        self.left -= 1;
        if self.left == 0 {
            let now = (self.bytes_read)();
            self.active = now.is_some_and(|now| now > before);
            self.seen = now;
            // Soon at first, so that a cold start is noticed within a few steps.
            self.interval = (self.interval * 2).min(INTERVAL);
            self.left = self.interval;
        }
        self.active
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

    #[test]
    fn asking_begins_soon_after_the_disk_reads_and_ends_when_it_does_not() {
        let disk = Cell::new(Some(7_000));
        let mut readahead = Readahead::new(|| disk.get());
        assert!((0..100).all(|_| !readahead.wanted()), "what was read before the first step does not count");

        let mut readahead = Readahead::new(|| disk.get());
        let read = |bytes: u64| disk.set(disk.get().map(|before| before + bytes));
        read(4096);
        assert!(readahead.wanted(), "the first look comes at once");
        for _ in 0..200 {
            read(4096);
            assert!(readahead.wanted());
        }
        let more = (0..200).take_while(|_| readahead.wanted()).count();
        assert!(more <= 2 * INTERVAL as usize, "still asking {more} steps after the last read");
        assert!((0..200).all(|_| !readahead.wanted()));
        read(4096);
        assert!((0..=INTERVAL).any(|_| readahead.wanted()), "data that went cold are noticed again");
    }

    #[test]
    fn where_nothing_is_known_nothing_is_asked_for() {
        let mut readahead = Readahead::new(|| None);
        assert!((0..100).all(|_| !readahead.wanted()));
    }

    #[test]
    fn looks_are_rare() {
        let looks = Cell::new(0);
        let mut readahead = Readahead::new(|| {
            looks.set(looks.get() + 1);
            Some(0)
        });
        for _ in 0..3200 {
            readahead.wanted();
        }
        assert!(looks.get() <= 1 + 5 + 100, "{} looks", looks.get());
    }
}
