//! A file's footer: the row groups of one leaf column, and the schema that decodes its pages.
//!
//!     ... | offset indexes | footer (Thrift) | length of the footer, 4 bytes | PAR1 |
//!
//! An index keeps the schema of a page as a footer without row groups (`Leaf::bytes`), equal for files of one schema,
//! and so only once.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields};
use parquet::arrow::{
    FieldLevels, ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema,
    parquet_to_arrow_schema_by_columns,
};
use parquet::basic::Type as Physical;
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader,
    ParquetMetaDataWriter,
};
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescriptor;

use super::codec::Codec;
use super::guard::guarded;
use super::schema::check_footer;
use crate::pages::error::{PageError, Place, Result};

/// Bytes of the length and the magic at the end of a file.
pub const TAIL: u64 = 8;
const MAGIC: &[u8; 4] = b"PAR1";
const ENCRYPTED: &[u8; 4] = b"PARE";
const ARROW_SCHEMA: &str = "ARROW:schema";

/// A leaf column's part of a row group.
#[derive(Clone, Debug)]
pub struct Chunk {
    pub row_group: usize,
    pub rows: u64,
    /// Values including nulls; more than `rows` if rows have several.
    pub values: u64,
    pub bytes: Range<u64>,
    pub codec: Codec,
    pub offset_index: Option<Range<u64>>,
    /// Least and greatest value, if the footer has them and they are integers without nulls.
    pub bounds: Option<(i64, i64)>,
}

/// A leaf column: everything needed to decode its pages.
pub struct Leaf {
    /// A footer with the schema and no row groups.
    pub bytes: Vec<u8>,
    pub metadata: ParquetMetaData,
    pub levels: FieldLevels,
    pub number: usize,
    /// The Arrow field of a row: the top-level column, reduced to this leaf.
    pub field: Arc<Field>,
    pub physical: Physical,
    /// Bytes of a value of fixed length, zero for other types.
    pub width: usize,
    pub max_definition: i16,
    pub max_repetition: i16,
}

/// The byte range of the footer, from the last eight bytes of a file of `size` bytes.
pub fn footer_range(place: Place<'_>, size: u64, tail: &[u8]) -> Result<Range<u64>> {
    let (length, magic) = tail
        .split_at_checked(4)
        .ok_or_else(|| place.corrupt("it is shorter than a footer"))?;
    if magic == ENCRYPTED {
        return Err(place.unsupported("its footer is encrypted", "Write it without encryption."));
    }
    if magic != MAGIC {
        return Err(place
            .corrupt("it does not end as a Parquet file does, so it was cut short or has another format"));
    }
    let length = length.try_into().map(u32::from_le_bytes).unwrap_or(u32::MAX);
    let end = size.saturating_sub(TAIL);
    let begin = end.checked_sub(u64::from(length)).filter(|&begin| begin >= 4);
    begin
        .map(|begin| begin..end)
        .ok_or_else(|| place.corrupt("its footer is longer than the file"))
}

/// The leaf and its chunks in every row group, from the footer's bytes; chunks end before `end`.
pub fn parse(place: Place<'_>, bytes: &[u8], end: u64) -> Result<(Leaf, Vec<Chunk>)> {
    check_footer(bytes).map_err(|what| place.corrupt(what))?;
    let metadata = decode(place, bytes)?;
    let number = find(place, &metadata)?;
    let chunks = metadata
        .row_groups()
        .iter()
        .enumerate()
        .map(|(row_group, group)| {
            chunk(
                place,
                row_group,
                group.num_rows(),
                group.columns().get(number),
                end,
            )
        })
        .collect::<Result<_>>()?;
    let leaf = Leaf::new(place, reduced(place, &metadata)?, number)?;
    Ok((leaf, chunks))
}

impl Leaf {
    /// The leaf `place.column` of a footer from an index.
    pub fn open(place: Place<'_>, bytes: &[u8]) -> Result<Self> {
        check_footer(bytes).map_err(|what| place.corrupt(what))?;
        let number = find(place, &decode(place, bytes)?)?;
        Self::new(place, bytes.to_vec(), number)
    }

    fn new(place: Place<'_>, bytes: Vec<u8>, number: usize) -> Result<Self> {
        let metadata = decode(place, &bytes)?;
        let described = metadata.file_metadata();
        let schema = described.schema_descr();
        let (levels, fields) = guarded(|| {
            let mask = ProjectionMask::leaves(schema, [number]);
            let noted = described.key_value_metadata();
            let arrow = parquet_to_arrow_schema(schema, noted)?;
            let fields = stored_fields(arrow.fields());
            let levels = parquet_to_arrow_field_levels(schema, mask.clone(), Some(&fields))?;
            let reduced = parquet_to_arrow_schema_by_columns(schema, mask, noted)?;
            Ok((levels, stored_fields(reduced.fields())))
        })
        .map_err(|what| {
            place.unsupported(
                format!("its type has no equivalent in Arrow ({what})"),
                "Name another column.",
            )
        })?;
        let field = fields.first().cloned();
        let field = field.ok_or_else(|| {
            place.unsupported(
                "it is a leaf of a map, which cannot be read without the map's other leaf",
                "Name another column.",
            )
        })?;
        let column = schema.column(number);
        Ok(Self {
            number,
            field,
            physical: column.physical_type(),
            width: width(&column),
            max_definition: column.max_def_level(),
            max_repetition: column.max_rep_level(),
            levels,
            metadata,
            bytes,
        })
    }
}

fn stored_fields(fields: &Fields) -> Fields {
    fields.iter().map(stored_field).collect()
}

fn stored_field(field: &FieldRef) -> FieldRef {
    Arc::new(
        field
            .as_ref()
            .clone()
            .with_data_type(stored_type(field.data_type())),
    )
}

/// The type of the values in the file, whatever arrays the writer had: a dictionary or views hold the same values,
/// and pages of one chunk, or files of one table, then have one type.
fn stored_type(kind: &DataType) -> DataType {
    match kind {
        DataType::Dictionary(_, values) => stored_type(values),
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(field) | DataType::ListView(field) => DataType::List(stored_field(field)),
        DataType::LargeList(field) | DataType::LargeListView(field) => {
            DataType::LargeList(stored_field(field))
        }
        DataType::FixedSizeList(field, n) => DataType::FixedSizeList(stored_field(field), *n),
        DataType::Struct(fields) => DataType::Struct(stored_fields(fields)),
        DataType::Map(field, sorted) => DataType::Map(stored_field(field), *sorted),
        other => other.clone(),
    }
}

/// Least bytes of a value in PLAIN encoding.
fn width(column: &ColumnDescriptor) -> usize {
    match column.physical_type() {
        Physical::BOOLEAN | Physical::BYTE_ARRAY => 0,
        Physical::INT32 | Physical::FLOAT => 4,
        Physical::INT64 | Physical::DOUBLE => 8,
        Physical::INT96 => 12,
        Physical::FIXED_LEN_BYTE_ARRAY => usize::try_from(column.type_length()).unwrap_or(0),
    }
}

fn decode(place: Place<'_>, bytes: &[u8]) -> Result<ParquetMetaData> {
    guarded(|| ParquetMetaDataReader::decode_metadata(bytes))
        .map_err(|what| place.corrupt(format!("its footer is damaged ({what})")))
}

/// The leaf with the full name `place.column`, or the only leaf of the top-level column with that name.
fn find(place: Place<'_>, metadata: &ParquetMetaData) -> Result<usize> {
    let schema = metadata.file_metadata().schema_descr();
    let paths: Vec<String> = schema.columns().iter().map(|it| it.path().string()).collect();
    if let Some(number) = paths.iter().position(|path| path == place.column) {
        return Ok(number);
    }
    let below: Vec<usize> = (0..paths.len())
        .filter(|&number| {
            schema
                .column(number)
                .path()
                .parts()
                .first()
                .is_some_and(|it| it == place.column)
        })
        .collect();
    let listed = |numbers: &[usize]| {
        let named: Vec<String> = numbers
            .iter()
            .map(|&number| format!("`{}`", paths[number]))
            .collect();
        named.join(", ")
    };
    match below[..] {
        [number] => Ok(number),
        [] => Err(PageError::Column(format!(
            "File {} has no column `{}`. Its columns: {}.",
            place.file,
            place.column,
            listed(&(0..paths.len()).collect::<Vec<_>>())
        ))),
        _ => Err(PageError::Column(format!(
            "Column `{}` of file {} has several leaves. Name one of them: {}.",
            place.column,
            place.file,
            listed(&below)
        ))),
    }
}

fn chunk(
    place: Place<'_>,
    row_group: usize,
    rows: i64,
    column: Option<&ColumnChunkMetaData>,
    end: u64,
) -> Result<Chunk> {
    let corrupt = |what: &str| place.corrupt_chunk(row_group, what);
    let column = column.ok_or_else(|| corrupt("it lacks the column"))?;
    if column.file_path().is_some_and(|path| !path.is_empty()) {
        return Err(place.unsupported("its pages are in another file", "Name that file."));
    }
    let codec = Codec::of(column.compression()).ok_or_else(|| {
        place.unsupported(
            "its pages are compressed by LZO",
            "Write them with another codec.",
        )
    })?;
    // Without a dictionary some writers set its offset to zero, others omit it.
    let dictionary = column.dictionary_page_offset().filter(|&offset| offset > 0);
    let first = dictionary.map_or(column.data_page_offset(), |offset| {
        offset.min(column.data_page_offset())
    });
    let bytes = span(first, column.compressed_size(), end)
        .ok_or_else(|| corrupt("its footer places it outside the file"))?;
    let offset_index = match (column.offset_index_offset(), column.offset_index_length()) {
        (Some(offset), Some(length)) => Some(
            span(offset, i64::from(length), end)
                .ok_or_else(|| corrupt("its footer places its offset index outside the file"))?,
        ),
        _ => None,
    };
    Ok(Chunk {
        row_group,
        rows: u64::try_from(rows).map_err(|_| corrupt("its footer has a negative number of rows"))?,
        values: u64::try_from(column.num_values())
            .map_err(|_| corrupt("its footer has a negative number of values"))?,
        bytes,
        codec,
        offset_index,
        bounds: bounds(column),
    })
}

fn bounds(column: &ColumnChunkMetaData) -> Option<(i64, i64)> {
    let found = column.statistics()?;
    if found.null_count_opt().is_some_and(|nulls| nulls > 0) {
        return None;
    }
    match found {
        Statistics::Int32(of) => Some((i64::from(*of.min_opt()?), i64::from(*of.max_opt()?))),
        Statistics::Int64(of) => Some((*of.min_opt()?, *of.max_opt()?)),
        _ => None,
    }
}

fn span(offset: i64, length: i64, end: u64) -> Option<Range<u64>> {
    let (offset, length) = (u64::try_from(offset).ok()?, u64::try_from(length).ok()?);
    offset
        .checked_add(length)
        .filter(|&it| it <= end)
        .map(|it| offset..it)
}

/// A footer with this schema and Arrow's note on it, and nothing else.
fn reduced(place: Place<'_>, metadata: &ParquetMetaData) -> Result<Vec<u8>> {
    let described = metadata.file_metadata();
    let noted: Vec<KeyValue> = described
        .key_value_metadata()
        .into_iter()
        .flatten()
        .filter(|it| it.key == ARROW_SCHEMA)
        .cloned()
        .collect();
    let noted = (!noted.is_empty()).then_some(noted);
    let bare = FileMetaData::new(
        described.version(),
        0,
        None,
        noted,
        described.schema_descr_ptr(),
        None,
    );
    let mut bytes = Vec::new();
    guarded(|| ParquetMetaDataWriter::new(&mut bytes, &ParquetMetaData::new(bare, Vec::new())).finish())
        .map_err(|what| place.corrupt(format!("its schema is damaged ({what})")))?;
    bytes.truncate(bytes.len().saturating_sub(TAIL as usize)); // the footer alone, without length and magic
    Ok(bytes)
}

#[cfg(test)]
impl Chunk {
    /// A chunk without compression and offset index, with one value per row.
    pub fn plain(row_group: usize, rows: u64, bytes: Range<u64>) -> Self {
        Self {
            row_group,
            rows,
            values: rows,
            bytes,
            codec: Codec::Plain,
            offset_index: None,
            bounds: None,
        }
    }
}
