//! Numeric conversion in the gather: from the stored type to the one that a model computes in, in one pass.

mod affine;
mod converted;
mod float;
mod widen;

pub use affine::Channels;
pub use converted::Converted;

use crate::buffer::{Filler, check_truth};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use affine::Affine;

/// How the stored elements of a record become those of a batch.
#[derive(Clone, Debug)]
pub(super) struct Conversion {
    from: DType,
    to: DType,
    // Not the identity only for float targets.
    affine: Affine,
}

impl Conversion {
    /// The elements as they are.
    pub(super) fn none(dtype: DType) -> Self {
        Self { from: dtype, to: dtype, affine: Affine::identity() }
    }

    /// From any type to the float type `to`.
    pub(super) fn to_float(from: DType, to: DType) -> Self {
        Self { from, to, affine: Affine::identity() }
    }

    /// From any type to a float type, or to a wider integer type.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] when values could be lost that are not merely rounded.
    pub(super) fn new(from: DType, to: DType) -> Result<Self> {
        if from == to || is_float(to) || widen::is_lossless(from, to) {
            return Ok(Self { from, to, affine: Affine::identity() });
        }
        Err(Error::new(
            ErrorKind::Unsupported,
            format!("{from} is not converted to {to}, which lacks some of its values"),
        )
        .with_hint(
            "convert to a float type, to an integer type that holds every value, or with a record map",
        ))
    }

    pub(super) fn to(&self) -> DType {
        self.to
    }

    /// Whether a batch's bytes are the stored ones.
    pub(super) fn is_none(&self) -> bool {
        self.from == self.to && self.affine.is_identity()
    }

    fn affine(&self) -> &Affine {
        &self.affine
    }

    /// With another factor and summand for the elements.
    ///
    /// # Errors
    ///
    /// When the target is not a float type.
    fn with_affine(&self, affine: Affine) -> Result<Self> {
        if !is_float(self.to) {
            return Err(Error::invalid(format!("elements of {} cannot be scaled", self.to))
                .with_hint("convert to a float type first"));
        }
        Ok(Self { affine, ..self.clone() })
    }

    /// Writes the converted elements of `stored`, which starts with the first element of a record (or of a row).
    ///
    /// # Errors
    ///
    /// When `stored` is not a whole number of elements, or a truth value is neither 0 nor 1.
    pub(super) fn write(&self, stored: &[u8], filler: &mut Filler<'_>) -> Result<()> {
        if self.from == DType::Bool {
            check_truth(stored)?;
        }
        if !stored.len().is_multiple_of(self.from.size()) {
            return Err(Error::corrupt(format!(
                "{} bytes are not a whole number of elements of {}",
                stored.len(),
                self.from
            )));
        }
        if self.is_none() || (self.from, self.to) == (DType::Bool, DType::U8) {
            filler.copy(stored)
        } else if is_float(self.to) {
            float::write(self.from, self.to, &self.affine, stored, filler)
        } else {
            widen::write(self.from, self.to, stored, filler)
        }
    }
}

impl std::fmt::Display for Conversion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "as {}{}", self.to, self.affine)
    }
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
}
