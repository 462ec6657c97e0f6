"""The native kernels: Arrow or bytes in and out, without settings (sources: `native/src`)."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__source_hashes__: dict[str, str]
"""A hash of the sources behind each function and class; a table's code version has those of its kernels."""

def fingerprint(batch: pa.RecordBatch, columns: list[str]) -> bytes:
    """Return the sum over the rows of `batch` of a 128-bit hash of `columns`, as 16 little-endian bytes.

    The sum does not depend on row order, column order or the physical width of integers and strings; nulls
    add nothing. Raises ValueError for an unknown column or a type without a fingerprint.
    """

def first_changed_text(texts: pa.StringArray | pa.BinaryArray, hashes: pa.StringArray) -> int | None:
    """Return the first row whose text has another content hash than its row of `hashes`, None if none has.

    A content hash is the BLAKE2b-128 of a text's bytes as 32 hex digits; a null text has none, and nothing is
    compared with a null hash. Raises ValueError for arrays of other types or of different lengths.
    """

def text_signals(texts: pa.StringArray | pa.LargeStringArray, names: list[str]) -> pa.RecordBatch:
    """Return the signals `names` of each text: one nullable float64 column per name, in that order.

    A signal is the number that the filter rule of the same name measures (`docs/filters.md`). A null text
    has null values, and so has a text to which a signal does not apply. Raises ValueError for an unknown
    name, an array of another type or a text of more than 4 GiB.
    """

def text_signal_names() -> list[str]:
    """Return the names of all signals."""

def advert_phrases() -> list[str]:
    """Return the phrases that `advert_calls` counts: words in small letters, a space between two."""

def character_boundaries(kind: str) -> list[int]:
    """Return the code points where the ranges of a class of characters begin and end, ascending.

    Even positions begin a range, odd ones end it (exclusive). `kind` is `space` (White_Space), `letter`
    (Alphabetic), `alphanumeric` (letters and all numbers), `lowercase` (Lowercase) or `terminal` (marks that
    end a sentence); raises ValueError for others.
    """

# -- models (native/src/models)

def token_hashes(text: str) -> list[tuple[int, int, int]]:
    """Return (hash, begin, end) of each token of `text`, in order; the places are in bytes of UTF-8.

    `factory/models/hashing.py` defines tokens and hashes.
    """

def token_classes() -> list[tuple[int, int]]:
    """Return (first code point, class) of every range of characters of one class, ascending.

    Class 0 separates tokens, 1 belongs to a run, 2 is a token by itself.
    """

def lower_cases() -> list[tuple[str, str]]:
    """Return every character whose lower case is another, with that lower case."""

def hashed_features(texts: pa.StringArray | pa.LargeStringArray, bits: int) -> pa.ListArray:
    """Return the distinct buckets, of 2^`bits`, of the 1- and 2-grams of each text: lists of uint32.

    In the order of first occurrence; null for a null text. Raises ValueError for `bits` beyond 1 to 28 and
    for an array of another type.
    """

def hashed_ngrams(text: str, bits: int) -> list[tuple[int, int, int]]:
    """Return (bucket, begin, end) of the first n-gram of each distinct bucket, in the order of the text.

    The places are in bytes of UTF-8. Raises ValueError for `bits` beyond 1 to 28.
    """

class LinearModels:
    """Linear models over the same hashed features."""

    def __init__(self, bits: int, weights: list[bytes], intercepts: list[float]) -> None:
        """Make models of `weights`, each 2^`bits` little-endian float32, and one intercept each.

        Raises ValueError for weights of another length, or that are not finite.
        """

    def scores(self, texts: pa.StringArray | pa.LargeStringArray, least_tokens: int) -> pa.RecordBatch:
        """Return a nullable float64 column a model: the intercept plus the weights of the text's features.

        A text that is null or has fewer than `least_tokens` tokens has null scores.
        """

def hashed_counts(texts: pa.StringArray | pa.LargeStringArray, bits: int) -> pa.RecordBatch:
    """Return (buckets, counts), lists of uint32: how often each bucket of a text's 1- and 2-grams occurs.

    `factory/models/lsa.py` defines the counts. In the order of first occurrence; null for a null text. Raises
    ValueError for `bits` beyond 1 to 24 and for an array of another type.
    """

class LsaModel:
    """A projection of hashed counts to vectors, as `factory/models/lsa.py` defines it."""

    def __init__(self, bits: int, projection: bytes) -> None:
        """Make the model of (2^`bits`, d) little-endian bfloat16, the first halves of float32.

        Raises ValueError for `bits` beyond 1 to 24, another number of bytes, and a number that is not finite.
        """

    @property
    def dimensions(self) -> int:
        """d, the numbers of a vector."""

    def embed(self, texts: pa.StringArray | pa.LargeStringArray) -> pa.FloatArray:
        """Return the vectors of the texts, one after the other; d zeros for null and without a known token.

        Raises ValueError for an array of another type.
        """

class WordList:
    """A list of words and phrases to search texts for, as `factory/models/word_list.py` defines it."""

    def __init__(self, entries: list[str]) -> None:
        """Raises ValueError for an entry without a letter or number."""

    def counts(self, texts: pa.StringArray | pa.LargeStringArray) -> pa.ListArray:
        """Return for each text its number of tokens, then the number of each entry found: lists of int64.

        Null for a null text. Raises ValueError for an array of another type.
        """

    def places(self, text: str) -> list[tuple[int, int, int]]:
        """Return (entry, begin, end) of each entry found, in order; the places are in bytes of UTF-8."""

def ngram_tokens(text: str, merges: list[tuple[int, int]]) -> list[int]:
    """Return the tokens of a text, as `factory/models/ngram.py` defines them.

    Raises ValueError for merges of tokens that are not made before, or more than 3,840.
    """

class NgramCounter:
    """Counts the longest n-gram that ends at each position of texts, of at most five tokens."""

    def __init__(self, merges: list[tuple[int, int]]) -> None:
        """Raises ValueError for impossible merges."""

    def add(self, texts: pa.StringArray | pa.LargeStringArray) -> None:
        """Count the n-grams of texts; a null text has none."""

    def counts(self) -> pa.RecordBatch:
        """Return (ngram, count), both int64, by ngram: 60 bits for its tokens, above them their number."""

def ngram_table(ngrams: pa.Int64Array, counts: pa.Int64Array, least: int) -> pa.RecordBatch:
    """Return (ngram, count) of n-grams of all lengths, from added up counts of the longest.

    Those of three tokens and more that occur fewer than `least` times are left out. Raises ValueError for a
    number that is no n-gram, and for a count below 1.
    """

class NgramModel:
    """Interpolated Witten-Bell probabilities of the tokens of texts."""

    def __init__(self, merges: list[tuple[int, int]], ngrams: pa.Int64Array, counts: pa.Int64Array) -> None:
        """Make the model of a table of n-grams of all lengths. Raises ValueError for one that is damaged."""

    def bits(self, texts: pa.StringArray | pa.LargeStringArray) -> pa.DoubleArray:
        """Return the bits of each text, null for a null text; relative error 1e-6."""

    def token_bits(self, text: str) -> list[tuple[int, int, float]]:
        """Return (begin, end, bits) of each token of a text; the places are in bytes of UTF-8."""

class NgramProxy:
    """The same probabilities, before and after the model continues on other texts."""

    def __init__(self, merges: list[tuple[int, int]], ngrams: pa.Int64Array, counts: pa.Int64Array) -> None:
        """Hold the counts of a table of n-grams of all lengths. Raises ValueError for one that is damaged."""

    def losses(
        self,
        a: pa.StringArray | pa.LargeStringArray,
        b: pa.StringArray | pa.LargeStringArray,
        weight: float,
    ) -> pa.RecordBatch:
        """Return (before, after), the bits of each text of `b`, null for a null text.

        Before, the model has its own counts; after, also those of all n-grams of `a`, times `weight`. The
        cost is that of the texts. Raises ValueError for a weight that is not above 0.
        """

# -- packing (native/src/packing)

def best_fit_decreasing(lengths: pa.Int64Array, sequence_length: int) -> pa.UInt32Array:
    """Return the sequence of each piece by best-fit decreasing, in order of opening; null for length zero.

    Raises ValueError for a length that is null, negative or above `sequence_length` tokens.
    """

def fewest_sequences(lengths: pa.Int64Array, sequence_length: int) -> pa.UInt32Array:
    """Return the sequence of each piece, in at most as many sequences as `best_fit_decreasing` needs.

    Where best-fit decreasing leaves gaps, sequences are filled to their last token one after another.
    """

def plan_sequences(
    lengths: pa.Int64Array,
    repositories: pa.Int64Array,
    dependents: pa.Int64Array,
    dependencies: pa.Int64Array,
    sequence_length: int,
    most_sequences: int,
) -> pa.RecordBatch:
    """Return int64 rows (document, doc_offset, length, sequence), the plan of a chunk, sorted by sequence.

    `lengths` has the tokens of each document in order of (repository, position); a document's number is its
    position in it. `repositories` changes its value where a repository begins. Document `dependents[i]`
    depends on `dependencies[i]`. Documents above `sequence_length` are cut into full sequences and a
    remainder, all others stay whole. To bring dependents and dependencies together, the plan may spend more
    sequences than it needs, up to `most_sequences`, which is zero or more.
    """

# -- pages of Parquet files (native/src/pages)
#
# All of it raises KeyError for a missing column, NotImplementedError for a layout not supported page by page,
# ValueError for damaged bytes, OSError for an unreadable file, IndexError beyond the last row, page or file.

class PageScan:
    """A search for a column's pages in one file; the caller reads the bytes."""

    def __init__(self, path: str, size: int, column: str, window: int) -> None:
        """`size` is the file's, `window` the bytes of page headers to request at a time, both in bytes."""

    def wanted(self) -> list[tuple[int, int]]:
        """Return the byte ranges (begin, end) to push next; empty once all pages are found."""

    def push(self, ranges: list[bytes]) -> None:
        """Take the bytes of the ranges of `wanted`, in that order."""

    row_groups: list[tuple[int, tuple[int, int] | None]]
    """After the search, for each row group with rows: their number, and the least and greatest value if the
    footer has them and they are integers without nulls."""

def scan_pages(paths: list[str], column: str) -> list[PageScan]:
    """Return finished scans of local files, in the order of `paths`; reads several files at a time."""

def join_pages(column: str, scans: list[PageScan]) -> pa.UInt8Array:
    """Return the content of a `PageIndex` over finished scans, in their order."""

def join_indexes(contents: list[pa.UInt8Array]) -> pa.UInt8Array:
    """Return the content of one `PageIndex` that joins several, in their order.

    Raises NotImplementedError unless all have one column and type.
    """

class PageCache:
    """A cache of pages and dictionaries of any number of indexes; safe for many threads."""

    used: int
    """Bytes of all cached pages and dictionaries, at most the budget."""
    hits_and_misses: tuple[int, int]
    """Requests for pages in the cache, and pages made."""

    def __init__(self, budget: int) -> None:
        """`budget` in bytes."""

def gather_pages(
    kind: pa.DataType,
    n: int,
    parts: list[tuple[PageIndex, npt.NDArray[np.int64], npt.NDArray[np.int64], bool]],
    cache: PageCache,
) -> pa.Array:
    """Return an array of `n` rows of type `kind`, from rows of several indexes; other positions are null.

    A part is an index, rows of it, the position of each row in the result, and whether to keep their pages
    in `cache` for further requests; their dictionaries always stay there, within its budget. `kind` is the
    type of all indexes, or any type of bytes or strings if theirs are such types. Raises NotImplementedError
    for another type, IndexError for more than 2 GiB of values in a type with offsets of 32 bits.
    """

class PageIndex:
    """The location of every page of a column, over all files, and a reader of them. Safe for many threads."""

    column: str
    n_rows: int
    n_pages: int
    n_files: int
    n_bytes: int
    """Bytes of its numbers, without the names of files and the schema."""
    type: pa.DataType
    """The Arrow type of a row; of its values if the writer's array was a dictionary or had views."""
    read_so_far: tuple[int, int]
    """Pages and bytes that `read_pages` and `read_rows` have read, including dictionary pages."""

    def __init__(
        self,
        content: pa.UInt8Array,
        fetch: Callable[[Sequence[tuple[str, Sequence[tuple[int, int]]]]], list[list[bytes]]] | None = None,
    ) -> None:
        """Open the result of `join_pages`, without a copy.

        `fetch` reads files that are not local: paths with byte ranges (begin, end) in, their bytes out.
        """

    def path(self, file: int) -> str:
        """Return a file's path."""

    def page(self, number: int) -> tuple[int, int, int, int, int]:
        """Return a page's (file, row group, number in it, first row over all files, number of rows)."""

    def byte_ranges(self, number: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the byte ranges (begin, end) of a page and of its dictionary page, (0, 0) without one."""

    def page_of_row(self, row: int) -> int:
        """Return the page that holds a row, both numbered over all files."""

    def decode(self, number: int, content: bytes, dictionary: bytes | None) -> pa.Array:
        """Return a page's rows from the bytes of `byte_ranges`."""

    def read_pages(self, numbers: npt.NDArray[np.int64], cache: PageCache | None = None) -> list[pa.Array]:
        """Return the rows of each page, in the order of `numbers`.

        `cache` keeps their dictionaries; without it the index keeps up to 16 MiB of them.
        """

    def read_rows(self, rows: npt.NDArray[np.int64]) -> pa.Array:
        """Return one array of `rows`, in that order; rows may repeat."""

# -- mixtures (native/src/blend/mixture.rs)

class MixturePlan:
    """The mixture of a blend from some step on, made by `whole` or `schedule`."""

    n_sources: int
    rows_per_step: int
    weights: list[int] | None
    """Rows per step of each source; None for a schedule."""

    @staticmethod
    def whole(weights: list[int]) -> MixturePlan:
        """Return a plan of fixed rows per step; raises ValueError for a negative one or a sum beyond 2^20."""

    @staticmethod
    def schedule(
        kind: str, rows_per_step: int, steps: list[int], shares: npt.NDArray[np.int64]
    ) -> MixturePlan:
        """Return a plan of changing shares; `kind` is constant, stepped, linear or cosine.

        `shares` has the shares of all sources at each of `steps` (ascending, counted from the plan's begin),
        one knot after another, in units of 2^-32. Raises ValueError unless each knot sums to 2^32.
        """

class MixtureTimeline:
    """Plans, each from a step on; immutable, and timelines share equal plans in memory."""

    n_sources: int
    starts: list[int]

    def __init__(self, starts: list[int], plans: list[MixturePlan]) -> None: ...
    def extended(self, starts: list[int], plans: list[MixturePlan]) -> MixtureTimeline:
        """Return a timeline with further plans, each replacing all plans that begin at its step or later."""

    def plans(self, first: int) -> list[tuple[int, MixturePlan]]:
        """Return the plans from number `first` on, each with its first step."""

    def rows_per_step(self, step: int) -> int:
        """Return the rows of one step."""

    def first_row(self, step: int) -> int:
        """Return the rows of all steps before `step`; raises ValueError outside 0 to 2^42."""

    def piece_end(self, step: int) -> int:
        """Return the end of the plan that holds `step`; 2^42 for the last."""

    def indivisible(self, offset: int, stop: int, ranks: int) -> tuple[int, int] | None:
        """Return first step and rows per step of the first plan whose rows `ranks` does not divide."""

    def counts(self, rows: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> None:
        """Fill `counts`, row by row, with the number of each source's rows among the first `rows[i]` rows."""

    def place(
        self,
        rows: npt.NDArray[np.int64],
        source: npt.NDArray[np.int64],
        index: npt.NDArray[np.int64],
    ) -> None:
        """Fill `source` and `index` with the source of each row and the index within the source."""

    def row_of(self, source: int, index: npt.NDArray[np.int64], row: npt.NDArray[np.int64]) -> None:
        """Fill `row` with the row of each `index` of `source`, -1 where the blend never reaches it."""

    def step_of(self, rows: npt.NDArray[np.int64], step: npt.NDArray[np.int64]) -> None:
        """Fill `step` with the step of each row."""

    def steps_within(self, source: int, rows: int) -> int | None:
        """Return how many whole steps need at most `rows` rows of `source`; None if any number does."""

# -- loading plans (native/src/loading)
#
# `ends` are the ends of consecutive groups of rows; the last end is the number of rows. Every group is placed
# in `bins` bins of its own, numbered from 0 in each group, on up to `threads` threads, whose number never
# changes the result. Ties go to the lower row, then to the lower bin; no sum of costs overflows.

def balance_greedy(
    costs: pa.UInt64Array,
    ends: list[int],
    bins: int,
    *,
    memory: pa.UInt64Array | None = None,
    limit: int | None = None,
    equal_counts: bool = False,
    threads: int = 1,
) -> pa.UInt32Array:
    """Return the bin of each row: from the costliest to the cheapest, each goes to the bin of the least load.

    With `equal_counts`, all bins of a group get the same number of rows. `memory` has a number for each row,
    in the unit of `limit`; no bin holds rows of more memory than `limit`. If a row then finds no room, the
    rows of its group are placed again by descending memory, those of equal memory by descending cost.

    Raises ValueError for arguments that contradict each other, and with `equal_counts` for bins that do not
    divide a group. Raises LookupError, whose sentence names the row, for a row above `limit` on its own and
    for a row that finds no room the second time.
    """

def balance_karmarkar_karp(
    costs: pa.UInt64Array, ends: list[int], bins: int, *, threads: int = 1
) -> pa.UInt32Array:
    """Return the bin of each row by the largest differencing method; the lowest rows number the bins.

    Raises ValueError for a group whose rows times `bins` exceed 10^8.
    """

# -- shuffles (native/src/blend/feistel.rs)

def feistel(
    values: npt.NDArray[np.int64], parts: list[tuple[int, int, int, list[int]]], inverse: bool
) -> pa.Int64Array:
    """Return the item of each position, or the position of each item, in keyed permutations.

    A part is (begin, end, n, keys): values `begin` to `end` are permuted in 0 .. n-1 by 6 words of 64 bits;
    values of no part stay. `n` is 2 to 2^62. Raises ValueError for a value outside 0 .. n-1, and for a part
    outside the values.
    """

# -- dedup (native/src/dedup)

def lexer_tokens(text: str, kind: str) -> list[str]:
    """Return the tokens of a text, in order, as the vocabulary spells them; `kind` as in `BagMaker`."""

class BagMaker:
    """Makes packed bags of texts, and spells each token at its first occurrence, rarely again.

    Tokens are 64-bit hashes. `kind` is `prose` (Unicode words in one case), `code` (identifiers, numbers,
    words) or `cl100k_base` (tokens of that encoding without white space and punctuation, and words beyond
    ASCII), or `code-5grams` for five of them in a row. A bag keeps the `max_distinct` tokens of the
    smallest hashes, while `n_tokens` counts all tokens with repetitions. Raises ValueError for another kind.
    """

    def __init__(self, kind: str, max_distinct: int, max_text_bytes: int) -> None: ...
    def make(self, texts: pa.StringArray | pa.LargeStringArray) -> pa.RecordBatch:
        """Return (n_tokens int64, bag binary, token_texts binary) of each text; null counts as empty.

        A packed bag has 4 bytes and 9 more per token. Tokens above `max_text_bytes` bytes are not spelled.
        """

class TokenCounter:
    """Counts tokens over bags, for the vocabulary. Its length is about its number of distinct tokens."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows (bag, token_texts, copies), each bag `copies` times.

        Raises ValueError for bags or token_texts that `BagMaker` did not make.
        """

    def drain(self) -> pa.RecordBatch:
        """Return (part int32, counts binary) since the last drain; parts are first bytes of tokens."""

def merge_counts(batch: pa.RecordBatch, text_documents: int) -> pa.RecordBatch:
    """Return (token int64, document_frequency int64, term_frequency int64, text string) of every token.

    `batch` has rows of `TokenCounter.drain`, sorted by part, of whole parts. Tokens of a part ascend as
    unsigned numbers; `text` is null for tokens in fewer than `text_documents` texts and for tokens without a
    spelling. Raises ValueError for invalid counts.
    """

class IdfBuilder:
    """Builds a table of idf: ln(1 + n_documents / document frequency) of each token.

    It takes 16 bytes per token of two documents or more until `finish`.
    """

    def __init__(self) -> None: ...
    def add(self, tokens: pa.Int64Array, document_frequencies: pa.Int64Array) -> None:
        """Add tokens of a vocabulary. Raises ValueError for a frequency below 1 or above 4,294,967,295."""

    def finish(self, n_documents: int) -> pa.UInt8Array:
        """Return the table, eleven bytes per token of two documents or more, whatever their order.

        A missing token has the weight of a token of one document. Raises ValueError for a token added twice
        or found in more than `n_documents` documents.
        """

def sign_packed(
    bags: pa.BinaryArray | pa.LargeBinaryArray,
    idf: pa.UInt8Array,
    scheme: str,
    values: int,
    value_bits: int,
    seed: int,
) -> pa.RecordBatch:
    """Return the signature of each packed bag: (signature binary, n_distinct int64).

    A signature has `values` values (a power of two, 16 to 4096) of `value_bits` bits (1, 2, 4, 8 or 16), the
    first in the highest bits; null for a bag without tokens. `scheme` is `lpmh` or `cell_oph`; `idf` is a
    table of `IdfBuilder`. The rate of agreement of two signatures of a scheme estimates the weighted Jaccard
    of the bags, with weights (1 + ln tf) * idf. Raises ValueError for an invalid table, scheme or size.
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
    """Return the signature of each bag; bag i is `tokens[offsets[i]:offsets[i + 1]]`, without repetitions.

    Null for an empty bag. Raises ValueError for a weight outside [2^-6, 2^30], or above 1,024 by `cell_oph`.
    """

class RecordParts:
    """Packed records of numbers; `len` is their number.

    Rows (part, records) share the first 12 bits of their records (`native/src/dedup/pairs/packed_parts.rs`).
    """

    def __init__(self) -> None: ...
    def add_documents(self, batch: pa.RecordBatch) -> None:
        """Add (bucket, document) for every bucket of the rows (document, buckets)."""

    def add_shared(self, batch: pa.RecordBatch) -> None:
        """Add (bucket, document) of the buckets with several members, from the rows of a whole part.

        The exclusive or of its members becomes a bucket's name, so buckets with the same members become one.
        """

    def add_pairs(self, batch: pa.RecordBatch) -> None:
        """Add both ends (document, other) of the pairs (document, other)."""

    def add_neighbours(self, batch: pa.RecordBatch) -> None:
        """Announce documents to their neighbours, from the ends of a whole part, the rows (part, records).

        A record is (neighbour, document, least of the document and its neighbours, number of its
        neighbours).
        """

    def drain(self) -> pa.RecordBatch:
        """Remove all rows (part, records) and return them by part."""

    def __len__(self) -> int: ...

class BucketPairs:
    """Pairs of documents that share buckets; `len` is the number of rows, including some repetitions."""

    def __init__(self, pair_bucket: int) -> None:
        """Buckets of more than `pair_bucket` members give their members instead of pairs."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a whole part, the rows (part, records)."""

    def drain(self) -> pa.RecordBatch:
        """Remove all rows (part, records, large) and return them by part.

        A pair is two records, one for each end; a `large` record is a (bucket, document) of a large bucket.
        """

    def __len__(self) -> int: ...

def bucket_members(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return (bucket, document) of the rows (part, records)."""

class PairCells:
    """Cells in which pairs are compared, each pair in one; `len` is the number of pairs and ends."""

    def __init__(self) -> None: ...
    def add(self, batch: pa.RecordBatch) -> None:
        """Add the records of `RecordParts.add_neighbours` of a whole part, the rows (part, records)."""

    def drain(self) -> pa.RecordBatch:
        """Remove all rows (cell, document, others) and return them.

        A document has a row in every cell of its pairs. `others` are the greater documents of these pairs,
        eight bytes each, little-endian.
        """

    def __len__(self) -> int: ...

class LargeBucketEdges:
    """The edges of large buckets: members come best first, each compared with leaders and a few followers.

    A member without a similar leader becomes a leader; each (least estimate, threshold, decides) of `limits`
    has its own leaders. A member is compared with the signatures of at most `signatures` leaders, with `bags`
    bags and with `neighbours` followers; `held_bytes` bounds the memory of members. A threshold that does not
    decide has a sixteenth of the bounds.
    """

    def __init__(
        self,
        idf: pa.UInt8Array,
        value_bits: int,
        limits: list[tuple[float, float, bool]],
        signatures: int,
        bags: int,
        neighbours: int,
        held_bytes: int,
    ) -> None: ...
    def add(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return edges (cell, left, right, estimate, similarity) and members (cell, left, open, uncompared).

        `batch` has (cell int64, part int64, leads bool, shown bool, open int64, uncompared int64, buckets
        list<int64>, doc_id string, signature binary, bag binary); each part of a cell begins anew. A member
        is compared at the thresholds whose bits are `open`; it becomes a leader or follower only if it
        `leads`, and has rows only if it is `shown`. Such a member has no similar leader at a threshold that
        decides: `open` has the bits of these thresholds, 0 for a leader, and `uncompared` the number of
        leaders left out, added to that of the batch. A leader that leaves out nothing has no row.
        """

def sampled_pairs(
    batch: pa.RecordBatch,
    sample: pa.RecordBatch,
    min_estimate: float,
    value_bits: int,
    band_bits: int,
    bands: int,
) -> pa.RecordBatch:
    """Return (sampled, other, estimate, shares_bucket) of the documents of `batch` like one of `sample`.

    Both have (doc_id string, signature binary). `shares_bucket` says whether the two agree in all of the
    `band_bits` bits of some of the `bands` bands. Of two sampled documents, `other` is the one with the
    greater id. Raises ValueError for signatures of several lengths.
    """

class CandidatePairs:
    """Pairs of documents whose signatures reach an estimate."""

    def __init__(self, batch: pa.RecordBatch, value_bits: int, least_estimate: float) -> None:
        """Find the pairs of `batch` whose signatures reach `least_estimate`, each once.

        `batch` has (document int64, others binary, doc_id string, signature binary). `others` are the
        documents to compare with, eight bytes each, little-endian; each must have a row. Raises ValueError
        for a missing row, and for signatures of several lengths.
        """

    @property
    def rows(self) -> pa.Int64Array:
        """The rows of the documents of these pairs, ascending, one per document."""

    def verify(self, bags: pa.BinaryArray, idf: pa.UInt8Array, threshold: float) -> pa.RecordBatch:
        """Return (left, right, estimate, similarity) of pairs with a weighted Jaccard of `threshold` or more.

        `bags` are the packed bags of `rows`. left < right by `doc_id`.
        """

class UnionFind:
    """Connected components of edges that arrive in batches. Its length is the number of documents seen."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def add(self, batch: pa.RecordBatch) -> None:
        """Join the columns `left` and `right` of `batch` row by row."""

    def labels(self) -> pa.RecordBatch:
        """Return (doc_id, component) of every document seen; a component's name is its least id."""

def decide(batch: pa.RecordBatch, keep: str) -> pa.RecordBatch:
    """Return (doc_id, kept, duplicate_of, similarity) of the documents of `batch`, in their order.

    `batch` has (doc_id string, other string, similarity float64): documents without `other`, the best of a
    component first, and edges between them. `keep` is `independent_set` (a document is kept unless a better
    kept one is its neighbour), `one_per_component` (the best of each) or `cover` (a greedy vertex cover, and
    documents without an edge). `duplicate_of` is a removed document's most similar kept neighbour, the best
    of several; without a kept neighbour, the best of its component, with a null similarity. Raises
    ValueError for an unknown rule and for an edge to an unknown document.
    """

def sweep(batch: pa.RecordBatch, keep: str, thresholds: list[float]) -> pa.RecordBatch:
    """Return the outcome of `decide` at each of `thresholds`, one row each, in their order.

    (threshold, similar_pairs, removed, removed_bytes, largest_component); documents of `batch` also have
    (copies int64, n_bytes int64), and count `copies` times in a component.
    """

# -- the text of C and C++ (native/src/depsort)

def c_without_comments(source: bytes) -> bytes:
    """Return the text with comments as single spaces and strings as `""`, except in the lines of includes."""

def c_words(text: bytes) -> dict[bytes, int]:
    """Return every name of a text without comments with its number of occurrences, in order.

    A name after `.` and `->` is `.name`, after `::` it counts as both. Numbers and their suffixes do not
    count.
    """

def c_declared_names(text: bytes) -> list[bytes]:
    """Return the names that a text seems to declare as parameters, members and local variables, each once."""

def c_outline(text: bytes) -> bytes:
    """Return a text without directives, library marks and function bodies that end at the margin."""

def c_functions(text: bytes) -> tuple[bytes, dict[bytes, int], dict[bytes, int], list[bytes]]:
    """Return the outline without the functions' heads and prototypes, and the functions' names.

    The names are: defined ones and declared ones, both with their numbers, and the defined ones that are
    `static`.
    """
