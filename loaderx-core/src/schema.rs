//! What the records of a store mean: `schema.msgpack`.
//!
//! The file is one msgpack map, written with its keys in the order `kind`, `dtype`, `item_shape`, `format`,
//! `version`, `codec`, as the Python package does. Keys that we do not know are kept nowhere and ignored.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};

/// The name of the schema's file in a store's directory.
pub const FILE_NAME: &str = "schema.msgpack";

const FORMAT: &str = "loaderx-zrecord";
const VERSION: u32 = 1;
/// A schema is some hundred bytes; anything near this is not one.
const MAX_BYTES: usize = 1 << 20;

/// Whether records have one shape or a length of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Every record has exactly the shape `item_shape`.
    Dense,
    /// A record is `(rows, *item_shape)` with its own number of rows.
    Ragged,
}

impl Kind {
    /// The word in the schema: `"dense"` or `"ragged"`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Ragged => "ragged",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Kind, element type and shape of a store's records.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schema {
    kind: Kind,
    dtype: DType,
    item_shape: Vec<usize>,
}

/// The file's content, before any of it is believed.
#[derive(Serialize, Deserialize)]
struct RawSchema {
    kind: String,
    dtype: String,
    item_shape: Vec<u64>,
    #[serde(default)]
    format: String,
    #[serde(default)]
    version: u32,
    #[serde(default)]
    codec: String,
}

impl Schema {
    /// Records that are each `item_shape` elements of `dtype`; `&[]` for scalars.
    ///
    /// # Errors
    ///
    /// When a record of this shape would not fit into memory.
    pub fn dense(dtype: DType, item_shape: &[usize]) -> Result<Self> {
        Self::new(Kind::Dense, dtype, item_shape)
    }

    /// Records that are each `(rows, *item_shape)` elements of `dtype`; `&[]` for sequences of scalars.
    ///
    /// # Errors
    ///
    /// When a row of this shape would not fit into memory.
    pub fn ragged(dtype: DType, item_shape: &[usize]) -> Result<Self> {
        Self::new(Kind::Ragged, dtype, item_shape)
    }

    fn new(kind: Kind, dtype: DType, item_shape: &[usize]) -> Result<Self> {
        let bytes = item_shape.iter().try_fold(dtype.size(), |bytes, &side| bytes.checked_mul(side));
        if bytes.is_none_or(|bytes| bytes > isize::MAX.unsigned_abs()) {
            return Err(Error::invalid(format!(
                "an item of shape {item_shape:?} and type {dtype} is too large"
            )));
        }
        Ok(Self { kind, dtype, item_shape: item_shape.to_vec() })
    }

    /// Dense or ragged.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The type of each element.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The record's shape (dense) or that of one row (ragged).
    #[must_use]
    pub fn item_shape(&self) -> &[usize] {
        &self.item_shape
    }

    /// Elements of one item: the product of `item_shape`, 1 for scalars.
    #[must_use]
    pub fn item_elements(&self) -> usize {
        // The constructor established that the product does not overflow.
        self.item_shape.iter().product()
    }

    /// Bytes of one item.
    #[must_use]
    pub fn item_bytes(&self) -> usize {
        self.item_elements() * self.dtype.size()
    }

    /// Reads the content of `schema.msgpack`; also gives the name of the codec that appends default to.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`] when it is not such a map, [`ErrorKind::Unsupported`] when it names an element
    /// type or a kind that we do not have.
    pub fn decode(bytes: &[u8]) -> Result<(Self, String)> {
        if bytes.len() > MAX_BYTES {
            return Err(Error::corrupt(format!(
                "the schema has {} bytes, at most {MAX_BYTES} are sensible",
                bytes.len()
            )));
        }
        let raw: RawSchema = rmp_serde::from_slice(bytes).map_err(|error| {
            Error::corrupt("the schema is not the expected msgpack map").caused_by(error).with_hint(
                "restore schema.msgpack from a copy; without that file the records open as plain bytes",
            )
        })?;
        let kind = match raw.kind.as_str() {
            "dense" => Kind::Dense,
            "ragged" => Kind::Ragged,
            other => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!("the schema's kind is {other:?}, not \"dense\" or \"ragged\""),
                ));
            }
        };
        let dtype = DType::from_numpy(&raw.dtype)?;
        let item_shape =
            raw.item_shape.iter().map(|&side| usize::try_from(side)).collect::<Result<Vec<_>, _>>().map_err(
                |_| {
                    Error::corrupt(format!(
                        "the schema's item shape {:?} does not fit this machine",
                        raw.item_shape
                    ))
                },
            )?;
        let schema = Self::new(kind, dtype, &item_shape)
            .map_err(|error| Error::corrupt(error.message().to_owned()))?;
        Ok((schema, raw.codec))
    }

    /// The content of `schema.msgpack`, byte for byte as the Python package writes it.
    ///
    /// # Errors
    ///
    /// None in practice: the map is small and of plain types.
    pub fn encode(&self, codec: &str) -> Result<Vec<u8>> {
        let raw = RawSchema {
            kind: self.kind.name().to_owned(),
            dtype: self.dtype.numpy().to_owned(),
            item_shape: self.item_shape.iter().map(|&side| side as u64).collect(),
            format: FORMAT.to_owned(),
            version: VERSION,
            codec: codec.to_owned(),
        };
        rmp_serde::to_vec_named(&raw)
            .map_err(|error| Error::invalid("the schema cannot be encoded").caused_by(error))
    }

    /// Refuses data of another kind, type or shape, naming both.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when anything differs.
    pub fn require(&self, wanted: &Self) -> Result<()> {
        if self == wanted {
            return Ok(());
        }
        Err(Error::new(ErrorKind::SchemaMismatch, format!("the store holds {self}, not {wanted}")))
    }

    /// Refuses a number of bytes that no record of this schema has.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when a dense record has another size, or a ragged one no whole number of rows.
    pub fn check_record_bytes(&self, bytes: u64) -> Result<()> {
        let item = self.item_bytes() as u64;
        let fits = match self.kind {
            Kind::Ragged if item > 0 => bytes.is_multiple_of(item),
            _ => bytes == item,
        };
        if fits {
            return Ok(());
        }
        Err(Error::new(ErrorKind::SchemaMismatch, format!("{bytes} bytes are no record of {self}")))
    }
}

impl std::fmt::Display for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {:?}", self.kind, self.dtype, self.item_shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_the_size_of_their_shape_or_whole_rows() {
        let fitting = |schema: Schema| (0..10).filter(move |&bytes| schema.check_record_bytes(bytes).is_ok());
        assert!(fitting(Schema::dense(DType::I16, &[2]).unwrap()).eq([4]));
        assert!(fitting(Schema::ragged(DType::I16, &[2]).unwrap()).eq([0, 4, 8]));
        assert!(fitting(Schema::dense(DType::U8, &[0]).unwrap()).eq([0]));
        assert!(fitting(Schema::ragged(DType::U8, &[0]).unwrap()).eq([0]));
    }

    /// Written by the Python package for a dense `<f4` store of shape (4,), raw.
    const PYTHON: &str = "86a46b696e64a564656e7365a56474797065a33c6634aa6974656d5f7368617065\
                          9104a6666f726d6174af6c6f61646572782d7a7265636f7264a776657273696f6e01a5636f646563a3726177";

    fn unhex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
    }

    #[test]
    fn the_bytes_are_those_of_the_python_package() {
        let schema = Schema::dense(DType::F32, &[4]).unwrap();
        assert_eq!(schema.encode("raw").unwrap(), unhex(PYTHON));
        assert_eq!(Schema::decode(&unhex(PYTHON)).unwrap(), (schema, "raw".to_owned()));
    }

    #[test]
    fn every_cut_of_a_schema_is_refused() {
        let bytes = unhex(PYTHON);
        for cut in 0..bytes.len() {
            // Cutting the trailing optional keys leaves a map that promises more entries than it has.
            assert!(Schema::decode(&bytes[..cut]).unwrap_err().is_corrupt(), "cut at {cut}");
        }
    }

    #[test]
    fn a_shape_whose_size_overflows_is_refused() {
        assert!(Schema::dense(DType::F64, &[usize::MAX / 4, 4]).is_err());
        assert!(Schema::dense(DType::F64, &[0, 4]).is_ok());
    }
}
