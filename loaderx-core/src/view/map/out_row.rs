use std::mem::MaybeUninit;

use crate::buffer::{Filler, bytes_of, check_truth, elements_of_mut};
use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};

/// A record's row of the batch, to be written by a record map.
///
/// It is uninitialised memory of the batch itself. A map writes it whole, with one of [`OutRow::copy_from`],
/// [`OutRow::write`] and [`OutRow::as_mut_slice`]; one that does not is an error.
#[derive(Debug)]
pub struct OutRow<'a> {
    dtype: DType,
    state: State<'a>,
}

#[derive(Debug)]
enum State<'a> {
    Unwritten(&'a mut [MaybeUninit<u8>]),
    Written(&'a mut [u8]),
    /// A write went wrong halfway.
    Failed,
}

impl<'a> OutRow<'a> {
    pub(super) fn new(dtype: DType, room: &'a mut [MaybeUninit<u8>]) -> Self {
        Self { dtype, state: State::Unwritten(room) }
    }

    /// The type of each element.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Elements of the row.
    #[must_use]
    pub fn len(&self) -> usize {
        let bytes = match &self.state {
            State::Unwritten(room) => room.len(),
            State::Written(bytes) => bytes.len(),
            State::Failed => 0,
        };
        bytes / self.dtype.size()
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies all elements.
    ///
    /// # Errors
    ///
    /// When `elements` are of another type (truth values are `u8`) or number than the row's.
    pub fn copy_from<T: Element>(&mut self, elements: &[T]) -> Result<()> {
        self.require::<T>()?;
        self.fill(|filler| filler.copy(bytes_of(elements)))
    }

    /// Writes the elements in turn, as many as the row has.
    ///
    /// # Errors
    ///
    /// When the elements are of another type than the row's (truth values are `u8`), or there are fewer or more.
    pub fn write<T: Element>(&mut self, elements: impl IntoIterator<Item = T>) -> Result<()> {
        self.require::<T>()?;
        let length = self.len();
        self.fill(|filler| {
            let mut elements = elements.into_iter();
            for element in elements.by_ref().take(length) {
                filler.copy(bytes_of(&[element]))?;
            }
            if elements.next().is_some() {
                return Err(Error::invalid(format!(
                    "a record map wrote more than the {length} elements of a row"
                )));
            }
            Ok(())
        })
    }

    /// All elements, to be written in any order. They are zero at the first call.
    ///
    /// # Errors
    ///
    /// When the elements are of another type than `T` (truth values are `u8`).
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        self.require::<T>()?;
        if matches!(self.state, State::Unwritten(_)) {
            self.fill(|filler| filler.repeat(&[0], filler.remaining()))?;
        }
        let mismatch = self.mismatch::<T>();
        match &mut self.state {
            State::Written(bytes) => elements_of_mut(bytes).ok_or(mismatch),
            State::Unwritten(_) | State::Failed => Err(mismatch),
        }
    }

    /// The written row.
    pub(super) fn finish(self) -> Result<&'a mut [u8]> {
        let bytes = match self.state {
            State::Written(bytes) => bytes,
            // A row without elements is written by doing nothing.
            State::Unwritten(room) if room.is_empty() => Filler::new(room).finish()?,
            State::Unwritten(_) => return Err(Error::invalid("a record map left its row unwritten")),
            State::Failed => return Err(failed()),
        };
        if self.dtype == DType::Bool {
            check_truth(bytes)?;
        }
        Ok(bytes)
    }

    fn fill(&mut self, write: impl FnOnce(&mut Filler<'_>) -> Result<()>) -> Result<()> {
        match std::mem::replace(&mut self.state, State::Failed) {
            State::Unwritten(room) => {
                let mut filler = Filler::new(room);
                write(&mut filler)?;
                self.state = State::Written(filler.finish()?);
                Ok(())
            }
            State::Written(bytes) => {
                // A second time: what is there stays until it is overwritten.
                let mut again = vec![MaybeUninit::uninit(); bytes.len()];
                let mut filler = Filler::new(&mut again);
                write(&mut filler)?;
                bytes.copy_from_slice(filler.finish()?);
                self.state = State::Written(bytes);
                Ok(())
            }
            State::Failed => Err(failed()),
        }
    }

    fn require<T: Element>(&self) -> Result<()> {
        if T::DTYPE == self.dtype || (self.dtype, T::DTYPE) == (DType::Bool, DType::U8) {
            return Ok(());
        }
        Err(self.mismatch::<T>())
    }

    fn mismatch<T: Element>(&self) -> Error {
        let message = format!("a row of {} is not written as {}", self.dtype, T::DTYPE);
        Error::new(ErrorKind::SchemaMismatch, message)
    }
}

fn failed() -> Error {
    Error::invalid("a record map went on with its row after a write to it had failed")
}
