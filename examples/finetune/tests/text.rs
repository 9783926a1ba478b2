//! Labelled texts and tokenizers.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;

use finetune::texts::Texts;
use finetune::tokens;

fn file(name: &str, content: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, content).unwrap();
    (directory, path)
}

fn many(line: impl Fn(usize) -> String) -> String {
    (0..200).map(|number| line(number) + "\n").collect()
}

#[test]
fn the_embedded_texts_are_split_without_overlap() {
    let texts = Texts::embedded().unwrap();
    assert_eq!(texts.labels, ["negative", "positive"]);
    assert_eq!((texts.train.len(), texts.held_out.len()), (9068, 1004));
    let held_out: std::collections::HashSet<&str> =
        texts.held_out.iter().map(|text| text.text.as_str()).collect();
    assert!(texts.train.iter().all(|text| !held_out.contains(text.text.as_str())));
    for side in [&texts.train, &texts.held_out] {
        let positive = side.iter().filter(|text| text.label == 1).count() as f64 / side.len() as f64;
        assert!((0.45..0.55).contains(&positive), "{positive}");
        assert!(side.iter().all(|text| !text.text.contains(['\t', '\r', '\n'])));
    }
}

#[test]
fn tsv_and_jsonl_give_the_same_texts() {
    let name = |number| if number % 2 == 0 { "1" } else { "0" };
    let (_kept, tsv) = file("a.tsv", &many(|number| format!("{}\tText \"{number}\"\tend", name(number))));
    let (_kept_too, jsonl) = file(
        "a.jsonl",
        &many(|number| format!(r#"{{"label": {}, "text": "Text \"{number}\"\tend"}}"#, name(number))),
    );
    let texts = Texts::read(&tsv).unwrap();
    assert_eq!(texts, Texts::read(&jsonl).unwrap());
    assert_eq!(texts.labels, ["0", "1"]);
    assert_eq!(texts.train.len() + texts.held_out.len(), 200);
    assert!(!texts.held_out.is_empty());
}

#[test]
fn broken_lines_are_named() {
    for (name, content, expected) in [
        ("a.tsv", "a\tfine\n\nno label here\n", "line 3"),
        ("a.tsv", "a\t   \n", "the text is empty"),
        ("a.tsv", "\tnothing before the tab\n", "the label is empty"),
        ("a.jsonl", "{\"label\": 1}\n", "line 1"),
        ("a.jsonl", "{\"label\": 1.5, \"text\": \"x\"}\n", "line 1"),
        ("a.tsv", "a\tone\na\ttwo\n", "at least 2 different labels, found 1"),
        ("a.tsv", "", "at least 2 different labels, found 0"),
        ("a.tsv", "a\tone\nb\ttwo\n", "too few"),
    ] {
        let (_kept, path) = file(name, content);
        let error = format!("{:#}", Texts::read(&path).unwrap_err());
        assert!(error.contains(expected) && error.contains(name), "{content:?}: {error}");
    }
    let error = format!("{:#}", Texts::read(&PathBuf::from("no/such.tsv")).unwrap_err());
    assert!(error.contains("no/such.tsv"), "{error}");
}

#[test]
fn the_word_list_is_a_function_of_the_texts() {
    let texts = ["A good, good film", "a bad film!", "Rare words here; a Film"];
    let build = || tokens::from_texts(texts.into_iter(), 3, 6).unwrap();
    let tokenizer = build();
    assert_eq!(tokenizer.to_string(true).unwrap(), build().to_string(true).unwrap());
    // `a` and `film` occur three times, `good` twice, everything else once.
    let id = |token: &str| tokenizer.token_to_id(token);
    assert_eq!([id("[PAD]"), id("[UNK]"), id("[CLS]"), id("[SEP]")], [Some(0), Some(1), Some(2), Some(3)]);
    assert_eq!([id("a"), id("film"), id("good"), id("bad")], [Some(4), Some(5), Some(6), None]);
    let ids = tokens::encode(&tokenizer, vec!["A GOOD thing", "film film film film film"]).unwrap();
    assert_eq!(ids, [vec![2, 4, 6, 1, 3], vec![2, 5, 5, 5, 5, 3]], "framed, unknown word, cut to 6");
    assert!(tokens::from_texts(texts.into_iter(), 3, 2).is_err());
}

#[test]
fn padding_of_a_tokenizer_file_is_switched_off() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokenizer.json");
    let mut tokenizer = tokens::from_texts(["one two", "one two"].into_iter(), 10, 8).unwrap();
    tokenizer.with_padding(Some(tokenizers::PaddingParams {
        strategy: tokenizers::PaddingStrategy::Fixed(128),
        ..Default::default()
    }));
    tokenizer.save(&path, false).unwrap();
    let ids = tokens::encode(&tokens::read(&path, 16).unwrap(), vec!["one two"]).unwrap();
    assert_eq!(ids, [[2, 4, 5, 3]]);
}
