"""The native kernels: Arrow or bytes in and out; no I/O and no settings (sources: `native/src`)."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__source_hashes__: dict[str, str]
"""A hash of the sources behind each function and class; a table's code version has those of its kernels."""

def fingerprint(batch: pa.RecordBatch, columns: list[str]) -> bytes:
    """The sum over the rows of `batch` of a 128-bit hash of `columns`, as 16 little-endian bytes.

    Independent of row order, of the order of columns and of the physical width of integers and strings;
    nulls add nothing. Raises ValueError for an unknown column or a type without a fingerprint.
    """

def text_signals(texts: pa.StringArray | pa.LargeStringArray, names: list[str]) -> pa.RecordBatch:
    """The values of the signals `names` for each text: one nullable float64 column a name, in that order.

    A signal is the number a filter rule of the same name measures (`docs/filters.md`). A null text has null
    values, and so has a text to which a signal does not apply. Raises ValueError for an unknown name, an
    array of another type or a text of more than 4 GiB.
    """

def text_signal_names() -> list[str]:
    """The names `text_signals` knows."""

def rejections(values: pa.RecordBatch, limits: list[tuple[str, float, float]]) -> pa.ListArray:
    """For each row every limit its values lie beyond: a list of (rule, value, threshold), in their order.

    `values` has a nullable float64 column for each of `limits`: a rule's name, the lowest and the highest
    value it allows, infinite where it has no such bound. A null value lies beyond none. Raises ValueError
    for a column of another type, and where there are more columns or fewer than limits.
    """

def character_boundaries(kind: str) -> list[int]:
    """The code points at which membership of a class of characters begins or ends, ascending.

    Even positions begin a range, odd ones end it (exclusive). `kind` is `space` (White_Space), `letter`
    (Alphabetic), `alphanumeric` (letters and all numbers), `lowercase` (Lowercase) or `terminal` (marks that
    end a sentence); raises ValueError for another.
    """

# -- packing (native/src/packing)

def best_fit_decreasing(lengths: pa.Int64Array, sequence_length: int) -> pa.UInt32Array:
    """The sequence of each piece by best-fit decreasing, numbered as opened; null for a piece of length zero.

    Raises ValueError where a length is null, negative or above `sequence_length` tokens.
    """

def fewest_sequences(lengths: pa.Int64Array, sequence_length: int) -> pa.UInt32Array:
    """The sequence of each piece, as few sequences as can be found, never more than `best_fit_decreasing`'s.

    Where best-fit decreasing leaves gaps, sequences are filled to their last token one after another.
    """

def plan_sequences(
    lengths: pa.Int64Array,
    repositories: pa.Int64Array,
    dependents: pa.Int64Array,
    dependencies: pa.Int64Array,
    sequence_length: int,
    slack: float,
) -> pa.RecordBatch:
    """The plan of one chunk as int64 rows (document, doc_offset, length, sequence), by sequence and document.

    `lengths` are the tokens of the documents in order of (repository, place), documents being named by
    their position there; `repositories` changes its value where another repository begins. Dependency i
    says that document `dependents[i]` depends on `dependencies[i]`. Documents above `sequence_length` are
    cut in full sequences and a remainder, all others stay whole. Up to the share `slack` more sequences
    than tokens require may be spent on bringing dependents and dependencies together.
    """

def plan_next_fit(
    lengths: pa.Int64Array, repositories: pa.Int64Array, sequence_length: int
) -> pa.RecordBatch:
    """Next-fit's plan of the same documents, to compare with: rows as those of `plan_sequences`."""

# -- pages of Parquet files (native/src/pages)
#
# Raised by all of it: KeyError for a column a file lacks, NotImplementedError for a file that is not read by
# page, ValueError for bytes that are not what a writer writes, OSError for a file that cannot be read,
# IndexError for a row, page or file beyond the last one. Each message is a sentence for a person.

class PageScan:
    """The search for a column's pages in one file whose bytes the caller reads."""

    def __init__(self, path: str, size: int, column: str, window: int) -> None:
        """`size` is the file's in bytes, `window` how many bytes of page headers are asked for at a time."""

    def wanted(self) -> list[tuple[int, int]]:
        """The byte ranges (begin, end) to push next; none once all pages are found."""

    def push(self, ranges: list[bytes]) -> None:
        """Take what the ranges of `wanted` hold, in their order."""

    row_groups: list[tuple[int, tuple[int, int] | None]]
    """Once ended, of each row group that has rows: their number, and the least and greatest value where the
    footer has them and they are integers without nulls."""

def scan_pages(paths: list[str], column: str) -> list[PageScan]:
    """Ended scans of local files, in the order of `paths`; several files are read at a time."""

def join_pages(column: str, scans: list[PageScan]) -> pa.UInt8Array:
    """The content of a `PageIndex` over ended scans, in their order."""

def join_indexes(contents: list[pa.UInt8Array]) -> pa.UInt8Array:
    """The content of one `PageIndex` over those of several, in their order.

    Raises NotImplementedError where they are not of one column and type.
    """

class PageCache:
    """Pages that are likely to be asked for again, of any number of indexes; safe for many threads."""

    used: int
    """Bytes of what is kept, at most the budget."""
    hits_and_misses: tuple[int, int]

    def __init__(self, budget: int) -> None:
        """`budget` in bytes."""

def gather_pages(
    kind: pa.DataType,
    n: int,
    parts: list[tuple[PageIndex, npt.NDArray[np.int64], npt.NDArray[np.int64], bool]],
    cache: PageCache,
) -> pa.Array:
    """An array of `n` rows of type `kind`, from rows of several indexes; null where none has a row.

    A part is an index, rows of it, where in the result each of them goes, and whether their pages are likely
    to be asked for again and are kept in `cache`. `kind` is the type of all indexes, or any of bytes and
    strings where theirs is one of them. Raises NotImplementedError for another type.
    """

class PageIndex:
    """Where every page of a column lies, over all files; reads those of local ones. Safe for many threads."""

    column: str
    n_rows: int
    n_pages: int
    n_files: int
    n_bytes: int
    """Bytes of the numbers it holds; names of files and the schema are left out."""
    type: pa.DataType
    """The Arrow type of a row."""
    read_so_far: tuple[int, int]
    """Pages and bytes that `read_pages` and `read_rows` have read, dictionary pages included."""

    def __init__(
        self,
        content: pa.UInt8Array,
        fetch: Callable[[Sequence[tuple[str, Sequence[tuple[int, int]]]]], list[list[bytes]]] | None = None,
    ) -> None:
        """Open what `join_pages` gave; the array's memory is used where it lies.

        `fetch` reads files that are not local: paths with byte ranges (begin, end) in, what they hold out.
        """

    def path(self, file: int) -> str:
        """A file's path."""

    def page(self, number: int) -> tuple[int, int, int, int, int]:
        """Of a page: file, row group, page in the row group, first row over all files, number of rows."""

    def byte_ranges(self, number: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """The bytes (begin, end) of a page and of its dictionary page, (0, 0) where there is none."""

    def page_of_row(self, row: int) -> int:
        """The page that holds a row, both over all files."""

    def decode(self, number: int, content: bytes, dictionary: bytes | None) -> pa.Array:
        """A page's rows from the bytes of `byte_ranges`."""

    def read_pages(self, numbers: npt.NDArray[np.int64]) -> list[pa.Array]:
        """The rows of each page, in the order asked for."""

    def read_rows(self, rows: npt.NDArray[np.int64]) -> pa.Array:
        """One array of the rows, in the order asked for; a row may be asked for more than once."""

# -- mixtures (native/src/blend/mixture.rs)

class MixturePlan:
    """What a blend does from some step on; made by `whole` or `schedule`."""

    n_sources: int
    rows_per_step: int
    weights: list[int] | None
    """Rows a step of each source; None for a schedule."""

    @staticmethod
    def whole(weights: list[int]) -> MixturePlan:
        """Fixed rows a step; raises ValueError for a negative number and a sum outside 1 to 2^20."""

    @staticmethod
    def schedule(
        kind: str, rows_per_step: int, steps: list[int], shares: npt.NDArray[np.int64]
    ) -> MixturePlan:
        """Shares that change: `kind` is constant, stepped, linear or cosine.

        `shares` has those of all sources for each of `steps` (ascending, counted from where the plan begins),
        one knot after another, in units of 2^-32. Raises ValueError where they do not sum to 2^32.
        """

class MixtureTimeline:
    """Plans, each from a step on; immutable, and what two share is held once."""

    n_sources: int
    starts: list[int]

    def __init__(self, starts: list[int], plans: list[MixturePlan]) -> None: ...
    def extended(self, starts: list[int], plans: list[MixturePlan]) -> MixtureTimeline:
        """With further plans, each in the place of those that begin where it does or later."""

    def plans(self, first: int) -> list[tuple[int, MixturePlan]]:
        """The plans from number `first` on, with the step each begins at."""

    def rows_per_step(self, step: int) -> int:
        """Rows of one step."""

    def first_row(self, step: int) -> int:
        """Rows of all steps before `step`; raises ValueError for one outside 0 to 2^42."""

    def piece_end(self, step: int) -> int:
        """Where the plan that holds `step` ends; 2^42 for the last."""

    def indivisible(self, offset: int, stop: int, ranks: int) -> tuple[int, int] | None:
        """First step and rows a step of the first plan of these steps that `ranks` does not divide."""

    def counts(self, rows: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> None:
        """Fill `counts`, row by row: how many of the first `rows[i]` rows are of each source."""

    def place(
        self,
        rows: npt.NDArray[np.int64],
        source: npt.NDArray[np.int64],
        index: npt.NDArray[np.int64],
    ) -> None:
        """Fill `source` and `index` with the source of each row and the index within the source."""

    def row_of(self, source: int, index: npt.NDArray[np.int64], row: npt.NDArray[np.int64]) -> None:
        """Fill `row` with the row that is each `index` of `source`, -1 where there is none."""

    def step_of(self, rows: npt.NDArray[np.int64], step: npt.NDArray[np.int64]) -> None:
        """Fill `step` with the step of each row."""

    def steps_within(self, source: int, rows: int) -> int | None:
        """Whole steps that need at most `rows` rows of `source`; None when any number does."""

# -- shuffles (native/src/blend/feistel.rs)

def feistel(values: npt.NDArray[np.int64], n: int, keys: list[int], inverse: bool) -> pa.Int64Array:
    """Of each position its item, or of each item its position, in a keyed permutation of 0 .. n-1.

    `keys` are 6 words of 64 bits, `n` is 2 to 2^62. Raises ValueError for a value outside 0 .. n-1.
    """

# -- dedup (native/src/dedup)

def bags(texts: pa.StringArray | pa.LargeStringArray, kind: str, max_distinct: int) -> pa.RecordBatch:
    """The bag of each text: (tokens list<int64>, counts list<int32>, n_tokens int64), null for a null text.

    Tokens are distinct 64-bit hashes, ascending as unsigned numbers. `kind` is `prose` (Unicode words,
    lower-cased), `code` (identifiers, numbers, words) or `cl100k_base` (tokens of that encoding, but for
    white space and punctuation), or `code-5grams` for five of them in a row. Above `max_distinct` tokens
    those of the smallest hashes stay, while `n_tokens` counts all with repetitions. Raises ValueError for
    another kind.
    """

class BagMaker:
    """Makes packed bags of texts, and spells each token where it first meets it, seldom again."""

    def __init__(self, kind: str, max_distinct: int, max_text_bytes: int) -> None: ...
    def make(self, texts: pa.StringArray | pa.LargeStringArray) -> pa.RecordBatch:
        """(n_tokens int64, bag binary, spellings binary) of each text; of null, those of an empty one.

        A packed bag has 9 bytes a token and 4 more. Tokens above `max_text_bytes` are not spelled.
        """

class TokenCounter:
    """Counts tokens over bags, for the vocabulary. Its length is about the number of distinct tokens held."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows (bag, spellings, copies), each bag as often as it has `copies`.

        Raises ValueError for bags or spellings that are none of `BagMaker`'s.
        """

    def drain(self) -> pa.RecordBatch:
        """(part int32, counts binary) since the last drain, by part: the first 8 bits of its tokens."""

def merge_counts(batch: pa.RecordBatch, text_documents: int) -> pa.RecordBatch:
    """(token int64, document_frequency int64, term_frequency int64, text string) of every token in `counts`.

    `batch` has rows of `TokenCounter.drain`, sorted by part, of whole parts. Tokens of a part come in order,
    as unsigned numbers; `text` is null for those in fewer than `text_documents` texts or that were not
    spelled. Raises ValueError for counts that are none.
    """

class IdfBuilder:
    """Builds a table of idf, which is ln(1 + n_documents / document frequency) of a token.

    It takes 16 bytes a token of two documents or more until it is finished.
    """

    def __init__(self) -> None: ...
    def add(self, tokens: pa.Int64Array, document_frequencies: pa.Int64Array) -> None:
        """Add tokens of a vocabulary. Raises ValueError for a frequency below 1 or above 4,294,967,295."""

    def finish(self, n_documents: int) -> pa.UInt8Array:
        """The table, eleven bytes a token of two documents or more, whatever the order of the tokens.

        A token that the table lacks weighs what one of a single document weighs. Raises ValueError for a
        token that came twice or is in more than `n_documents` documents.
        """

def sign_packed(
    bags: pa.BinaryArray | pa.LargeBinaryArray,
    idf: pa.UInt8Array,
    scheme: str,
    values: int,
    value_bits: int,
    seed: int,
) -> pa.RecordBatch:
    """The signature of each packed bag: (signature binary, n_distinct int64).

    A signature has `values` values (a power of two, 16 to 4096) of `value_bits` bits (1, 2, 4, 8 or 16), the
    first in the highest bits; null for a bag without tokens. `scheme` is `lpmh` or `cell_oph`; `idf` is a
    table of `IdfBuilder`. The rate at which two signatures of a scheme agree estimates the weighted Jaccard
    of the bags, weighted (1 + ln tf) * idf. Raises ValueError for a bad table, kind, scheme or size.
    """

def sign_bags(
    tokens: pa.Int64Array,
    weights: pa.DoubleArray,
    offsets: pa.Int64Array,
    scheme: str,
    values: int,
    value_bits: int,
    seed: int,
) -> pa.BinaryArray:
    """The signature of each weighted bag; bag i is `tokens[offsets[i]:offsets[i + 1]]`, tokens distinct.

    Null for an empty bag. Raises ValueError for a weight outside [2^-6, 2^30], or above 1,024 by `cell_oph`.
    """

class BucketParts:
    """Members of buckets as packed records (bucket, document); `len` is how many it holds.

    Rows (part, records) hold the records with the same first 12 bits (`native/src/dedup/packed_parts.rs`).
    """

    def add_documents(self, batch: pa.RecordBatch) -> None:
        """Take the rows (document, buckets) as members of their buckets."""

    def add_shared(self, batch: pa.RecordBatch) -> None:
        """Take the members of buckets that have several, of a whole part, the rows (part, records).

        Their buckets are named by the exclusive or of their members, so those of the same members are one.
        """

    def drain(self) -> pa.RecordBatch:
        """What it holds as rows (part, records), by part; it is empty then."""

    def __len__(self) -> int: ...

class BucketPairs:
    """Pairs of documents that meet in buckets; `len` is how many rows it holds, some of them repeated."""

    def __init__(self, pair_bucket: int) -> None:
        """Buckets of more than `pair_bucket` members give these instead of pairs."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a whole part, the rows (part, records)."""

    def drain(self) -> pa.RecordBatch:
        """What it holds as rows (part, records, crowded), by part; it is empty then.

        The records of pairs are those of `PairEnds`, two a pair; those of large buckets, which are `crowded`,
        are (bucket, document).
        """

    def __len__(self) -> int: ...

def bucket_members(batch: pa.RecordBatch) -> pa.RecordBatch:
    """(bucket, document) of the rows (part, records)."""

class PairEnds:
    """The ends of pairs as packed records (document, other); `len` is how many it holds."""

    def __init__(self) -> None: ...
    def add(self, batch: pa.RecordBatch) -> None:
        """Take pairs (document, other)."""

    def drain(self) -> pa.RecordBatch:
        """What it holds as rows (part, records), by part; it is empty then."""

    def __len__(self) -> int: ...

class Neighbours:
    """What is known of the neighbours of documents, as packed records; `len` is how many it holds."""

    def __init__(self) -> None: ...
    def add(self, batch: pa.RecordBatch) -> None:
        """Take the ends of a whole part, the rows (part, records)."""

    def drain(self) -> pa.RecordBatch:
        """What it holds as rows (part, records), by part of the neighbour; it is empty then.

        A record is (neighbour, document, the least of the document and its neighbours, how many these are).
        """

    def __len__(self) -> int: ...

class PairCells:
    """Cells in which pairs are compared, each pair in one; `len` is how many pairs and ends it holds."""

    def __init__(self) -> None: ...
    def add(self, batch: pa.RecordBatch) -> None:
        """Take the records of `Neighbours` of a whole part, the rows (part, records)."""

    def drain(self) -> pa.RecordBatch:
        """What it holds as rows (cell, document, others); it is empty then.

        A document has a row in every cell of its pairs. `others` are the greater ones of these, eight bytes
        each, little-endian.
        """

    def __len__(self) -> int: ...

class CrowdEdges:
    """The edges of crowds, whose members come best first: each is compared with leaders and a few followers.

    A member similar to no leader becomes one; there are leaders for each (least estimate, threshold) of
    `limits`. `neighbours` is the number of followers kept a leader.
    """

    def __init__(
        self, idf: pa.UInt8Array, value_bits: int, limits: list[tuple[float, float]], neighbours: int
    ) -> None: ...
    def add(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """(left, right, estimate, similarity) of the edges that the next members bring, left < right.

        `batch` has (cell int64, doc_id string, signature binary, bag binary); another cell is another crowd.
        """

def sampled_pairs(
    batch: pa.RecordBatch,
    sample: pa.RecordBatch,
    min_estimate: float,
    value_bits: int,
    band_bits: int,
    bands: int,
) -> pa.RecordBatch:
    """(sampled, other, estimate, met) of the documents of `batch` that look like one of `sample`.

    Both have (doc_id string, signature binary). `met` says whether the two agree in all of the `band_bits`
    bits of one of `bands` bands. Of two sampled documents the one with the greater id is the other. Raises
    ValueError for signatures of several lengths.
    """

class CandidatePairs:
    """Pairs of documents whose signatures look alike."""

    def __init__(self, batch: pa.RecordBatch, value_bits: int, least_estimate: float) -> None:
        """The pairs of `batch` whose signatures reach `least_estimate`, each once.

        `batch` has (document int64, others binary, doc_id string, signature binary). `others` are the
        documents to compare with, eight bytes each, little-endian; each has a row of its own. Raises
        ValueError where one has none, and where signatures differ in length.
        """

    @property
    def rows(self) -> pa.Int64Array:
        """The rows of the documents of these pairs, ascending, of a repeated document one."""

    def verify(self, bags: pa.BinaryArray, idf: pa.UInt8Array, threshold: float) -> pa.RecordBatch:
        """(left, right, estimate, similarity) of the pairs whose exact weighted Jaccard reaches `threshold`.

        `bags` are the packed bags of `rows`. left < right by `doc_id`.
        """

class UnionFind:
    """Connected components of edges that arrive in batches. Its length is the number of documents seen."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def add(self, batch: pa.RecordBatch) -> None:
        """Join the columns `left` and `right` of `batch` row by row."""

    def labels(self) -> pa.RecordBatch:
        """(doc_id, component) of every document seen; a component is named by its least id."""

def decide(batch: pa.RecordBatch, keep: str) -> pa.RecordBatch:
    """(doc_id, kept, duplicate_of, similarity) of the documents of `batch`, in their order.

    `batch` has (doc_id string, other string, similarity float64): documents without `other`, the best of a
    component first, and edges between them. `keep` is `independent_set` (a document is kept unless it is
    joined to a better kept one), `one_per_component` (the best of each) or `cover` (a greedy vertex cover,
    and documents without an edge). `duplicate_of` is the most similar kept neighbour of a removed one, of
    equally similar ones the best; the best of its component, and a null similarity, where it has none.
    Raises ValueError for another rule and for an edge to a document that is not there.
    """

def sweep(batch: pa.RecordBatch, keep: str, thresholds: list[float]) -> pa.RecordBatch:
    """What `decide` would do at each of `thresholds`, a row each, in their order.

    (threshold, similar_pairs, removed, removed_bytes, largest_component); `batch` also has (copies int64,
    n_bytes int64), read for documents: in a component one counts as its `copies`.
    """

# -- the text of C and C++ (native/src/depsort)

def c_without_comments(source: bytes) -> bytes:
    """The text with comments as single spaces and strings as `""`, but for the lines of includes."""

def c_words(text: bytes) -> dict[bytes, int]:
    """Every name of a text without comments with how often it stands there, in the order of the text.

    Behind `.` and `->` it is `.name`, behind `::` it counts as both. Numbers and their suffixes are no names.
    """

def c_declared_names(text: bytes) -> list[bytes]:
    """The names that a text seems to declare as parameters, members and local variables, each once."""

def c_outline(text: bytes) -> bytes:
    """A text without comments, directives, library marks and the function bodies that end at the margin."""

def c_functions(text: bytes) -> tuple[bytes, dict[bytes, int], dict[bytes, int], list[bytes]]:
    """What `c_outline` gives without the functions' heads and the prototypes, and the functions' names.

    These are: those made here, those announced, both with how often, and which of those made are `static`.
    """
