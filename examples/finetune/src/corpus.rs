//! Texts, tokenised once into stores.
//!
//! ```text
//! corpus-<fingerprint>/
//!   corpus.json        labels, padding id
//!   train/tokens       ragged: the ids of each text, 16 bit when the vocabulary allows
//!   train/labels       dense: the index of its label
//!   held_out/tokens  held_out/labels
//! ```
//!
//! The folder's name is a digest of texts, labels and tokenizer, so another tokenizer makes another corpus. It gets
//! its name when it is complete.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use loaderx_core::view::{Pad, Padded};
use loaderx_core::{Codec, DType, Dense, DenseWriter, Element, Ragged, RaggedWriter};
use serde::{Deserialize, Serialize};
use tokenizers::Tokenizer;

use crate::random::digest;
use crate::texts::{Text, Texts};
use crate::tokens;

/// Part of every fingerprint: raised when the folder's content changes its meaning.
const LAYOUT: u32 = 1;

/// Texts that are tokenised and appended at a time.
const AT_A_TIME: usize = 2048;

/// Tokenised texts on disk.
#[derive(Debug)]
pub struct Corpus {
    path: PathBuf,
    fingerprint: String,
    manifest: Manifest,
    train: Part,
    held_out: Part,
}

#[derive(Debug, Deserialize, Serialize)]
struct Manifest {
    labels: Vec<String>,
    pad: u32,
}

/// The stores of the texts to train on, or of those held out.
#[derive(Clone, Debug)]
pub struct Part {
    tokens: Ragged,
    labels: Dense,
    pad: u32,
}

impl Corpus {
    /// Opens the corpus of these texts and this tokenizer below `folder`, or tokenises them now.
    pub fn open_or_build(folder: &Path, texts: &Texts, tokenizer: &Tokenizer) -> Result<Self> {
        let fingerprint = fingerprint(texts, tokenizer)?;
        let path = folder.join(format!("corpus-{fingerprint}"));
        if !path.exists() {
            build(&path, texts, tokenizer)
                .with_context(|| format!("cannot tokenise the texts into {}", path.display()))?;
        }
        Self::open(path, fingerprint)
    }

    fn open(path: PathBuf, fingerprint: String) -> Result<Self> {
        let file = path.join("corpus.json");
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let manifest: Manifest =
            serde_json::from_str(&text).with_context(|| format!("{} is damaged", file.display()))?;
        let part = |name: &str| -> Result<Part> {
            let folder = path.join(name);
            let tokens = Ragged::open(folder.join("tokens"))?;
            let labels = Dense::open(folder.join("labels"))?;
            Ok(Part { tokens, labels, pad: manifest.pad })
        };
        let (train, held_out) = (part("train")?, part("held_out")?);
        Ok(Self { path, fingerprint, manifest, train, held_out })
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A digest of texts, labels and tokenizer.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The labels' names; a label is the index of one.
    pub fn labels(&self) -> &[String] {
        &self.manifest.labels
    }

    /// The texts to train on.
    pub fn train(&self) -> &Part {
        &self.train
    }

    /// The texts held out.
    pub fn held_out(&self) -> &Part {
        &self.held_out
    }
}

impl Part {
    /// The number of texts.
    pub fn texts(&self) -> u64 {
        self.tokens.len()
    }

    /// Tokens of each text: read from the table of the store, not from the records.
    pub fn lengths(&self) -> Result<Vec<u32>> {
        let all: Vec<u64> = (0..self.texts()).collect();
        let lengths = self.tokens.lengths(&all)?;
        lengths.into_iter().map(|length| Ok(u32::try_from(length)?)).collect()
    }

    /// The tokens, widened to `u32` and padded to the longest of a batch in the gather itself.
    pub fn tokens(&self) -> Result<Padded> {
        Ok(self.tokens.convert(DType::U32)?.padded(Pad::to_longest().value(self.pad))?)
    }

    /// The labels.
    pub fn labels(&self) -> Dense {
        self.labels.clone()
    }
}

fn fingerprint(texts: &Texts, tokenizer: &Tokenizer) -> Result<String> {
    let tokenizer = tokenizer.to_string(false).map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut all = Vec::new();
    let mut add = |part: &[u8]| {
        all.extend(part.len().to_le_bytes());
        all.extend(part);
    };
    add(&LAYOUT.to_le_bytes());
    add(tokenizer.as_bytes());
    for label in &texts.labels {
        add(label.as_bytes());
    }
    for text in texts.train.iter().chain(&texts.held_out) {
        add(&text.label.to_le_bytes());
        add(text.text.as_bytes());
    }
    add(&texts.train.len().to_le_bytes());
    Ok(format!("{:016x}", digest(&all)))
}

fn build(path: &Path, texts: &Texts, tokenizer: &Tokenizer) -> Result<()> {
    let partial = path.with_extension("partial");
    if partial.exists() {
        // Left behind by a run that was stopped while it tokenised.
        fs::remove_dir_all(&partial)?;
    }
    fs::create_dir_all(&partial)?;
    write_part(&partial.join("train"), &texts.train, tokenizer)?;
    // In order of length: an exact pass in stored order then pads little.
    let mut held_out = texts.held_out.clone();
    held_out.sort_by_key(|text| text.text.len());
    write_part(&partial.join("held_out"), &held_out, tokenizer)?;
    let manifest = Manifest { labels: texts.labels.clone(), pad: tokens::pad_id(tokenizer) };
    fs::write(partial.join("corpus.json"), serde_json::to_string_pretty(&manifest)?)?;
    fs::rename(&partial, path)?;
    Ok(())
}

fn write_part(folder: &Path, texts: &[Text], tokenizer: &Tokenizer) -> Result<()> {
    fs::create_dir_all(folder)?;
    if tokenizer.get_vocab_size(true) <= usize::from(u16::MAX) + 1 {
        write_tokens(folder, DType::U16, texts, tokenizer, |id| Ok(u16::try_from(id)?))?;
    } else {
        write_tokens(folder, DType::U32, texts, tokenizer, Ok)?;
    }
    let labels = DenseWriter::create(folder.join("labels"), DType::U32, &[], Codec::Raw)?;
    labels.append(texts.iter().map(|text| text.label).collect::<Vec<_>>())?;
    labels.finish()?;
    Ok(())
}

fn write_tokens<T: Element>(
    folder: &Path,
    dtype: DType,
    texts: &[Text],
    tokenizer: &Tokenizer,
    narrow: impl Fn(u32) -> Result<T>,
) -> Result<()> {
    let writer = RaggedWriter::create(folder.join("tokens"), dtype, &[], Codec::Raw)?;
    for texts in texts.chunks(AT_A_TIME) {
        let ids = tokens::encode(tokenizer, texts.iter().map(|text| text.text.as_str()).collect())?;
        let (mut values, mut lengths) = (Vec::new(), Vec::new());
        for (ids, text) in ids.into_iter().zip(texts) {
            ensure!(!ids.is_empty(), "the tokenizer finds no token in {:?}", text.text);
            lengths.push(ids.len());
            for id in ids {
                values.push(narrow(id)?);
            }
        }
        writer.append(values, &lengths)?;
    }
    writer.finish()?;
    Ok(())
}
