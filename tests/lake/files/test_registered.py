"""Texts are read from registered files in any order, as long as the files are unchanged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factory.errors import DamagedFile, FactoryError, SourceChanged
from factory.lake.files import registered
from factory.lake.files.location import location as file_location
from factory.lake.files.registered import RegisteredTexts, filled
from factory.lake.identity import content_hash
from factory.lake.registration import Candidates
from factory.lake.schemas.ingest import TEXT_AT
from tests.lake.files.places import place

TEXTS = {name: [f"{name} {row} é" for row in range(40)] for name in ("a", "b")}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of 40 rows in groups of 7, one of them with a wide second column."""
    folder = tmp_path_factory.mktemp("shelf")
    for name, texts in TEXTS.items():
        table = pa.table({"body": pa.array(texts, pa.large_string()), "wide": ["x" * 200] * 40})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=7)
    return folder


def hashes_of(texts: Sequence[str | None]) -> pa.StringArray:
    """The content hashes of texts, as a raw table has them."""
    return pa.array([None if text is None else content_hash(text) for text in texts], pa.string())


def read(
    places: list[dict[str, object] | None], texts: Sequence[str | None], reader: RegisteredTexts | None = None
) -> list[str | None]:
    """Read the texts at `places`, which were `texts` when their files were registered."""
    pieces = (reader or RegisteredTexts()).read(places, hashes_of(texts))
    return [text for piece in pieces for text in piece.to_pylist()]


WANTED = st.lists(st.none() | st.tuples(st.sampled_from("ab"), st.integers(0, 39)), max_size=30)


@given(st.lists(WANTED, max_size=4))
def test_texts_come_in_the_order_asked_for_whatever_it_is(
    shelf: Path, batches: list[list[tuple[str, int] | None]]
) -> None:
    reader = RegisteredTexts()
    for wanted in batches:
        places = [
            place(shelf / f"{location[0]}.parquet", location[1]) if location else None for location in wanted
        ]
        texts = [TEXTS[location[0]][location[1]] if location else None for location in wanted]
        assert read(places, texts, reader) == texts


def test_one_pass_over_a_file_reads_each_group_once(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[list[int]] = []
    iterate = pq.ParquetFile.iter_batches

    def noting(self: pq.ParquetFile, *args: object, row_groups: list[int], **options: object) -> object:
        groups.append(row_groups)
        return iterate(self, *args, row_groups=row_groups, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noting)
    reader = RegisteredTexts()
    for first in range(0, 40, 5):
        rows = range(first, first + 5)
        read([place(shelf / "a.parquet", row) for row in rows], TEXTS["a"][first : first + 5], reader)
    assert groups == [[0], [1], [2], [3], [4], [5]]


def test_texts_are_handed_over_in_pieces(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registered, "_PIECE_BYTES", 100)
    places = [place(shelf / "a.parquet", row) for row in range(40)]
    pieces = list(RegisteredTexts().read(places, hashes_of(TEXTS["a"])))
    assert len(pieces) > 4
    assert [text for piece in pieces for text in piece.to_pylist()] == TEXTS["a"]
    assert {piece.type for piece in pieces} == {pa.string()}


@given(st.lists(st.none() | st.sampled_from(["", "a", "\ufeff", "\ufeffone", "two\ufeff", "\ufeff\ufeff"])))
@settings(deadline=None)
def test_a_byte_order_mark_is_not_text(shelf: Path, texts: list[str | None]) -> None:
    file = shelf / "marks.parquet"
    pq.write_table(pa.table({"body": pa.array(texts, pa.string())}), file)
    # A document without a place comes first and last: nulls behind short texts were what failed.
    places = [None, *(place(file, row) for row in range(len(texts))), None]
    without = [text if text is None else text.removeprefix("\ufeff") for text in texts]
    assert read(places, [None, *without, None]) == [None, *without, None]


def test_a_table_is_filled_and_its_own_texts_stay(shelf: Path) -> None:
    rows = pa.table(
        {
            "doc_id": ["1", "2", "3"],
            "text": pa.array(["own", None, None], pa.large_string()),
            "content_hash": hashes_of(["own", "b 3 é", ""]).cast(pa.large_string()),
            "text_at": pa.array([None, place(shelf / "b.parquet", 3), None], TEXT_AT.type),
        }
    )
    assert filled(rows)["text"].to_pylist() == ["own", "b 3 é", None]
    assert filled(rows).column_names == ["doc_id", "text", "content_hash"]
    assert filled(rows.select(["doc_id", "text_at"])).column_names == ["doc_id"]
    assert filled(rows.select(["doc_id", "text"])).column_names == ["doc_id", "text"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of two texts."""
    pq.write_table(pa.table({"body": ["one", "two"]}), tmp_path / "a.parquet")
    return tmp_path / "a.parquet"


@pytest.mark.parametrize("damage", ["written", "touched", "gone", "broken"])
def test_a_file_that_changed_is_refused_by_name(file: Path, damage: str) -> None:
    at = place(file, 1)
    if damage == "written":
        pq.write_table(pa.table({"body": ["one", "two", "three"]}), file)
    elif damage == "touched":
        os.utime(file, ns=(0, 0))
    elif damage == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-4] + b"XXXX")  # of the same size, and said to be as old
        os.utime(file, ns=(0, int(str(at["modified_ns"]))))
    with pytest.raises(SourceChanged, match=rf"^The file {file}.*\. Put it back as it was, or materialize"):
        read([at], ["two"])


@pytest.mark.invariant(
    "A text of a registered file is served only if it has the hash that its raw table holds, even if size"
    " and time of the file are as they were."
)
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_no_flipped_bit_of_a_registered_column_is_served(
    tmp_path: Path, codec: str, version: str, dictionary: bool
) -> None:
    file, texts = tmp_path / "own.parquet", [f"text {row % 9} of a user's own file" for row in range(50)]
    pq.write_table(
        pa.table({"body": texts}),
        file,
        compression=codec,
        data_page_version=version,
        use_dictionary=dictionary,
    )
    whole, places = file.read_bytes(), [place(file, row) for row in range(50)]
    chunk = pq.read_metadata(file).row_group(0).column(0)
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    for at in range(begin, begin + chunk.total_compressed_size, 3):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        os.utime(file, ns=(0, int(str(places[0]["modified_ns"]))))
        try:
            assert read([*places], texts) == texts  # the bit was of a header's statistics, say
        except FactoryError as error:
            assert str(file) in str(error)  # noqa: PT017 - either outcome is right


def test_a_flipped_bit_in_a_value_is_named_with_its_row(file: Path) -> None:
    places = [place(file, 0), place(file, 1)]
    whole = file.read_bytes()
    assert whole.count(b"two") >= 1
    file.write_bytes(whole.replace(b"two", b"twn"))
    os.utime(file, ns=(0, int(str(places[0]["modified_ns"]))))
    assert read(places[:1], ["one"]) == ["one"]
    changed = rf"^The text in row 1, column `body`, of the registered file {file} is not the one"
    with pytest.raises(DamagedFile, match=changed):
        read([None, *places], [None, "one", "two"])


def test_a_file_that_changes_while_it_is_read_gives_no_text(file: Path) -> None:
    reader, at = RegisteredTexts(), place(file, 0)
    assert read([at], ["one"], reader) == ["one"]
    with file.open("ab") as appended:
        appended.write(b"more")
    with pytest.raises(SourceChanged, match="changed since its rows were registered"):
        read([at], ["one"], reader)


@pytest.mark.parametrize(
    "columns, trouble",
    [
        ({"text": pa.array(["a"])}, None),
        ({"text": pa.array(["a"], pa.large_string()), "deep": pa.array([[{"x": [1]}]])}, None),
        ({"body": pa.array(["a"])}, "no column `text` of plain strings"),
        ({"text": pa.array([b"a"])}, "no column `text` of plain strings"),
        ({"text": pa.array(["a"]), "n": pa.nulls(1)}, "Iceberg cannot take it as it is"),
        (
            {"text": pa.array(["a"]), "t": pa.array([0], pa.timestamp("ns"))},
            "Iceberg cannot take it as it is",
        ),
    ],
)
def test_a_file_that_iceberg_can_add_is_registrable(
    tmp_path: Path, columns: dict[str, pa.Array], trouble: str | None
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path)
    candidates = Candidates("text")
    assert candidates.offer(file_location(path), "a") == (trouble is None)
    assert (trouble or "") in candidates.refused.get("a", "")
    assert candidates.files == ([] if trouble else [f"file://{path}"])


def test_files_registered_together_have_the_columns_of_the_first(tmp_path: Path) -> None:
    one, two = pa.array(["a"]), pa.array([1])
    for name in ("a", "b", "c"):
        columns = {"n": two, "text": one} if name == "b" else {"text": one, "n": two}
        pq.write_table(pa.table(columns), tmp_path / name)
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "half?").write_bytes((tmp_path / "a").read_bytes())
    candidates = Candidates("text")
    expected = {"a": True, "b": False, "c": True, "link": False, "half?": False}
    assert {name: candidates.offer(file_location(tmp_path / name), name) for name in expected} == expected
    assert candidates.refused["link"] == "it is not a regular file"


def test_a_file_of_another_iceberg_table_is_not_registrable(tmp_path: Path) -> None:
    field = pa.field("text", pa.string(), metadata={"PARQUET:field_id": "7"})
    pq.write_table(pa.table({"text": ["a"]}, schema=pa.schema([field])), tmp_path / "a")
    candidates = Candidates("text")
    assert not candidates.offer(file_location(tmp_path / "a"), "a")
    assert "ids of another Iceberg table" in candidates.refused["a"]
