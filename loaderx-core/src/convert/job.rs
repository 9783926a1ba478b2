use std::collections::HashSet;
use std::path::Path;

use super::options::{ImportOptions, Imported, Meter};
use super::sink::Sink;
use super::staging::Staging;
use crate::error::{Error, ErrorKind, Result};
use crate::schema::Schema;

/// One run of an importer: its staging directory, its options and its progress.
pub(super) struct Job<'a> {
    options: &'a ImportOptions,
    staging: Staging,
    names: HashSet<String>,
    pub(super) meter: Meter,
}

impl<'a> Job<'a> {
    pub(super) fn begin(dest: &Path, options: &'a ImportOptions) -> Result<Self> {
        Ok(Self {
            options,
            staging: Staging::begin(dest)?,
            names: HashSet::new(),
            meter: Meter::new(options.progress.clone()),
        })
    }

    /// A file that an importer may use while the job lasts.
    #[cfg(feature = "npy")]
    pub(super) fn scratch_file(&self) -> std::path::PathBuf {
        self.staging.path().with_file_name(super::staging::ASIDE)
    }

    /// Keeps a small file beside the streams, which is no stream itself.
    #[cfg(feature = "image")]
    pub(super) fn write_beside(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.staging.path().join(name);
        let written = std::fs::File::create(&path).and_then(|mut file| {
            std::io::Write::write_all(&mut file, content)?;
            file.sync_all()
        });
        written.map_err(|error| Error::io("write a file of the dataset", &path, error))
    }

    /// The one store of a job whose destination is that store.
    pub(super) fn only_stream(
        &mut self,
        schema: impl Into<Option<Schema>>,
        records: Option<u64>,
    ) -> Result<Sink> {
        Sink::create(self.staging.path(), "", schema.into(), records, self.options)
    }

    /// A stream in a folder of its own.
    pub(super) fn stream(
        &mut self,
        name: &str,
        schema: impl Into<Option<Schema>>,
        records: Option<u64>,
    ) -> Result<Sink> {
        check_stream_name(name)?;
        if !self.names.insert(name.to_owned()) {
            return Err(Error::invalid(format!("two streams would have the name {name:?}")));
        }
        Sink::create(&self.staging.path().join(name), name, schema.into(), records, self.options)
    }

    /// Checks that the streams are equally long, makes them durable and gives them their final name.
    pub(super) fn finish(self, sinks: Vec<Sink>) -> Result<Imported> {
        let Some(first) = sinks.first() else {
            return Err(Error::invalid("the input has no streams"));
        };
        let records = first.records();
        if let Some(other) = sinks.iter().find(|sink| sink.records() != records) {
            return Err(Error::new(
                ErrorKind::SchemaMismatch,
                format!(
                    "stream {:?} has {records} records, stream {:?} has {}; the streams of a dataset are \
                     equally long",
                    first.name(),
                    other.name(),
                    other.records()
                ),
            ));
        }
        let streams = sinks.into_iter().map(Sink::finish).collect::<Result<Vec<_>>>()?;
        let path = self.staging.dest().to_path_buf();
        self.staging.commit()?;
        Ok(Imported { path, records, streams })
    }
}

/// A stream's name is the name of its folder, so it must be one on every platform.
pub(super) fn check_stream_name(name: &str) -> Result<()> {
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.starts_with('.') {
        "it starts with a dot"
    } else if name.len() > 200 {
        "it is longer than 200 bytes"
    } else if name.chars().any(|c| c.is_control() || "/\\:*?\"<>|".contains(c)) {
        "it has a character that not every file system allows in a name"
    } else {
        return Ok(());
    };
    Err(Error::invalid(format!("{name:?} cannot be the name of a stream: {reason}"))
        .with_hint("give the stream another name on import"))
}
