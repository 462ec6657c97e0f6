"""What the first records of a dataset show: a mistake is a sentence with its line, before anything runs."""

from __future__ import annotations

import gzip
import json
import math
import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from factory.errors import ConfigurationError
from factory.lake import names
from factory.lake.tables import Lake
from factory.orchestration.datasets.assets import corpus
from factory.orchestration.datasets.check import check
from factory.settings import Settings
from tests.ingest.inputs import zipped
from tests.orchestration.runs import failure, run

PAGE = "<!DOCTYPE html><html><body>A page</body></html>"
RECORDS = [{"uid": number, "body": f"text {number}", "title": f"a title {number}"} for number in range(5)]


def lines(records: object) -> bytes:
    assert isinstance(records, list)
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def parquet(path: Path, columns: dict[str, list[object]]) -> bytes:
    pq.write_table(pa.table(columns), path)
    return path.read_bytes()


def declare(folder: Path, dataset: str, **files: bytes) -> Path:
    """Write files, with `_` for the point of an ending, and a datasets file of one dataset."""
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content)
    (folder / "my.yaml").write_text(f"datasets:\n  - {{name: web, {dataset}}}\n")
    return folder / "my.yaml"


def refusal(path: Path) -> str:
    with pytest.raises(ConfigurationError) as error:
        check(path)
    return str(error.value).replace("my.yaml, line 2, datasets[0].", "")


@pytest.mark.parametrize(
    "fields, sentence",
    [
        (
            "text: bdy",
            "text: The first records of `a.jsonl` have no field `bdy`, only `uid`, `body`, `title`. ",
        ),
        ("text: text", "only `uid`, `body`, `title`. Did you mean `body`?"),
        ("text: uid", "text: `a.jsonl`, line 1: Field `uid` holds int, not text. Did you mean `body`?"),
        ("text: body, key: udi", "key: The first records of `a.jsonl` have no field `udi`"),
        (
            "text: body, metadata: [title, tilte]",
            "metadata[1]: The first records of `a.jsonl` have no field `tilte`",
        ),
        ("text: body, columns: {language: lang}", "columns.language: The first records"),
    ],
)
def test_a_field_that_no_record_has_is_named_with_the_nearest(
    tmp_path: Path, fields: str, sentence: str
) -> None:
    of_lines = declare(
        tmp_path, f"kind: prose, format: jsonl, paths: a.jsonl, {fields}", a_jsonl=lines(RECORDS)
    )
    assert sentence in refusal(of_lines)
    assert refusal(of_lines).count("\n") == 0


def test_columns_of_parquet_are_fields(tmp_path: Path) -> None:
    content = parquet(tmp_path / "x", {"content": ["a"], "n": [1]})
    path = declare(tmp_path, "kind: prose, format: parquet, paths: a.parquet", a_parquet=content)
    assert refusal(path) == (
        "text: The first records of `a.parquet` have no field `text`, only `content`, `n`. "
        "Did you mean `content`?"
    )
    path = declare(tmp_path, "kind: prose, format: parquet, paths: a.parquet, text: n", a_parquet=content)
    assert refusal(path) == "text: `a.parquet`: Column `n` holds int64, not text. Did you mean `content`?"


ONE_LIST = json.dumps([{"text": "a"}, {"text": "b"}]).encode()
PLAIN = lines([{"text": "a"}])
DAMAGE = {
    "a_jsonl_gz": (
        PLAIN,
        "line 1: By its name it is gzip data, but it holds text. Rename it, or fetch it again.",
    ),
    "b_jsonl": (gzip.compress(PLAIN), "It holds gzip data. End its name in `.gz`."),
    "c_jsonl_gz": (
        gzip.compress(PLAIN * 999)[:40],
        "is cut off at byte 40 of the file: there it ends. Fetch it",
    ),
    "d_jsonl": (b"", "`d.jsonl` holds no text: The file holds no line. Name other files."),
    "e_jsonl": (ONE_LIST, "It holds one list. Write each of its records on a line, with `jq -c '.[]'`."),
    "f_json": (json.dumps(json.loads(ONE_LIST), indent=1).encode(), "It holds one list."),
    "g_jsonl": (
        json.dumps({"text": "a"}, indent=1).encode(),
        "A record has several lines. Write each on one",
    ),
    "h_csv": (b"id,text\n1,a\n", "It looks like a table of CSV. Convert it to JSON lines or Parquet."),
    "i_jsonl": (b'{"text": "a",}\n', "line 1: Character 13 of the line: "),
    "j_jsonl": (b'["a"]\n["b"]\n', "The line holds list, not an object."),
    "k_parquet": (PLAIN, "By its name it is Parquet, but it holds text."),
    "l_zip": (PLAIN, "By its name it is a zip archive, but it holds text."),
    "m_zip": (zipped({"a.txt": b""}), "The text is empty."),
    "n_jsonl": (b"[" + b'{"text": "a"},' * (3 << 20), "It holds one list."),
    "o_warc_gz": (PLAIN, "By its name it is gzip data, but it holds text."),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_file_of_something_else_is_named_with_what_to_do(tmp_path: Path, name: str) -> None:
    content, sentence = DAMAGE[name]
    endings = {"parquet": "parquet", "zip": "archive", "gz": "warc" if "warc" in name else "jsonl"}
    format = endings.get(name.rpartition("_")[2], "jsonl")
    path = declare(
        tmp_path, f"kind: prose, format: {format}, paths: {name.replace('_', '.')}", **{name: content}
    )
    assert refusal(path).startswith(f"paths: `{name.replace('_', '.')}`")
    assert sentence in refusal(path)


def test_a_parquet_file_that_was_cut_is_told_from_another_file(tmp_path: Path) -> None:
    content = parquet(tmp_path / "x", {"text": ["a"]})
    path = declare(tmp_path, "kind: prose, format: parquet, paths: a.parquet", a_parquet=content[:-9])
    assert refusal(path).startswith(
        "paths: `a.parquet`: It is cut off: its end, which describes the columns,"
    )


def test_empty_records_and_files_before_the_first_text_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "0.jsonl").touch()
    (tmp_path / "many" / "1.jsonl").write_bytes(b'\n\n{"uid": 9, "body": ""}\n' + lines(RECORDS))
    path = declare(tmp_path, "kind: prose, format: jsonl, paths: many, text: body")
    [dataset] = check(path).datasets
    assert (dataset.files, [sentence.partition(",")[0] for sentence in dataset.advice]) == (
        2,
        ["`web` has no `key`"],
    )


def test_a_damaged_file_among_good_ones_is_told_by_a_check_and_ends_no_run(tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "a.jsonl").write_bytes(PLAIN)
    (tmp_path / "many" / "b.jsonl.gz").write_bytes(b"x")
    path = declare(tmp_path, "kind: prose, format: jsonl, paths: many")
    assert refusal(path).startswith("paths: `many/b.jsonl.gz`, line 1: By its name it is gzip data")


@pytest.mark.parametrize("number", [5, 2000])
def test_a_unique_field_is_offered_as_the_key(tmp_path: Path, number: int) -> None:
    records = [{"ID#": f"r{at}", "text": f"text {at}", "lang": "en"} for at in range(number)]
    path = declare(tmp_path, "kind: prose, format: jsonl, paths: a.jsonl", a_jsonl=lines(records))
    assert check(path).datasets[0].advice == (
        f"`web` has no `key`, and `ID#` differs in each of the first {min(number, 1000):,} records. "
        'With `key: "ID#"` a document keeps its id wherever its record is.',
    )
    path = declare(tmp_path, "kind: prose, format: jsonl, paths: a.jsonl, key: 'ID#'")
    assert check(path).datasets[0].advice == ()
    content = parquet(tmp_path / "x", {"uid": list(range(number)), "text": ["a"] * number})
    path = declare(tmp_path, "kind: prose, format: parquet, paths: a.parquet", a_parquet=content)
    assert "With `key: uid`" in check(path).datasets[0].advice[0]


def test_a_key_that_repeats_in_another_file_is_not_offered(tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for name in ("a", "b"):
        (tmp_path / "many" / f"{name}.jsonl").write_bytes(
            lines([{"id": 1, "text": "a"}, {"id": 2, "text": "b"}])
        )
    assert check(declare(tmp_path, "kind: prose, format: jsonl, paths: many")).datasets[0].advice == ()


def test_a_key_that_few_records_have_of_their_own_is_refused(tmp_path: Path) -> None:
    records = [
        {"id": number, "mood": ("sad", "gay")[number % 2], "text": f"text {number}"} for number in range(50)
    ]
    dataset = "kind: prose, format: jsonl, paths: a.jsonl, key: "
    assert refusal(declare(tmp_path, f"{dataset}mood", a_jsonl=lines(records))) == (
        "key: `mood` has 2 values in the first 50 documents, and a record whose key another one has is "
        "rejected. Did you mean `id`?"
    )
    check(declare(tmp_path, f"{dataset}id", a_jsonl=lines(records + records)))  # half of them, as may be
    assert "has 2 values" in refusal(declare(tmp_path, f"{dataset}mood, max_rejected: 0.9"))
    check(declare(tmp_path, f"{dataset}mood, max_rejected: 0.99"))
    deleted = [{"id": "deleted", "text": ""}] * 100  # are rejected as empty, whatever their keys
    check(declare(tmp_path, f"{dataset}id", a_jsonl=lines(records + deleted)))
    listed = [{"id": [1], "text": "a"}] * 50
    assert "holds neither text nor a whole number" in refusal(
        declare(tmp_path, f"{dataset}id", a_jsonl=lines(listed))
    )


def test_records_of_which_more_are_rejected_than_may_be_are_refused(tmp_path: Path) -> None:
    records = [{"text": "a text", "parts": ["a"]}, *[{"text": ["a"]}] * 60, *[{"title": "none"}] * 20]
    dataset = "kind: prose, format: jsonl, paths: a.jsonl"
    assert refusal(declare(tmp_path, dataset, a_jsonl=lines(records))) == (
        "text: 80 of the first 81 records are rejected, and at most 50% may be (`max_rejected`). `a.jsonl`, "
        "line 2: Field `text` holds list, not text. Name another field."
    )
    check(declare(tmp_path, f"{dataset}, max_rejected: 0.99"))


@pytest.mark.invariant("No reader lets web pages pass as prose unless the dataset keeps them.")
@pytest.mark.parametrize(
    "dataset, files, answer",
    [
        (
            "prose, format: files",
            {"a_html": b"<p>", "b_md": b"text"},
            "paths: 1 of 2 files is a web page (`a.html`)",
        ),
        (
            "prose, format: files",
            {"a_txt": PAGE.encode()},
            "paths: `data/a.txt`: The text is a web page: it begins",
        ),
        ("prose, format: repositories", {"a_html": b"<p>"}, "paths: The file is a web page (`a.html`)"),
        (
            "prose, format: jsonl",
            {"a_jsonl": lines([{"text": PAGE}])},
            "paths: `data/a.jsonl`, line 1: The text is",
        ),
        (
            "prose, format: archive",
            {"a_zip": zipped({"a.html": b"<p>"})},
            "paths: `data/a.zip`: By its name it is",
        ),
        (
            "prose, format: jsonl, max_rejected: 0.1",
            {"a_jsonl": lines([{"text": PAGE}, {"text": "a"}])},
            "markup: 1 web page is among the first 2 records of `web`. `data/a.jsonl`, line 1: The text is",
        ),
    ],
)
def test_markup_in_prose_is_refused_unless_it_is_kept(
    tmp_path: Path, dataset: str, files: dict[str, bytes], answer: str
) -> None:
    folder = tmp_path / "data" / ("repo" if "repositories" in dataset else "")
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content)
    path = declare(tmp_path, f"kind: {dataset}, paths: data")
    assert refusal(path).startswith(answer)
    assert "`markup: keep`" in refusal(path)
    assert "`format: html`" in refusal(path)
    assert len(check(declare(tmp_path, f"kind: {dataset}, paths: data, markup: keep")).datasets) == 1
    code = dataset.replace("prose", "code")
    assert len(check(declare(tmp_path, f"kind: {code}, paths: data")).datasets) == 1


def test_texts_that_another_dataset_reads_as_pages_are_kept(tmp_path: Path) -> None:
    declare(tmp_path, "kind: prose, format: jsonl, paths: a.jsonl", a_jsonl=lines([{"text": PAGE}] * 3))
    with (tmp_path / "my.yaml").open("a") as file:
        file.write("  - {name: main, kind: prose, format: html, from: web}\n")
    assert [dataset.advice for dataset in check(tmp_path / "my.yaml").datasets] == [(), ()]


def test_a_check_names_each_dataset_before_it_reads_it(tmp_path: Path) -> None:
    progress: list[str] = []
    check(declare(tmp_path, "kind: prose, format: jsonl, paths: a.jsonl", a_jsonl=PLAIN), progress.append)
    assert progress == ["web"]


def test_a_check_tells_that_the_extra_for_pages_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("factory.ingest.html_extra._MODULES", ("no_such_module",))
    for dataset in ("paths: .", "from: texts"):
        path = declare(tmp_path, f"kind: prose, format: html, {dataset}", a_html=b"<p>", b_jsonl=PLAIN)
        with path.open("a") as file:
            file.write("  - {name: texts, kind: prose, format: jsonl, paths: b.jsonl}\n")
        with pytest.raises(ConfigurationError, match=r"needs no_such_module\. Install it: pip install"):
            check(path)


def test_a_reader_of_pages_has_no_markup_to_keep(tmp_path: Path) -> None:
    path = declare(tmp_path, "kind: prose, format: html, paths: ., markup: keep")
    assert refusal(path) == (
        "markup: `html` reads the main text of pages, which has no markup. Leave `markup` out."
    )


def test_trees_are_read_until_one_file_is_a_document(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for number in range(20):
        (tmp_path / "data" / f"{number:02}.png").write_bytes(b"\x89PNG\0")
    path = declare(tmp_path, "kind: prose, format: files, paths: data")
    assert refusal(path).startswith("paths: `data/00.png`: Byte 0 is not UTF-8")
    (tmp_path / "data" / "z.md").write_text("text")
    assert check(path).datasets[0].files == 21
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "a.txt").symlink_to("nowhere")
    path = declare(tmp_path, "kind: prose, format: files, paths: links")
    assert refusal(path).endswith("Copy the file itself, or name the folder to which the link leads.")
    path = declare(tmp_path, "kind: prose, format: files, paths: my.yaml")
    assert refusal(path).endswith('and `files` reads folders. Name the folder, with `include: "my.yaml"`.')


@pytest.mark.parametrize("format", ["files", "jsonl", "repositories"])
def test_a_folder_without_permission_is_named(format: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        secret = Path(folder, "secret")
        secret.mkdir(mode=0o300)
        (secret / "a.jsonl").write_bytes(PLAIN)
        path = declare(Path(folder), f"kind: prose, format: {format}, paths: secret")
        Path(folder).chmod(0o755)
        as_root = os.geteuid() == 0  # who may read everything
        if as_root:
            os.chown(secret, 65534, 65534)
            os.seteuid(65534)
        try:
            sentence = refusal(path)
        finally:
            if as_root:
                os.seteuid(0)
        assert "secret" in sentence
        assert "ermission denied" in sentence
        assert "Let this user read it" in sentence


@pytest.mark.parametrize(
    "path, sentence",
    [
        ("data/*.jsonl", "No file matches `data/*.jsonl`."),
        ("data/{a,b}.jsonl", "Write a list of paths."),
        ("hf://org/name", "Write `hf://datasets/OWNER/NAME`"),
    ],
)
def test_a_pattern_without_files_and_an_odd_address_are_told(
    tmp_path: Path, path: str, sentence: str
) -> None:
    (tmp_path / "data").mkdir()
    mistake = refusal(declare(tmp_path, f"kind: prose, format: jsonl, paths: '{path}'"))
    assert mistake.startswith("paths[0]: ")
    assert sentence in mistake


def test_a_pattern_reads_the_files_that_match(tmp_path: Path) -> None:
    (tmp_path / "data" / "sub").mkdir(parents=True)
    for name in ("a.jsonl", "b.txt", "sub/c.jsonl", "*.jsonl"):
        (tmp_path / "data" / name).write_bytes(PLAIN)

    def n_files(paths: str) -> int:
        return check(declare(tmp_path, f"kind: prose, format: jsonl, paths: {paths}")).datasets[0].files

    assert n_files("'data/*.jsonl'") == 1  # the file of this name
    (tmp_path / "data" / "*.jsonl").unlink()
    assert n_files("'data/*.jsonl'") == 1
    assert n_files("'data/**/*.jsonl'") == 2
    assert n_files("['data/?.*', 'data/**/*.jsonl', data]") == 3  # each file once


@pytest.mark.invariant(
    "A declaration that contradicts the first records ends a check and a run with one sentence."
)
@pytest.mark.spark
def test_a_run_ends_with_the_sentence_of_the_check(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    for dataset, files in (
        ("kind: prose, format: jsonl, paths: a.jsonl, text: bdy", {"a_jsonl": lines(RECORDS)}),
        ("kind: prose, format: jsonl, paths: a.jsonl.gz", {"a_jsonl_gz": PLAIN}),
        ("kind: prose, format: files, paths: .", {"a_html": PAGE.encode()}),
    ):
        path = declare(tmp_path, dataset, **files)
        path.write_text(path.read_text().replace("name: web", f"name: {unique}"))
        [raw] = [
            asset
            for asset in corpus(path).assets
            if str(names.raw(unique)) in {key.to_user_string() for key in asset.keys}
        ]
        message = failure(run(lake_settings, raw))
        with pytest.raises(ConfigurationError) as error:
            check(path)
        assert str(error.value) in message


@pytest.mark.spark
def test_few_pages_are_rejected_records_and_many_end_the_run(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    def publish(n_pages: int) -> bool:
        texts = [{"text": PAGE}] * n_pages + [{"text": f"text {number}"} for number in range(3)]
        path = declare(tmp_path, "kind: prose, format: jsonl, paths: a.jsonl", a_jsonl=lines(texts))
        path.write_text(path.read_text().replace("name: web", f"name: {unique}"))
        [raw] = [
            asset
            for asset in corpus(path).assets
            if str(names.raw(unique)) in {key.to_user_string() for key in asset.keys}
        ]
        return bool(run(lake_settings, raw).success)

    assert publish(2)
    lake = Lake(lake_settings)
    pages = lake.read(names.rejected(unique)).to_pylist()
    assert [(row["reason"], row["location"]) for row in pages] == [("markup", "line 1"), ("markup", "line 2")]
    assert not publish(4)


def test_a_parquet_file_with_two_columns_of_one_name_is_told(tmp_path: Path) -> None:
    columns = [pa.array(range(3)), pa.array(["one", "two", "three"]), pa.array(["four", "five", "six"])]
    pq.write_table(pa.Table.from_arrays(columns, ["id", "text", "text"]), tmp_path / "a.parquet")
    path = declare(tmp_path, "kind: prose, format: parquet, paths: a.parquet")
    assert refusal(path).endswith("The file has two columns `text`. Rename one.")


DATED = [{"body": f"text {number}", "topic": "web", "rank": number} for number in range(5)]
SAYS = "or `missing: reject` to the predicate, for documents without it."


@pytest.mark.parametrize(
    "dataset, sentence",
    [
        (
            "metadata: topic, predicates: {metadata.tpoic: {none_of: [forum]}}",
            "predicates.metadata.tpoic: The first 5 documents have no `metadata.tpoic`, only `topic`. Did "
            f"you mean `metadata.topic`? If later documents have it, add `missing: keep` {SAYS}",
        ),
        (
            "metadata: topic, predicates: {metadata.rank: {at_least: 3}}",
            "only `topic`. The records have a field of this name: add `metadata: [rank]` to the dataset.",
        ),
        (
            "variants: {strict: {predicates: {metadata.topic: [web]}}}",
            "variants.strict.predicates.metadata.topic: The first 5 documents have no `metadata.topic`, and "
            "no other `metadata`. The records have a field of this name",
        ),
        (
            "rounds: [{rules: [c4]}, {predicates: {metadata.score: {at_most: 3}}}]",
            "rounds[1].predicates.metadata.score: The first 5 documents have no `metadata.score`, and "
            f"no other `metadata`. If later documents have it, add `missing: keep` {SAYS}",
        ),
        (
            "facts: {paths: facts.csv, by: key}, predicates: {metadata.spam: {at_most: 3}}",
            "Did you mean `facts.spam`?",
        ),
    ],
)
def test_a_predicate_on_metadata_that_no_document_has_is_refused(
    tmp_path: Path, dataset: str, sentence: str
) -> None:
    (tmp_path / "facts.csv").write_text("key,spam\na,1\n")
    path = declare(
        tmp_path, f"kind: prose, format: jsonl, paths: a.jsonl, text: body, {dataset}", a_jsonl=lines(DATED)
    )
    assert sentence in refusal(path)
    assert refusal(path).count("\n") == 0


@pytest.mark.parametrize(
    "predicate",
    [
        "{metadata.later: {at_least: 3, missing: keep}}",
        "{metadata.later: {one_of: [a], missing: reject}}",
        "{metadata.later: [a, null]}",
        "{metadata.topic: [web]}",
        "{metadata.split: {none_of: [test]}}",
    ],
)
def test_a_predicate_that_says_what_becomes_of_documents_without_the_name_is_right(
    tmp_path: Path, predicate: str
) -> None:
    path = declare(
        tmp_path,
        f"kind: prose, format: jsonl, paths: a.jsonl, text: body, metadata: topic, predicates: {predicate}",
        a_jsonl=lines(DATED),
    )
    assert check(path).datasets[0].files == 1


def test_facts_that_few_pages_state_are_names_of_every_page(tmp_path: Path) -> None:
    page = b"<html><body><main><p>" + b"A page with a sentence in it. " * 20 + b"</p></main></body></html>"
    path = declare(
        tmp_path,
        "kind: prose, format: html, paths: ., predicates: {metadata.noai: {none_of: ['true']}, "
        "metadata.nohai: {none_of: ['true']}}",
        a_html=page,
    )
    assert "no `metadata.nohai`, only" in refusal(path)
    assert "Did you mean `metadata.noai`?" in refusal(path)
    assert refusal(path).count("metadata.noai") == 1


def test_a_dataset_made_from_another_has_its_names_and_those_of_pages(tmp_path: Path) -> None:
    records = [{"text": PAGE, "url": "http://a.example/"}] * 3
    path = declare(
        tmp_path, "kind: prose, format: jsonl, paths: a.jsonl, metadata: url", a_jsonl=lines(records)
    )
    with path.open("a") as file:
        file.write(
            "  - name: main\n    kind: prose\n    format: html\n    from: web\n    predicates:\n"
            "      metadata.url: {none_of: ['*spam*']}\n      metadata.main_share: {at_least: 0.1}\n"
            "      metadata.derived_from: {none_of: [x]}\n      metadata.main_shear: {at_least: 0.1}\n"
        )
    assert refusal(path) == (
        "my.yaml, line 11, datasets[1].predicates.metadata.main_shear: The first documents of `web` have no "
        "`metadata.main_shear`, only `url`. Did you mean `metadata.main_share`? If later documents have it, "
        "add `missing: keep` or `missing: reject` to the predicate, for documents without it."
    )


FORMS = [
    {"body": f"text {number}", "stars": str(number), "when": f"0{number + 1}/04/2011", "mixed": number}
    for number in range(4)
] + [{"body": "text", "stars": "", "when": None, "mixed": "many"}]


def test_a_column_that_no_first_value_fits_is_refused_with_an_example(tmp_path: Path) -> None:
    path = declare(
        tmp_path,
        "kind: prose, format: jsonl, paths: a.jsonl, text: body, columns: {stars: stars, created_at: when}",
        a_jsonl=lines(FORMS),
    )
    assert refusal(path) == (
        "columns.created_at: None of the first 4 values of `when` fits `created_at`, such as `01/04/2011`: "
        "it takes a date or time with one meaning, such as `2011-05-04 12:30`, or a number of seconds or "
        "milliseconds since 1970. Name another field, or convert the values."
    )


def test_single_values_that_do_not_fit_are_advice(tmp_path: Path) -> None:
    path = declare(
        tmp_path,
        "kind: prose, format: jsonl, paths: a.jsonl, text: body, columns: {stars: mixed}",
        a_jsonl=lines(FORMS),
    )
    [dataset] = check(path).datasets
    assert dataset.advice == (
        "1 of the first 5 values of `mixed` does not fit `stars`, such as `many`: it takes a whole number. "
        "Documents without a fitting value have it in `metadata.mixed` alone.",
    )


@pytest.mark.parametrize("values, advice", [(["", " ", None], 0), ([math.nan, 3], 0), (["many", "3", ""], 1)])
def test_a_gap_that_metadata_keeps_is_no_misfit(tmp_path: Path, values: list[object], advice: int) -> None:
    bodies: list[object] = [f"text {number}" for number in range(len(values))]
    path = declare(
        tmp_path,
        "kind: prose, format: parquet, paths: a.parquet, text: body, columns: {stars: n}, metadata: [n]",
        a_parquet=parquet(tmp_path / "b", {"body": bodies, "n": values}),
    )
    [dataset] = check(path).datasets
    assert len(dataset.advice) == advice


@pytest.mark.invariant(
    "A value means the same in every type of an export; a value that does not fit its column is counted."
)
@pytest.mark.spark
def test_a_run_counts_values_that_do_not_fit_their_column(
    spark: SparkSession, tmp_path: Path, lake_settings: Settings, unique: str
) -> None:
    path = declare(
        tmp_path,
        "kind: prose, format: jsonl, paths: a.jsonl, text: body, "
        "columns: {stars: mixed, quality: stars, created_at: when}, metadata: [stars, mixed]",
        a_jsonl=lines(
            [*FORMS, {"body": "text", "stars": "NaN"}, {"body": "text", "stars": " ", "mixed": ""}]
        ),
    )
    path.write_text(path.read_text().replace("name: web", f"name: {unique}"))
    raw = next(asset for asset in corpus(path).assets if names.raw(unique).name in str(min(asset.keys)))
    result = run(lake_settings, raw)
    assert result.success
    counts = {
        evaluation.check_name: evaluation.metadata["violations"].value
        for evaluation in result.get_asset_check_evaluations()
        if evaluation.check_name.endswith("_fits")
    }
    assert counts == {"every_stars_fits": 1, "every_quality_fits": 0, "every_created_at_fits": 4}
    rows = Lake(lake_settings).read(names.raw(unique)).to_pylist()
    assert sorted(row["stars"] for row in rows if row["stars"] is not None) == [0, 1, 2, 3]
