//! Record codecs: raw, zstd, zstd with the store's dictionary.

mod dictionary;
mod frame;
mod promise;
mod train;
mod zstd;

pub(crate) use dictionary::Dictionary;
pub(crate) use frame::FrameOptions;
pub use frame::Literals;
pub(crate) use promise::{BELIEVED_BYTES, check_promise};
pub use train::{Training, train_dictionary};
pub(crate) use zstd::{compress, decompress};

use crate::error::{Error, ErrorKind, Result};

/// How appended records are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// As they are.
    Raw,
    /// One zstd frame each.
    #[non_exhaustive]
    Zstd {
        /// zstd's compression level.
        level: i32,
        /// What is done with bytes that repeat nothing.
        literals: Literals,
    },
    /// One zstd frame each, against the store's dictionary.
    #[non_exhaustive]
    ZstdDict {
        /// zstd's compression level.
        level: i32,
        /// What is done with bytes that repeat nothing.
        literals: Literals,
    },
}

impl Codec {
    /// zstd at its level 3.
    #[must_use]
    pub const fn zstd() -> Self {
        Self::Zstd { level: 3, literals: Literals::Compressed }
    }

    /// zstd with a dictionary at level 19.
    ///
    /// A store is written once and read every epoch, so the default is the smallest, and reads as fast as the lower
    /// levels. It costs time to write: on MNIST 8 MB/s with two cores where level 3 writes 290 and level 9 writes 53, for
    /// 8 % and 3 % fewer bytes. [`Codec::with_level`] where that is too long.
    #[must_use]
    pub const fn zstd_dict() -> Self {
        Self::ZstdDict { level: 19, literals: Literals::Compressed }
    }

    /// The same at another of zstd's compression levels, -7 to 22; raw stays as it is.
    #[must_use]
    pub const fn with_level(self, level: i32) -> Self {
        match self {
            Self::Raw => self,
            Self::Zstd { literals, .. } => Self::Zstd { level, literals },
            Self::ZstdDict { literals, .. } => Self::ZstdDict { level, literals },
        }
    }

    /// The same with literals stored in that way; raw stays as it is.
    ///
    /// ```
    /// use loaderx_core::{Codec, Literals};
    ///
    /// let fast_to_read = Codec::zstd().with_level(9).with_literals(Literals::Raw);
    /// assert_eq!(fast_to_read.name(), "zstd");
    /// ```
    #[must_use]
    pub const fn with_literals(self, literals: Literals) -> Self {
        match self {
            Self::Raw => self,
            Self::Zstd { level, .. } => Self::Zstd { level, literals },
            Self::ZstdDict { level, .. } => Self::ZstdDict { level, literals },
        }
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

    /// The same without a dictionary.
    pub(crate) const fn plain(self) -> Self {
        match self {
            Self::ZstdDict { level, literals } => Self::Zstd { level, literals },
            other => other,
        }
    }

    /// How its frames are made; `None` for raw.
    pub(crate) const fn frames(self) -> Option<FrameOptions> {
        match self {
            Self::Raw => None,
            Self::Zstd { level, literals } | Self::ZstdDict { level, literals } => {
                Some(FrameOptions { level, literals })
            }
        }
    }

    /// The codec of this name, at its default level. [`str::parse`] does the same.
    ///
    /// ```
    /// use loaderx_core::Codec;
    ///
    /// assert_eq!("zstd".parse::<Codec>()?, Codec::zstd());
    /// # Ok::<(), loaderx_core::Error>(())
    /// ```
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

/// As [`Codec::from_name`].
impl std::str::FromStr for Codec {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::from_name(name)
    }
}
