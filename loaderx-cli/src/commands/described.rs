//! What the records of a store without a schema are, said on the command line.

use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use loaderx_core::convert::Part;
use loaderx_core::{DType, Result, Schema};

use crate::target::Target;

/// Options of commands that read stores which may have no schema.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Stores without a schema (plain bytes, as the Python package writes them)")]
pub(crate) struct Described {
    /// The records consist of elements of this type.
    #[arg(long, value_parser = dtypes())]
    dtype: Option<DType>,

    /// The shape of a record, such as 28,28; a scalar by default.
    #[arg(long, value_delimiter = ',', value_name = "SIDE", requires = "dtype")]
    shape: Vec<usize>,

    /// Records differ in length: each is a number of rows of that shape.
    #[arg(long, requires = "dtype")]
    ragged: bool,
}

fn dtypes() -> impl TypedValueParser<Value = DType> {
    PossibleValuesParser::new(DType::ALL.iter().map(|dtype| dtype.name()))
        .try_map(|name| DType::from_name(&name))
}

impl Described {
    /// What the command line says; `None` where it says nothing.
    fn schema(&self) -> Result<Option<Schema>> {
        let Some(dtype) = self.dtype else { return Ok(None) };
        let schema =
            if self.ragged { Schema::ragged(dtype, &self.shape) } else { Schema::dense(dtype, &self.shape) };
        schema.map(Some)
    }

    /// As [`Described::schema`]; refuses to say the same of several streams.
    pub(crate) fn of(&self, target: &Target, path: &Path) -> Result<Option<Schema>> {
        let schema = self.schema()?;
        if schema.is_some() {
            target.single(path)?;
        }
        Ok(schema)
    }

    /// As [`Described::of`], for commands that show single records of the store.
    pub(crate) fn of_records(&self, target: &Target, path: &Path) -> Result<Option<Schema>> {
        let schema = self.of(target, path)?;
        if let Some(wanted) = &schema
            && let Some(own) = target.single(path)?.schema()
        {
            own.require(wanted).map_err(|error| error.at_path(path))?;
        }
        Ok(schema)
    }
}

/// A part with the schema that was said.
pub(crate) fn part<'a>(part: Part<'a>, schema: Option<&Schema>) -> Part<'a> {
    match schema {
        Some(schema) => part.described(schema.clone()),
        None => part,
    }
}
