//! The data sets, as stores and as files that the peers read.

use std::fs;
use std::path::{Path, PathBuf};

use loaderx_core::convert::{ImportOptions, Part, import_idx, rewrite};
use loaderx_core::{Codec, DType, DenseWriter, RaggedWriter, Store};

use crate::harness::Outcome;

/// A data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// The real MNIST training images, 784 B each.
    Mnist,
    /// Synthetic blocks of 512 int32 token ids, 2 KiB each.
    Tokens,
    /// Synthetic images u8[3, 64, 64], 12 KiB each.
    Images,
    /// Synthetic ragged sequences of 16 to 512 int32 token ids.
    Ragged,
    /// The real film snippets, ragged bytes.
    Snippets,
}

impl Set {
    /// Its name in tables and paths.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mnist => "mnist",
            Self::Tokens => "tokens-synthetic",
            Self::Images => "images-synthetic",
            Self::Ragged => "ragged-synthetic",
            Self::Snippets => "snippets",
        }
    }

    /// Whether records have lengths of their own.
    pub(crate) const fn is_ragged(self) -> bool {
        matches!(self, Self::Ragged | Self::Snippets)
    }
}

/// Where everything lies.
#[derive(Debug)]
pub(crate) struct Data {
    dir: PathBuf,
}

const CODECS: [Codec; 3] = [Codec::Raw, Codec::zstd(), Codec::zstd_dict().with_level(3)];

impl Data {
    /// Makes what is not there yet.
    pub(crate) fn prepare(dir: &Path, quick: bool) -> Outcome<Self> {
        fs::create_dir_all(dir)?;
        let data = Self { dir: dir.to_path_buf() };
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mnist = repository.join("examples/mnist/data");
        if !data.labels().exists() {
            import_idx(mnist.join("train-labels-idx1-ubyte.gz"), data.labels(), &ImportOptions::new())?;
        }
        let raw = data.store(Set::Mnist, "raw");
        if !raw.exists() {
            import_idx(
                mnist.join("train-images-idx3-ubyte.gz"),
                &raw,
                &ImportOptions::new().codec(Codec::Raw),
            )?;
        }
        let share = if quick { 16 } else { 1 };
        let tokens =
            |random: &mut Random, count: usize| -> Vec<i32> { (0..count).map(|_| random.token()).collect() };
        data.dense(Set::Tokens, DType::I32, &[512], 100_000 / share, |random, records| {
            tokens(random, records * 512).iter().flat_map(|id| id.to_le_bytes()).collect()
        })?;
        data.dense(Set::Images, DType::U8, &[3, 64, 64], 20_000 / share, Random::images)?;
        data.ragged(Set::Ragged, DType::I32, |random| {
            let lengths: Vec<usize> = (0..100_000 / share).map(|_| 16 + random.below(497)).collect();
            let ids = tokens(random, lengths.iter().sum());
            (ids.iter().flat_map(|id| id.to_le_bytes()).collect(), lengths)
        })?;
        let snippets = fs::read_to_string(repository.join("examples/finetune/data/snippets.tsv"))?;
        data.ragged(Set::Snippets, DType::U8, |_| {
            let texts: Vec<&str> = snippets
                .lines()
                .filter_map(|line| line.split('\t').nth(2))
                .filter(|text| !text.is_empty())
                .collect();
            (texts.concat().into_bytes(), texts.iter().map(|text| text.len()).collect())
        })?;
        data.recode_all()?;
        Ok(data)
    }

    /// The store of `set` in `codec`.
    pub(crate) fn store(&self, set: Set, codec: &str) -> PathBuf {
        self.dir.join(format!("{}-{codec}", set.name()))
    }

    /// Records of `set`.
    pub(crate) fn records(&self, set: Set) -> Outcome<u64> {
        Ok(Store::open(self.store(set, "raw"))?.len())
    }

    /// Calls `f` with each record of `set`.
    #[cfg(any(feature = "burn-sqlite", feature = "parquet", feature = "redb", feature = "sqlite"))]
    pub(crate) fn each_record(&self, set: Set, mut f: impl FnMut(u64, &[u8]) -> Outcome<()>) -> Outcome<()> {
        let store = Store::open(self.store(set, "raw"))?;
        for index in 0..store.len() {
            f(index, &store.get(index)?)?;
        }
        Ok(())
    }

    /// The file of a peer with the records of `set`, made if it is not there yet.
    #[cfg(any(feature = "parquet", feature = "redb", feature = "sqlite"))]
    pub(crate) fn peer_file(
        &self,
        set: Set,
        extension: &str,
        make: impl FnOnce(&Path) -> Outcome<()>,
    ) -> Outcome<PathBuf> {
        let path = self.dir.join(format!("{}.{extension}", set.name()));
        if !path.exists() {
            let unfinished = self.dir.join("unfinished");
            let _ = fs::remove_file(&unfinished);
            make(&unfinished)?;
            fs::rename(unfinished, &path)?;
        }
        Ok(path)
    }

    /// The store of MNIST's labels.
    pub(crate) fn labels(&self) -> PathBuf {
        self.dir.join("mnist-labels")
    }

    /// Mean decoded bytes of a record.
    pub(crate) fn mean_record_bytes(&self, set: Set) -> f64 {
        let Ok(store) = Store::open(self.store(set, "raw")) else { return 0.0 };
        let indices: Vec<u64> = (0..store.len()).collect();
        let mut lengths = Vec::new();
        if store.lengths(&indices, &mut lengths).is_err() {
            return 0.0;
        }
        lengths.iter().sum::<u64>() as f64 / lengths.len() as f64
    }

    fn dense(
        &self,
        set: Set,
        dtype: DType,
        shape: &[usize],
        count: usize,
        make: impl Fn(&mut Random, usize) -> Vec<u8>,
    ) -> Outcome<()> {
        let path = self.store(set, "raw");
        if path.exists() {
            return Ok(());
        }
        let writer = DenseWriter::create(&path, dtype, shape, Codec::Raw)?;
        let mut random = Random(count as u64);
        for first in (0..count).step_by(1000) {
            writer.append_bytes(&make(&mut random, 1000.min(count - first)))?;
        }
        writer.finish()?;
        Ok(())
    }

    fn ragged(
        &self,
        set: Set,
        dtype: DType,
        make: impl Fn(&mut Random) -> (Vec<u8>, Vec<usize>),
    ) -> Outcome<()> {
        let path = self.store(set, "raw");
        if path.exists() {
            return Ok(());
        }
        let (bytes, lengths) = make(&mut Random(17));
        let writer = RaggedWriter::create(&path, dtype, &[], Codec::Raw)?;
        writer.append_bytes(&bytes, &lengths)?;
        writer.finish()?;
        Ok(())
    }

    /// Each raw store in the other codecs.
    fn recode_all(&self) -> Outcome<()> {
        for set in [Set::Mnist, Set::Tokens, Set::Images, Set::Ragged, Set::Snippets] {
            for codec in &CODECS[1..] {
                let path = self.store(set, codec.name());
                if !path.exists() {
                    self.recode(set, *codec, &path)?;
                }
            }
        }
        Ok(())
    }

    fn recode(&self, set: Set, codec: Codec, path: &Path) -> Outcome<()> {
        let raw = Store::open(self.store(set, "raw"))?;
        rewrite(vec![Part::all(&raw)], path, &ImportOptions::new().codec(codec))?;
        Ok(())
    }
}

/// A small generator; the data need to be irregular, not random.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The next 32 bits.
    pub(crate) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }

    /// A token id below 32,000, small ones far more often.
    fn token(&mut self) -> i32 {
        let unit = f64::from(self.next()) / f64::from(u32::MAX);
        (32_000_f64.powf(unit) - 1.0) as i32
    }

    /// Images of smooth waves with noise, u8[3, 64, 64].
    fn images(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count * 3 * 64 * 64);
        for _ in 0..count {
            let (fx, fy) = (self.below(9) as f32 + 1.0, self.below(9) as f32 + 1.0);
            for channel in 0..3_u8 {
                for y in 0..64_u8 {
                    for x in 0..64_u8 {
                        let wave = (f32::from(x) * fx / 20.0 + f32::from(channel)).sin()
                            + (f32::from(y) * fy / 20.0).cos();
                        bytes.push((wave * 50.0 + 128.0) as u8 ^ (self.next() >> 29) as u8);
                    }
                }
            }
        }
        bytes
    }
}
