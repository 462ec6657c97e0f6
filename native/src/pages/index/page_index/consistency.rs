//! Whether the parts of an opened index agree, so that no search finds a contradiction.

use super::Index;
use crate::pages::index::layout::{BLOCK, CHUNK, FILE};
use crate::pages::index::runs::WIDTH;

impl Index {
    pub(super) fn is_whole(&self) -> bool {
        let lengths = self.sections.files.len().is_multiple_of(FILE)
            && self.sections.chunks.len().is_multiple_of(CHUNK)
            && self.sections.runs.len().is_multiple_of(WIDTH)
            && self.sections.ends.len() == 2 + self.n_leaves() + self.n_files()
            && self.sections.sums.len() == self.sections.entries.len().div_ceil(BLOCK);
        lengths
            && (0..self.sections.ends.len() - 1).all(|number| self.text(number).is_some())
            && (0..self.n_files()).all(|it| self.file(it).is_some_and(|file| file.leaf < self.n_leaves()))
            && (0..self.sections.chunks.len() / CHUNK)
                .all(|it| self.chunk(it).is_some_and(|it| it.file < self.n_files()))
            && (0..self.n_runs()).all(|number| self.run_is_whole(number).is_some())
    }

    fn run_is_whole(&self, number: usize) -> Option<()> {
        let run = self.run(number)?;
        let (rows, pages) = self.end_of(number);
        let (rows, pages) = (
            rows.checked_sub(run.first_row)?,
            pages.checked_sub(run.first_page)?,
        );
        let bytes = run.end.checked_sub(run.begin)?;
        let fits =
            |step: u64, total: u64| step == 0 || (pages - 1).checked_mul(step).is_some_and(|it| it < total);
        let entries = pages.checked_mul(u64::from(run.page_rows == 0) + u64::from(run.page_bytes == 0))?;
        let starts = number > 0 || (run.first_row == 0 && run.first_page == 0);
        let whole = starts
            && pages > 0
            && bytes > 0
            && fits(run.page_rows, rows)
            && fits(run.page_bytes, bytes)
            && run.entries.checked_add(entries)? <= self.sections.entries.len() as u64
            && self.chunk(usize::try_from(run.chunk).ok()?).is_some();
        whole.then_some(())
    }
}
