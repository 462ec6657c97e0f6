"""The main text of pages beside trafilatura, jusText and resiliparse, and WARC reading beside datatrove's.

Real pages: Debian's documentation packages, whose main element is the truth; its marks are taken out before a
page is extracted. Generated pages: blocks of real sentences in fourteen languages. Rules were made on some
packages and templates; the aims are of others.
"""

from __future__ import annotations

import io
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from bench.debian import folder_of
from bench.harness import Report, Row, at_least, at_most, table
from bench.html.generated import KNOWN as KNOWN_TEMPLATES
from bench.html.generated import UNSEEN as UNSEEN_TEMPLATES
from bench.html.generated import Generated, generated_pages, without_main_text
from bench.html.hollow import hollow_pages, thin_pages
from bench.html.packages import KNOWN, TEXTS, UNSEEN, DocumentedPage, pages
from bench.html.quality import Overlap, order
from bench.html.sentences import sentences
from bench.peers import DATATROVE_WARC, HTML
from spark_udfs.ingest.rows import BadRecord
from spark_udfs.ingest.web.page import page_of
from spark_udfs.ingest.web.warc_records import records

MB = 1e6
PAGES = 120  # of a package
EACH = 2  # generated pages of a template and language
AIM_F, AIM_MAIN, AIM_BOILERPLATE, AIM_MB = 0.98, 0.97, 0.05, 10
OTHERS = ("trafilatura", "jusText", "resiliparse")
TOKENS_A_BYTE, CRAWLED = 0.25, 20e12
CAVEATS = [
    f"Rules were made on {', '.join(package.name for package in KNOWN)} and the templates "
    f"{', '.join(KNOWN_TEMPLATES)}; figures with an aim are of "
    f"{', '.join(package.name for package in UNSEEN)} and {', '.join(UNSEEN_TEMPLATES)}.",
    "F, precision and recall are of four-word shingles, over all pages of a package; lists of links "
    "(indexes, contents) are left out. Order: the longest run of shingles in the order of the truth.",
    "resiliparse alone: main content without comments; trafilatura: without comments; jusText: English.",
    "MB/s: bytes of UTF-8 by CPU seconds of one thread. Ours decodes, bounds, mends, extracts and falls "
    "back; theirs parse and extract. Small pages are dominated by the cost of a page.",
    "datatrove's WarcReader reads records without extraction; ours checks each record's trailer and length.",
    "Hollow and thin pages are written for this bench, and our rules were made on them.",
    "Generated pages stand in for news, shops and forums, of which there are no free ones to ship.",
]


@dataclass
class Extraction:
    """Texts of an extractor, and the CPU seconds that they took."""

    texts: list[str] = field(default_factory=list)
    seconds: float = 0.0


def measure(progress: Console) -> Report:
    """Measure quality and speed on real and generated pages, and the reading of an archive."""
    languages: dict[str, list[str]] = {}
    for package in TEXTS:
        progress.print(f"sentences of {package}")
        languages |= sentences(folder_of(package) / "usr" / "share" / "man")
    report = Report(CAVEATS, f"{len(UNSEEN)} packages, {len(languages)} languages")
    slowest = _add_packages(report, progress)
    _add_generated(report, languages, progress)
    _add_archive(report, slowest, progress)
    return report


def ours(html: str) -> str:
    """The main text by our own reader, empty for a page without one."""
    try:
        return page_of(html.encode("utf-8", "replace")).text
    except BadRecord:
        return ""


def _add_packages(report: Report, progress: Console) -> float:
    """Add a table of the packages; return our MB a second on those that the rules have not seen."""
    quality = table("Documentation packages", "package | extractor | P | R | F | order | empty | MB/CPU s")
    n_bytes = seconds = 0.0
    for package in (*KNOWN, *UNSEEN):
        progress.print(f"pages of {package.name}")
        documents = pages(package, PAGES)
        size = sum(len(page.html.encode()) for page in documents) / MB
        f_of: dict[str, float] = {}
        for name, extraction in _everyone([page.html for page in documents], progress).items():
            overlap, in_order = _overlap(documents, extraction.texts)
            f_of[name] = overlap.f
            quality.add_row(
                package.name,
                name,
                f"{overlap.precision:.3f}",
                f"{overlap.recall:.3f}",
                f"{overlap.f:.3f}",
                f"{in_order:.3f}",
                str(sum(not text.strip() for text in extraction.texts)),
                f"{size / extraction.seconds:.1f}",
            )
            label = f"html.{package.name}.{name}"
            report.rows.append(Row(f"{label}.order", round(in_order, 4), "share"))
            if package in UNSEEN and name == "ours":
                n_bytes, seconds = n_bytes + size, seconds + extraction.seconds
                report.rows.append(at_least(f"{label}.f", round(overlap.f, 4), "F", AIM_F))
            else:
                report.rows.append(Row(f"{label}.f", round(overlap.f, 4), "F"))
        if package in UNSEEN:
            lead = f_of["ours"] - f_of["trafilatura"]
            report.rows.append(at_least(f"html.{package.name}.lead", round(lead, 4), "F over trafilatura", 0))
    report.tables.append(quality)
    report.rows.append(at_least("html.speed", round(n_bytes / seconds, 1), "MB/CPU s", AIM_MB))
    return n_bytes / seconds


def _everyone(documents: Sequence[str], progress: Console) -> dict[str, Extraction]:
    """The texts of ours and of every other extractor."""
    ours(documents[0])
    by_name = {"ours": _timed(documents, ours)}
    with tempfile.TemporaryDirectory(prefix="bench-html-") as folder:
        source, target = Path(folder) / "pages.jsonl", Path(folder) / "texts.jsonl"
        source.write_text("".join(json.dumps(html) + "\n" for html in documents))
        for name in OTHERS:
            answer = HTML.answer("bench.html.peer", name, source, target, console=progress)
            texts = [json.loads(line) for line in target.read_text().splitlines()]
            by_name[name] = Extraction(texts, answer["seconds"])
    return by_name


def _timed(documents: Sequence[str], extract: Callable[[str], str]) -> Extraction:
    began = time.process_time()
    texts = [extract(html) for html in documents]
    return Extraction(texts, time.process_time() - began)


def _overlap(documents: Sequence[DocumentedPage], texts: Sequence[str]) -> tuple[Overlap, float]:
    overlap, rising, common = Overlap(), 0, 0
    for page, text in zip(documents, texts, strict=True):
        overlap.add(text, page.truth)
        run, n_common = order(text, page.truth)
        rising, common = rising + run, common + n_common
    return overlap, rising / max(1, common)


def _add_generated(report: Report, languages: dict[str, list[str]], progress: Console) -> None:
    blocks = table("Generated pages", "templates | extractor | main blocks | boilerplate | whole code | MB/s")
    for kind, templates in (("known", KNOWN_TEMPLATES), ("unseen", UNSEEN_TEMPLATES)):
        progress.print(f"generated pages of {kind} templates")
        page_list = list(generated_pages(languages, templates, EACH))
        size = sum(len(page.html.encode()) for page in page_list) / MB
        for name, extraction in _everyone([page.html for page in page_list], progress).items():
            main, boilerplate, code = _kept(page_list, extraction.texts)
            blocks.add_row(
                kind,
                name,
                f"{main:.3f}",
                f"{boilerplate:.3f}",
                f"{code:.3f}",
                f"{size / extraction.seconds:.1f}",
            )
            label = f"html.{kind}.{name}"
            if kind == "unseen" and name == "ours":
                report.rows += [
                    at_least(f"{label}.main", round(main, 4), "of blocks", AIM_MAIN),
                    at_most(f"{label}.boilerplate", round(boilerplate, 4), "of blocks", AIM_BOILERPLATE),
                ]
            else:
                report.rows += [
                    Row(f"{label}.main", round(main, 4), "of blocks"),
                    Row(f"{label}.boilerplate", round(boilerplate, 4), "of blocks"),
                ]
    report.tables.append(blocks)
    empty = list(without_main_text(languages, 3))
    texts = table(f"{len(empty)} pages without a main text", "extractor | pages with a text")
    for name, extraction in _everyone(empty, progress).items():
        n_texts = sum(bool(text.strip()) for text in extraction.texts)
        texts.add_row(name, str(n_texts))
        report.rows.append(Row(f"html.without_main_text.{name}", n_texts, "pages"))
    report.tables.append(texts)
    _add_thin(report, progress)


def _add_thin(report: Report, progress: Console) -> None:
    """Add the pages without a main text that become documents, and the thin pages that are kept whole."""
    hollow, thin = [html for _, html in hollow_pages()], list(thin_pages())
    thin_table = table(
        f"{len(hollow)} pages of notices, links and hidden text, {len(thin)} thin pages of text",
        "extractor | hollow pages with a text | thin pages with all of their text",
    )
    texts_of_thin = _everyone([page.html for page in thin], progress)
    for name, extraction in _everyone(hollow, progress).items():
        n_hollow = sum(bool(text.strip()) for text in extraction.texts)
        n_thin = sum(
            all(piece in text for piece in page.texts)
            for page, text in zip(thin, texts_of_thin[name].texts, strict=True)
        )
        thin_table.add_row(name, str(n_hollow), str(n_thin))
        if name == "ours":
            report.rows += [
                at_most(f"html.hollow.{name}", n_hollow, "pages", 0),
                at_least(f"html.thin.{name}", n_thin, "pages", len(thin)),
            ]
        else:
            report.rows += [
                Row(f"html.hollow.{name}", n_hollow, "pages"),
                Row(f"html.thin.{name}", n_thin, "pages"),
            ]
    report.tables.append(thin_table)


def _kept(page_list: Sequence[Generated], texts: Sequence[str]) -> tuple[float, float, float]:
    """The shares of main blocks and of boilerplate that texts have, and of pages whose code is whole."""
    main, other, n_main, n_other, code = 0, 0, 0, 0, 0
    for page, text in zip(page_list, texts, strict=True):
        plain = " ".join(text.split())
        main += sum(" ".join(block.split()) in plain for block in page.main)
        other += sum(" ".join(block.split()) in plain for block in page.boilerplate)
        n_main, n_other = n_main + len(page.main), n_other + len(page.boilerplate)
        code += page.code in text
    return main / n_main, other / n_other, code / len(page_list)


def _add_archive(report: Report, mb_s: float, progress: Console) -> None:
    """Add the speed of reading an archive, and cores for a day of 20 T tokens."""
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    progress.print("an archive of the packages' pages")
    documents = [page for package in UNSEEN for page in pages(package, PAGES)] * 3
    with tempfile.TemporaryDirectory(prefix="bench-warc-") as folder:
        path = Path(folder) / "pages.warc.gz"
        with path.open("wb") as file:
            writer = WARCWriter(file, gzip=True)
            for number, page in enumerate(documents):
                http = StatusAndHeaders(
                    "200 OK", [("Content-Type", "text/html; charset=utf-8")], protocol="HTTP/1.1"
                )
                body = io.BytesIO(page.html.encode("utf-8", "replace"))
                record = writer.create_warc_record(
                    f"http://a.example/{number}", "response", body, http_headers=http
                )
                writer.write_record(record)
        n_bytes = sum(len(page.html.encode("utf-8", "replace")) for page in documents) / MB
        began = time.process_time()
        with path.open("rb") as file:
            n_records = sum(record.trouble is None for record in records(file, 1 << 25))
        speed = n_bytes / (time.process_time() - began)
        report.check("every record is read", n_records == len(documents))
        answer = DATATROVE_WARC.answer("bench.html.warc_peer", path, console=progress)
    reading = table(
        f"An archive of {len(documents):,} pages, {n_bytes:,.0f} MB of HTML", "reader | documents | MB/CPU s"
    )
    reading.add_row("ours", f"{n_records:,}", f"{speed:,.0f}")
    reading.add_row("datatrove", f"{answer['documents']:,}", f"{n_bytes / answer['seconds']:,.0f}")
    report.tables.append(reading)
    report.rows += [
        Row("html.warc.ours", round(speed, 1), "MB/CPU s"),
        Row("html.warc.datatrove", round(n_bytes / answer["seconds"], 1), "MB/CPU s"),
    ]
    share = sum(len(ours(page.html).encode()) for page in documents[:PAGES]) / sum(
        len(page.html.encode()) for page in documents[:PAGES]
    )
    html_a_day = CRAWLED / TOKENS_A_BYTE / share / MB
    cores = html_a_day / 86_400 / (1 / (1 / mb_s + 1 / speed))
    cost = table("Reckoned, not measured: cores for a day of 20 T tokens of web text", "quantity | value")
    cost.add_row("bytes of main text a token", f"{1 / TOKENS_A_BYTE:.0f}")
    cost.add_row("bytes of HTML a byte of main text, on these pages", f"{1 / share:.1f}")
    cost.add_row("cores, at the measured rates", f"{cores:,.0f}")
    report.tables.append(cost)
    report.rows.append(Row("html.cores_for_20T_tokens_a_day", round(cores), "cores, reckoned"))
