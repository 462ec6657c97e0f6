"""n-gram models: the same bits as nltk's Witten-Bell on real text, and the speed of counting and scoring.

The text is the prose of installed files (`bench/filters/corpus.py`). nltk gets the same tokens; ours are
counted in one part and in eight.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from bench.filters.corpus import prose
from bench.harness import Report, Row, at_most, table
from bench.peers import NLTK
from factory import _native
from factory.models.ngram import ORDER, Merge, train_merges
from factory.models.ngram_model import LEAST_COUNT, VOCABULARY

Texts = Sequence[str]

MB = 1e6
SPEED_MB, MERGED_MB = 24, 4
TRAINED_KB, JUDGED_KB = 400, 60  # for nltk, which takes minutes for a megabyte
LONGEST = 20_000  # characters of a text
EQUAL = 1e-5  # relative
CAVEATS = [
    "Prose of installed packages, cut to 20,000 characters a text; one text in five is held out.",
    f"Speed: a vocabulary of {VOCABULARY:,} tokens, CPU seconds of one thread, the best of two. Counting "
    "includes cutting into tokens, and sorting the counts.",
    "nltk counts and scores the tokens that ours has made, so its seconds leave that work out.",
]


def measure(progress: Console) -> Report:
    """Compare bits with nltk's and measure speed. Raises WrongAnswer if they differ."""
    progress.print("gathering prose")
    texts = _texts(SPEED_MB)
    judging, training = texts[::5], [text for place, text in enumerate(texts) if place % 5]
    progress.print("training merges")
    merges = train_merges(iter(_first(training, MERGED_MB * MB)), VOCABULARY)
    report = Report(CAVEATS, f"{_mb(training):,.1f} MB counted, {_mb(judging):,.1f} MB scored")
    _add_equality(
        report, _first(training, TRAINED_KB * 1e3), _first(judging, JUDGED_KB * 1e3), merges, progress
    )
    _add_speed(report, training, judging, merges, progress)
    return report


def _add_equality(
    report: Report,
    training: Sequence[str],
    judging: Sequence[str],
    merges: Sequence[Merge],
    progress: Console,
) -> None:
    model = _model(_table(_counted(training, merges), least=1), merges)
    ours = model.bits(pa.array(judging)).to_pylist()
    progress.print("nltk on the same tokens")
    task = {
        "training": [_native.ngram_tokens(text, list(merges)) for text in training],
        "judging": [_native.ngram_tokens(text, list(merges)) for text in judging],
        "vocabulary": 256 + len(merges),
        "order": ORDER,
    }
    with tempfile.TemporaryDirectory(prefix="bench-perplexity-") as folder:
        file = Path(folder) / "task.json"
        file.write_text(json.dumps(task))
        theirs = NLTK.answer("bench.perplexity.peer", file, console=progress)
    distance = max(abs(a - b) / b for a, b in zip(ours, theirs["bits"], strict=True))
    n_bytes = _mb(judging) * MB
    report.check(f"the bits of {len(judging)} texts are nltk's within {EQUAL:g} of them", distance <= EQUAL)
    equal = table("The same text and tokens", " | bits per byte | counting s | scoring s")
    equal.add_row("ours", f"{sum(ours) / n_bytes:.5f}", "", "")
    equal.add_row(
        "nltk, interpolated Witten-Bell",
        f"{sum(theirs['bits']) / n_bytes:.5f}",
        f"{theirs['count_s']:.1f}",
        f"{theirs['score_s']:.1f}",
    )
    report.tables.append(equal)
    report.rows.append(at_most("perplexity.distance", distance, "relative", EQUAL))


def _add_speed(
    report: Report,
    training: Sequence[str],
    judging: Sequence[str],
    merges: Sequence[Merge],
    progress: Console,
) -> None:
    progress.print("counting in one part and in eight")
    count_s, counts = min((_timed_count(training, merges) for _ in range(2)), key=lambda pair: pair[0])
    parts = [_counted(training[part::8], merges) for part in range(8)]
    sums = [pa.concat_arrays([part.column(place) for part in parts]) for place in (0, 1)]
    ngrams = _table(counts, LEAST_COUNT)
    whole = _native.ngram_table(sums[0], sums[1], LEAST_COUNT)
    report.check("counts of eight parts make the model of one", whole.equals(ngrams))
    model = _model(ngrams, merges)
    progress.print("scoring")
    score_s = min(_timed_score(model, judging) for _ in range(2))
    bits = sum(model.bits(pa.array(judging)).to_pylist()) / (_mb(judging) * MB)
    speed = table(f"{len(ngrams):,} n-grams, {bits:.3f} bits per byte of held-out text", " | MB/CPU s")
    for name, megabytes, seconds in (
        ("counting", _mb(training), count_s),
        ("scoring", _mb(judging), score_s),
    ):
        speed.add_row(name, f"{megabytes / seconds:,.1f}")
        report.rows.append(Row(f"perplexity.{name}", round(megabytes / seconds, 1), "MB/CPU s"))
    report.rows.append(Row("perplexity.bits_per_byte", round(bits, 4), "bits"))
    report.tables.append(speed)


def _counted(texts: Sequence[str], merges: Sequence[Merge]) -> pa.RecordBatch:
    counter = _native.NgramCounter(list(merges))
    counter.add(pa.array(texts))
    return counter.counts()


def _timed_count(texts: Sequence[str], merges: Sequence[Merge]) -> tuple[float, pa.RecordBatch]:
    began = time.process_time()
    counts = _counted(texts, merges)
    return time.process_time() - began, counts


def _timed_score(model: _native.NgramModel, texts: Sequence[str]) -> float:
    array = pa.array(texts)
    began = time.process_time()
    model.bits(array)
    return time.process_time() - began


def _table(counts: pa.RecordBatch, least: int) -> pa.RecordBatch:
    return _native.ngram_table(counts["ngram"], counts["count"], least)


def _model(ngrams: pa.RecordBatch, merges: Sequence[Merge]) -> _native.NgramModel:
    return _native.NgramModel(list(merges), ngrams["ngram"], ngrams["count"])


def _texts(megabytes: float) -> list[str]:
    return _first(islice((text[:LONGEST] for text in prose()), 100_000), megabytes * MB)


def _first(texts: Sequence[str] | islice[str], n_bytes: float) -> list[str]:
    """The first texts that have `n_bytes` together."""
    first = []
    for text in texts:
        first.append(text)
        n_bytes -= len(text.encode())
        if n_bytes <= 0:
            break
    return first


def _mb(texts: Sequence[str]) -> float:
    return sum(len(text.encode()) for text in texts) / MB
