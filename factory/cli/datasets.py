"""`factory init` and `factory check`: write a datasets file for a folder, and check one."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.table import Table

from factory.cli.root import DATASETS_FILE
from factory.counted import conjunction, counted
from factory.errors import ConfigurationError
from factory.ingest.html_extra import missing_html
from factory.ingest.left_out import endings_phrase
from factory.ingest.listing import UNWANTED, first_records
from factory.ingest.unsupported_paths import why_unreadable
from factory.ingest.vendored import INSTALLED
from factory.orchestration.datasets.check import CheckedDataset
from factory.orchestration.datasets.check import check as checked
from factory.orchestration.datasets.guess import guess
from factory.orchestration.datasets.python_file import python_corpus
from factory.orchestration.datasets.remedies import left_out_sentence, remedies
from factory.orchestration.datasets.template import template

_MOST_PATTERNS = 8  # named; the files of the others are counted together


def init(folder: Path, console: Console) -> None:
    """Write FOLDER/datasets.yaml and print its datasets; raise ConfigurationError if the file exists."""
    path = folder / DATASETS_FILE
    try:
        guesses = guess(folder)
    except OSError as error:
        raise ConfigurationError(why_unreadable(error)) from error
    missing = missing_html()
    left_out = [dataset for dataset in guesses if missing and dataset.of_pages]
    if left_out == guesses:
        raise ConfigurationError(f"`{folder}` holds web pages and nothing else. {missing}")
    text = template([dataset for dataset in guesses if dataset not in left_out], shlex.quote(str(path)))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise ConfigurationError(
            f"{path} exists already. Edit it, or remove it and write another."
        ) from error
    for dataset in left_out:
        console.print(
            f"Left out {counted(dataset.files, 'file')} of web pages: {', '.join(dataset.paths)}. {missing}",
            markup=False,
            soft_wrap=True,
        )
    for dataset in guesses:
        if dataset.note:
            console.print(f"`{dataset.name}`: {dataset.note}", markup=False, soft_wrap=True)
    console.print(f"Wrote {path}. Check these guesses:", markup=False)
    for dataset in guesses:
        if dataset.fields is not None and dataset.fields.reason:
            console.print(f"`{dataset.name}`: {dataset.fields.reason}.", markup=False, soft_wrap=True)
    check(path, console, of_folder=folder)


def check(path: Path, console: Console, *, as_json: bool = False, of_folder: Path | None = None) -> None:
    """Print the datasets of a file; raise ConfigurationError with a sentence for each mistake.

    Files that no dataset reads are counted in the folders of each, or in one folder that holds all.
    """
    with Status("", console=Console(stderr=True)) as status:
        found = checked(path, lambda name: status.update(f"Reading the first records of {escape(name)} ..."))
    if as_json:
        datasets = [asdict(dataset) for dataset in found.datasets]
        n_tables = len(found.corpus.assets)
        fields = {"file": str(path), "tables": n_tables, "warnings": found.warnings, "datasets": datasets}
        console.print_json(json.dumps(fields))
        return
    table = Table(box=None, header_style="bold")
    for column in ("dataset", "kind", "format", "files", "variants"):
        table.add_column(column, justify="right" if column == "files" else "left")
    for dataset in found.datasets:
        table.add_row(
            dataset.name,
            dataset.kind,
            dataset.format,
            f"{dataset.files:,}" if dataset.made_from is None else f"from {dataset.made_from}",
            escape(", ".join(dataset.variants)),
        )
    console.print(table)
    for dataset in found.datasets:
        for sentence in dataset.advice:
            console.print(sentence, markup=False, soft_wrap=True)
    for sentence in found.warnings:
        console.print(f"[yellow]warning[/]  {escape(sentence)}", soft_wrap=True)
    for dataset in found.datasets:
        if dataset.n_by_exclude:
            console.print(_excluded_sentence(dataset), markup=False, soft_wrap=True)
    if of_folder is not None:
        for folder_name, n_files in found.installed_files(of_folder).items():
            console.print(
                f"No dataset reads {counted(n_files, 'file')} under {folder_name}: installed packages. To "
                f"read them: factory init {shlex.quote(str(of_folder / folder_name))}",
                markup=False,
                soft_wrap=True,
            )
        _show_undeclared(found.left_out([of_folder], (*UNWANTED, *INSTALLED)), console)
    for dataset in found.datasets if of_folder is None else ():
        if sentence := left_out_sentence(dataset.left_out, f"`{dataset.name}` leaves out"):
            console.print(sentence, markup=False, soft_wrap=True)
    for dataset in found.datasets:
        if dataset.limit is not None:
            console.print(
                f"Of `{dataset.name}` only {first_records(dataset.limit)} are read. Without `limit` all are.",
                markup=False,
                soft_wrap=True,
            )
    n_tables = len(found.corpus.assets)  # as runs count them: without tables of rejected records and the like
    console.print(
        f"{path.name} is correct: {counted(len(found.datasets), 'dataset')}, {counted(n_tables, 'table')}. "
        "Materialize them:\n"
        f"factory materialize -f {shlex.quote(str(path))} '*'",
        markup=False,
        soft_wrap=True,
    )


def check_python(path: Path, console: Console, *, as_json: bool = False) -> None:
    """Print how many tables a Python file declares; raises ConfigurationError for a mistake in it."""
    corpus = python_corpus(path)
    tables = sorted(key.to_user_string() for asset in corpus.assets for key in asset.keys)
    if as_json:
        fields = {"file": str(path), "tables": tables, "warnings": [], "datasets": corpus.datasets}
        console.print_json(json.dumps(fields))
        return
    console.print(
        f"{path.name} is correct: {counted(len(corpus.datasets), 'dataset')}, "
        f"{counted(len(corpus.assets), 'table')}. Materialize them:\n"
        f"factory materialize -f {shlex.quote(str(path))} '*'",
        markup=False,
        soft_wrap=True,
    )


def _excluded_sentence(dataset: CheckedDataset) -> str:
    """Say how many files the patterns of `exclude` keep from the reader of a dataset."""
    most_first = sorted(dataset.n_by_exclude.items(), key=lambda pair: -pair[1])
    n_files = sum(dataset.n_by_exclude.values())
    counts = [f"{n:,} by `{pattern}`" for pattern, n in most_first[:_MOST_PATTERNS]]
    if others := most_first[_MOST_PATTERNS:]:
        counts.append(f"{sum(n for _, n in others):,} by {counted(len(others), 'other pattern')}")
    remedy = "Remove a pattern to read its files."
    total = counted(n_files, "file")
    return f"`{dataset.name}` leaves out {total} by `exclude`: {conjunction(counts)}. {remedy}"


def _show_undeclared(n_by_ending: Mapping[str, int], console: Console) -> None:
    """Print how many files no dataset reads, a line for each kind with what to do about it."""
    if not n_by_ending:
        return
    console.print(f"No dataset reads {counted(sum(n_by_ending.values()), 'other file')}:", markup=False)
    for sentence, counts in remedies(n_by_ending).items():
        console.print(
            f"  {endings_phrase(counts)}. {sentence or 'They hold no text.'}", markup=False, soft_wrap=True
        )
