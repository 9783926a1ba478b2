//! A zstd dictionary with its identity.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, ErrorKind, Result};
use crate::format::check::DictionaryIdentity;

/// More than zstd can make use of; a longer file is not a dictionary.
const MAX_BYTES: usize = 128 << 20;

/// The dictionary of one store.
#[derive(Debug)]
pub(crate) struct Dictionary {
    bytes: Vec<u8>,
    identity: DictionaryIdentity,
    // Tells the contexts of a thread apart; never reused within the process.
    key: u64,
}

impl Dictionary {
    /// Takes the content of `dict.zr`.
    pub(crate) fn new(bytes: Vec<u8>) -> Result<Self> {
        static KEYS: AtomicU64 = AtomicU64::new(0);
        if bytes.is_empty() || bytes.len() > MAX_BYTES {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("a dictionary of {} bytes; 1 to {MAX_BYTES} are possible", bytes.len()),
            ));
        }
        let identity = DictionaryIdentity {
            id: zstd_safe::get_dict_id_from_dict(&bytes).map_or(0, std::num::NonZeroU32::get),
            length: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            crc: crc32fast::hash(&bytes),
        };
        Ok(Self { bytes, identity, key: KEYS.fetch_add(1, Ordering::Relaxed) })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn identity(&self) -> DictionaryIdentity {
        self.identity
    }

    pub(crate) fn key(&self) -> u64 {
        self.key
    }
}
