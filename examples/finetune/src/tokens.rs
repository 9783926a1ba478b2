//! Tokenizers: a model's own `tokenizer.json`, or a word list made from the training texts.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use tokenizers::models::wordlevel::WordLevel;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::processors::bert::BertProcessing;
use tokenizers::{
    AddedToken, NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString,
    PreTokenizer, Tokenizer, TruncationParams,
};

const PAD: &str = "[PAD]";
const UNKNOWN: &str = "[UNK]";
const START: &str = "[CLS]";
const END: &str = "[SEP]";

/// Reads a `tokenizer.json` and makes it cut texts to `max_len` tokens.
///
/// Such a file often pads every text to a fixed length; that is switched off, because what is stored are the
/// tokens themselves and padding is the batch's business.
pub fn read(path: &Path, max_len: usize) -> Result<Tokenizer> {
    let tokenizer =
        Tokenizer::from_file(path).map_err(|error| anyhow!("cannot read {}: {error}", path.display()))?;
    limited(tokenizer, max_len)
}

/// A tokenizer whose vocabulary is the lower-cased words that occur at least twice in `texts`, the most
/// frequent first, at most `words` of them. The same texts give the same tokenizer.
pub fn from_texts<'a>(
    texts: impl Iterator<Item = &'a str>,
    words: usize,
    max_len: usize,
) -> Result<Tokenizer> {
    let mut counts = BTreeMap::new();
    for text in texts {
        let mut normalized = NormalizedString::from(text);
        BertNormalizer::default().normalize(&mut normalized).map_err(plain)?;
        let mut pieces = PreTokenizedString::from(normalized);
        BertPreTokenizer.pre_tokenize(&mut pieces).map_err(plain)?;
        for (word, ..) in pieces.get_splits(OffsetReferential::Normalized, OffsetType::Byte) {
            *counts.entry(word.to_owned()).or_insert(0_u64) += 1;
        }
    }
    let mut frequent: Vec<(String, u64)> = counts.into_iter().filter(|&(_, count)| count >= 2).collect();
    // Stable: words of equal frequency stay in alphabetical order.
    frequent.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let special = [PAD, UNKNOWN, START, END].map(str::to_owned);
    let all = special.into_iter().chain(frequent.into_iter().map(|(word, _)| word).take(words));
    let model = WordLevel::builder().vocab(all.zip(0..).collect()).unk_token(UNKNOWN.to_owned());

    let mut tokenizer = Tokenizer::new(model.build().map_err(plain)?);
    let id = |token: &str| tokenizer.token_to_id(token).with_context(|| format!("no id for {token}"));
    let frame = BertProcessing::new((END.to_owned(), id(END)?), (START.to_owned(), id(START)?));
    tokenizer.with_normalizer(Some(BertNormalizer::default())).map_err(plain)?;
    tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
    tokenizer.with_post_processor(Some(frame));
    let special = [PAD, UNKNOWN, START, END].map(|token| AddedToken::from(token, true));
    tokenizer.add_special_tokens(special).map_err(plain)?;
    limited(tokenizer, max_len)
}

/// The id that fills a padded batch: the tokenizer's `[PAD]`, or 0. The mask hides it, whatever it is.
pub fn pad_id(tokenizer: &Tokenizer) -> u32 {
    tokenizer.token_to_id(PAD).unwrap_or(0)
}

/// The ids of many texts, encoded in parallel.
pub fn encode(tokenizer: &Tokenizer, texts: Vec<&str>) -> Result<Vec<Vec<u32>>> {
    let encodings = tokenizer.encode_batch_fast(texts, true).map_err(plain)?;
    Ok(encodings.into_iter().map(|encoding| encoding.get_ids().to_vec()).collect())
}

fn limited(mut tokenizer: Tokenizer, max_len: usize) -> Result<Tokenizer> {
    ensure!(max_len >= 3, "a text of {max_len} tokens has no room for a word between its frame");
    tokenizer.with_padding(None);
    let truncation = TruncationParams { max_length: max_len, ..TruncationParams::default() };
    tokenizer.with_truncation(Some(truncation)).map_err(plain)?;
    Ok(tokenizer)
}

fn plain(error: tokenizers::Error) -> anyhow::Error {
    anyhow!("{error}")
}
