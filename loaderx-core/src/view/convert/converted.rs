use super::{Channels, Conversion};
use crate::dtype::DType;
use crate::error::Result;
use crate::view::dense::batch_shape;
use crate::view::fill::blocks_of;
use crate::view::ragged::too_large;
use crate::view::{Column, Dense, DenseBatch, Request, Source};

/// Dense records that are converted while they are gathered, made by [`Dense::convert`] and [`Dense::to_f32`].
///
/// Each stored record is read once and its converted elements are written right into the batch: a second pass over
/// the batch would cost as much again as the gather.
///
/// Elements are brought to `f32` (to `f64` if that is the target), then `x * factor + summand` is computed with one
/// factor and one summand that all settings were merged into beforehand, then the result is rounded to the target.
/// The bits are the same on every machine.
///
/// ```
/// use loaderx_core::view::Channels;
/// use loaderx_core::{Codec, DType, DenseWriter};
///
/// # fn main() -> loaderx_core::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// # let path = dir.path().join("images");
/// let writer = DenseWriter::create(&path, DType::U8, &[2, 2, 3], Codec::Raw)?; // height, width, channels
/// writer.append([0_u8, 128, 255].repeat(4))?;
/// let images = writer
///     .finish()?
///     .to_f32()
///     .scale(1.0 / 255.0)?
///     .normalize_channels(Channels::Last, &[0.5, 0.5, 0.5], &[0.5, 0.25, 0.5])?;
/// let batch = images.batch(&[0])?;
/// assert_eq!(batch.shape(), [1, 2, 2, 3]);
/// let pixel = &batch.as_slice::<f32>()?[..3];
/// assert_eq!((pixel[0], pixel[2]), (-1.0, 1.0));
/// assert!((pixel[1] - (128.0 / 255.0 - 0.5) / 0.25).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Converted {
    dense: Dense,
    conversion: Conversion,
}

impl Dense {
    /// A source of these records with elements of `dtype`: any float type, or an integer type that holds every value.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for any other type.
    pub fn convert(&self, dtype: DType) -> Result<Converted> {
        Ok(Converted { dense: self.clone(), conversion: Conversion::new(self.dtype(), dtype)? })
    }

    /// A source of these records as `f32`.
    #[must_use]
    pub fn to_f32(&self) -> Converted {
        Converted { dense: self.clone(), conversion: Conversion::to_float(self.dtype(), DType::F32) }
    }
}

impl Converted {
    /// Multiplies every element by `scale`.
    ///
    /// # Errors
    ///
    /// When the elements are not floats or `scale` is not finite.
    pub fn scale(self, scale: f64) -> Result<Self> {
        let affine = self.conversion.affine().scale(scale)?;
        Ok(Self { conversion: self.conversion.with_affine(affine)?, ..self })
    }

    /// Makes every element `(x - mean) / std`, after what was set before.
    ///
    /// # Errors
    ///
    /// When the elements are not floats, `mean` is not finite or `std` is not a positive number.
    pub fn normalize(self, mean: f64, std: f64) -> Result<Self> {
        let affine = self.conversion.affine().normalize(mean, std)?;
        Ok(Self { conversion: self.conversion.with_affine(affine)?, ..self })
    }

    /// Makes every element of channel `c` `(x - mean[c]) / std[c]`, after what was set before.
    ///
    /// # Errors
    ///
    /// As [`Converted::normalize`], and when there is not one mean and one deviation for each channel.
    pub fn normalize_channels(self, channels: Channels, mean: &[f64], std: &[f64]) -> Result<Self> {
        let shape = self.dense.item_shape();
        let affine = self.conversion.affine().normalize_channels(channels, shape, mean, std)?;
        Ok(Self { conversion: self.conversion.with_affine(affine)?, ..self })
    }

    /// The records below.
    #[must_use]
    pub fn dense(&self) -> &Dense {
        &self.dense
    }

    /// The type of each converted element.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.conversion.to()
    }

    /// Gathers the records at `indices`, in that order, converted.
    ///
    /// # Errors
    ///
    /// When an index is not below the number of records or stored data are damaged.
    pub fn batch(&self, indices: &[u64]) -> Result<DenseBatch> {
        self.gather_batch(&Request::new(indices))
    }

    fn gather_batch(&self, request: &Request<'_>) -> Result<DenseBatch> {
        let schema = self.dense.schema();
        let records = request.indices.len();
        let item = schema.item_elements();
        let elements = records.checked_mul(item).ok_or_else(|| too_large(records, schema))?;
        let room = request.memory.room(self.dtype(), elements)?;
        let row_bytes = item * self.dtype().size();
        let data = room.fill(|room| {
            blocks_of(
                self.dense.store(),
                request,
                schema.item_bytes(),
                row_bytes,
                room,
                // Channels come round with the record, so the elements of a block are those of one long record.
                |block, filler| {
                    self.conversion.write(block.bytes, filler).map_err(|error| {
                        let at = error.offset().and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
                        let record = at.checked_div(schema.item_bytes()).unwrap_or(0);
                        match block.indices.get(record) {
                            Some(&index) => error.for_record(index),
                            None => error,
                        }
                    })
                },
            )
        })?;
        Ok(DenseBatch::trusted(data, batch_shape(records, schema.item_shape())))
    }
}

impl Source for Converted {
    fn len(&self) -> u64 {
        self.dense.len()
    }

    fn gather(&self, request: &Request<'_>) -> Result<Column> {
        self.gather_batch(request).map(Column::Dense)
    }

    fn batch_bytes(&self, indices: &[u64]) -> Result<u64> {
        let item = self.dense.schema().item_elements() * self.dtype().size();
        Ok((indices.len() as u64).saturating_mul(item as u64))
    }

    fn advise(&self, indices: &[u64]) {
        self.dense.advise(indices);
    }

    fn describe(&self) -> String {
        format!("{} {}", self.dense.describe(), self.conversion)
    }
}
