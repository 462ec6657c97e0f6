"""A datasets file with every kind of dataset, and where each of its inputs belongs.

write_every_dataset(folder)["lines"]      # Places(rejected=2, filtered=1, duplicate=2, packed=4, ...)
"""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from tests.ingest.web.archives import Fetch, archive


@dataclass(frozen=True)
class Places:
    """How many inputs of a dataset belong where."""

    rejected: int = 0
    filtered: int = 0
    duplicate: int = 0
    without_tokens: int = 0
    packed: int = 0


class Texts:
    """Paragraphs of random words in sentences; no two resemble each other."""

    def __init__(self, seed: int = 7) -> None:
        self._draw = random.Random(seed)
        self._words = sorted({word for text in topics.values() for word in re.findall(r"[a-z]{2,}", text)})

    def _paragraph(self) -> str:
        sentences = (self._draw.sample(self._words, 12) for _ in range(10))
        return " ".join(f"{' '.join(words).capitalize()}." for words in sentences)

    def next(self, n: int) -> list[str]:
        """The next `n` paragraphs."""
        return [self._paragraph() for _ in range(n)]

    def mixed(self) -> list[str]:
        """Three texts, a copy of the first, a near copy of the second, and a text of two words."""
        first, second, third = self.next(3)
        return [first, second, third, first, f"{second} One more sentence.", "Too short."]


MIXED = Places(filtered=1, duplicate=2, packed=3)
PAGES = Places(rejected=1, duplicate=2, packed=3)  # two words are no main text
PROSE = {"kind": "prose", "rules": ["word_count"], "limits": {"word_count": {"at_least": 20}}}


def write_every_dataset(folder: Path) -> dict[str, Places]:
    """Write the inputs and `datasets.yaml` below `folder`; return the places by dataset and variant."""
    entries: list[dict[str, object]] = []
    places: dict[str, Places] = {}
    for entry, expected in _datasets(folder, Texts()):
        entries.append({"max_rejected": 1.0, "source": entry["name"], **entry})
        if entry["format"] == "repositories" or "from" in entry:
            del entries[-1]["source"]
        places[str(entry["name"])] = expected
    declared = {
        "datasets": entries,
        "tokenizers": {"tokenizer": {"vocabulary": 320, "end": None}},
    }
    (folder / "datasets.yaml").write_text(yaml.safe_dump(declared, sort_keys=False))
    places["lines__long"] = Places(rejected=2, filtered=8)
    return places


def _datasets(folder: Path, texts: Texts) -> Iterator[tuple[dict[str, object], Places]]:
    place = folder / "lines"
    place.mkdir()
    lines = [json.dumps({"text": text}) for text in texts.mixed()]
    (place / "a.jsonl").write_text("\n".join([*lines, "{broken", '{"text": 3}']) + "\n")
    with gzip.open(place / "b.jsonl.gz", "wt") as file:
        file.write("".join(json.dumps({"text": text}) + "\n" for text in texts.next(2)))
    yield (
        {"name": "lines", "format": "jsonl", "paths": "lines", **PROSE}
        | {"variants": {"long": {"rules": ["word_count"], "limits": {"word_count": {"at_least": 1000}}}}},
        Places(rejected=2, filtered=1, duplicate=2, packed=5),
    )

    (folder / "rows").mkdir()
    rows = [*texts.mixed(), None]
    pq.write_table(pa.table({"text": pa.array(rows, pa.string())}), folder / "rows" / "a.parquet")
    yield (
        {"name": "rows", "format": "parquet", "paths": "rows", **PROSE},
        Places(rejected=1, filtered=1, duplicate=2, packed=3),
    )

    (folder / "chats").mkdir()
    chats = [[{"role": "user", "content": text}] for text in texts.mixed()]
    pq.write_table(pa.table({"messages": chats}), folder / "chats" / "a.parquet")
    yield (
        {"name": "chats", "format": "parquet", "paths": "chats", "messages": "messages"}
        | {"template": "plain", **PROSE},
        MIXED,
    )

    (folder / "notes" / "below").mkdir(parents=True)
    for number, text in enumerate(texts.mixed()):
        (folder / "notes" / "below" / f"{number}.txt").write_text(text)
    (folder / "notes" / "latin.txt").write_bytes(b"caf\xe9")
    (folder / "notes" / "empty.txt").write_text("")
    (folder / "notes" / "blocked.txt").write_text(texts.next(1)[0])
    (folder / "facts.csv").write_text("key,blocked\nblocked.txt,yes\n")
    yield (
        {"name": "notes", "format": "files", "paths": "notes", **PROSE}
        | {"facts": {"paths": "facts.csv", "by": "key"}, "predicates": {"facts.blocked": [None]}},
        Places(rejected=2, filtered=2, duplicate=2, packed=3),
    )

    repository = folder / "repositories" / "shapes"
    (repository / "shapes").mkdir(parents=True)
    code = [f"def area_{n}(side):\n    return {n} * side * edge_{n}(side)\n" for n in range(3)]
    for number, text in enumerate([*code, code[0]]):
        (repository / "shapes" / f"m{number}.py").write_text(text)
    for empty in ("__init__.py", "shapes/__init__.py"):
        (repository / empty).write_text("")
    (repository / "shapes" / "bad.py").write_bytes(b"x = '\xe9'\n")
    yield (
        {"name": "repositories", "kind": "code", "format": "repositories", "paths": "repositories"}
        | {"rules": ["word_count"], "limits": {"word_count": {"at_least": 0}}},
        Places(rejected=1, duplicate=2, without_tokens=1, packed=3),
    )

    (folder / "archives").mkdir()
    members = texts.mixed()
    with zipfile.ZipFile(folder / "archives" / "a.zip", "w") as zipped:
        for number, text in enumerate(members[:3]):
            zipped.writestr(f"{number}.txt", text)
    with tarfile.open(folder / "archives" / "b.tar.gz", "w:gz") as tar:
        for name, content in [
            *((f"{n}.txt", t.encode()) for n, t in enumerate(members[3:])),
            ("x", b"\xff\xfe\xfd"),
        ]:
            header = tarfile.TarInfo(name)
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))
    yield (
        {"name": "archives", "format": "archive", "paths": "archives", **PROSE},
        Places(rejected=1, filtered=1, duplicate=2, packed=3),
    )

    (folder / "pages").mkdir()
    for number, text in enumerate(texts.mixed()):
        (folder / "pages" / f"{number}.html").write_text(_page(text))
    yield {"name": "pages", "format": "html", "paths": "pages", **PROSE}, PAGES

    (folder / "crawl").mkdir()
    fetches = [
        Fetch(f"http://a.org/{number}", _page(text).encode()) for number, text in enumerate(texts.mixed())
    ]
    failure = Fetch("http://a.org/gone", _page(texts.next(1)[0]).encode(), status="404 Not Found")
    (folder / "crawl" / "a.warc.gz").write_bytes(archive([*fetches, failure]))
    yield (
        {"name": "crawl", "format": "warc", "paths": "crawl", **PROSE},
        Places(rejected=2, duplicate=2, packed=3),
    )

    (folder / "days").mkdir()
    paragraphs = texts.mixed()
    for day, part in (("2026-01-01", paragraphs[:3]), ("2026-01-02", paragraphs[3:])):
        lines = [json.dumps({"text": text}) for text in part]
        (folder / "days" / f"{day}.jsonl").write_text("\n".join(lines))
    yield (
        {"name": "days", "format": "jsonl", "paths": "days/{partition}.jsonl", **PROSE}
        | {"partitions": {"by": "key", "keys": ["2026-01-01", "2026-01-02"]}},
        MIXED,
    )

    (folder / "markup").mkdir()
    lines = [json.dumps({"text": _page(text)}) for text in texts.mixed()]
    (folder / "markup" / "a.jsonl").write_text("\n".join(lines))
    yield (
        {"name": "markup", "format": "jsonl", "paths": "markup", "markup": "keep", **PROSE}
        | {"group": "markup"},  # its pages resemble the main text that the next dataset makes of them
        MIXED,
    )
    yield {"name": "main", "format": "html", "from": "markup", **PROSE}, PAGES

    (folder / "split").mkdir()
    lines = [json.dumps({"text": text}) for text in [*texts.mixed(), *texts.next(20)]]
    (folder / "split" / "a.jsonl").write_text("\n".join(lines))
    yield (
        {"name": "split", "format": "jsonl", "paths": "split", "validation": 0.3, **PROSE},
        Places(filtered=1, duplicate=2, packed=23),
    )


def _page(text: str) -> str:
    paragraphs = "".join(f"<p>{text[at : at + 300]}</p>" for at in range(0, len(text), 300))
    return f"<html><head><title>A page</title></head><body><h1>A page</h1>{paragraphs}</body></html>"
