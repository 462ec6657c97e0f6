//! Files that the `parquet` crate itself writes, in drawn layouts, hold the values that were written.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int64Array, LargeBinaryArray, RecordBatch, StringArray};
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use arrow_select::concat::concat;
use parquet::arrow::ArrowWriter;
use parquet::basic::Encoding;
use parquet::file::properties::{WriterProperties, WriterVersion};
use proptest::prelude::*;

use super::build::{join, scan_files};
use super::index::page_index::Index;
use super::read::cache::PageCache;
use super::read::gather::{Part, gather};
use super::read::one_index::{read_pages, read_rows};
use super::read::reader::Reader;

/// Options of the writer.
#[derive(Clone, Debug)]
struct Layout {
    second_version: bool,
    dictionary: bool,
    encoding: usize,
    dictionary_bytes: usize,
    page_bytes: usize,
    page_rows: usize,
    group_rows: usize,
    batch_rows: usize,
    offset_index: bool,
}

prop_compose! {
    fn layouts()(
        (second_version, dictionary, offset_index) in any::<(bool, bool, bool)>(),
        encoding in 0usize..3,
        (dictionary_bytes, page_bytes) in (1usize..400, 1usize..400),
        (page_rows, group_rows, batch_rows) in (1usize..60, 20usize..300, 1usize..40),
    ) -> Layout {
        Layout {
            second_version, dictionary, encoding, dictionary_bytes, page_bytes, page_rows, group_rows, batch_rows,
            offset_index,
        }
    }
}

/// Rows from keys, of which negative ones are null and few repeat.
fn keys() -> impl Strategy<Value = Vec<i64>> {
    prop_oneof![
        proptest::collection::vec(-1i64..6, 1..200),
        proptest::collection::vec(-200i64..2000, 1..200),
        (1i64..100).prop_map(|n| (0..2 * n)
            .map(|row| if row < n { row % 5 } else { row })
            .collect()),
        Just(vec![-1; 50]),
    ]
}

impl Layout {
    fn write(&self, column: &ArrayRef, encodings: &[Encoding]) -> PathBuf {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("pages-{}-{number}.parquet", std::process::id()));
        let version = match self.second_version {
            true => WriterVersion::PARQUET_2_0,
            false => WriterVersion::PARQUET_1_0,
        };
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_dictionary_enabled(self.dictionary)
            .set_encoding(encodings[self.encoding % encodings.len()])
            .set_dictionary_page_size_limit(self.dictionary_bytes)
            .set_data_page_size_limit(self.page_bytes)
            .set_data_page_row_count_limit(self.page_rows)
            .set_max_row_group_row_count(Some(self.group_rows))
            .set_write_batch_size(self.batch_rows)
            .set_offset_index_disabled(!self.offset_index)
            .build();
        let rows = RecordBatch::try_from_iter_with_nullable([("value", Arc::clone(column), true)]).unwrap();
        let mut writer =
            ArrowWriter::try_new(File::create(&path).unwrap(), rows.schema(), Some(properties)).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        path
    }

    /// Writes the column, and compares whole pages, rows and gathered rows with it.
    fn check(&self, column: &ArrayRef, encodings: &[Encoding]) {
        let path = self.write(column, encodings);
        let scans = scan_files(&[path.to_str().unwrap().to_owned()], "value").unwrap();
        let content = join("value", &scans).unwrap().to_bytes();
        let reader = Reader::new(Index::open(Buffer::from_slice_ref(&content)).unwrap(), None).unwrap();
        let numbers: Vec<u64> = (0..reader.index.pages()).collect();
        let pages = read_pages(&reader, &numbers, None).unwrap();
        let pages: Vec<&dyn Array> = pages.iter().map(AsRef::as_ref).collect();
        assert_eq!(&concat(&pages).unwrap(), column);
        let rows: Vec<u64> = (0..column.len() as u64).collect();
        assert_eq!(&read_rows(&reader, rows.clone()).unwrap(), column);
        for again in [true, false] {
            for rows in [rows.clone(), vec![rows[rows.len() / 2]]] {
                self.check_gathered(&reader, column, rows, again);
            }
        }
        std::fs::remove_file(path).unwrap();
    }

    fn check_gathered(&self, reader: &Reader, column: &ArrayRef, rows: Vec<u64>, again: bool) {
        let kind = match column.data_type() {
            DataType::Utf8 => DataType::LargeBinary,
            own => own.clone(),
        };
        let (first, n) = (rows[0] as usize, rows.len());
        let positions = (0..n as u64).collect();
        let cache = PageCache::new(1 << 20);
        let part = Part {
            reader,
            rows,
            positions,
            again,
        };
        let gathered = gather(&kind, n, &[part], &cache, Some(&cache)).unwrap();
        assert_eq!(gathered.data_type(), &kind);
        let expected = column.slice(first, n);
        match expected.as_string_opt::<i32>() {
            Some(words) => {
                let words = words
                    .iter()
                    .map(|word| word.map(str::as_bytes))
                    .collect::<LargeBinaryArray>();
                assert_eq!(gathered.as_binary::<i64>(), &words);
            }
            None => assert_eq!(&gathered, &expected),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn words_of_the_parquet_crate_are_read_in_any_layout(layout in layouts(), keys in keys()) {
        let word = |key: i64| (key >= 0).then(|| format!("word {key} ö").repeat(key as usize % 4));
        let column: ArrayRef = Arc::new(keys.into_iter().map(word).collect::<StringArray>());
        let encodings = [Encoding::PLAIN, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY];
        layout.check(&column, &encodings);
    }

    #[test]
    fn numbers_of_the_parquet_crate_are_read_in_any_layout(layout in layouts(), keys in keys()) {
        let column: ArrayRef = Arc::new(
            keys.into_iter().map(|key| (key >= 0).then_some(key << 40)).collect::<Int64Array>(),
        );
        let encodings = [Encoding::PLAIN, Encoding::DELTA_BINARY_PACKED, Encoding::BYTE_STREAM_SPLIT];
        layout.check(&column, &encodings);
    }
}
