"""Pictures in tar archives, Parquet and pages: documents with placeholders, and each reason to reject one."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.lake.schemas.images import PLACEHOLDER
from spark_udfs.ingest import image_document, image_rows
from spark_udfs.ingest.bounds import MAX_PICTURES
from spark_udfs.ingest.image_document import ImageOptions
from spark_udfs.ingest.images import images_file
from spark_udfs.ingest.place import FilePart
from tests.ingest.inputs import ORIGIN, Rows, picture, read, source, tarred
from tests.ingest.test_images import reasons

SHARDS = ImageOptions(layout="webdataset")
ROWS = ImageOptions(layout="parquet")
PAGES = ImageOptions(layout="pages")
PROSE = "A long sentence tells the reader of this page about the colors of the picture. " * 3


def texts(rows: Rows) -> dict[str, str]:
    return {row["key"]: row["text"] for row in rows if "reason" not in row}


def names(row: dict) -> list[str]:
    return [image["name"] for image in row["images"]]


def test_members_that_share_a_name_are_a_sample() -> None:
    members = {
        "a/1.jpg": picture("JPEG"),
        "a/1.txt": b"A cat.",
        "a/1.cls": b"7",
        "a/2.json": json.dumps({"caption": "A dog.", "url": "u"}).encode(),
        "a/2.left.png": picture(),
        "a/2.right.png": picture(),
    }
    options = ImageOptions(layout="webdataset", metadata=["url"])
    first, second = read(images_file, "s.tar", tarred(members), options)
    assert (first["key"], first["text"], names(first)) == ("s.tar!/a/1", f"{PLACEHOLDER}A cat.", ["1.jpg"])
    assert dict(first["metadata"]) == {"other_members": "cls"}
    assert (second["text"], names(second)) == (f"{PLACEHOLDER * 2}A dog.", ["2.left.png", "2.right.png"])
    assert dict(second["metadata"]) == {"url": "u"}


def test_every_bad_sample_is_one_rejected_record() -> None:
    members = {
        "1.png": b"not a picture",
        "1.txt": b"A text.",
        "2.txt": b"A caption alone.",
        "3.png": picture(),
        "4.png": picture(),
        "4.json": b"{",
        "5.png": picture(),
        "5.json": b"[1]",
        "6.png": picture(),
        "6.json": b'{"caption": 7}',
        "7.png": picture(),
        "7.json": b"[" * 500,
        "8.png": picture(),
        "8.txt": b"\xff",
        "9.cls": b"1",
    }
    rows = read(images_file, "s.tar", tarred(members), SHARDS)
    assert texts(rows) == {}
    assert reasons(rows) == {
        "s.tar!/1": "not_a_picture",
        "s.tar!/2": "no_picture",
        "s.tar!/3": "no_caption",
        "s.tar!/4": "not_json",
        "s.tar!/5": "not_json",
        "s.tar!/6": "text_not_a_string",
        "s.tar!/7": "too_complex",
        "s.tar!/8": "not_utf8",
        "s.tar!/9": "no_picture",
    }


def test_a_sample_of_an_earlier_name_is_rejected_and_so_is_the_rest_of_a_cut_archive() -> None:
    members = {
        "1.png": picture(),
        "1.txt": b"A.",
        "2.png": picture(),
        "2.txt": b"B.",
        "1.jpg": picture("JPEG"),
    }
    rows = read(images_file, "s.tar", tarred(members), SHARDS)
    assert list(texts(rows)) == ["s.tar!/1", "s.tar!/2"]
    assert list(reasons(rows).values()) == ["name_taken"]
    cut = read(images_file, "s.tar", tarred(members)[:4104], SHARDS)
    assert list(texts(cut)) == ["s.tar!/1"]
    assert reasons(cut) == {"s.tar!/2": "corrupt", "s.tar": "corrupt"}
    assert reasons(read(images_file, "s.tar", b"", SHARDS)) == {"s.tar": "corrupt"}


def test_endings_of_members_are_whole_and_in_any_letters() -> None:
    members = {
        "1.png": picture(),
        "1.EN.txt": b"A cat.",
        "1.de.txt": b"Eine Katze.",
        "1.JSON": b'{"url": "u"}',
        "1.meta.json": b'{"caption": "Not this.", "url": "v"}',
    }
    options = ImageOptions(layout="webdataset", caption_ending=".en.TXT", metadata=["url"])
    [row] = read(images_file, "s.tar", tarred(members), options)
    assert row["text"] == f"{PLACEHOLDER}A cat."
    assert dict(row["metadata"]) == {"other_members": "de.txt,meta.json", "url": "u"}


def test_no_member_of_a_sample_replaces_another_and_no_two_samples_are_joined_in_silence() -> None:
    members = {
        "1.png": picture(),
        "1.en.txt": b"A cat.",
        "1.de.txt": b"Eine Katze.",
        "2.png": picture(),
        "2.txt": b"A.",
        "2.TXT": b"B.",
        "3.png": picture(),
        "3.PNG": picture(),
        "3.txt": b"A.",
        "v1.0_1.png": picture(),
        "v1.0_1.txt": b"A.",
        "v1.0_2.png": picture(),
        "v1.0_2.txt": b"B.",
    }
    rows = read(images_file, "s.tar", tarred(members), SHARDS)
    assert reasons(rows) == {
        "s.tar!/1": "no_caption",
        "s.tar!/2": "name_taken",
        "s.tar!/3": "name_taken",
        "s.tar!/v1": "no_caption",
    }
    assert "no text `.txt`, only `.0_1.txt` and `.0_2.txt`" in rows[-1]["detail"]
    optional = read(images_file, "s.tar", tarred(members), replace(SHARDS, captions="optional"))
    assert texts(optional) == {"s.tar!/1": PLACEHOLDER}
    assert reasons(optional)["s.tar!/v1"] == "no_caption"


def table(**columns: list | pa.Array) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, row_group_size=2)
    return buffer.getvalue()


def test_pictures_of_parquet_are_bytes_or_structs_of_the_hub_or_lists() -> None:
    plain = table(image=[picture()], caption=["A cat."], n=[1])
    options = ImageOptions(layout="parquet", metadata=["n"])
    [row] = read(images_file, "t.parquet", plain, options)
    assert (row["key"], row["row"], row["text"]) == ("t.parquet:0", 0, f"{PLACEHOLDER}A cat.")
    assert dict(row["metadata"]) == {"n": "1"}
    of_hub = table(image=[{"bytes": picture(), "path": "cat.png"}], caption=["A cat."])
    [row] = read(images_file, "t.parquet", of_hub, ROWS)
    assert names(row) == ["cat.png"]
    with_marks = ImageOptions(
        layout="parquet", image="images", caption="text", placeholder="<image>", key="id"
    )
    content = table(
        images=[[picture(), picture("GIF")], [picture()], [picture()], []],
        text=["One <image> and <image>.", "<image> <image>", "None.", "None."],
        id=["a", "b", "c", "d"],
    )
    rows = read(images_file, "t.parquet", content, with_marks)
    assert texts(rows) == {"a": f"One {PLACEHOLDER} and {PLACEHOLDER}.", "c": f"{PLACEHOLDER}None."}
    assert reasons(rows) == {"t.parquet:1": "no_caption", "t.parquet:3": "no_picture"}


def strings_of(*names: bytes) -> pa.Array:
    """Strings of these bytes, in UTF-8 or not."""
    return pa.Array.from_buffers(pa.string(), len(names), pa.array(names).buffers())


def test_a_bad_value_rejects_its_own_row() -> None:
    pictures = pa.array([picture()] * 4)
    names_of_files = strings_of(b"a.png", b"caf\xe9.png", b"", b"d.png")
    structs = pa.StructArray.from_arrays([pictures, names_of_files], ["bytes", "path"])
    lists = pa.ListArray.from_arrays([0, 1, 2, 3, 4], structs)
    for column in (structs, lists):
        rows = read(images_file, "t.parquet", table(image=column, caption=["A."] * 4), ROWS)
        assert [name for row in rows if "images" in row for name in names(row)] == [
            *("a.png", "row 2, 0", "d.png")
        ]
        assert reasons(rows) == {"t.parquet:1": "not_utf8"}
    leave_out = ImageOptions(layout="parquet", bad_pictures="leave_out")
    of_four = table(image=pa.ListArray.from_arrays([0, 4], structs), caption=["A."])
    assert reasons(read(images_file, "t.parquet", of_four, leave_out)) == {
        "t.parquet:0#picture 1": "not_utf8"
    }
    as_text = table(image=pa.ListArray.from_arrays([0, 1], strings_of(b"caf\xe9")), caption=["A."])
    assert reasons(read(images_file, "t.parquet", as_text, ROWS)) == {"t.parquet:0": "not_a_picture"}


def test_pictures_may_be_in_dictionaries_large_lists_and_null_structs() -> None:
    pictures = pa.array([picture(), picture(size=(5, 6)), None])
    structs = pa.StructArray.from_arrays(
        [pictures.dictionary_encode(), pa.array(["a.png", None, None]).dictionary_encode()],
        ["bytes", "path"],
        mask=pa.array([False, False, True]),
    )
    options = ImageOptions(layout="parquet", bad_pictures="leave_out")
    for column in (pictures, pictures.dictionary_encode(), structs):
        cell = pa.LargeListArray.from_arrays(pa.array([0, 3], pa.int64()), column)
        rows = read(images_file, "t.parquet", table(image=cell, caption=["A."]), options)
        assert [image["width"] for image in rows[0]["images"]] == [30, 5]
        assert reasons(rows) == {"t.parquet:0#picture 2": "missing_picture"}


def test_a_cell_of_too_many_pictures_is_rejected_before_its_values_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = MAX_PICTURES + 1
    nulls = pa.StructArray.from_arrays(
        [pa.nulls(n, pa.binary()), pa.nulls(n, pa.string())], ["bytes", "path"]
    )
    content = table(image=pa.ListArray.from_arrays([0, n], nulls), caption=["A."])
    with monkeypatch.context() as without_reading:
        without_reading.setattr(image_rows, "_picture", None)
        rows = read(images_file, "t.parquet", content, ROWS)
        assert reasons(rows) == {"t.parquet:0": "too_many_pictures"}
        without_reading.setattr(image_document, "MAX_BYTES_OF_PICTURES", 100)
        large = table(image=[[picture(), picture()]], caption=["A."])
        assert reasons(read(images_file, "t.parquet", large, ROWS)) == {"t.parquet:0": "too_large"}


def test_parts_of_a_table_have_the_rows_of_the_whole(tmp_path: Path) -> None:
    content = table(image=[picture(size=(9 + number, 9)) for number in range(9)], caption=["A."] * 9)
    (tmp_path / "t.parquet").write_bytes(content)
    table_file = source(tmp_path, "t.parquet")
    state = table_file.place.state(table_file.name)
    rows: Rows = []
    for begin in range(0, len(content), 700):
        part = FilePart(begin, min(begin + 700, len(content)), state)
        rows += images_file(replace(table_file, part=part), ROWS)
    assert rows == list(images_file(table_file, ROWS))
    assert len(rows) == 9


@pytest.mark.parametrize(
    "text, reason",
    [("<image> a <image> b <image>", "more_placeholders"), ("a <image> b", "fewer_placeholders")],
)
def test_placeholders_are_as_many_as_pictures(text: str, reason: str) -> None:
    content = table(image=[[picture(), picture()]], caption=[text])
    options = ImageOptions(layout="parquet", placeholder="<image>")
    assert reasons(read(images_file, "t.parquet", content, options)) == {"t.parquet:0": reason}


def test_a_bad_picture_of_several_is_left_out_with_its_placeholder_and_recorded() -> None:
    content = table(image=[[picture(), b"bad", picture()]], caption=["a <image> b <image> c <image> d"])
    for choice in ("reject", "leave_out"):
        options = ImageOptions(layout="parquet", placeholder="<image>", bad_pictures=choice)  # type: ignore[arg-type]
        rows = read(images_file, "t.parquet", content, options)
        if choice == "reject":
            assert reasons(rows) == {"t.parquet:0": "not_a_picture"}
            continue
        assert texts(rows) == {"t.parquet:0": f"a {PLACEHOLDER} b  c {PLACEHOLDER} d"}
        assert dict(rows[0]["metadata"]) == {"pictures_left_out": "1"}
        assert reasons(rows) == {"t.parquet:0#picture 1": "not_a_picture"}


def test_a_table_without_pictures_or_captions_is_one_rejected_record() -> None:
    for columns, reason in (
        ({"caption": ["a"]}, "no_picture"),
        ({"image": [1], "caption": ["a"]}, "not_a_picture"),
        ({"image": [{"bytes": 1}], "caption": ["a"]}, "not_a_picture"),
        ({"image": [[{"bytes": [1, 2]}]], "caption": ["a"]}, "not_a_picture"),
        ({"image": [b"a"]}, "no_caption"),
        ({"image": [b"a"], "caption": [1]}, "text_not_a_string"),
    ):
        assert reasons(read(images_file, "t.parquet", table(**columns), ROWS)) == {"t.parquet": reason}
    assert reasons(read(images_file, "t.parquet", b"PAR1", ROWS)) == {"t.parquet": "corrupt"}


def page_rows(folder: Path, body: str, options: ImageOptions = PAGES, **files: bytes) -> Rows:
    (folder / "figures").mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / "figures" / f"{name}.png").write_bytes(content)
    (folder / "a.html").write_text(f"<html><body><main>{body}</main></body></html>")
    return list(images_file(source(folder, "a.html"), options))


def test_a_page_has_a_placeholder_where_each_figure_is(tmp_path: Path) -> None:
    body = (
        f"<h1>Colors \ufffc</h1><p>{PROSE}</p><img src='figures/red%20one.png?x=1'><p>Red.</p><p>{PROSE}</p>"
        "<figure><img src='./figures/blue.png'><figcaption>Blue.</figcaption></figure>"
        "<img src='https://example.org/a.png'><img src='data:image/png;base64,aaaa'>"
        f"<p>{PROSE} Again <img src='figures/blue.png'> here.</p>"
    )
    [row] = page_rows(tmp_path, body, **{"red one": picture(), "blue": picture(size=(5, 6))})
    assert names(row) == ["figures/red one.png", "figures/blue.png", "figures/blue.png"]
    assert row["text"].count(PLACEHOLDER) == 3
    before, after = row["text"].split(PLACEHOLDER)[:2]
    assert before.startswith("Colors \ufffd")
    assert "Red." in after
    assert dict(row["metadata"])["figures_elsewhere"] == "2"


def test_a_missing_figure_rejects_its_page_or_is_left_out(tmp_path: Path) -> None:
    body = f"<p>{PROSE}</p><img src='figures/gone.png'><img src='../../x.png'><p>{PROSE}</p>"
    assert reasons(page_rows(tmp_path, body)) == {"a.html": "missing_picture"}
    options = ImageOptions(layout="pages", bad_pictures="leave_out")
    rows = page_rows(tmp_path, body, options)
    assert PLACEHOLDER not in texts(rows)["a.html"]
    assert rows[0]["images"] == []
    assert reasons(rows) == {"a.html#picture 0": "missing_picture", "a.html#picture 1": "outside"}


@pytest.mark.parametrize(
    "own",
    ["&#65532;", "&#xfffc;0&#xfffc;", "&#xfffc;7&#xfffc;", f"&#xfffc;{'9' * 5_000}&#xfffc;", "&#10240;"],
)
@pytest.mark.parametrize("element", ["p", "xmp", "noscript"])
def test_letters_of_a_page_are_never_a_figure_in_any_spelling(tmp_path: Path, own: str, element: str) -> None:
    body = f"<p>{PROSE}</p><{element}>Own: {own}.</{element}><img src='figures/a.png'><p>{PROSE}</p>"
    [row] = page_rows(tmp_path, body, a=picture())
    assert row["text"].count(PLACEHOLDER) == len(row["images"]) == 1


def test_marks_of_figures_leave_nothing_in_the_text(tmp_path: Path) -> None:
    figures = "".join(f"<p>{PROSE}</p>7<img src='figures/a.png'>8" for _ in range(12))
    [row] = page_rows(tmp_path, figures, a=picture())
    assert len(row["images"]) == 12
    assert set(row["text"]) <= set(f"{PROSE}{PLACEHOLDER}78\n")


def trouble_of(folder: Path, address: str) -> tuple[str, str]:
    [row] = page_rows(folder, f"<p>{PROSE}</p><img src='{address}'><p>{PROSE}</p>")
    return row["reason"], row["detail"]


def test_a_figure_is_not_read_through_a_linked_folder(tmp_path: Path) -> None:
    page, outside = tmp_path / "page", tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "secret.png").write_bytes(picture())
    page.mkdir()
    (page / "linked").symlink_to(outside)
    reason, detail = trouble_of(page, "linked/deep/secret.png")
    assert reason == "link"
    assert detail.endswith("A folder of its address is a symbolic link, and links are not followed.")


@pytest.mark.parametrize(
    "address, reason",
    [
        ("a%00.png", "missing_picture"),
        ("a%00/b.png", "missing_picture"),
        ("..", "outside"),
        ("a/../..", "outside"),
    ],
)
def test_addresses_that_name_no_file_are_troubles_of_their_figure(
    tmp_path: Path, address: str, reason: str
) -> None:
    assert trouble_of(tmp_path, address)[0] == reason


@pytest.mark.parametrize(
    "base, figure",
    [
        ("figures/", "figures/a.png"),
        ("figures/page.html?x#y", "figures/a.png"),
        ("figures/sub/..", "figures/a.png"),
        ("#top", "a.png"),
        ("https://example.org/", None),
        ("//example.org/", None),
        ("/figures/", None),
    ],
)
def test_figures_are_relative_to_the_base_of_their_page(
    tmp_path: Path, base: str, figure: str | None
) -> None:
    (tmp_path / "a.png").write_bytes(picture())
    body = f"<base target='_top'><base href='{base}'><p>{PROSE}</p><img src='a.png'><p>{PROSE}</p>"
    [row] = page_rows(tmp_path, body, a=picture(size=(5, 6)))
    assert names(row) == ([figure] if figure else [])
    assert dict(row["metadata"]).get("figures_elsewhere") == (None if figure else "1")


@given(content=st.binary(max_size=600), cut=st.integers(0, 4_000))
def test_any_bytes_of_any_layout_are_documents_or_rejected_records(content: bytes, cut: int) -> None:
    shard = tarred({"1.png": picture(), "1.txt": b"A.", "2.png": picture(), "2.txt": b"B."})
    rows_file = table(image=[picture()] * 3, caption=["A."] * 3)
    for options, name, good in (
        (SHARDS, "a.tar", shard),
        (ROWS, "a.parquet", rows_file),
        (PAGES, "a.html", b""),
    ):
        for variant in (content, good[:cut], good[:cut] + content + good[cut + len(content) :]):
            rows = read(images_file, name, variant, options, origin=ORIGIN)
            assert rows
            assert all(("reason" in row) != ("images" in row) for row in rows)
            assert len({row["doc_id"] for row in rows}) == len(rows)
