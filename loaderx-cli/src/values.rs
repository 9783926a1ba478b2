//! Records as text and as JSON.

use half::{bf16, f16};
use loaderx_core::{DType, Kind, Schema};
use serde_json::{Value, json};

/// More elements than this are left out in text.
const SHOWN: usize = 24;

/// The record as JSON: nested lists of its shape; ragged bytes as a string where they are UTF-8.
pub(crate) fn to_json(record: &[u8], schema: Option<&Schema>) -> Value {
    let Some(schema) = schema else { return text_or_bytes(record) };
    if is_bytes(schema) {
        return text_or_bytes(record);
    }
    let elements = elements(record, schema.dtype());
    let mut sides = schema.item_shape().to_vec();
    if schema.kind() == Kind::Ragged {
        sides.insert(0, record.len() / schema.item_bytes().max(1));
    }
    nest(&elements, &sides)
}

/// The record as one line of text; long ones are cut unless `full`.
pub(crate) fn to_text(record: &[u8], schema: Option<&Schema>, full: bool) -> String {
    let is_bytes = schema.is_none_or(is_bytes);
    if is_bytes {
        return match std::str::from_utf8(record) {
            Ok(text) if full || text.chars().count() <= 200 => format!("{text:?}"),
            Ok(text) => {
                format!("{:?}... ({} bytes)", text.chars().take(200).collect::<String>(), record.len())
            }
            Err(_) => bytes_as_text(record, full),
        };
    }
    let Some(schema) = schema else { return String::new() };
    let values = elements(record, schema.dtype());
    let shown: Vec<String> =
        values.iter().take(if full { usize::MAX } else { SHOWN }).map(ToString::to_string).collect();
    let rest = values.len() - shown.len();
    let mut shape = schema.item_shape().to_vec();
    if schema.kind() == Kind::Ragged {
        shape.insert(0, record.len() / schema.item_bytes().max(1));
    }
    match (shape.as_slice(), rest) {
        ([], _) => shown.join(""),
        (shape, 0) => format!("{}{shape:?} [{}]", schema.dtype(), shown.join(", ")),
        (shape, rest) => format!("{}{shape:?} [{}, ... {rest} more]", schema.dtype(), shown.join(", ")),
    }
}

/// Ragged bytes: texts and encoded files.
fn is_bytes(schema: &Schema) -> bool {
    schema.kind() == Kind::Ragged && schema.dtype() == DType::U8 && schema.item_shape().is_empty()
}

fn text_or_bytes(record: &[u8]) -> Value {
    std::str::from_utf8(record).map_or_else(|_| json!(record), |text| json!(text))
}

fn bytes_as_text(record: &[u8], full: bool) -> String {
    let shown = record.iter().take(if full { usize::MAX } else { SHOWN });
    let hex: Vec<String> = shown.map(|byte| format!("{byte:02x}")).collect();
    let rest = record.len() - hex.len();
    let tail = if rest > 0 { format!(" ... {rest} more") } else { String::new() };
    format!("{} bytes: {}{tail}", record.len(), hex.join(" "))
}

fn nest(elements: &[Value], sides: &[usize]) -> Value {
    match sides.split_first() {
        None => elements.first().cloned().unwrap_or(Value::Null),
        Some((&side, rest)) => {
            let size: usize = rest.iter().product();
            let part = |i: usize| elements.get(i * size..(i + 1) * size).unwrap_or_default();
            Value::Array((0..side).map(|i| nest(part(i), rest)).collect())
        }
    }
}

/// The elements; numbers that JSON lacks (infinities, NaN) as strings.
fn elements(record: &[u8], dtype: DType) -> Vec<Value> {
    macro_rules! each {
        ($type:ty, $value:expr) => {
            record
                .as_chunks::<{ size_of::<$type>() }>()
                .0
                .iter()
                .map(|bytes| $value(<$type>::from_le_bytes(*bytes)))
                .collect()
        };
    }
    let float = |value: f64| if value.is_finite() { json!(value) } else { json!(value.to_string()) };
    match dtype {
        DType::Bool => record.iter().map(|&value| json!(value != 0)).collect(),
        DType::U8 => record.iter().map(|&value| json!(value)).collect(),
        DType::U16 => each!(u16, |value| json!(value)),
        DType::U32 => each!(u32, |value| json!(value)),
        DType::U64 => each!(u64, |value| json!(value)),
        DType::I8 => each!(i8, |value| json!(value)),
        DType::I16 => each!(i16, |value| json!(value)),
        DType::I32 => each!(i32, |value| json!(value)),
        DType::I64 => each!(i64, |value| json!(value)),
        DType::F16 => each!(f16, |value: f16| float(value.to_f64())),
        DType::BF16 => each!(bf16, |value: bf16| float(value.to_f64())),
        DType::F32 => {
            each!(f32, |value: f32| if value.is_finite() { json!(value) } else { json!(value.to_string()) })
        }
        DType::F64 => each!(f64, float),
        _ => vec![json!(record)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_their_shape() {
        let dense = Schema::dense(DType::I16, &[2, 2]).unwrap();
        let record: Vec<u8> = [1_i16, -2, 3, 4].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(to_json(&record, Some(&dense)), json!([[1, -2], [3, 4]]));
        assert_eq!(to_text(&record, Some(&dense), false), "i16[2, 2] [1, -2, 3, 4]");
        let ragged = Schema::ragged(DType::I16, &[2]).unwrap();
        assert_eq!(to_json(&record, Some(&ragged)), json!([[1, -2], [3, 4]]));
        let scalar = Schema::dense(DType::F32, &[]).unwrap();
        assert_eq!(to_json(&1.5_f32.to_le_bytes(), Some(&scalar)), json!(1.5));
        assert_eq!(to_json(&f32::NAN.to_le_bytes(), Some(&scalar)), json!("NaN"));
    }

    #[test]
    fn bytes_are_text_where_they_can_be() {
        let bytes = Schema::ragged(DType::U8, &[]).unwrap();
        assert_eq!(to_json("drei ü".as_bytes(), Some(&bytes)), json!("drei ü"));
        assert_eq!(to_text(b"a\nb", Some(&bytes), false), "\"a\\nb\"");
        assert_eq!(to_text(&[0xff, 1], Some(&bytes), false), "2 bytes: ff 01");
        assert_eq!(to_json(&[0xff, 1], None), json!([255, 1]));
    }
}
