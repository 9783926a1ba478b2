//! What can go wrong, and how a test names the parts of what was not yet synced.

use std::io;

/// One planned fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub(super) at: u64,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The changing call and all after it do nothing and fail.
    Stop,
    /// As `Stop`, but the first half of the call's bytes is written.
    Tear,
    /// The changing call alone fails; of a write, the first half of the bytes is written.
    Fail(io::ErrorKind),
    /// As `Fail`, for every changing call from there on that asks for more room.
    Full,
    /// The read alone fails.
    FailRead(io::ErrorKind),
}

impl Fault {
    /// The process is killed before its `k`-th changing call.
    #[must_use]
    pub fn stop_at(k: u64) -> Self {
        Self { at: k, what: What::Stop }
    }

    /// The process is killed in the middle of its `k`-th changing call: of a write, the first half of the bytes
    /// has arrived. (An 8-byte header store is never halved.)
    #[must_use]
    pub fn tear_at(k: u64) -> Self {
        Self { at: k, what: What::Tear }
    }

    /// The `k`-th changing call fails, once.
    #[must_use]
    pub fn fail_at(k: u64, kind: io::ErrorKind) -> Self {
        Self { at: k, what: What::Fail(kind) }
    }

    /// From the `k`-th changing call on the disk is full: nothing can make a file or make one longer.
    #[must_use]
    pub fn full_from(k: u64) -> Self {
        Self { at: k, what: What::Full }
    }

    /// The `k`-th read fails, once.
    #[must_use]
    pub fn fail_read_at(k: u64, kind: io::ErrorKind) -> Self {
        Self { at: k, what: What::FailRead(kind) }
    }
}

/// The parts of a store that a power cut can lose independently of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Bytes of chunk files.
    Chunk,
    /// The record table: `meta.zr` past its header.
    Table,
    /// The header of `meta.zr`.
    Header,
    /// `check.zr`.
    Checks,
    /// `journal.zr`.
    Journal,
    /// Any other file.
    Other,
    /// Names made, changed and removed.
    Names,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 7] =
        [Self::Chunk, Self::Table, Self::Header, Self::Checks, Self::Journal, Self::Other, Self::Names];

    pub(super) fn of(name: &str, offset: Option<u64>) -> Self {
        let is_chunk = |name: &str| {
            name.strip_suffix(".zr")
                .is_some_and(|stem| !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_digit()))
        };
        match name {
            "meta.zr" if offset.is_some_and(|offset| offset < 16) => Self::Header,
            "meta.zr" => Self::Table,
            "check.zr" => Self::Checks,
            "journal.zr" => Self::Journal,
            name if is_chunk(name) => Self::Chunk,
            _ => Self::Other,
        }
    }
}

/// One change that was not yet synced when the power failed.
#[derive(Clone, Copy, Debug)]
pub struct Unsynced<'a> {
    /// Its number among the unsynced changes, from 0.
    pub number: usize,
    /// The file, or for [`Class::Names`] the name made, changed or removed.
    pub file: &'a str,
    /// The part of the store.
    pub class: Class,
    /// Where bytes were written; `None` for a change of a length or a name.
    pub offset: Option<u64>,
    /// How many bytes were written.
    pub len: usize,
}
