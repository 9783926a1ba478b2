//! Records as pictures: in the terminal as grey levels, or as PNG files.

use std::path::Path;

use image::DynamicImage;
use loaderx_core::{DType, Error, ErrorKind, Kind, Result, Schema};

/// From dark to light.
const LEVELS: &[u8] = b" .:-=+*#%@";
/// Pictures are not drawn wider than this many characters.
const MAX_WIDTH: u32 = 80;

/// The record as a picture: `u8` of shape `[height, width]` or `[height, width, 1, 3 or 4]`, or an encoded image, which
/// plain bytes may be too.
pub(crate) fn picture(record: &[u8], schema: Option<&Schema>) -> Result<DynamicImage> {
    let refused = || {
        Error::new(ErrorKind::SchemaMismatch, "the records are no pictures").with_hint(
            "pictures are u8 of shape [height, width] or [height, width, channels], or encoded images; of a store without \
             a schema, say what they are with --dtype and --shape",
        )
    };
    let encoded = || image::load_from_memory(record).map_err(|error| refused().caused_by(error));
    let Some(schema) = schema else { return encoded() };
    if schema.dtype() != DType::U8 {
        return Err(refused());
    }
    if schema.kind() == Kind::Ragged {
        return encoded();
    }
    let side = |side: usize| u32::try_from(side).map_err(|_| refused());
    let pixels = record.to_vec();
    let made = match *schema.item_shape() {
        [height, width] | [height, width, 1] => {
            image::GrayImage::from_raw(side(width)?, side(height)?, pixels).map(DynamicImage::ImageLuma8)
        }
        [height, width, 3] => {
            image::RgbImage::from_raw(side(width)?, side(height)?, pixels).map(DynamicImage::ImageRgb8)
        }
        [height, width, 4] => {
            image::RgbaImage::from_raw(side(width)?, side(height)?, pixels).map(DynamicImage::ImageRgba8)
        }
        _ => None,
    };
    made.ok_or_else(refused)
}

/// The picture in characters, each twice as high as wide.
pub(crate) fn drawn(picture: &DynamicImage) -> String {
    let width = picture.width().min(MAX_WIDTH);
    let height = (picture.height() * width / picture.width().max(1)).div_ceil(2).max(1);
    let small = picture.resize_exact(width, height, image::imageops::FilterType::Triangle).to_luma8();
    let mut text = String::new();
    for row in small.rows() {
        for pixel in row {
            let level = usize::from(pixel.0[0]) * (LEVELS.len() - 1) / 255;
            text.push(LEVELS.get(level).copied().map_or(' ', char::from));
        }
        text.push('\n');
    }
    text
}

/// Writes the picture as a PNG file.
pub(crate) fn save(picture: &DynamicImage, path: &Path) -> Result<()> {
    picture.save_with_format(path, image::ImageFormat::Png).map_err(|error| {
        Error::new(ErrorKind::Io, "failed to write the picture").at_path(path).caused_by(error)
    })
}
