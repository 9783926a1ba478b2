//! Record codecs: raw, zstd, zstd with the store's dictionary.

mod dictionary;
mod train;
mod zstd;

pub(crate) use dictionary::Dictionary;
pub use train::{Training, train_dictionary};
pub(crate) use zstd::{compress, content_size, decompress};

use crate::error::{Error, ErrorKind, Result};

/// How appended records are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// As they are.
    Raw,
    /// One zstd frame each.
    Zstd {
        /// zstd's compression level.
        level: i32,
    },
    /// One zstd frame each, against the store's dictionary.
    ZstdDict {
        /// zstd's compression level.
        level: i32,
    },
}

impl Codec {
    /// zstd at its level 3.
    #[must_use]
    pub const fn zstd() -> Self {
        Self::Zstd { level: 3 }
    }

    /// zstd with a dictionary at level 19.
    #[must_use]
    pub const fn zstd_dict() -> Self {
        Self::ZstdDict { level: 19 }
    }

    /// The name in the schema: `"raw"`, `"zstd"` or `"zstd_dict"`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Zstd { .. } => "zstd",
            Self::ZstdDict { .. } => "zstd_dict",
        }
    }

    /// The codec of this name, at its default level.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] for any other name.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "raw" => Ok(Self::Raw),
            "zstd" => Ok(Self::zstd()),
            "zstd_dict" => Ok(Self::zstd_dict()),
            other => Err(Error::new(
                ErrorKind::Unsupported,
                format!("there is no codec {other:?}; known are raw, zstd and zstd_dict"),
            )),
        }
    }
}
