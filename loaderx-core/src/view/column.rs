use super::{DenseBatch, PackedBatch, PaddedBatch, RaggedBatch};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};

/// One stream's part of a batch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Column {
    /// Records of one shape.
    Dense(DenseBatch),
    /// Records of their own lengths, one after the other.
    Ragged(RaggedBatch),
    /// Records padded to one length.
    Padded(PaddedBatch),
    /// Several records to a row of one length.
    Packed(PackedBatch),
}

impl Column {
    /// Records in the batch.
    #[must_use]
    pub fn records(&self) -> usize {
        match self {
            Self::Dense(batch) => batch.records(),
            Self::Ragged(batch) => batch.records(),
            Self::Padded(batch) => batch.records(),
            Self::Packed(batch) => batch.records(),
        }
    }

    /// Bytes of memory that its elements take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Dense(batch) => batch.data().as_bytes().len(),
            Self::Ragged(batch) => batch.values().as_bytes().len(),
            Self::Padded(batch) => batch.values().data().as_bytes().len(),
            Self::Packed(batch) => batch.values().data().as_bytes().len(),
        }
    }

    /// The type of its elements.
    #[must_use]
    pub fn dtype(&self) -> DType {
        match self {
            Self::Dense(batch) => batch.dtype(),
            Self::Ragged(batch) => batch.dtype(),
            Self::Padded(batch) => batch.values().dtype(),
            Self::Packed(batch) => batch.values().dtype(),
        }
    }

    /// `"dense"`, `"ragged"`, `"padded"` or `"packed"`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Dense(_) => "dense",
            Self::Ragged(_) => "ragged",
            Self::Padded(_) => "padded",
            Self::Packed(_) => "packed",
        }
    }

    /// The dense batch.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when it is of another kind.
    pub fn into_dense(self) -> Result<DenseBatch> {
        match self {
            Self::Dense(batch) => Ok(batch),
            other => Err(other.is_not("dense")),
        }
    }

    /// The ragged batch.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when it is of another kind.
    pub fn into_ragged(self) -> Result<RaggedBatch> {
        match self {
            Self::Ragged(batch) => Ok(batch),
            other => Err(other.is_not("ragged")),
        }
    }

    /// The padded batch.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when it is of another kind.
    pub fn into_padded(self) -> Result<PaddedBatch> {
        match self {
            Self::Padded(batch) => Ok(batch),
            other => Err(other.is_not("padded")),
        }
    }

    /// The packed batch.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when it is of another kind.
    pub fn into_packed(self) -> Result<PackedBatch> {
        match self {
            Self::Packed(batch) => Ok(batch),
            other => Err(other.is_not("packed")),
        }
    }

    fn is_not(&self, wanted: &str) -> Error {
        Error::new(ErrorKind::SchemaMismatch, format!("the batch is {}, not {wanted}", self.kind()))
    }
}
