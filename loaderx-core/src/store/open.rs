use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use super::{Store, Writer};
use crate::codec::Codec;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{FormatVersion, HEADER_BYTES, Header};
use crate::schema::{self, Schema};

pub(super) const META: &str = "meta.zr";

pub(super) fn chunk_name(chunk: u16) -> String {
    format!("{chunk}.zr")
}

/// How a store is made.
#[derive(Clone, Debug)]
pub struct CreateOptions {
    codec: Codec,
    schema: Option<Schema>,
    version: FormatVersion,
}

impl Default for CreateOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl CreateOptions {
    /// A version 3 store of plain bytes, stored raw.
    #[must_use]
    pub fn new() -> Self {
        Self { codec: Codec::Raw, schema: None, version: FormatVersion::V3 }
    }

    /// How appended records are stored.
    #[must_use]
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// What the records mean.
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
    }

    /// The format version and so the limits.
    #[must_use]
    pub fn format(mut self, version: FormatVersion) -> Self {
        self.version = version;
        self
    }

    /// Makes the store in the directory `path`, which may exist if no store is in it.
    ///
    /// # Errors
    ///
    /// When a store is already there or the directory cannot be written.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Store> {
        let path = path.as_ref();
        if path.join(META).exists() {
            return Err(Error::new(ErrorKind::AlreadyExists, "there is a store already").at_path(path));
        }
        let write = |name: &str, bytes: &[u8]| {
            let file = path.join(name);
            fs::write(&file, bytes).map_err(|error| Error::io("create a store's file", &file, error))
        };
        fs::create_dir_all(path).map_err(|error| Error::io("create the store's directory", path, error))?;
        if let Some(schema) = &self.schema {
            write(schema::FILE_NAME, &schema.encode(self.codec.name())?)?;
        }
        write(&chunk_name(0), &[])?;
        let header = Header { version: self.version, tail_chunk: 0, tail_offset: 0, length: 0 };
        write(META, &header.encode())?;
        let mut store = OpenOptions::new().writable(true).open(path)?;
        store.codec = self.codec;
        Ok(store)
    }
}

/// How a store is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    writable: bool,
}

impl OpenOptions {
    /// Opens for reading.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether appends are wanted.
    #[must_use]
    pub fn writable(mut self, writable: bool) -> Self {
        self.writable = writable;
        self
    }

    /// Opens the store in the directory `path`.
    ///
    /// # Errors
    ///
    /// When there is none, it is damaged, or it cannot be written although that is wanted.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Store> {
        let path = path.as_ref();
        let open = |name: &str| {
            let file = path.join(name);
            File::options()
                .read(true)
                .write(self.writable)
                .open(&file)
                .map_err(|error| Error::io("open a store's file", &file, error))
        };
        let mut table = open(META)?;
        let mut bytes = [0; HEADER_BYTES];
        table.read_exact(&mut bytes).map_err(|error| Error::io("read the header", path.join(META), error))?;
        let header = Header::decode(&bytes).map_err(|error| error.at_path(path.join(META)))?;
        let chunks = (0..=header.tail_chunk)
            .map(|chunk| open(&chunk_name(chunk)).map(Arc::new))
            .collect::<Result<_>>()?;
        let (schema, codec) = match fs::read(path.join(schema::FILE_NAME)) {
            Ok(bytes) => {
                let (schema, codec) =
                    Schema::decode(&bytes).map_err(|error| error.at_path(path.join(schema::FILE_NAME)))?;
                (Some(schema), Codec::from_name(&codec)?)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (None, Codec::Raw),
            Err(error) => return Err(Error::io("read the schema", path.join(schema::FILE_NAME), error)),
        };
        Ok(Store {
            path: path.to_path_buf(),
            version: header.version,
            codec,
            schema,
            writable: self.writable,
            table,
            length: AtomicU64::new(u64::from(header.length)),
            writer: Mutex::new(Writer { header, chunks }),
        })
    }
}
