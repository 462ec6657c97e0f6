"""A datasets file checked without running: the files of each dataset are counted."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.orchestration.datasets.check import check
from tests.ingest.remote.web_server import serving_files
from tests.orchestration.datasets.test_guess import fill

PARTITIONED = """\
datasets:
  - {name: web, kind: prose, format: jsonl, paths: "web/{partition}.jsonl",
     partitions: {by: key, keys: [de, en, fr]}}
  - {name: days, kind: prose, format: files, paths: days, partitions: {by: folder}}
"""


def checked(folder: Path, text: str) -> dict[str, int]:
    (folder / "my.yaml").write_text(text)
    return {dataset.name: dataset.files for dataset in check(folder / "my.yaml").datasets}


def test_files_are_counted_as_the_reader_takes_them(tmp_path: Path) -> None:
    fill(tmp_path, "notes/a.md", "notes/b.txt", "repos/loose.py", "repos/one/a.py", "repos/one/b.py")
    text = """\
datasets:
  - {name: notes, kind: prose, format: files, paths: notes, include: "**/*.md"}
  - {name: code, kind: code, format: repositories, paths: repos, include: "*.py", exclude: "b.py"}
"""
    assert checked(tmp_path, text) == {"notes": 1, "code": 1}


def test_the_files_of_all_partitions_are_counted(tmp_path: Path) -> None:
    fill(tmp_path, "web/de.jsonl", "web/en.jsonl", "web/it.jsonl", "days/1/a.txt", "days/2/b.txt")
    assert checked(tmp_path, PARTITIONED) == {"web": 2, "days": 2}


def test_a_dataset_without_a_file_is_named_with_its_line(tmp_path: Path) -> None:
    fill(tmp_path, "notes/a.txt")
    text = "datasets:\n- {name: notes, kind: prose, format: files, paths: notes, include: '*.md'}\n"
    with pytest.raises(ConfigurationError) as caught:
        checked(tmp_path, text)
    assert str(caught.value).startswith("my.yaml, line 2, datasets[0].paths: No file under `notes` matches")


@pytest.mark.parametrize("format", ["files", "jsonl"])
def test_a_file_that_two_paths_read_is_a_mistake(tmp_path: Path, format: str) -> None:
    fill(tmp_path, "web/de/a.jsonl", "web/b.jsonl")
    text = f"datasets:\n- {{name: web, kind: prose, format: {format}, paths: [web, web/de]}}\n"
    with pytest.raises(ConfigurationError) as caught:
        checked(tmp_path, text)
    assert str(caught.value).startswith(
        f"my.yaml, line 2, datasets[0].paths: `{tmp_path}/web/de` is inside `{tmp_path}/web`, and both paths"
    )


def test_a_path_named_twice_is_read_once(tmp_path: Path) -> None:
    fill(tmp_path, "web/a.txt")
    (tmp_path / "link").symlink_to("web")
    text = "datasets:\n- {name: web, kind: prose, format: files, paths: [web, ./web, link]}\n"
    assert checked(tmp_path, text) == {"web": 1}


def left_out(folder: Path, dataset: str) -> dict[str, int]:
    (folder / "my.yaml").write_text(f"datasets:\n- {{name: web, {dataset}}}\n")
    [of_dataset] = check(folder / "my.yaml").datasets
    return dict(of_dataset.left_out)


def test_files_that_the_user_excludes_are_not_left_out(tmp_path: Path) -> None:
    fill(tmp_path, "code/a.py", "code/tests/b.py", "repos/one/a.py", "repos/one/tests/b.py")
    for dataset in ("format: files, paths: code", "format: repositories, paths: repos"):
        assert left_out(tmp_path, f"kind: code, {dataset}, exclude: 'tests/**'") == {}


def test_a_list_among_compressed_records_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "a.jsonl.gz").write_bytes(gzip.compress(b'{"text": "one"}\n{"text": "two"}\n'))
    index = json.dumps([{"name": number} for number in range(300)], indent=1).encode()
    (tmp_path / "web" / "index.json.gz").write_bytes(gzip.compress(index))
    assert left_out(tmp_path, "kind: prose, format: jsonl, paths: web") == {".json.gz": 1}
    (tmp_path / "web" / "a.jsonl.gz").unlink()
    with pytest.raises(ConfigurationError, match=r"such as `index\.json\.gz`\)\. A list .* `jq -c '\.\[\]'`"):
        left_out(tmp_path, "kind: prose, format: jsonl, paths: web")


def test_two_datasets_over_the_same_files_are_a_warning(tmp_path: Path) -> None:
    fill(tmp_path, "notes/a.md", "notes/b.md", "notes/c.txt", "essays/d.md")
    (tmp_path / "my.yaml").write_text(
        "datasets:\n- {name: notes, kind: prose, format: files, paths: notes}\n"
        "- {name: markdown, kind: prose, format: files, paths: [./notes, essays], include: '*.md'}\n"
        "- {name: essays, kind: prose, format: files, paths: essays}\n"
    )
    warnings = [sentence for sentence in check(tmp_path / "my.yaml").warnings if "both read" in sentence]
    assert warnings == [
        "`notes` and `markdown` both read 2 files, such as `notes/a.md`. Give each dataset files of its own; "
        "for other filters of the same documents, give `notes` a variant (`variants`).",
        "`markdown` and `essays` both read `essays/d.md`. Give each dataset files of its own; "
        "for other filters of the same documents, give `markdown` a variant (`variants`).",
    ]


@pytest.mark.parametrize("other, is_warned", [("part=2", False), ("part=1", True)])
def test_addresses_that_differ_by_their_query_are_two_files(
    tmp_path: Path, other: str, is_warned: bool
) -> None:
    with serving_files({"a.jsonl": b'{"text": "one"}\n'}) as web:
        entries = [
            f"- {{name: {name}, kind: prose, format: jsonl, paths: '{web.address}/w/a.jsonl?{query}'}}\n"
            for name, query in (("one", "part=1"), ("two", other))
        ]
        (tmp_path / "my.yaml").write_text("".join(["datasets:\n", *entries]))
        warnings = [line for line in check(tmp_path / "my.yaml").warnings if "both read" in line]
    assert len(warnings) == is_warned
    assert all("a.jsonl?part=1`" in line for line in warnings)


def test_a_link_that_two_datasets_meet_is_no_warning(tmp_path: Path) -> None:
    fill(tmp_path, "notes/a.md", "notes/deep/b.md")
    (tmp_path / "notes" / "deep" / "loop").symlink_to("..")
    (tmp_path / "my.yaml").write_text(
        "datasets:\n- {name: notes, kind: prose, format: files, paths: notes, include: '*.md'}\n"
        "- {name: deep, kind: prose, format: files, paths: notes/deep}\n"
    )
    assert not any("both read" in sentence for sentence in check(tmp_path / "my.yaml").warnings)


def test_limits_that_remove_most_of_the_first_documents_are_a_warning(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    prose = "The tide turns twice a day along this coast, and the boats that follow it have to be back. "
    texts = [f"Sentence {number} is short." for number in range(193)]
    texts += [" ".join(f"{prose}It was so in {n} too." for n in range(m, m + 9)) for m in range(20)]
    (tmp_path / "web" / "a.jsonl").write_text("".join(f"{json.dumps({'text': text})}\n" for text in texts))
    dataset = "name: web, kind: prose, format: jsonl, paths: web, rules: [word_count, stop_words]"
    (tmp_path / "my.yaml").write_text(f"datasets:\n- {{{dataset}}}\n")
    assert check(tmp_path / "my.yaml").warnings == (
        "The limits of `web` remove 193 of the first 200 documents: 193 by `word_count` (50 to 100,000) and "
        "193 by `stop_words` (>= 2). Change `limits` or `rules` if they belong to the dataset "
        "(docs/filters.md of the repository).",
    )
    limits = "limits: {word_count: {at_least: 3}, stop_words: 0}"
    (tmp_path / "my.yaml").write_text(f"datasets:\n- {{{dataset}, {limits}}}\n")
    assert check(tmp_path / "my.yaml").warnings == ()


@pytest.mark.parametrize("n_rules, others", [(5, "2 other rules"), (4, "another rule")])
def test_rules_that_remove_as_many_documents_as_the_first_are_counted(
    tmp_path: Path, n_rules: int, others: str
) -> None:
    names = ["top_2_gram", "top_3_gram", "top_4_gram", "word_count", "duplicate_5_grams"][:n_rules]
    text = "the tide turns today " * 5
    (tmp_path / "a.jsonl").write_text(f"{json.dumps({'text': text})}\n" * 2)
    (tmp_path / "my.yaml").write_text(
        "datasets:\n- {name: web, kind: prose, format: jsonl, paths: a.jsonl, "
        f"rules: [{', '.join(names)}]}}\n"
    )
    [warning] = check(tmp_path / "my.yaml").warnings
    assert warning.startswith("The limits of `web` remove 2 of the first 2 documents: 2 by `")
    assert warning.count("2 by `") == 3
    assert f") and some by {others}. Change" in warning


def test_limits_are_tried_on_files_as_a_run_reads_them(tmp_path: Path) -> None:
    fill(tmp_path, "notes/a.md", "repos/one/__init__.py", "repos/one/b.py")
    (tmp_path / "repos" / "one" / "b.py").write_text("0123456789 = 0123456789\n" * 300)
    (tmp_path / "my.yaml").write_text(
        "datasets:\n- {name: notes, kind: prose, format: files, paths: notes}\n"
        "- {name: code, kind: code, format: repositories, paths: repos}\n"
    )
    checked_file = check(tmp_path / "my.yaml")
    assert "The limits of `notes` remove the first document:" in checked_file.warnings[0]
    [advice] = checked_file.datasets[1].advice  # a package's own file stays
    assert advice.startswith("The limits of `code` remove 1 of the first 2 documents: 1 by `code_")
