"""A file of datasets that declares one of everything, and what such a file makes or is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.orchestration.datasets.assets import corpus
from factory.orchestration.datasets.corpus import Corpus

GOOD = """\
datasets:
  - name: notes
    kind: prose
    format: files
    paths: notes
    include: "**/*.md"
    limits: {word_count: [20, 100000], stop_words: 1}
    variants:
      long: {limits: {word_count: [200, 100000]}}
      other: {rules: [stop_words]}
      same:
  - name: pages
    kind: prose
    format: jsonl
    paths: [p.jsonl]
    text: body
    columns: {created_at: date}
    rounds:
      - {rules: [gopher_quality]}
      - {rules: [gopher_repetition], languages: [en]}
  - name: mine
    kind: code
    format: repositories
    paths: repos
    license: MIT
    packing: {sequence_length: 2048}
groups:
  prose: {threshold: 0.7}
tokenizers:
  tokenizer: {vocabulary: 1000}
blend:
  weights: {mine: 6, notes: 2, notes__long: 1}
  pad: true
"""


def declared(folder: Path, text: str) -> Corpus:
    (folder / "my.yaml").write_text(text)
    return corpus(folder / "my.yaml")


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        declared(folder, text)
    return str(caught.value)


def assert_refused(folder: Path, text: str, good: str, bad: str, sentence: str) -> None:
    """Check that `text`, with `bad` in place of `good`, is refused by the file's name and `sentence`."""
    assert text.count(good)
    assert refusal(folder, text.replace(good, bad, 1)).startswith(f"my.yaml, {sentence}")


def tables(found: Corpus) -> set[str]:
    return {key.to_user_string() for asset in found.assets for key in asset.keys}
