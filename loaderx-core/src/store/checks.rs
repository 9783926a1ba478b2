//! The writer's side of `check.zr`.

use std::sync::Arc;

use super::names;
use crate::codec::{Codec, Literals};
use crate::error::{Error, Result};
use crate::format::Compression;
use crate::format::check::{
    AppendCodec, CheckEntry, CheckHeader, DictionaryIdentity, SLOT_BYTES, entry_offset,
};
use crate::io::{Access, Directory, File};

/// `check.zr`, open for writing, and its header as it stands.
#[derive(Debug)]
pub(super) struct Checks {
    file: Arc<dyn File>,
    directory: Arc<dyn Directory>,
    header: CheckHeader,
}

/// Reads the header of `check.zr`: `None` if there is no such file, an error if neither slot is valid.
pub(super) fn read_header(directory: &dyn Directory) -> Result<Option<CheckHeader>> {
    let path = directory.path().join(names::CHECKS);
    let file = match directory.open(names::CHECKS, Access::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("open the checks", path, error)),
    };
    let mut slots = [0; 2 * SLOT_BYTES];
    match file.read_exact_at(&mut slots, 0) {
        Ok(()) => CheckHeader::newest(&slots).map(Some).map_err(|error| error.at_path(path)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Err(Error::corrupt("the checks are cut short within their header").at_path(path))
        }
        Err(error) => Err(Error::io("read the checks", path, error)),
    }
}

impl Checks {
    /// Makes the file, or a new header in a file whose header is damaged.
    pub(super) fn create(directory: &Arc<dyn Directory>, header: CheckHeader) -> Result<Self> {
        let file = directory
            .open(names::CHECKS, Access::Create)
            .map_err(|error| Error::io("create the checks", directory.path().join(names::CHECKS), error))?;
        let mut checks = Self { file, directory: Arc::clone(directory), header };
        // Both slots, so that neither is a leftover.
        checks.write_header(|_| {})?;
        checks.write_header(|_| {})?;
        Ok(checks)
    }

    /// Opens the file whose valid header is `header`.
    pub(super) fn open(directory: &Arc<dyn Directory>, header: CheckHeader) -> Result<Self> {
        let file = directory
            .open(names::CHECKS, Access::Write)
            .map_err(|error| Error::io("open the checks", directory.path().join(names::CHECKS), error))?;
        Ok(Self { file, directory: Arc::clone(directory), header })
    }

    pub(super) fn header(&self) -> &CheckHeader {
        &self.header
    }

    /// Changes the header and writes it into the other slot; durable after [`Checks::sync`].
    pub(super) fn write_header(&mut self, change: impl FnOnce(&mut CheckHeader)) -> Result<()> {
        let mut header = self.header;
        change(&mut header);
        header.sequence += 1;
        self.file
            .write_all_at(&header.encode(), header.slot_offset())
            .map_err(|error| self.failed("write the header of the checks", error))?;
        self.header = header;
        Ok(())
    }

    /// Writes the entries of records from `first` on, if entries are kept.
    pub(super) fn write_entries(&self, first: u64, entries: &[CheckEntry]) -> Result<()> {
        if !self.header.entries {
            return Ok(());
        }
        let bytes: Vec<u8> = entries.iter().flat_map(CheckEntry::encode).collect();
        self.file
            .write_all_at(&bytes, entry_offset(first))
            .map_err(|error| self.failed("write the checks", error))
    }

    /// Cuts off entries at and past `length`, which no record has any more.
    pub(super) fn truncate(&self, length: u64) -> Result<()> {
        let failed = |error| self.failed("shorten the checks", error);
        let end = entry_offset(length);
        if self.file.size().map_err(failed)? > end {
            self.file.set_size(end).map_err(failed)?;
        }
        Ok(())
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.file.sync().map_err(|error| self.failed("sync the checks", error))
    }

    fn failed(&self, doing: &str, error: std::io::Error) -> Error {
        Error::io(doing, self.directory.path().join(names::CHECKS), error)
    }
}

/// The header of `check.zr` for a store without records.
pub(super) fn new_header(dictionary: DictionaryIdentity, codec: Codec, entries: bool) -> CheckHeader {
    CheckHeader {
        sequence: 0,
        synced_length: 0,
        // Nothing is ours; a writer says otherwise before its first append.
        own_until: 0,
        dictionary,
        codec: Some(append_codec(codec)),
        entries,
        frontier: (0, 0),
    }
}

/// The header of `check.zr` for a store of another program, or for one that has lost its own. It vouches for nothing:
/// every record is another's, and none is known to be durable.
pub(super) fn header_for_foreign(dictionary: DictionaryIdentity, codec: Codec) -> CheckHeader {
    CheckHeader { frontier: CheckHeader::NO_FRONTIER, ..new_header(dictionary, codec, true) }
}

fn append_codec(codec: Codec) -> AppendCodec {
    let (compression, level, literals) = match codec {
        Codec::Raw => (Compression::Raw, 0, Literals::Compressed),
        Codec::Zstd { level, literals } => (Compression::Zstd, level, literals),
        Codec::ZstdDict { level, literals } => (Compression::ZstdDict, level, literals),
    };
    AppendCodec { compression, level, raw_literals: literals == Literals::Raw }
}

/// The codec that a header remembers.
pub(super) fn remembered_codec(header: &CheckHeader) -> Option<Codec> {
    header.codec.map(|stored| {
        let literals = if stored.raw_literals { Literals::Raw } else { Literals::Compressed };
        match stored.compression {
            Compression::Raw => Codec::Raw,
            Compression::Zstd => Codec::Zstd { level: stored.level, literals },
            Compression::ZstdDict => Codec::ZstdDict { level: stored.level, literals },
        }
    })
}
