//! A page as its own row group, for the array readers of the `parquet` crate.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::ArrayRef;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

use crate::pages::format::footer::Leaf;
use crate::pages::format::guard::guarded;

/// The `rows` rows of a data page, after its dictionary page if it has one; errors are a few words.
pub fn rows_of(leaf: &Leaf, rows: usize, pages: VecDeque<Page>) -> std::result::Result<ArrayRef, String> {
    let group = OnePage { leaf, rows, pages };
    let array = guarded(|| {
        let mut batches =
            ParquetRecordBatchReader::try_new_with_row_groups(&leaf.levels, &group, rows.max(1), None)?;
        let batch = batches.next().transpose()?;
        Ok(batch.map(|it| Arc::clone(it.column(0))))
    })
    .map_err(|what| format!("it cannot be decoded ({what})"))?;
    match array {
        Some(array) if array.len() == rows => Ok(array),
        None if rows == 0 => Ok(arrow_array::new_empty_array(leaf.field.data_type())),
        found => {
            let found = found.map_or(0, |array| array.len());
            Err(format!("it holds {found} rows, its index says {rows}"))
        }
    }
}

/// A row group of one page, with its dictionary, for the array readers.
struct OnePage<'a> {
    leaf: &'a Leaf,
    rows: usize,
    pages: VecDeque<Page>,
}

impl RowGroups for OnePage<'_> {
    fn num_rows(&self) -> usize {
        self.rows
    }

    fn column_chunks(&self, number: usize) -> Result<Box<dyn PageIterator>> {
        if number != self.leaf.number {
            return Err(ParquetError::General("another column was requested".into()));
        }
        Ok(Box::new(Chunks(Some(Pages(self.pages.clone())))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::empty())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.leaf.metadata
    }
}

struct Chunks(Option<Pages>);

impl Iterator for Chunks {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0
            .take()
            .map(|pages| Ok(Box::new(pages) as Box<dyn PageReader>))
    }
}

impl PageIterator for Chunks {}

struct Pages(VecDeque<Page>);

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.pop_front().map(Ok)
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        Ok(self.0.pop_front())
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        Ok(self.0.front().map(|page| PageMetadata {
            num_rows: None,
            num_levels: Some(page.num_values() as usize),
            is_dict: matches!(page, Page::DictionaryPage { .. }),
        }))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.0.pop_front();
        Ok(())
    }
}
