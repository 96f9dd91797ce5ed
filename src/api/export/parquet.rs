//! Rows as a Parquet file, one row group after the other, so that a file of any size needs bounded memory.

use std::sync::Arc;

use arrow_json::{ReaderBuilder, reader::Decoder};
use arrow_schema::{DataType, Field, Fields, Schema};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};

use super::{Broken, ExportForm, rows::Row};

/// Encoded bytes per row group: large enough for reading columns, small enough for memory.
const ROW_GROUP: usize = 16 << 20;
/// Maximum rows per group, even if they are small: a group is sent only when it is full, and clients wait.
const ROW_GROUP_ROWS: usize = 32_768;

/// A file that is being written.
pub(super) struct Table {
    decoder: Decoder,
    writer: ArrowWriter<Vec<u8>>,
}

impl Table {
    pub(super) fn new(form: ExportForm, more_than_texts: bool) -> Result<Self, Broken> {
        let schema = Arc::new(schema(form, more_than_texts));
        // A field that the schema lacks is an error, not a missing column.
        let decoder = ReaderBuilder::new(schema.clone()).with_strict_mode(true).build_decoder()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_bytes(Some(ROW_GROUP))
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
            .build();
        let writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties))?;
        Ok(Self { decoder, writer })
    }

    /// Adds rows, and returns the bytes that are ready.
    pub(super) fn put(&mut self, rows: &[Row]) -> Result<Vec<u8>, Broken> {
        self.decoder.serialize(rows)?;
        if let Some(batch) = self.decoder.flush()? {
            self.writer.write(&batch)?;
        }
        // The writer counts what it wrote by itself: offsets stay right.
        Ok(std::mem::take(self.writer.inner_mut()))
    }

    /// The last row group, and the footer.
    pub(super) fn end(self) -> Result<Vec<u8>, Broken> {
        Ok(self.writer.into_inner()?)
    }
}

/// Columns of a form: the fields of its rows, in order. Only conversations with more than texts have columns
/// for tools.
fn schema(form: ExportForm, more_than_texts: bool) -> Schema {
    use DataType::{Boolean, Float32, Float64, Int32, Utf8};
    let some = |name: &str, kind| Field::new(name, kind, false);
    let maybe = |name: &str, kind| Field::new(name, kind, true);
    let function = Fields::from(vec![some("name", Utf8), some("arguments", Utf8)]);
    let call = Fields::from(vec![
        maybe("id", Utf8),
        some("type", Utf8),
        some("function", DataType::Struct(function)),
    ]);
    let calls = Field::new_list("tool_calls", some("element", DataType::Struct(call)), true);
    let message = if more_than_texts {
        Fields::from(vec![
            some("role", Utf8),
            maybe("content", Utf8),
            maybe("reasoning_content", Utf8),
            calls,
            maybe("tool_call_id", Utf8),
            maybe("is_error", Boolean),
        ])
    } else {
        Fields::from(vec![some("role", Utf8), some("content", Utf8)])
    };
    let tools = more_than_texts.then(|| maybe("tools", Utf8));
    let messages = |name: &str| {
        Field::new_list(name, some("element", DataType::Struct(message.clone())), false)
    };
    let texts = |name: &str| Field::new_list(name, some("element", Utf8), false);
    let columns: Vec<Field> = match form {
        ExportForm::Transitions => vec![
            some("id", Utf8),
            some("job_id", Utf8),
            some("episode_id", Utf8),
            some("iteration", Int32),
            some("step", Int32),
            some("context", Int32),
            messages("state"),
            some("action", Utf8),
            maybe("env_action", Utf8),
            some("observation", Utf8),
            maybe("reward", Float64),
            some("reward_status", Utf8),
            some("done", Boolean),
            some("truncated", Boolean),
            maybe("generation_id", Utf8),
            maybe("choice_logprob", Float64),
            texts("admissible"),
            texts("next_admissible"),
            texts("achieved_goals"),
            maybe("loss", Float32),
            maybe("uses", Int32),
            maybe("success", Boolean),
            maybe("annotated_in", Int32),
            maybe("verdict", Utf8),
            maybe("critique", Utf8),
            maybe("refinement", Utf8),
            maybe("valid", Boolean),
            maybe("changed", Boolean),
        ],
        ExportForm::Sft => vec![messages("messages")],
        ExportForm::Preferences => {
            ["prompt", "chosen", "rejected"].into_iter().map(messages).collect()
        }
    };
    Schema::new(columns.into_iter().chain(tools).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use rand::{Rng, SeedableRng, distr::Alphanumeric};

    use super::{ROW_GROUP, Row, Table};
    use crate::{api::export::ExportForm, experience::message::Message};

    #[test]
    fn a_long_file_is_given_away_in_row_groups() {
        const ROWS: usize = 80;
        let mut table = Table::new(ExportForm::Sft, false).unwrap_or_else(|e| panic!("{e}"));
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
        let (mut file, mut largest) = (Vec::new(), 0);
        for _ in 0..ROWS {
            // Half a megabyte of chance: nothing to compress much.
            let said: String =
                (&mut rng).sample_iter(Alphanumeric).take(512 << 10).map(char::from).collect();
            let row = Row::Conversation { messages: vec![Message::assistant(said)], tools: None };
            let piece = table.put(&[row]).unwrap_or_else(|e| panic!("{e}"));
            largest = largest.max(piece.len());
            file.extend(piece);
        }
        let end = table.end().unwrap_or_else(|e| panic!("{e}"));
        assert!(largest.max(end.len()) < 2 * ROW_GROUP, "{largest}");
        file.extend(end);
        let file = SerializedFileReader::new(axum::body::Bytes::from(file));
        let file = file.unwrap_or_else(|e| panic!("{e}"));
        assert!(file.num_row_groups() > 1);
        assert_eq!(file.metadata().file_metadata().num_rows(), ROWS as i64);
    }
}
