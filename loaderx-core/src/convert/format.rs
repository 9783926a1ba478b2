use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::options::{ImportOptions, Imported};
use crate::error::{Error, ErrorKind, Result};

/// A foreign format that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// IDX, plain or gzip: the format of MNIST.
    Idx,
    /// A NumPy array.
    Npy,
    /// An archive of NumPy arrays.
    Npz,
    /// Named tensors.
    Safetensors,
    /// Text with commas, plain or gzip.
    Csv,
    /// Text with tabulators, plain or gzip.
    Tsv,
    /// A JSON object a line, plain or gzip.
    Jsonl,
    /// A directory of class folders with images.
    Images,
    /// A tar archive, or a directory of them, of samples with one file for each stream.
    WebDataset,
    /// An Arrow IPC file or stream, or a directory of them.
    Arrow,
    /// A Parquet file, or a directory of them.
    Parquet,
    /// A directory whose files are the records.
    Files,
}

const PARQUET: &[&str] = &[".parquet", ".pq"];
const ARROW: &[&str] = &[".arrow", ".feather", ".ipc", ".arrows"];
const TAR: &[&str] = &[".tar", ".tar.gz", ".tgz"];
const IMAGE: &[&str] = &[".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif"];

impl Format {
    /// Every format.
    pub const ALL: [Self; 12] = [
        Self::Idx,
        Self::Npy,
        Self::Npz,
        Self::Safetensors,
        Self::Csv,
        Self::Tsv,
        Self::Jsonl,
        Self::Images,
        Self::WebDataset,
        Self::Arrow,
        Self::Parquet,
        Self::Files,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idx => "idx",
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::Safetensors => "safetensors",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Jsonl => "jsonl",
            Self::Images => "images",
            Self::WebDataset => "webdataset",
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
            Self::Files => "files",
        }
    }

    /// The format of this name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] for any other name.
    pub fn from_name(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            Error::new(ErrorKind::Unsupported, format!("there is no format {name:?}; known are {known}"))
        })
    }

    /// The format that the input has, by its first bytes, its name, or what is in the directory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] when none fits; when the input cannot be read.
    pub fn detect(source: impl AsRef<Path>) -> Result<Self> {
        let source = source.as_ref();
        let metadata = std::fs::metadata(source).map_err(|error| {
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let error = Error::io("open the input", source, error);
            if missing {
                error.with_hint("check the path and the folder that it is relative to")
            } else {
                error
            }
        })?;
        if metadata.is_dir() { detect_directory(source) } else { detect_file(source) }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

fn lower_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default()
}

fn ends_in(name: &str, extensions: &[&str]) -> bool {
    extensions.iter().any(|extension| name.ends_with(extension))
}

fn detect_file(path: &Path) -> Result<Format> {
    let mut start = Vec::new();
    File::open(path)
        .and_then(|file| file.take(8).read_to_end(&mut start))
        .map_err(|error| Error::io("read the input", path, error))?;
    let name = lower_name(path);
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    let by_content = [
        (&b"\x93NUMPY"[..], Format::Npy),
        (b"PAR1", Format::Parquet),
        (b"ARROW1", Format::Arrow),
        (b"PK\x03\x04", Format::Npz),
    ];
    let found = by_content.into_iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, format)| format);
    let by_name = || match plain {
        name if name.ends_with(".safetensors") => Some(Format::Safetensors),
        name if name.ends_with(".csv") => Some(Format::Csv),
        name if ends_in(name, &[".tsv", ".tab"]) => Some(Format::Tsv),
        name if ends_in(name, &[".jsonl", ".ndjson"]) => Some(Format::Jsonl),
        name if ends_in(name, TAR) || name.ends_with(".tgz") => Some(Format::WebDataset),
        name if ends_in(name, PARQUET) => Some(Format::Parquet),
        name if name.ends_with(".npy") => Some(Format::Npy),
        name if name.ends_with(".npz") => Some(Format::Npz),
        name if ends_in(name, ARROW) => Some(Format::Arrow),
        name if name.ends_with(".idx") || name.contains("-idx") => Some(Format::Idx),
        _ => None,
    };
    // IDX comes last: its first bytes are short and mostly zeros, and often compressed.
    let found = found.or_else(by_name).or_else(|| super::idx::starts_as_idx(path).then_some(Format::Idx));
    found.ok_or_else(|| {
        let known = Format::ALL.map(Format::name).join(", ");
        Error::new(ErrorKind::Unsupported, "neither its first bytes nor its name tell the input's format")
            .at_path(path)
            .with_hint(format!(
                "name the format (a `Format`, or `--format` of the program); known are {known}"
            ))
    })
}

fn detect_directory(path: &Path) -> Result<Format> {
    let files = super::input::files_below(path)?;
    let names: Vec<String> = files.iter().map(|file| lower_name(file)).collect();
    let any = |extensions| names.iter().any(|name| ends_in(name, extensions));
    let class_folders =
        !files.is_empty() && files.iter().all(|file| file.parent().is_some_and(|parent| parent != path));
    Ok(if any(PARQUET) {
        Format::Parquet
    } else if any(ARROW) {
        Format::Arrow
    } else if any(TAR) {
        Format::WebDataset
    } else if class_folders && names.iter().all(|name| ends_in(name, IMAGE)) {
        Format::Images
    } else {
        Format::Files
    })
}

/// Imports `source` of the given format into a new store or dataset `dest`.
///
/// ```no_run
/// use loaderx_core::convert::{Format, ImportOptions, import};
/// use loaderx_core::{Codec, Dataset};
///
/// let (source, options) = ("snapshot/data", ImportOptions::new().split("train").codec(Codec::zstd()));
/// let done = import(source, Format::detect(source)?, "train", &options)?;
/// println!("{} records, version {}", done.records, done.streams[0].format.number());
/// let train = Dataset::open(done.path)?;
/// # Ok::<(), loaderx_core::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::Unsupported`] when this build leaves the format out; [`ErrorKind::InvalidArgument`] for an option that
/// means nothing for the format; otherwise as the format's own function.
pub fn import(
    source: impl AsRef<Path>,
    format: Format,
    dest: impl AsRef<Path>,
    options: &ImportOptions,
) -> Result<Imported> {
    let (source, dest) = (source.as_ref(), dest.as_ref());
    options.check_meaningful(format)?;
    // The importer's call where this build has the feature, else a refusal that names it.
    macro_rules! with {
        ($feature:literal, $import:expr) => {{
            #[cfg(feature = $feature)]
            let imported = $import;
            #[cfg(not(feature = $feature))]
            let imported =
                Err(Error::new(ErrorKind::Unsupported, format!("this build leaves out the format {format}"))
                    .with_hint(concat!(
                        "enable the feature `",
                        $feature,
                        "` of loaderx-core, or `all-formats`"
                    )));
            imported
        }};
    }
    match format {
        Format::Idx => super::import_idx(source, dest, options),
        Format::Files => super::import_files(source, dest, options),
        Format::Npy => with!("npy", super::import_npy(source, dest, options)),
        Format::Npz => with!("npy", super::import_npz(source, dest, options)),
        Format::Safetensors => with!("safetensors", super::import_safetensors(source, dest, options)),
        Format::Csv => with!("csv", super::import_csv(source, dest, b',', options)),
        Format::Tsv => with!("csv", super::import_csv(source, dest, b'\t', options)),
        Format::Jsonl => with!("json", super::import_jsonl(source, dest, options)),
        Format::Images => with!("image", super::import_images(source, dest, options)),
        Format::WebDataset => with!("tar", super::import_webdataset(source, dest, options)),
        Format::Arrow => with!("arrow", super::import_arrow(source, dest, options)),
        Format::Parquet => with!("parquet", super::import_parquet(source, dest, options)),
    }
}
