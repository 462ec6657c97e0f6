"""A whole pipeline on a corpus small enough for a test: real files, with copies, near copies and bad records.

Run as a program it materializes the pipeline in a process of its own, which tests then kill:

    python -m tests.small_pipeline CORPUS [--select SELECTION] [--kill ASSET:PHASE:DELAY_S]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from contextlib import ExitStack
from functools import reduce
from pathlib import Path

import dagster as dg
import psutil
from pyspark.sql import DataFrame
from rich.console import Console

from factory.cli.runs import execute
from factory.cli.selection import select
from factory.dedup.config import DedupConfig
from factory.filters.rounds import Round
from factory.ingest.readers import Fields
from factory.lake.schemas.ingest import RAW, REJECTED
from factory.orchestration.chain.dedup.group import DedupGroup, Kind, dedup_group
from factory.orchestration.chain.models.tokenizer import tokenizer
from factory.orchestration.chain.refine import refine
from factory.orchestration.host.definitions import definitions
from factory.orchestration.table import progress
from factory.orchestration.table.declaration import Tables
from factory.orchestration.table.table_asset import table_asset
from factory.packing.pack import PackConfig
from factory.settings import Settings, settings

CODE, PROSE = "small_code", "small_prose"
PACKED_CODE = f"*packed.{CODE}"  # packed code and its ancestors
PACKING = PackConfig(sequence_length=1024)
STANDARD = Path(sysconfig.get_path("stdlib"))


def write_corpus(folder: Path) -> Path:
    """Write two repositories and a JSONL file below `folder`: originals, copies, near copies, bad records."""
    code = folder / "code"
    for path in sorted((STANDARD / "json").rglob("*.py")):
        target = code / "json" / path.relative_to(STANDARD)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    fork = code / "fork"
    for number, path in enumerate(sorted((code / "json").rglob("*.py"))):
        target = fork / path.relative_to(code / "json")
        target.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text()
        target.write_text(text if number % 2 else text.replace("self", "this", 3))
    (code / "broken").mkdir()
    (code / "broken" / "latin.py").write_bytes("x = 'é'\n".encode("latin-1"))
    (code / "broken" / "one_line.py").write_text("x = " + "1 + " * 2000 + "1\n")
    (folder / "prose.jsonl").write_text("".join(_prose_lines()))
    return folder


def _prose_lines() -> list[str]:
    """Fifty lines or more of each kind: kept, too short, near copies, copies, invalid JSON, not an object.

    Between them are three blank ones.
    """
    paragraphs = _paragraphs(90)
    texts = {f"p{number}": text for number, text in enumerate(paragraphs)}
    texts |= {f"copy{number}": text for number, text in enumerate(paragraphs[:20])}
    texts |= {f"near{number}": f"{text} One sentence more." for number, text in enumerate(paragraphs[20:60])}
    texts |= {f"short{number}": f"Too short to keep, number {number}." for number in range(55)}
    lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items()]
    bad = [f"[{number}]\n" if number % 2 else f"{{not json {number}\n" for number in range(55)]
    return [*lines, "\n", "\n", "\n", *bad]


def _paragraphs(n: int, n_words: int = 180) -> list[str]:
    """Paragraphs of the installation's own help texts, each long enough for the quality rules."""
    from pydoc_data.topics import topics

    words = re.findall(r"\S+", " ".join(topics[name] for name in sorted(topics)))
    return [" ".join(words[at : at + n_words]) for at in range(0, n_words * n, n_words)]


def line(corpus: Path, lake: Settings) -> dg.Definitions:
    """The definitions of the pipeline on `corpus`: its datasets, their groups and a tokenizer."""

    @table_asset(
        namespace="raw", name=CODE, asset_group="code", schema=RAW, side_tables={"rejected": REJECTED}
    )
    def code(context, ingests) -> Tables:  # type: ignore[no-untyped-def]
        repositories = sorted((corpus / "code").iterdir())
        found = [ingests.files(path, source=path.name, repository=path.name) for path in repositories]
        documents = reduce(DataFrame.unionByName, [it.documents for it in found])
        rejected = reduce(DataFrame.unionByName, [it.rejected for it in found])
        return Tables(documents, {"rejected": rejected}, release=ingests.release)

    @table_asset(
        namespace="raw", name=PROSE, asset_group="prose", schema=RAW, side_tables={"rejected": REJECTED}
    )
    def prose(context, ingests) -> Tables:  # type: ignore[no-untyped-def]
        found = ingests.jsonl(corpus / "prose.jsonl", Fields(key="id"), source="prose")
        return Tables(found.documents, {"rejected": found.rejected}, release=found.release)

    def group(name: str, dataset: str, kind: Kind) -> DedupGroup:
        # A recount at every growth makes a lake depend on its corpus alone, not on the runs before.
        config = DedupConfig(kind=kind, recount_growth=1)
        return dedup_group(name, [dataset], kind=kind, config=config)

    groups = {CODE: group("small_code", CODE, "code"), PROSE: group("small_prose", PROSE, "prose")}
    rules = {CODE: ["code"], PROSE: ["gopher_quality"]}
    assets = [tokenizer("small", [CODE], vocabulary=1_000, lasting=False)]
    for dataset, source in ((CODE, code), (PROSE, prose)):
        refined = refine(
            dataset,
            dedup_group=groups[dataset],
            rounds=[Round(rules=rules[dataset])],
            tokenizer="small",
            packing=PACKING,
        )
        assets += [source, *groups[dataset].assets, *refined]
    return definitions(assets, lake)


def materialize(corpus: Path, lake: Settings, selection: str = "*", *, reuse: bool = True) -> None:
    """Run the pipeline in this process; raises the error of a failed run."""
    defined = line(corpus, lake)
    execute(defined, lake, select(defined, selection), Console(quiet=True), reuse=reuse)


def run_apart(
    corpus: Path, lake: Settings, *options: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the pipeline in a process of its own, which may be killed; returns once its JVM has ended too."""
    home = str(lake.home)
    done = subprocess.run(
        ["timeout", "-k", "5", "900", sys.executable, "-m", "tests.small_pipeline", str(corpus), *options],
        env=os.environ | lake.environment() | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    # The JVM of a killed run outlives it by a second or two and may still be writing.
    for process in psutil.process_iter(["cmdline"]):
        if home in " ".join(process.info["cmdline"] or []) and process.pid != os.getpid():
            process.wait(timeout=60)
    return done


def add_file(corpus: Path, name: str) -> Path:
    """Add a file to the code of `corpus`, so that every table downstream has something new to hold."""
    package = corpus / "code" / "json"
    added = package / f"{name}.py"
    functions = "".join(f"\n\ndef {name}_{n}(value):\n    return value + {n}\n" for n in range(60))
    added.write_text((package / "json" / "decoder.py").read_text() + functions)
    return added


def kill_at(asset: str, phase: str, delay_s: float) -> progress.Listener:
    """A listener that kills this process `delay_s` after `asset` reached `phase`.

    At the latest it does so when the asset is sealed, where it waits by then: a timer may be late, or the
    asset quick, and its table would be published.
    """
    waits: list[threading.Timer] = []

    def listener(event: progress.Progress) -> None:
        if event.asset != asset:
            return
        if (waits and event.phase == "sealed") or (event.phase == phase and delay_s == 0):
            os.kill(os.getpid(), signal.SIGKILL)
        if event.phase == phase:
            waits.append(threading.Timer(delay_s, os.kill, (os.getpid(), signal.SIGKILL)))
            waits[-1].start()

    return listener


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--select", default="*")
    parser.add_argument("--kill", metavar="ASSET:PHASE:DELAY_S")
    given = parser.parse_args()
    with ExitStack() as listeners:
        if given.kill:
            asset, phase, delay_s = given.kill.split(":")
            listeners.enter_context(progress.listening(kill_at(asset, phase, float(delay_s))))
        materialize(given.corpus, settings(), given.select)


if __name__ == "__main__":
    main()
