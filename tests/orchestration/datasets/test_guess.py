"""The guesses of `factory init`, and the file that it writes from them."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factory.errors import ConfigurationError
from factory.orchestration.datasets.check import check
from factory.orchestration.datasets.guess import Guess, guess
from factory.orchestration.datasets.record_guess import RecordFields
from factory.orchestration.datasets.template import template
from tests.ingest.inputs import zipped


def fill(folder: Path, *files: str) -> None:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text('{"text": "one line"}\n')


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one of each format."""
    fill(tmp_path, "notes/a.md", "notes/deep/b.md", "notes/c.txt", "notes/picture.png")
    fill(
        tmp_path, "checkouts/one/a.py", "checkouts/one/README.md", "checkouts/two/b.rs", "checkouts/two/c.rs"
    )
    (tmp_path / "off").mkdir()
    (tmp_path / "off" / "x.zip").write_bytes(zipped({"a.txt": b"a text"}))
    fill(tmp_path, "2024-raw/a.jsonl", "loose.jsonl", ".hidden/a.md", "pictures/a.png")
    (tmp_path / "web").mkdir()
    with gzip.open(tmp_path / "web" / "a.jsonl.gz", "wt") as file:
        file.write(json.dumps({"id": "7", "n": 1, "body": "hello", "lang": "en", "title": "a longer text"}))
    (tmp_path / "The-Stack").mkdir()
    rows = {"n": [1], "content": ["x"], "max_stars_repo_name": ["r"], "max_stars_repo_path": ["p"]}
    pq.write_table(pa.table(rows), tmp_path / "The-Stack" / "a.parquet")
    return tmp_path


def test_each_folder_is_a_dataset_of_its_format(folder: Path) -> None:
    stack = RecordFields(
        "content", columns={"repository": "max_stars_repo_name", "path": "max_stars_repo_path"}
    )
    text = RecordFields("text")
    assert guess(folder)[1:] == [
        Guess("data_2024_raw", "prose", "jsonl", ("2024-raw",), 1, fields=text),
        Guess("the_stack", "code", "parquet", ("The-Stack",), 1, fields=stack),
        Guess("checkouts", "code", "repositories", ("checkouts",), 3, ("**/*.rs", "**/*.py")),
        Guess("notes", "prose", "files", ("notes",), 3, ("**/*.md", "**/*.txt")),
        Guess("off", "prose", "archive", ("off",), 1),
        Guess(
            "web",
            "prose",
            "jsonl",
            ("web",),
            1,
            fields=RecordFields("body", "id", {"language": "lang"}, ("title",)),
        ),
    ]
    loose = guess(folder)[0]
    assert (loose.format, loose.paths, loose.fields) == ("jsonl", ("loose.jsonl",), text)


def test_the_file_of_a_guess_declares_what_was_guessed(folder: Path) -> None:
    guesses = guess(folder)
    (folder / "datasets.yaml").write_text(template(guesses, "datasets.yaml"))
    found = check(folder / "datasets.yaml")
    assert [(dataset.name, dataset.kind, dataset.format, dataset.files) for dataset in found.datasets] == [
        (guess.name, guess.kind, guess.format, guess.files) for guess in guesses
    ]


def test_every_comment_of_the_file_is_a_field_that_fits(folder: Path) -> None:
    text = template(guess(folder), "datasets.yaml")
    options = re.sub(r"^( *)# (?= *[a-z]+:(?: |$))", r"\1", text, flags=re.MULTILINE)
    assert options.count("license:") == 7
    assert "\ntokenizers:\n  tokenizer:" in options
    (folder / "datasets.yaml").write_text(options)
    assert len(check(folder / "datasets.yaml").datasets) == 7


def test_a_clone_is_one_dataset(tmp_path: Path) -> None:
    fill(tmp_path, ".git/config", "src/a.py", "b.py", "docs/a.md")
    [found] = guess(tmp_path)
    assert (found.kind, found.format, found.paths, found.files) == ("code", "files", (".",), 2)


def test_a_folder_of_clones_is_one_dataset_of_repositories(tmp_path: Path) -> None:
    fill(tmp_path, "one/.git/config", "one/a.go", "two/.git/config", "two/b.go")
    [found] = guess(tmp_path)
    assert (found.format, found.paths, found.include) == ("repositories", (".",), ("**/*.go",))


def test_patterns_of_one_repository_leave_out_no_file_of_another(tmp_path: Path) -> None:
    fill(tmp_path, "all/one/a.go", "all/one/gen/b.go", "all/one/out/c.go", "all/two/gen/d.go")
    (tmp_path / "all" / "one" / ".gitignore").write_text("/gen/\n/out/\n")
    [dataset] = guess(tmp_path)
    assert (dataset.format, dataset.files) == ("repositories", 3)
    assert [exclusion.pattern for exclusion in dataset.exclude] == ["**/out/**"]


def test_a_damaged_record_is_guessed_without_fields(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("not json\n")
    (tmp_path / "b.parquet").write_bytes(b"not Parquet")
    assert [dataset.fields for dataset in guess(tmp_path)] == [RecordFields(), RecordFields()]
    assert len({dataset.name for dataset in guess(tmp_path)}) == 2


def test_a_folder_of_nothing_known_names_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is empty"):
        guess(tmp_path)
    fill(tmp_path, "a.png")
    with pytest.raises(ConfigurationError, match=r"holds a\.png"):
        guess(tmp_path)
    with pytest.raises(ConfigurationError, match="is not a folder"):
        guess(tmp_path / "a.png")


def test_pages_and_archives_are_web_datasets_and_pages_among_code_are_none(tmp_path: Path) -> None:
    fill(tmp_path, "site/a.html", "site/deep/b.htm", "site/notes.md", "crawl/a.warc.gz", "crawl/b.wet.gz")
    fill(tmp_path, "tool/a.py", "tool/b.py", "tool/page.html")
    assert guess(tmp_path) == [
        Guess("crawl", "prose", "warc", ("crawl",), 2),
        Guess("site", "prose", "files", ("site",), 1, ("**/*.md",)),
        Guess("site_html", "prose", "html", ("site",), 2, ("**/*.htm", "**/*.html")),
        Guess("tool", "code", "files", ("tool",), 2, ("**/*.py",)),
    ]


SAYS = {"role": "user", "content": "How far is the moon?"}
SHAREGPT = {"from": "human", "value": "How far is the moon?"}
OF_SHAREGPT = (
    "{field: turns, role: from, content: value, roles: {human: user, gpt: assistant}}"  # as the page has it
)


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    "record, declared",
    [
        ({"id": "7", "messages": [SAYS]}, "messages: messages"),
        ({"prompt": "How far?", "turns": [SAYS]}, "messages: turns"),
        ({"id": "7", "turns": [SHAREGPT], "lang": "en"}, f"messages: {OF_SHAREGPT}"),
        ({"text": "The moon is far.", "messages": [SAYS]}, "text: text"),
        ({"title": "The moon", "links": [{"url": "a", "kind": "b"}]}, "text: title"),
    ],
)
def test_conversations_are_messages_with_a_template(
    tmp_path: Path, format: str, record: dict[str, object], declared: str
) -> None:
    (tmp_path / "chat").mkdir()
    if format == "jsonl":
        (tmp_path / "chat" / "a.jsonl").write_text(f"{json.dumps(record)}\n" * 3)
    else:
        pq.write_table(pa.Table.from_pylist([record] * 3), tmp_path / "chat" / "a.parquet")
    text = template(guess(tmp_path), "datasets.yaml")
    assert f"    {declared}\n" in text
    assert ("    template: chatml #" in text) == declared.startswith("messages")
    file = tmp_path / "datasets.yaml"
    file.write_text(text)
    assert [dataset.name for dataset in check(file).datasets] == ["chat"]


def test_messages_of_a_large_list_are_found_and_lists_of_other_things_are_none(tmp_path: Path) -> None:
    message = pa.struct([("role", pa.string()), ("content", pa.string())])
    table = pa.table({"m": pa.array([[SAYS]], pa.large_list(message)), "deep": [[[SAYS]]], "words": [["a"]]})
    (tmp_path / "chat").mkdir()
    pq.write_table(table, tmp_path / "chat" / "a.parquet")
    (found,) = guess(tmp_path)
    assert found.fields is not None
    assert found.fields.messages is not None
    assert found.fields.messages.field == "m"


def fill_folders(folder: Path, n_folders: int) -> tuple[str, ...]:
    """Fill folders of notes; return their names."""
    names = [f"{number:03}" for number in range(n_folders)]
    fill(folder, *(f"{name}/{file}" for name in names for file in ("a.txt", "b.md")))
    return tuple(names)


def test_a_dozen_folders_are_a_dataset_each_and_more_are_one_with_all_paths(tmp_path: Path) -> None:
    few = fill_folders(tmp_path, 12)
    assert [dataset.paths for dataset in guess(tmp_path)] == [(path,) for path in few]
    many = fill_folders(tmp_path, 13)
    [joined] = guess(tmp_path)
    assert (joined.paths, joined.files, joined.include) == (many, 26, ("**/*.md", "**/*.txt"))
    assert joined.note.startswith("13 folders are read alike, so they are one dataset.")
    text = template([joined], "datasets.yaml")
    assert "  # 13 folders are read alike" in text
    (tmp_path / "datasets.yaml").write_text(text)
    assert [dataset.files for dataset in check(tmp_path / "datasets.yaml").datasets] == [26]


def test_folders_that_are_read_in_other_ways_keep_their_datasets(tmp_path: Path) -> None:
    many = fill_folders(tmp_path, 13)
    fill(tmp_path, "web/a.jsonl", "code/a.py", "loose.jsonl")
    (tmp_path / "pages").mkdir()
    pq.write_table(pa.table({"body": ["one"]}), tmp_path / "pages" / "a.parquet")
    assert {dataset.paths: dataset.format for dataset in guess(tmp_path)} == {
        ("loose.jsonl",): "jsonl",
        many: "files",
        ("code",): "files",
        ("pages",): "parquet",
        ("web",): "jsonl",
    }


def test_a_hundred_folders_are_named_by_the_folder_above_if_it_holds_nothing_else(tmp_path: Path) -> None:
    many = fill_folders(tmp_path, 101)
    assert [dataset.paths for dataset in guess(tmp_path)] == [(".",)]
    fill(tmp_path, "loose.md")
    assert [dataset.paths for dataset in guess(tmp_path)] == [(".",), many]


def test_many_folders_of_code_are_repositories(tmp_path: Path) -> None:
    fill(tmp_path, *(f"{number}/a.py" for number in range(13)), "setup.py", "notes/a.md")
    code, notes = guess(tmp_path)
    assert (code.format, code.paths, code.files, notes.paths) == ("repositories", (".",), 13, ("notes",))


def test_many_loose_files_are_their_folder_unless_others_lie_below(tmp_path: Path) -> None:
    names = tuple(f"{number:02}.jsonl" for number in range(13))
    fill(tmp_path, *names, "notes/a.md")
    assert guess(tmp_path)[0].paths == (".",)
    fill(tmp_path, "web/a.jsonl")
    assert [dataset.paths for dataset in guess(tmp_path)] == [names, ("notes",), ("web",)]
