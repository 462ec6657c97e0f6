"""Which lexer and which weights tell a copy of a file from a file that only shares its setting.

Real files beside copies of them in which lines are replaced by lines of another file of the same folder, and
beside that other file itself. A good similarity stays high for few lines, falls with more, in every file by
the same, and is low for neighbours.
"""

from __future__ import annotations

import keyword
import random
import re
import sysconfig
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console

from bench.harness import Report, Row, table
from factory import _native
from factory.dedup.config import MAX_DISTINCT
from spark_udfs.ingest.installation import long_description

FILES = 600  # of a kind
KINDS = ("code", "prose")
LEAST_LENGTH, MOST_LENGTH = 1_500, 60_000
FEW, SOME = (0.03, 0.10), (0.18, 0.30)  # share of lines replaced
EVERY_SIGN = re.compile(r"\w+|[^\w\s]")
DEFAULT = "(1 + ln tf) * idf"
WEIGHTS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "1": lambda counts, _: np.ones(len(counts)),
    "tf": lambda counts, _: counts.astype(float),
    "idf": lambda _, idf: idf,
    "tf * idf": lambda counts, idf: counts * idf,
    DEFAULT: lambda counts, idf: (1 + np.log(counts)) * idf,
}
SIGNS = "words and signs"
LEXERS = {
    "code": ("code", SIGNS, "code-3grams", "code-5grams"),
    "prose": ("prose", SIGNS, "prose-3grams", "prose-5grams", "cl100k_base", "cl100k_base-3grams"),
}
IDENTIFIER_FACTORS = (1.5, 2.0, 3.0)
"""How much more than another word an identifier weighs."""
NO_IDENTIFIERS = re.compile(
    r"(?:\b[fFbBrRuU]{1,2})?(?:('{3}|\"{3})(?:\\.|[^\\])*?(?:\1|\Z)|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")"
    r"|#[^\n]*|\b\d\w*",
    re.DOTALL,
)
AT_SIGNS = re.compile(r"\.\s*([^\W\d]\w*)|([^\W\d]\w*)(?=\s*[(.\[=:])")
OF_SHAPE = re.compile(r"_|[a-z][A-Z]|[a-zA-Z]\d")
KEYWORDS = {*keyword.kwlist, *keyword.softkwlist}

Bag = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Case:
    """A file, a copy with few lines of another file, one with some, and the other file."""

    text: str
    few: str
    some: str
    other: str


def measure(progress: Console) -> Report:
    """Judge every lexer with every weighting, on code and on prose."""
    report = Report(
        caveats=[
            "Copies are made by replacing lines; real revisions also move and rename.",
            "`told apart` is the chance that a copy with few foreign lines is rated above a copy of any file "
            "with more: 1 is perfect, .5 is none.",
            "Identifiers are told in three ways: by Python's rules for strings, comments and keywords; by "
            "the sign beside them, as in .x, x(, x[, x. and x =; by their shape, as in a_b, aB and a1. What "
            "is one somewhere in a file is one in all of it.",
            "Shingles rate every copy lower, so `few >= .8` is no fault of theirs: they need a lower limit.",
        ],
        data=f"up to {FILES} files of either kind, {FEW[0]:.0%} to {FEW[1]:.0%} and {SOME[0]:.0%} to "
        f"{SOME[1]:.0%} of lines replaced",
    )
    for kind in KINDS:
        progress.print(f"{kind}: reading files")
        made = cases(kind)
        report.check(
            f"{kind}: {len(made)} files, no copy equal to its file", all(it.text != it.few for it in made)
        )
        shown = table(
            kind, "lexer", "weight", "told apart", "few >= .8", "neighbours, p99", "tokens", "MB/CPU s"
        )
        for lexer in LEXERS[kind]:
            progress.print(f"{kind}: {lexer}")
            texts = [text for it in made for text in (it.text, it.few, it.some, it.other)]
            bags = cut(lexer, texts)
            tokens = float(np.mean([len(tokens) for tokens, _ in bags]))
            speed = "" if lexer == SIGNS else f"{megabytes_a_second(lexer, texts):.0f}"
            weighted = [(name, judged(bags, weight)) for name, weight in WEIGHTS.items()]
            if lexer == "code":
                for way, told in IDENTIFIERS.items():
                    heavy = [tokens_of(told(text)) for text in texts]
                    weighted += [
                        (f"identifiers by {way} x {factor:g}", judged(bags, WEIGHTS[DEFAULT], heavy, factor))
                        for factor in IDENTIFIER_FACTORS
                    ]
            for name, (apart, found, near) in weighted:
                shown.add_row(
                    lexer, name, f"{apart:.4f}", f"{found:.3f}", f"{near:.3f}", f"{tokens:.0f}", speed
                )
                row = f"lexers.{kind}.{lexer}.{name}".replace(" ", "")
                report.rows.append(Row(f"{row}.told_apart", apart, "share of pairs"))
                report.rows.append(Row(f"{row}.few", found, "share of copies"))
                report.rows.append(Row(f"{row}.neighbours", near, "similarity, 99th percentile"))
        report.tables.append(shown)
    return report


def cases(kind: str) -> list[Case]:
    """Files with another of their folder, chosen by a hash of their content."""
    folders: dict[str, dict[bytes, str]] = defaultdict(dict)
    for folder, text in _modules() if kind == "code" else _descriptions():
        if LEAST_LENGTH <= len(text) <= MOST_LENGTH:
            folders[folder][blake2b(text.encode(), digest_size=8).digest()] = text
    beside = []
    for texts in folders.values():
        keys = sorted(texts)
        beside += [(key, texts[key], texts[other]) for key, other in pairwise(keys)]
    chosen = random.Random(2)
    return [
        Case(text, replaced(text, other, FEW, chosen), replaced(text, other, SOME, chosen), other)
        for _, text, other in sorted(beside)[:FILES]
    ]


def replaced(text: str, other: str, share: tuple[float, float], chosen: random.Random) -> str:
    """`text` with a share of its lines of letters replaced by lines of `other`, at least one."""
    lines, foreign = text.split("\n"), [line for line in other.split("\n") if line.strip()]
    full = [number for number, line in enumerate(lines) if line.strip()]
    for number in chosen.sample(full, max(1, round(chosen.uniform(*share) * len(full)))):
        lines[number] = chosen.choice(foreign) + "  "
    return "\n".join(lines)


def cut(lexer: str, texts: list[str]) -> list[Bag]:
    """The bag of each text, its tokens ascending."""
    if lexer == SIGNS:
        return [
            np.unique([hash_of(it) for it in EVERY_SIGN.findall(text)], return_counts=True) for text in texts
        ]
    made = _native.bags(pa.array(texts, pa.large_string()), lexer, MAX_DISTINCT)
    found = zip(made["tokens"], made["counts"], strict=True)
    return [_sorted(tokens.values.to_numpy(), counts.values.to_numpy()) for tokens, counts in found]


def megabytes_a_second(lexer: str, texts: list[str]) -> float:
    """Megabytes of text that the native lexer cuts and counts in a CPU second."""
    given = pa.array(texts, pa.large_string())
    began = time.process_time()
    _native.bags(given, lexer, MAX_DISTINCT)
    return sum(len(text.encode()) for text in texts) / 1e6 / (time.process_time() - began)


def by_rules(text: str) -> set[str]:
    """The words of Python code that are identifiers: none of a string, of a comment, nor a keyword."""
    return {*re.findall(r"\w+", NO_IDENTIFIERS.sub(" ", text))} - KEYWORDS


def by_signs(text: str) -> set[str]:
    """The words of code that stand beside a sign of it, whatever stands elsewhere."""
    return {before or behind for before, behind in AT_SIGNS.findall(text)} - KEYWORDS


def by_shape(text: str) -> set[str]:
    """The words that no prose has: with an underscore, a capital or a digit inside."""
    return {word for word in re.findall(r"\w+", text) if OF_SHAPE.search(word)}


IDENTIFIERS = {"rules": by_rules, "signs": by_signs, "shape": by_shape}


def tokens_of(words: set[str]) -> np.ndarray:
    """The tokens of words of code, ascending."""
    return cut("code", [" ".join(sorted(words))])[0][0]


def hash_of(word: str) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=7).digest())


def judged(
    bags: list[Bag],
    weight: Callable[[np.ndarray, np.ndarray], np.ndarray],
    heavy: list[np.ndarray] | None = None,
    factor: float = 1,
) -> tuple[float, float, float]:
    """(told apart, share of copies of few foreign lines above .8, similarity of neighbours at .99).

    Tokens of `heavy`, which has some for each bag, weigh `factor` times as much.
    """
    originals = bags[::4]
    tokens, frequencies = np.unique(np.concatenate([it for it, _ in originals]), return_counts=True)
    of_all = np.log(1 + len(originals) / np.append(frequencies, 1))

    def weighed(number: int) -> tuple[np.ndarray, np.ndarray]:
        bag = bags[number]
        place = np.searchsorted(tokens, bag[0])
        known = (place < len(tokens)) & (tokens[np.minimum(place, len(tokens) - 1)] == bag[0])
        weights = weight(bag[1], of_all[np.where(known, place, len(tokens))])
        if heavy is not None:
            weights = weights * np.where(np.isin(bag[0], heavy[number]), factor, 1)
        return bag[0], weights

    similarities = np.empty((len(originals), 3))
    for number in range(len(originals)):
        first, *rest = map(weighed, range(4 * number, 4 * number + 4))
        similarities[number] = [weighted_jaccard(first, other) for other in rest]
    few, some, other = similarities.T
    apart = (few[:, None] > some).mean() + (few[:, None] == some).mean() / 2
    return float(apart), float((few >= 0.8).mean()), float(np.quantile(other, 0.99))


def weighted_jaccard(left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray]) -> float:
    """sum min / sum max of two bags of ascending tokens."""
    _, here, there = np.intersect1d(left[0], right[0], assume_unique=True, return_indices=True)
    least = np.minimum(left[1][here], right[1][there]).sum()
    return float(least / (left[1].sum() + right[1].sum() - least))


def _sorted(tokens: np.ndarray, counts: np.ndarray) -> Bag:
    order = np.argsort(tokens)
    return tokens[order], counts[order]


def _modules() -> Iterable[tuple[str, str]]:
    """(folder, text) of Python's own and the installed modules."""
    for root in (Path(sysconfig.get_path("purelib")), Path(sysconfig.get_path("stdlib"))):
        for path in sorted(root.rglob("*.py")):
            if "site-packages" not in path.relative_to(root).parts and path.is_file():
                yield str(path.parent), path.read_bytes().decode(errors="replace")


def _descriptions() -> Iterable[tuple[str, str]]:
    """The long descriptions of installed packages, as if they were one folder."""
    for path in sorted(Path(sysconfig.get_path("purelib")).glob("*.dist-info/METADATA")):
        yield "", long_description(path.read_text(encoding="utf-8"))[0]
