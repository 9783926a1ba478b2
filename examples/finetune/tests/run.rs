//! The whole way: tokenise, train, evaluate, stop, resume.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use candle_core::Device;
use clap::Parser;
use finetune::args::Args;
use finetune::config::Config;
use finetune::parameters::{Parameters, Train};
use finetune::texts::Texts;
use finetune::trainer::Trainer;
use finetune::{Setup, tokens};

/// 240 texts of 2 to 40 words whose label is whether the first is `good` or `bad`.
fn texts(folder: &Path) -> PathBuf {
    let mut lines = String::new();
    for number in 0..240_usize {
        let word = if number % 2 == 0 { "good" } else { "bad" };
        let label = if number % 2 == 0 { "yes" } else { "no" };
        write!(lines, "{label}\t{word} w{}", number % 7).unwrap();
        // As many texts of each length in both classes: batches hold texts of one length.
        for filler in 0..number / 2 % 20 {
            write!(lines, " and f{}", (number + filler) % 11).unwrap();
        }
        lines.push('\n');
    }
    let path = folder.join("texts.tsv");
    std::fs::write(&path, lines).unwrap();
    path
}

/// A pre-trained model as small as one can be, so that these tests are quick without optimisation.
fn model(folder: &Path, data: &Path) -> PathBuf {
    let path = folder.join("model");
    if !path.exists() {
        std::fs::create_dir(&path).unwrap();
        let texts = Texts::read(data).unwrap();
        let words = texts.train.iter().map(|text| text.text.as_str());
        let tokenizer = tokens::from_texts(words, 100, 24).unwrap();
        tokenizer.save(path.join("tokenizer.json"), false).unwrap();
        let config = Config {
            hidden_size: 8,
            intermediate_size: 8,
            num_attention_heads: 2,
            num_hidden_layers: 1,
            ..Config::small(tokenizer.get_vocab_size(true), 24)
        };
        std::fs::write(path.join("config.json"), serde_json::to_string(&config).unwrap()).unwrap();
        let parameters = Parameters::new(&config, 2, Train::All, 1, &Device::Cpu).unwrap();
        parameters.save(&path.join("model.safetensors")).unwrap();
    }
    path
}

fn args(folder: &Path, more: &str) -> Args {
    let data = texts(folder);
    let model = model(folder, &data);
    let [data, model, folder] = [&data, &model, folder].map(|path| path.to_str().unwrap());
    let fixed = ["finetune", "--data", data, "--model", model, "--data-dir", folder];
    let small = "--max-len 24 --max-tokens 96 --batch-size 6 --steps 12 --workers 1";
    Args::try_parse_from(fixed.into_iter().chain(small.split(' ')).chain(more.split_whitespace())).unwrap()
}

fn setup(folder: &Path, more: &str) -> Setup {
    Setup::new(args(folder, more)).unwrap()
}

fn losses(trainer: &mut Trainer, steps: usize) -> Vec<u32> {
    // As bits: equal means equal.
    (0..steps).map(|_| trainer.step().unwrap().loss.to_bits()).collect()
}

#[test]
fn losses_after_a_resume_are_those_of_an_unbroken_run() {
    for batches in ["padded", "bucketed", "budget"] {
        let directory = tempfile::tempdir().unwrap();
        let setup = setup(directory.path(), &format!("--batches {batches}"));
        let mut unbroken = setup.trainer().unwrap();
        let whole = losses(&mut unbroken, 12);
        let score = unbroken.evaluate().unwrap();

        let checkpoints = directory.path().join("checkpoints");
        let mut first = setup.trainer().unwrap();
        let mut broken = losses(&mut first, 5);
        first.evaluate().unwrap();
        let saved = first.save(&checkpoints).unwrap();
        // Steps after the checkpoint are lost with the process and made again.
        losses(&mut first, 2);
        drop(first);

        let mut second = setup.trainer().unwrap();
        second.resume(&saved).unwrap();
        assert_eq!(second.next_step(), 5);
        broken.extend(losses(&mut second, 7));
        assert_eq!(broken, whole, "{batches}");
        assert_eq!(second.evaluate().unwrap(), score);
    }
}

#[test]
fn an_evaluation_counts_every_held_out_text_once() {
    let directory = tempfile::tempdir().unwrap();
    let setup = setup(directory.path(), "");
    let held_out = Texts::read(&directory.path().join("texts.tsv")).unwrap().held_out.len() as u64;
    let mut trainer = setup.trainer().unwrap();
    let before = trainer.evaluate().unwrap();
    assert_eq!(before.texts, held_out);
    assert!(before.correct <= before.texts && before.loss.is_finite());
    assert_eq!(trainer.evaluate().unwrap(), before, "an evaluation changes nothing");
    assert_eq!(trainer.next_step(), 0);
}

#[test]
fn batches_stay_within_the_budget_and_pad_less_than_mixed_ones() {
    let directory = tempfile::tempdir().unwrap();
    let padding = |batches: &str| {
        let setup = setup(directory.path(), &format!("--batches {batches}"));
        let mut trainer = setup.trainer().unwrap();
        let (mut tokens, mut cells) = (0, 0);
        for _ in 0..8 {
            let report = trainer.step().unwrap();
            assert!(report.tokens <= report.cells);
            match batches {
                "budget" => assert!(report.cells <= 96, "{report:?}"),
                _ => assert_eq!(report.texts, 6),
            }
            tokens += report.tokens;
            cells += report.cells;
        }
        1.0 - tokens as f64 / cells as f64
    };
    let (padded, bucketed, budget) = (padding("padded"), padding("bucketed"), padding("budget"));
    assert!(bucketed < padded && budget < padded, "padded {padded}, bucketed {bucketed}, budget {budget}");
}

#[test]
fn texts_are_tokenised_once() {
    let directory = tempfile::tempdir().unwrap();
    let first = setup(directory.path(), "");
    let manifest = first.corpus().path().join("corpus.json");
    let made = std::fs::metadata(&manifest).unwrap().modified().unwrap();
    let second = setup(directory.path(), "");
    assert_eq!(second.corpus().fingerprint(), first.corpus().fingerprint());
    assert_eq!(std::fs::metadata(&manifest).unwrap().modified().unwrap(), made);
    let other = setup(directory.path(), "--max-len 12");
    assert_ne!(other.corpus().fingerprint(), first.corpus().fingerprint());
    let lengths = other.corpus().train().lengths().unwrap();
    assert_eq!(lengths.iter().max(), Some(&12));
    assert_eq!(lengths.len() as u64, other.corpus().train().texts());
}

#[test]
fn a_corpus_left_unfinished_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = setup(directory.path(), "").corpus().path().to_owned();
    let partial = path.with_extension("partial");
    std::fs::rename(&path, &partial).unwrap();
    std::fs::remove_file(partial.join("corpus.json")).unwrap();
    let again = setup(directory.path(), "");
    assert_eq!(again.corpus().path(), path);
    assert!(!partial.exists());
}

#[test]
fn other_settings_are_refused_by_name_on_resume() {
    let directory = tempfile::tempdir().unwrap();
    let trainer = setup(directory.path(), "").trainer().unwrap();
    let saved = trainer.save(&directory.path().join("checkpoints")).unwrap();
    for (more, expected) in [
        ("--seed 2", "seed = 1, now it is 2"),
        ("--learning-rate 0.5", "learning_rate = 0.0002, now it is 0.5"),
        ("--batches padded", r#"batches = "budget", now it is "padded""#),
        ("--train-layers 1", "train_layers = null, now it is 1"),
    ] {
        let mut other = setup(directory.path(), more).trainer().unwrap();
        let error = format!("{:#}", other.resume(&saved).unwrap_err());
        assert!(error.contains(expected), "{error}");
    }
    // The number of workers changes nothing.
    setup(directory.path(), "--workers 0").trainer().unwrap().resume(&saved).unwrap();
}

#[test]
fn checkpoints_are_whole_or_not_there_and_old_ones_go() {
    let directory = tempfile::tempdir().unwrap();
    let checkpoints = directory.path().join("checkpoints");
    let setup = setup(directory.path(), "");
    let mut trainer = setup.trainer().unwrap();
    for _ in 0..3 {
        trainer.step().unwrap();
        trainer.save(&checkpoints).unwrap();
    }
    std::fs::create_dir(checkpoints.join("step-00000009.partial")).unwrap();
    let mut names: Vec<_> =
        std::fs::read_dir(&checkpoints).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["step-00000002", "step-00000003", "step-00000009.partial"]);
    let newest = finetune::checkpoint::newest(&checkpoints).unwrap();
    assert_eq!(newest.file_name().unwrap(), "step-00000003");

    let error = finetune::checkpoint::newest(&directory.path().join("none")).unwrap_err().to_string();
    assert!(error.contains("no checkpoint"), "{error}");
    std::fs::write(newest.join("state.json"), "{").unwrap();
    let error = format!("{:#}", trainer.resume(&newest).unwrap_err());
    assert!(error.contains("state.json"), "{error}");
}

#[test]
fn a_checkpoint_is_a_model_to_start_from() {
    let directory = tempfile::tempdir().unwrap();
    let mut trainer = setup(directory.path(), "").trainer().unwrap();
    losses(&mut trainer, 4);
    let score = trainer.evaluate().unwrap();
    let saved = trainer.save(&directory.path().join("checkpoints")).unwrap();
    let again = setup(directory.path(), &format!("--model {}", saved.display()));
    let mut again = again.trainer().unwrap();
    assert_eq!(again.evaluate().unwrap(), score);
    again.step().unwrap();
}

#[test]
fn the_program_trains_resumes_and_compares() {
    let directory = tempfile::tempdir().unwrap();
    let run = |more: &str| finetune::run(args(directory.path(), more));
    run("--steps 4 --every 2").unwrap();
    run("--steps 4 --every 2 --resume").unwrap();
    run("--steps 4 --compare").unwrap();
    let error = format!("{:#}", run("--steps 5 --resume").unwrap_err());
    assert!(error.contains("steps = 4, now it is 5"), "{error}");
    for (wrong, expected) in [
        ("--steps 0", "--steps is 0"),
        ("--max-tokens 8", "--max-tokens 8"),
        ("--learning-rate 0", "above 0"),
        ("--every 0", "--every is 0"),
        ("--batch-size 0", "--batch-size is 0"),
        ("--compare --resume", "--compare"),
        ("--model no-such-folder", "no-such-folder"),
        ("--train-layers 9", "9 layers"),
    ] {
        let error = format!("{:#}", run(wrong).unwrap_err());
        assert!(error.contains(expected), "{wrong}: {error}");
    }
}

#[test]
fn a_model_learns() {
    let directory = tempfile::tempdir().unwrap();
    let setup = setup(directory.path(), "--steps 60 --learning-rate 0.02");
    let mut trainer = setup.trainer().unwrap();
    let before = trainer.evaluate().unwrap();
    for _ in 0..60 {
        trainer.step().unwrap();
    }
    let after = trainer.evaluate().unwrap();
    assert!(after.loss < 0.7 * before.loss && after.accuracy() > 0.9, "{before:?} {after:?}");
}

#[test]
fn a_model_from_scratch_needs_no_folder() {
    let directory = tempfile::tempdir().unwrap();
    let data = texts(directory.path());
    let [data, folder] = [&data, directory.path()].map(|path| path.to_str().unwrap());
    let short = ["--max-len", "8", "--max-tokens", "32"];
    let arguments = ["finetune", "--data", data, "--data-dir", folder].into_iter().chain(short);
    let mut trainer = Setup::new(Args::try_parse_from(arguments).unwrap()).unwrap().trainer().unwrap();
    let (trained, all) = trainer.parameters().counts();
    assert!(trained == all && trained > 50_000, "{trained} of {all}");
    let report = trainer.step().unwrap();
    assert!(report.step == 0 && report.loss.is_finite() && report.cells <= 32, "{report:?}");
}
