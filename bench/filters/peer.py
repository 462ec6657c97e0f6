"""The cost of datatrove's four heuristic filters, and how verdicts differ; run in its environment.

Arguments: `shipped` or `apart`, and a Parquet file (doc_id, text). `shipped` runs the four as a pipeline,
each on the documents that the one before kept. `apart` runs each on every text; a third argument, a JSON
file, holds our failing rules by document and filter, from which it finds the cause of each disagreement. It
also runs the sets `datatrove_*`, whose first failing rule should be datatrove's reason. Both print one JSON
line, with the CPU seconds after a first document, which loads spaCy.
"""

from __future__ import annotations

import json
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)
from datatrove.pipeline.readers import ParquetReader
from datatrove.utils.text import (
    PUNCTUATION_SET,
    TERMINAL_PUNCTUATION,
    split_into_sentences,
    split_into_words,
)

from bench.filters.causes import FILTERS, NONE, REASONS, Theirs
from bench.filters.compatible import COMPATIBLE, first_failing, rule_of
from factory.filters.rules.datatrove.tokenizer import english

STEPS = {
    "gopher_repetition": GopherRepetitionFilter,
    "gopher_quality": GopherQualityFilter,
    "c4": C4QualityFilter,
    "fineweb": FineWebQualityFilter,
}
FIRST = "It was the first of many sentences, and with it spaCy is there. " * 20


def read(path: Path) -> Any:
    return ParquetReader(str(path.parent), glob_pattern=path.name, id_key="doc_id").run(None, 0, 1)


def shipped(path: Path) -> dict[str, object]:
    """The documents that pass all four, and the CPU seconds of reading and filtering."""
    steps = [step() for step in STEPS.values()]
    for step in steps:
        step.filter(Document(text=FIRST, id="first"))
    began = time.process_time()
    documents = read(path)
    for step in steps:
        documents = step.run(documents, 0, 1)
    kept = sum(1 for _ in documents)
    return {"cpu_s": time.process_time() - began, "kept": kept}


def apart(path: Path, ours: dict[str, dict[str, list[str]]]) -> dict[str, object]:
    """The CPU seconds of every filter on every document, and the causes of all disagreements with `ours`."""
    steps = {name: step() for name, step in STEPS.items()}
    for step in steps.values():
        step.filter(Document(text=FIRST, id="first"))
    began = time.process_time()
    texts = {document.id: document.text for document in read(path)}
    seconds = {"read": time.process_time() - began}
    verdicts: dict[str, dict[str, str | None]] = {}
    for name, step in steps.items():
        began = time.process_time()
        verdicts[name] = {
            doc_id: reason(step.filter(Document(text=text, id=doc_id))) for doc_id, text in texts.items()
        }
        seconds[name] = time.process_time() - began
    return {
        "cpu_s": sum(seconds.values()),
        "seconds": seconds,
        **compared(texts, verdicts, ours),
        "compatible": compatible(texts, verdicts),
    }


def compatible(texts: dict[str, str], verdicts: dict[str, dict[str, str | None]]) -> dict[str, object]:
    """How often the sets `datatrove_*` give datatrove's verdict and reason, and their CPU seconds.

    Texts whose words differ from spaCy's are counted, too.
    """
    began = time.process_time()
    failing = {doc_id: first_failing(text) for doc_id, text in texts.items()}
    cpu_s = time.process_time() - began
    pairs = {
        name: [(failing[doc_id][name], rule_of(name, verdicts[name][doc_id])) for doc_id in texts]
        for name in COMPATIBLE
    }
    return {
        "equal": {name: sum((ours is None) == (it is None) for ours, it in pairs[name]) for name in pairs},
        "same_reason": {name: sum(ours == it for ours, it in pairs[name]) for name in pairs},
        "other_words": sum(english().words(text) != split_into_words(text) for text in texts.values()),
        "cpu_s": cpu_s,
    }


def reason(answer: bool | tuple[bool, str]) -> str | None:
    """Why a document is dropped, None if it is kept."""
    return answer[1] if isinstance(answer, tuple) else None if answer else "dropped"


def compared(
    texts: dict[str, str], verdicts: dict[str, dict[str, str | None]], ours: dict[str, dict[str, list[str]]]
) -> dict[str, object]:
    """Every disagreement with its cause, and every filter whose copy here gives another verdict."""
    theirs = Theirs(
        words=lru_cache(2)(split_into_words),  # several filters and switches need the words of the same text
        n_sentences=lru_cache(1 << 16)(lambda line: len(split_into_sentences(line))),
        punctuation=frozenset(PUNCTUATION_SET),
        end_marks=tuple(TERMINAL_PUNCTUATION),
    )
    disagreements, wrong = [], []
    for doc_id, text in texts.items():
        for name, it in FILTERS.items():
            reason = verdicts[name][doc_id]
            if sorted(it.failing(text, NONE, theirs)) != sorted(ours[doc_id][name]):
                wrong.append([doc_id, name, "ours"])
            failing = it.failing(text, frozenset(it.switches), theirs)
            if failing[:1] != ([] if reason is None else [REASONS[reason]]):
                wrong.append([doc_id, name, "datatrove"])
            if (reason is None) != (not ours[doc_id][name]):
                disagreements.append(
                    {
                        "doc_id": doc_id,
                        "filter": name,
                        "ours": ours[doc_id][name],
                        "datatrove": reason and REASONS[reason],
                        "cause": it.causes(text, reason is None, theirs),
                    }
                )
    return {"disagreements": disagreements, "wrong": wrong, "documents": len(texts)}


if __name__ == "__main__":
    mode, sample, *rest = sys.argv[1:]
    found = (
        shipped(Path(sample))
        if mode == "shipped"
        else apart(Path(sample), json.loads(Path(rest[0]).read_text()))
    )
    print(json.dumps(found))
