//! The Python classes and functions of pages; `factory/_native.pyi` documents them.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, UInt8Array, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use arrow_schema::DataType;
use bytes::Bytes;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use super::build;
use super::decode::decoder::Decoder;
use super::error::PageError;
use super::index::page_index::Index;
use super::index::scan::FileScan;
use super::read::cache;
use super::read::gather::{Part, gather};
use super::read::one_index;
use super::read::reader::{Fetch, Reader};

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

    #[getter]
    fn row_groups(&self) -> Vec<(u64, Option<(i64, i64)>)> {
        let chunks = self.0.found().map(|it| it.1).unwrap_or_default();
        chunks.iter().map(|it| (it.runs.rows, it.bounds)).collect()
    }
}

/// `PageCache` of the Python module.
#[pyclass(frozen)]
struct PageCache(cache::PageCache);

#[pymethods]
impl PageCache {
    #[new]
    fn new(budget: usize) -> Self {
        Self(cache::PageCache::new(budget))
    }

    #[getter]
    fn used(&self) -> usize {
        self.0.used()
    }

    #[getter]
    fn hits_and_misses(&self) -> (u64, u64) {
        self.0.hits_and_misses()
    }
}

/// `PageIndex` of the Python module.
#[pyclass(frozen)]
struct PageIndex(Reader);

#[pymethods]
impl PageIndex {
    #[new]
    #[pyo3(signature = (content, fetch=None))]
    fn new(py: Python<'_>, content: PyArrowType<ArrayData>, fetch: Option<Py<PyAny>>) -> PyResult<Self> {
        let buffer = content_of(content)?;
        let fetch =
            fetch.map(|it| Box::new(move |asked: &[(&str, Vec<Range<u64>>)]| call(&it, asked)) as Box<Fetch>);
        Ok(py
            .detach(|| Index::open(buffer).and_then(|index| Reader::new(index, fetch)))
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
        PyArrowType(self.0.kind())
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
        Ok(self.0.page_of_row(row)?.0)
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
            let known = || {
                dictionary
                    .map(|bytes| Decoder::default().dictionary(of, leaf, &bytes))
                    .transpose()
            };
            Decoder::default().page(of, leaf, &content, known)
        })?;
        Ok(PyArrowType(decoded.to_data()))
    }

    #[pyo3(signature = (numbers, cache=None))]
    fn read_pages(
        &self,
        py: Python<'_>,
        numbers: PyBuffer<i64>,
        cache: Option<&PageCache>,
    ) -> PyResult<Vec<PyArrowType<ArrayData>>> {
        let numbers = unsigned(py, &numbers)?;
        let arrays = py.detach(|| one_index::read_pages(&self.0, &numbers, cache.map(|cache| &cache.0)))?;
        Ok(arrays
            .into_iter()
            .map(|array| PyArrowType(array.to_data()))
            .collect())
    }

    fn read_rows(&self, py: Python<'_>, rows: PyBuffer<i64>) -> PyResult<PyArrowType<ArrayData>> {
        let rows = unsigned(py, &rows)?;
        let array = py.detach(|| one_index::read_rows(&self.0, rows))?;
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

fn content_of(content: PyArrowType<ArrayData>) -> PyResult<Buffer> {
    let content = make_array(content.0);
    let bytes = content
        .as_any()
        .downcast_ref::<UInt8Array>()
        .filter(|it| it.null_count() == 0)
        .ok_or_else(|| {
            PyValueError::new_err("The content of a page index must be an array of uint8 without nulls. Pass what `join_pages` returned.")
        })?;
    Ok(bytes.values().inner().clone())
}

fn call(fetch: &Py<PyAny>, asked: &[(&str, Vec<Range<u64>>)]) -> Result<Vec<Vec<Bytes>>, PageError> {
    let asked: Vec<(&str, Vec<(u64, u64)>)> = asked
        .iter()
        .map(|(path, ranges)| (*path, ranges.iter().map(|it| (it.start, it.end)).collect()))
        .collect();
    Python::attach(|py| -> PyResult<Vec<Vec<Bytes>>> {
        let found: Vec<Vec<PyBackedBytes>> = fetch.call1(py, (asked,))?.extract(py)?;
        Ok(found
            .into_iter()
            .map(|of_file| of_file.into_iter().map(Bytes::from_owner).collect())
            .collect())
    })
    .map_err(PageError::Raised)
}

type PyPart = (Py<PageIndex>, PyBuffer<i64>, PyBuffer<i64>, bool);

/// See `gather_pages` in the stub.
#[pyfunction]
fn gather_pages(
    py: Python<'_>,
    kind: PyArrowType<DataType>,
    n: usize,
    parts: Vec<PyPart>,
    cache: &PageCache,
) -> PyResult<PyArrowType<ArrayData>> {
    let parts = parts
        .iter()
        .map(|(index, rows, positions, again)| {
            Ok(Part {
                reader: &index.get().0,
                rows: unsigned(py, rows)?,
                positions: unsigned(py, positions)?,
                again: *again,
            })
        })
        .collect::<PyResult<Vec<_>>>()?;
    let array = py.detach(|| gather(&kind.0, n, &parts, &cache.0, Some(&cache.0)))?;
    Ok(PyArrowType(array.to_data()))
}

/// See `join_indexes` in the stub.
#[pyfunction]
fn join_indexes(py: Python<'_>, contents: Vec<PyArrowType<ArrayData>>) -> PyResult<PyArrowType<ArrayData>> {
    let buffers = contents
        .into_iter()
        .map(content_of)
        .collect::<PyResult<Vec<_>>>()?;
    let bytes = py.detach(|| -> Result<Vec<u8>, PageError> {
        let readers = buffers
            .into_iter()
            .map(|buffer| Reader::new(Index::open(buffer)?, None))
            .collect::<Result<Vec<_>, _>>()?;
        build::join_indexes(&readers).map(|parts| parts.to_bytes())
    })?;
    Ok(PyArrowType(
        UInt8Array::new(Buffer::from_vec(bytes).into(), None).to_data(),
    ))
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
    module.add_class::<PageCache>()?;
    module.add_function(wrap_pyfunction!(scan_pages, module)?)?;
    module.add_function(wrap_pyfunction!(join_indexes, module)?)?;
    module.add_function(wrap_pyfunction!(gather_pages, module)?)?;
    module.add_function(wrap_pyfunction!(join_pages, module)?)
}
