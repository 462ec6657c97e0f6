//! Single pages of Parquet files: where they are, and what they hold.
//!
//!     scan.rs       a file's pages, from its footer and offset indexes (bytes are handed in)
//!     index.rs      the pages of all files as flat numbers (layout.rs); row or page -> file, row group, bytes
//!     decode.rs     one page from its bytes to Arrow
//!     reader.rs     rows and pages of local files: exact reads, the disk kept busy
//!
//! Youmu's design (Zhong et al., 2025): no file is converted, and no row group is read for one of its rows.

use arrow_array::{Array, ArrayRef, UInt8Array, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use arrow_schema::DataType;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

mod body;
mod build;
mod codec;
mod decode;
mod delta;
mod error;
mod files;
mod footer;
mod guard;
mod header;
mod header_scan;
mod index;
mod layout;
mod locations;
mod one_page;
mod reader;
mod rows;
mod runs;
mod scan;
mod schema;
mod thrift;

use decode::{Decoder, Wanted};
use error::PageError;
use index::Index;
use reader::Reader;
use rows::Rows;
use scan::FileScan;

/// `PageScan` of the Python module.
#[pyclass]
struct PageScan(FileScan);

#[pymethods]
impl PageScan {
    #[new]
    fn new(path: String, size: u64, column: String, window: u64) -> Self {
        Self(FileScan::new(path, size, column, window))
    }

    fn wanted(&self) -> Vec<(u64, u64)> {
        self.0.wanted().into_iter().map(|it| (it.start, it.end)).collect()
    }

    fn push(&mut self, py: Python<'_>, ranges: Vec<PyBackedBytes>) -> PyResult<()> {
        let ranges: Vec<&[u8]> = ranges.iter().map(|it| &**it).collect();
        Ok(py.detach(|| self.0.push(&ranges))?)
    }
}

/// `PageIndex` of the Python module.
#[pyclass(frozen)]
struct PageIndex(Reader);

#[pymethods]
impl PageIndex {
    #[new]
    fn new(py: Python<'_>, content: PyArrowType<ArrayData>) -> PyResult<Self> {
        let content = make_array(content.0);
        let bytes = content
            .as_any()
            .downcast_ref::<UInt8Array>()
            .filter(|it| it.null_count() == 0)
            .ok_or_else(|| {
                PyValueError::new_err("The content of a page index is an array of uint8 without nulls.")
            })?;
        let buffer = bytes.values().inner().clone();
        Ok(py
            .detach(|| Index::open(buffer).and_then(Reader::new))
            .map(Self)?)
    }

    #[getter]
    fn column(&self) -> &str {
        self.0.index.column()
    }

    #[getter]
    fn n_rows(&self) -> u64 {
        self.0.index.rows()
    }

    #[getter]
    fn n_pages(&self) -> u64 {
        self.0.index.pages()
    }

    #[getter]
    fn n_files(&self) -> usize {
        self.0.index.n_files()
    }

    #[getter]
    fn n_bytes(&self) -> usize {
        self.0.index.bytes()
    }

    #[getter]
    fn read_so_far(&self) -> (u64, u64) {
        self.0.read_so_far()
    }

    #[getter]
    fn r#type(&self) -> PyArrowType<DataType> {
        PyArrowType(
            self.0
                .leaf()
                .map_or(DataType::Null, |leaf| leaf.field.data_type().clone()),
        )
    }

    fn path(&self, file: usize) -> PyResult<&str> {
        let found = self.0.index.file(file).map(|it| it.path);
        Ok(found.ok_or_else(|| PageError::Beyond(format!("There is no file {file}.")))?)
    }

    fn page(&self, number: u64) -> PyResult<(usize, usize, usize, u64, usize)> {
        let page = self.0.page(number)?;
        let (of, _, chunk) = self.0.described(&page)?;
        Ok((chunk.file, of.row_group, page.page, page.first_row, page.rows))
    }

    fn byte_ranges(&self, number: u64) -> PyResult<((u64, u64), (u64, u64))> {
        let page = self.0.page(number)?;
        let (_, _, chunk) = self.0.described(&page)?;
        Ok(((page.offset, page.offset + page.size as u64), chunk.dictionary))
    }

    fn page_of_row(&self, row: u64) -> PyResult<u64> {
        let found = self.0.index.page_of_row(row)?;
        Ok(found.ok_or_else(|| {
            PageError::Beyond(format!("There is no row {row}: the index has {}.", self.n_rows()))
        })?)
    }

    fn decode(
        &self,
        py: Python<'_>,
        number: u64,
        content: PyBackedBytes,
        dictionary: Option<PyBackedBytes>,
    ) -> PyResult<PyArrowType<ArrayData>> {
        let decoded = py.detach(|| -> Result<ArrayRef, PageError> {
            let page = self.0.page(number)?;
            let (of, leaf, _) = self.0.described(&page)?;
            let mut rows = Rows::new(leaf.field.data_type().clone());
            let known = || {
                dictionary
                    .map(|bytes| Decoder::default().dictionary(of, leaf, &bytes))
                    .transpose()
            };
            Decoder::default().append(of, leaf, &content, Wanted::All, known, &mut rows)?;
            rows.finish()
                .map_err(|what| of.place.corrupt_page(of.row_group, of.page, what))
        })?;
        Ok(PyArrowType(decoded.to_data()))
    }

    fn read_pages(&self, py: Python<'_>, numbers: PyBuffer<i64>) -> PyResult<Vec<PyArrowType<ArrayData>>> {
        let numbers = unsigned(py, &numbers)?;
        let arrays = py.detach(|| self.0.read_pages(&numbers))?;
        Ok(arrays
            .into_iter()
            .map(|array| PyArrowType(array.to_data()))
            .collect())
    }

    fn read_rows(&self, py: Python<'_>, rows: PyBuffer<i64>) -> PyResult<PyArrowType<ArrayData>> {
        let rows = unsigned(py, &rows)?;
        let array = py.detach(|| self.0.read_rows(&rows))?;
        Ok(PyArrowType(array.to_data()))
    }
}

fn unsigned(py: Python<'_>, numbers: &PyBuffer<i64>) -> PyResult<Vec<u64>> {
    let numbers = numbers.to_vec(py)?;
    let beyond = |number: i64| PageError::Beyond(format!("There is no row or page {number}."));
    Ok(numbers
        .into_iter()
        .map(|it| u64::try_from(it).map_err(|_| beyond(it)))
        .collect::<Result<_, _>>()?)
}

/// See `scan_pages` in the stub.
#[pyfunction]
fn scan_pages(py: Python<'_>, paths: Vec<String>, column: &str) -> PyResult<Vec<PageScan>> {
    Ok(py
        .detach(|| build::scan_files(&paths, column))?
        .into_iter()
        .map(PageScan)
        .collect())
}

/// See `join_pages` in the stub.
#[pyfunction]
fn join_pages(
    py: Python<'_>,
    column: &str,
    scans: Vec<PyRef<'_, PageScan>>,
) -> PyResult<PyArrowType<ArrayData>> {
    let scans: Vec<&FileScan> = scans.iter().map(|it| &it.0).collect();
    let bytes = py.detach(|| build::join(column, scans).map(|parts| parts.to_bytes()))?;
    Ok(PyArrowType(
        UInt8Array::new(Buffer::from_slice_ref(&bytes).into(), None).to_data(),
    ))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PageScan>()?;
    module.add_class::<PageIndex>()?;
    module.add_function(wrap_pyfunction!(scan_pages, module)?)?;
    module.add_function(wrap_pyfunction!(join_pages, module)?)
}
