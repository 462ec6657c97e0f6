"""Jobs in a datasets file: their tables, their dedup groups, and mistakes with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.orchestration.datasets.check import check
from tests.orchestration.declared import assert_refused, declared
from tests.orchestration.runs import reads

JOB = """\
datasets:
  - name: sources
    kind: code
    format: repositories
    paths: repos
  - name: described
    kind: code
    format: synthesis
    from: sources
    worker: docstrings
    size: 3
"""


def test_a_job_is_a_table_of_items_and_a_dataset_of_records(folder: Path) -> None:
    tables = reads(declared(folder, JOB).assets)
    assert tables["synthesis.described"] == {"raw.sources"}
    assert tables["raw.described"] == {"synthesis.described", "raw.sources"}
    assert "packed.described" in tables


def test_a_group_of_its_own_compares_it_with_its_source_and_decides_on_it_alone(folder: Path) -> None:
    tables = reads(declared(folder, JOB).assets)
    assert "raw.sources" in tables["dedup.described_edges"] | tables["dedup.described_signatures"]
    assert "dedup.described_decisions" not in tables["deduplicated.sources"]
    assert "dedup.described_decisions" in tables["deduplicated.described"]


def test_a_job_may_read_the_documents_that_a_group_keeps(folder: Path) -> None:
    tables = reads(declared(folder, JOB + "    reads: deduplicated\n").assets)
    assert tables["synthesis.described"] == {"deduplicated.sources"}


def test_a_job_may_read_the_records_of_another(folder: Path) -> None:
    second = "  - {name: again, kind: code, format: synthesis, from: described, worker: docstrings}\n"
    assert reads(declared(folder, JOB + second).assets)["synthesis.again"] == {"raw.described"}


@pytest.mark.parametrize(
    "good, bad, sentence",
    [
        ("size: 3", "size: 0", "line 11, datasets[1].size: A job of 0 documents makes nothing."),
        ("size: 3", "limit: 3", "line 11, datasets[1].limit: A job takes the first `size` documents."),
        ("    from: sources\n", "", "line 6, datasets[1]"),
        ("from: sources", "from: described", "line 9, datasets[1].from"),
        ("from: sources", "from: source", "line 9, datasets[1].from"),
        ("docstrings", "docstring", "line 10, datasets[1].worker: Unknown kind"),
        ("docstrings", "my.py:Kind", "line 10, datasets[1].worker"),
        ("size: 3", "worker_options: {least: 3}", "line 10, datasets[1].worker: Unknown option of kind"),
        ("size: 3", "replicas: {least: 3, most: 2}", "line 11, datasets[1].replicas: `least` is 3"),
        ("size: 3", "replicas: 0", "line 11, datasets[1].replicas.least"),
        ("size: 3", "caps: {documents: 2}", "line 11, datasets[1].caps.documents: Unknown field"),
        ("size: 3", "reads: filtered", "line 11, datasets[1].reads: Unknown value `filtered`."),
        (
            "size: 3",
            "reads: deduplicated\n    group: code",
            "line 12, datasets[1].group: `described` reads the documents that dedup group `code` keeps",
        ),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(folder: Path, good: str, bad: str, sentence: str) -> None:
    assert_refused(folder, JOB, good, bad, sentence)


def test_jobs_that_read_each_other_are_refused(folder: Path) -> None:
    second = "  - {name: again, kind: code, format: synthesis, from: described, worker: docstrings}\n"
    assert_refused(folder, JOB + second, "from: sources", "from: again", "line 9, datasets[1].from")


def test_a_value_of_a_worker_with_a_name_of_all_records_is_refused(folder: Path) -> None:
    (folder / "kinds.py").write_text(
        "import pyarrow as pa\n"
        "class Kind:\n"
        "    version = '1'\n"
        "    schema = pa.schema([('worker', pa.string())])\n"
        "    def __init__(self, options): ...\n"
        "    def __call__(self, item): yield from ()\n"
    )
    assert_refused(
        folder,
        JOB,
        "docstrings",
        "kinds.py:Kind",
        "line 10, datasets[1].worker: Worker `kinds.py:Kind` gives its records a value `worker`",
    )


def test_a_predicate_on_a_name_that_no_record_has_is_found_by_check(folder: Path) -> None:
    (folder / "my.yaml").write_text(JOB + "    predicates: {metadata.n_word: {at_least: 5}}\n")
    with pytest.raises(ConfigurationError, match=r"line 12.* Did you mean `metadata.n_words`\?"):
        check(folder / "my.yaml")
