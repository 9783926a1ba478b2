//! The encoder: every trained parameter gets a gradient, padding changes nothing, the optimizer is AdamW.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use candle_core::backprop::GradStore;
use candle_core::{Device, Tensor, Var};
use candle_nn::Optimizer;
use candle_nn::loss::cross_entropy;
use finetune::adamw::AdamW;
use finetune::bert::{Bert, Dropout};
use finetune::config::Config;
use finetune::parameters::{Parameters, Train};

const DEVICE: &Device = &Device::Cpu;

fn tiny() -> Config {
    Config { hidden_size: 8, intermediate_size: 12, num_attention_heads: 2, ..Config::small(20, 10) }
}

/// Ids, mask and additive mask of texts padded to `len` with `filler`.
fn padded(texts: &[&[u32]], len: usize, filler: u32) -> (Tensor, Tensor, Tensor) {
    let (mut ids, mut mask, mut additive) = (Vec::new(), Vec::new(), Vec::new());
    for text in texts {
        for place in 0..len {
            ids.push(text.get(place).copied().unwrap_or(filler));
            mask.push(u8::from(place < text.len()));
            additive.push(if place < text.len() { 0.0 } else { -f32::MAX });
        }
    }
    let shape = (texts.len(), len);
    (
        Tensor::from_vec(ids, shape, DEVICE).unwrap(),
        Tensor::from_vec(mask, shape, DEVICE).unwrap(),
        Tensor::from_vec(additive, shape, DEVICE).unwrap(),
    )
}

fn gradients(config: &Config, parameters: &Parameters) -> GradStore {
    let (ids, mask, additive) = padded(&[&[1, 5, 7, 2], &[1, 9, 2]], 4, 0);
    let model = Bert::training(config, parameters).unwrap();
    let logits = model.forward(&ids, &mask, &additive, Some(&mut Dropout::new(3, 0))).unwrap();
    let labels = Tensor::new(&[1_u32, 0], DEVICE).unwrap();
    cross_entropy(&logits, &labels).unwrap().backward().unwrap()
}

fn is_moved(gradients: &GradStore, var: &Var) -> bool {
    let gradient = gradients.get(var).unwrap();
    gradient.abs().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap() > 0.0
}

#[test]
fn gradients_reach_every_parameter() {
    let config = tiny();
    let parameters = Parameters::new(&config, 2, Train::All, 1, DEVICE).unwrap();
    let gradients = gradients(&config, &parameters);
    let mut seen = 0;
    for (name, var) in parameters.trained() {
        // A bias of the keys shifts all scores of a row alike, which the softmax takes out again.
        if !name.ends_with("key.bias") {
            assert!(is_moved(&gradients, var), "no gradient reaches {name}");
        }
        seen += 1;
    }
    assert_eq!(seen, 3 + 2 + 2 * 16 + 2);
}

#[test]
fn only_the_last_layers_are_trained_when_asked() {
    let config = tiny();
    let parameters = Parameters::new(&config, 2, Train::LastLayers(1), 1, DEVICE).unwrap();
    let gradients = gradients(&config, &parameters);
    let names: Vec<&str> = parameters.trained().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 16 + 2);
    for (name, var) in parameters.trained() {
        assert!(name.starts_with("encoder.layer.1.") || name.starts_with("classifier."), "{name}");
        assert!(name.ends_with("key.bias") || is_moved(&gradients, var), "no gradient reaches {name}");
    }
    assert!(Parameters::new(&config, 2, Train::LastLayers(3), 1, DEVICE).is_err());
}

#[test]
fn what_stands_in_the_padding_does_not_matter() {
    let config = tiny();
    let parameters = Parameters::new(&config, 3, Train::All, 1, DEVICE).unwrap();
    let model = Bert::inference(&config, &parameters).unwrap();
    let run = |texts: &[&[u32]], len, filler| -> Vec<Vec<f32>> {
        let (ids, mask, additive) = padded(texts, len, filler);
        model.forward(&ids, &mask, &additive, None).unwrap().to_vec2().unwrap()
    };
    let alone = run(&[&[1, 5, 2]], 3, 0);
    let together = run(&[&[1, 5, 2], &[1, 7, 8, 9, 3, 2]], 9, 17);
    for (a, b) in alone[0].iter().zip(&together[0]) {
        assert!((a - b).abs() < 1e-5, "{alone:?} {together:?}");
    }
    assert_eq!(together, run(&[&[1, 5, 2], &[1, 7, 8, 9, 3, 2]], 9, 4));
}

#[test]
fn training_and_inference_forms_agree_and_share_memory() {
    let config = tiny();
    let parameters = Parameters::new(&config, 2, Train::All, 1, DEVICE).unwrap();
    let (training, inference) =
        (Bert::training(&config, &parameters).unwrap(), Bert::inference(&config, &parameters).unwrap());
    let (ids, mask, additive) = padded(&[&[1, 5, 7, 2]], 4, 0);
    let difference = |scale: f32| {
        let a = training.forward(&ids, &mask, &additive, None).unwrap();
        let b = inference.forward(&ids, &mask, &additive, None).unwrap();
        assert!(a.track_op() && !b.track_op());
        let difference = (a - &b).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(difference < 1e-5 * scale, "{difference}");
        b.to_vec2::<f32>().unwrap()
    };
    let before = difference(1.0);
    for (_, var) in parameters.trained() {
        var.set(&(var.as_tensor() * 3.0).unwrap()).unwrap();
    }
    assert_ne!(before, difference(10.0));
}

#[test]
fn a_text_longer_than_the_model_takes_is_refused() {
    let config = tiny();
    let parameters = Parameters::new(&config, 2, Train::All, 1, DEVICE).unwrap();
    let model = Bert::inference(&config, &parameters).unwrap();
    let (ids, mask, additive) = padded(&[&[1; 11]], 11, 0);
    let error = model.forward(&ids, &mask, &additive, None).unwrap_err().to_string();
    assert!(error.contains("11 tokens") && error.contains("at most 10"), "{error}");
}

#[test]
fn updates_are_those_of_candles_adamw() {
    let config = tiny();
    let ours = Parameters::new(&config, 2, Train::All, 1, DEVICE).unwrap();
    let theirs = Parameters::new(&config, 2, Train::All, 1, DEVICE).unwrap();
    // candle decays every parameter, ours only matrices: without decay both do the same.
    let mut optimizer = AdamW::new(&ours, 0.0).unwrap();
    let vars = theirs.trained().map(|(_, var)| var.clone()).collect();
    let params = candle_nn::ParamsAdamW { lr: 0.01, weight_decay: 0.0, ..Default::default() };
    let mut oracle = candle_nn::AdamW::new(vars, params).unwrap();
    for _ in 0..3 {
        optimizer.update(&gradients(&config, &ours), 0.01, f64::INFINITY).unwrap();
        oracle.step(&gradients(&config, &theirs)).unwrap();
    }
    for ((name, a), (_, b)) in ours.trained().zip(theirs.trained()) {
        let difference = (a.as_tensor() - b.as_tensor()).unwrap().abs().unwrap().flatten_all().unwrap();
        let difference = difference.max(0).unwrap().to_scalar::<f32>().unwrap();
        assert!(difference < 1e-5, "{name}: {difference}");
    }
}

#[test]
fn gradients_are_clipped_and_a_missing_one_is_an_error() {
    let config = tiny();
    let parameters = Parameters::new(&config, 2, Train::All, 1, DEVICE).unwrap();
    let mut optimizer = AdamW::new(&parameters, 0.0).unwrap();
    let norm = optimizer.update(&gradients(&config, &parameters), 0.0, 1e-3).unwrap();
    assert!(norm > 1e-3, "{norm}");

    let unrelated = Var::zeros(2, candle_core::DType::F32, DEVICE).unwrap();
    let empty = unrelated.sum_all().unwrap().backward().unwrap();
    let error = optimizer.update(&empty, 0.1, 1.0).unwrap_err().to_string();
    assert!(error.contains("no gradient reaches `classifier.bias`"), "{error}");
}

#[test]
fn weights_survive_a_file_and_strange_files_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.safetensors");
    let config = tiny();
    let saved = Parameters::new(&config, 2, Train::All, 1, DEVICE).unwrap();
    saved.save(&path).unwrap();
    let mut loaded = Parameters::new(&config, 2, Train::LastLayers(1), 2, DEVICE).unwrap();
    loaded.load_pretrained(&path, DEVICE).unwrap();
    let logits = |parameters: &Parameters| -> Vec<Vec<f32>> {
        let (ids, mask, additive) = padded(&[&[1, 5, 7, 2]], 4, 0);
        let model = Bert::inference(&config, parameters).unwrap();
        model.forward(&ids, &mask, &additive, None).unwrap().to_vec2().unwrap()
    };
    assert_eq!(logits(&saved), logits(&loaded));

    // An encoder alone, named with a prefix, as fine-tuning starts from.
    let encoder = candle_core::safetensors::load(&path, DEVICE).unwrap().into_iter();
    let encoder = encoder.filter(|(name, _)| !name.starts_with("classifier."));
    let encoder = encoder.map(|(name, value)| (format!("bert.{name}"), value)).collect();
    candle_core::safetensors::save(&encoder, &path).unwrap();
    Parameters::new(&config, 5, Train::All, 1, DEVICE).unwrap().load_pretrained(&path, DEVICE).unwrap();

    let mut wider = Parameters::new(&Config { vocab_size: 21, ..tiny() }, 2, Train::All, 1, DEVICE).unwrap();
    let error = format!("{:#}", wider.load_pretrained(&path, DEVICE).unwrap_err());
    assert!(error.contains("[20, 8]") && error.contains("[21, 8]"), "{error}");

    let mut deeper =
        Parameters::new(&Config { num_hidden_layers: 3, ..tiny() }, 2, Train::All, 1, DEVICE).unwrap();
    let error = format!("{:#}", deeper.load_pretrained(&path, DEVICE).unwrap_err());
    assert!(error.contains("encoder.layer.2."), "{error}");
}

#[test]
fn a_seed_decides_weights_and_dropout() {
    let config = tiny();
    let logits = |seed, step| -> Vec<Vec<f32>> {
        let parameters = Parameters::new(&config, 2, Train::All, seed, DEVICE).unwrap();
        let (ids, mask, additive) = padded(&[&[1, 5, 7, 2]], 4, 0);
        let model = Bert::training(&config, &parameters).unwrap();
        let dropout = &mut Dropout::new(seed, step);
        model.forward(&ids, &mask, &additive, Some(dropout)).unwrap().to_vec2().unwrap()
    };
    assert_eq!(logits(1, 5), logits(1, 5));
    assert_ne!(logits(1, 5), logits(1, 6));
    assert_ne!(logits(1, 5), logits(2, 5));
}
