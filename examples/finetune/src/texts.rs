//! Labelled texts: the embedded film snippets, or a TSV or JSONL file.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::random::digest;

/// 10,605 sentences of film reviews with the mean of at least 20 people's ratings; `data/README.md` says where from.
const SNIPPETS: &str = include_str!("../data/snippets.tsv");

/// Ratings nearer to zero than this are neither praise nor complaint and are left out.
const CLEAR: f64 = 0.5;

/// One text and the index of its label in [`Texts::labels`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Index of the label.
    pub label: u32,
    /// The text as it was written.
    pub text: String,
}

/// A labelled set, split into what is trained on and what is held out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    /// The labels' names, sorted.
    pub labels: Vec<String>,
    /// Texts to train on.
    pub train: Vec<Text>,
    /// Texts to evaluate on.
    pub held_out: Vec<Text>,
}

impl Texts {
    /// The embedded film snippets: `positive` or `negative`.
    pub fn embedded() -> Result<Self> {
        let mut pairs = Vec::new();
        for (number, line) in (1..).zip(SNIPPETS.lines()) {
            let mut fields = line.splitn(3, '\t').skip(1);
            let (Some(rating), Some(text)) = (fields.next(), fields.next()) else {
                bail!("line {number} of the embedded snippets does not have three fields");
            };
            let rating: f64 =
                rating.parse().with_context(|| format!("rating in line {number} of the snippets"))?;
            if rating.abs() >= CLEAR {
                let label = if rating > 0.0 { "positive" } else { "negative" };
                pairs.push((label.to_owned(), text.to_owned()));
            }
        }
        Self::split(pairs)
    }

    /// Reads a file of labelled texts: `label<TAB>text` lines, or, if its name ends in `.jsonl`, lines of
    /// `{"label": …, "text": …}` whose label is a string or an integer. Empty lines are skipped.
    pub fn read(path: &Path) -> Result<Self> {
        let file =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let jsonl = path.extension().is_some_and(|extension| extension == "jsonl");
        let mut pairs = Vec::new();
        for (number, line) in (1..).zip(file.lines()) {
            if line.trim().is_empty() {
                continue;
            }
            let at = || format!("{}, line {number}", path.display());
            let (label, text) = if jsonl { from_json(line) } else { from_tsv(line) }.with_context(at)?;
            ensure!(!label.is_empty(), "{}: the label is empty", at());
            ensure!(!text.trim().is_empty(), "{}: the text is empty", at());
            pairs.push((label, text));
        }
        Self::split(pairs).with_context(|| format!("{} cannot be trained on", path.display()))
    }

    /// Holds out about a tenth. A text's side is a function of the text alone: it does not depend on the
    /// order or on what else is in the file, and two copies of a text are never on both sides.
    fn split(pairs: Vec<(String, String)>) -> Result<Self> {
        let mut indices = BTreeMap::new();
        for (label, _) in &pairs {
            indices.insert(label.clone(), 0);
        }
        for (index, slot) in (0..).zip(indices.values_mut()) {
            *slot = index;
        }
        ensure!(indices.len() >= 2, "there must be at least 2 different labels, found {}", indices.len());
        let (mut train, mut held_out) = (Vec::new(), Vec::new());
        for (label, text) in pairs {
            let side = if digest(text.as_bytes()).is_multiple_of(10) { &mut held_out } else { &mut train };
            let label = *indices.get(&label).context("a label without an index")?;
            side.push(Text { label, text });
        }
        ensure!(
            !train.is_empty() && !held_out.is_empty(),
            "{} texts to train on and {} to hold out: too few",
            train.len(),
            held_out.len()
        );
        Ok(Self { labels: indices.into_keys().collect(), train, held_out })
    }
}

fn from_tsv(line: &str) -> Result<(String, String)> {
    let (label, text) = line.split_once('\t').context("expected `label<TAB>text`")?;
    Ok((label.trim().to_owned(), text.to_owned()))
}

#[derive(Deserialize)]
struct JsonLine {
    label: JsonLabel,
    text: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum JsonLabel {
    Name(String),
    Number(i64),
}

fn from_json(line: &str) -> Result<(String, String)> {
    let JsonLine { label, text } =
        serde_json::from_str(line).context("expected {\"label\": string or integer, \"text\": string}")?;
    let label = match label {
        JsonLabel::Name(name) => name.trim().to_owned(),
        JsonLabel::Number(number) => number.to_string(),
    };
    Ok((label, text))
}
