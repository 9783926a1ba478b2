//! From the four files of MNIST to stores, once.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use loaderx_core::convert::{IdxHeader, ImportOptions, import_streams};
use loaderx_core::{Codec, DType, Dense};

use crate::Result;
use crate::args::{Args, CodecName};

/// Height and width of an image.
pub const SIDE: usize = 28;

/// Images with their labels, record by record.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// Bytes of shape 28 x 28.
    pub images: Dense,
    /// Bytes, the digits.
    pub labels: Dense,
}

/// The two parts of MNIST.
#[derive(Clone, Debug)]
pub struct Mnist {
    /// What is trained on.
    pub train: Labelled,
    /// What is only evaluated.
    pub test: Labelled,
}

impl Mnist {
    /// Opens the stores, after making those that are not there yet. `stop` ends the making.
    pub fn prepare(args: &Args, stop: &Arc<AtomicBool>) -> Result<Self> {
        let (name, codec) = match args.codec {
            CodecName::Raw => ("raw", Codec::Raw),
            CodecName::Zstd => ("zstd", Codec::zstd()),
        };
        let stores = args.data_dir()?.join(name);
        println!("stores: {}", stores.display());
        let options = || {
            let stop = Arc::clone(stop);
            ImportOptions::new().codec(codec).progress(move |_: &_| {
                if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        };
        let files = args.mnist_dir();
        Ok(Self {
            train: part(&stores.join("train"), Files::find(&files, "train"), options())?,
            test: part(&stores.join("test"), Files::find(&files, "t10k"), options())?,
        })
    }
}

/// The two files that a part of MNIST comes in.
struct Files {
    images: PathBuf,
    labels: PathBuf,
}

impl Files {
    fn find(dir: &Path, prefix: &str) -> Self {
        let file = |name: &str| {
            let packed = dir.join(format!("{prefix}-{name}.gz"));
            let plain = dir.join(format!("{prefix}-{name}"));
            if !packed.exists() && plain.exists() { plain } else { packed }
        };
        Self { images: file("images-idx3-ubyte"), labels: file("labels-idx1-ubyte") }
    }
}

fn part(dir: &Path, files: Files, options: ImportOptions) -> Result<Labelled> {
    if !dir.exists() {
        let header = IdxHeader::read(&files.images)?;
        if header.dtype != DType::U8 || header.item_shape != [SIDE, SIDE] {
            return Err(format!(
                "{} holds {} of shape {:?}, images of MNIST are u8 of shape [{SIDE}, {SIDE}]",
                files.images.display(),
                header.dtype,
                header.item_shape
            )
            .into());
        }
        let began = Instant::now();
        let streams = [("image", &files.images), ("label", &files.labels)];
        let made = import_streams(&streams, dir, &options)?;
        println!("made {} from {} records in {:.1?}", dir.display(), made.records, began.elapsed());
    }
    let images = open(&dir.join("image"), &[SIDE, SIDE])?;
    let labels = open(&dir.join("label"), &[])?;
    if images.len() != labels.len() {
        return Err(unusable(dir, &format!("{} images but {} labels", images.len(), labels.len())));
    }
    // The files may be gone by now; where they are there, the stores have to be theirs.
    if let Ok(header) = IdxHeader::read(&files.images)
        && header.records != images.len()
    {
        let here = images.len();
        return Err(unusable(
            dir,
            &format!("{here} records, {} has {}", files.images.display(), header.records),
        ));
    }
    Ok(Labelled { images, labels })
}

fn open(path: &Path, item_shape: &[usize]) -> Result<Dense> {
    let store = Dense::open(path)?;
    if store.dtype() != DType::U8 || store.item_shape() != item_shape {
        let found = format!("{}, not u8 of shape {item_shape:?}", store.schema());
        return Err(unusable(path, &found));
    }
    Ok(store)
}

fn unusable(path: &Path, found: &str) -> Box<dyn std::error::Error + Send + Sync> {
    format!(
        "{} holds {found}; remove that folder to have it made anew, or choose another with --data-dir",
        path.display()
    )
    .into()
}
