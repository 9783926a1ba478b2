//! Errors cross the border in both directions, with their whole text.

use loaderx_core::{Error, ErrorKind};

/// A loader's error for a loop that uses `?` on candle's.
///
/// candle keeps the error itself (`candle_core::Error::Wrapped`), so its text names file, record and remedy as ever.
pub(crate) fn into_candle(error: Error) -> candle_core::Error {
    candle_core::Error::wrap(error)
}

/// candle's error on a worker thread, on its way through the loader to the step that it belongs to.
pub(crate) fn from_candle(error: candle_core::Error) -> Error {
    Error::new(ErrorKind::Callback, "making a tensor failed").caused_by(error)
}
