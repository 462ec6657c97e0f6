"""Pages are decoded by the charset that they declare if that is plausible, and never to nonsense."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_udfs.ingest.rows import BadRecord
from spark_udfs.ingest.web.charset import decode_page

TEXTS = {
    "cp1252": "Der größte Fluß fließt über Österreich; naïve café, déjà vu, façade. Où êtes-vous?",
    "iso8859-2": "Zażółć gęślą jaźń. Příliš žluťoučký kůň úpěl ďábelské ódy. Łódź leży nad rzeką.",
    "cp1250": "Zażółć gęślą jaźń. Příliš žluťoučký kůň úpěl ďábelské ódy. Łódź leży nad rzeką.",
    "cp1251": "Съешь же ещё этих мягких французских булок, да выпей чаю. Широкая электрификация.",
    "koi8-r": "Съешь же ещё этих мягких французских булок, да выпей чаю. Широкая электрификация.",
    "shift_jis": "いろはにほへと ちりぬるを。東京は日本の首都です。これはテストの文章です。",
    "euc-jp": "いろはにほへと ちりぬるを。東京は日本の首都です。これはテストの文章です。",
    "gb18030": "北京是中华人民共和国的首都。这是一个测试文章,用来检测编码。",
    "big5": "臺北是中華民國的首都。這是一個測試文章,用來檢測編碼。",
    "euc-kr": "대한민국의 수도는 서울입니다. 이것은 시험용 문장입니다. 가나다라마바사",
    "iso8859-7": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Η Αθήνα είναι πρωτεύουσα.",
    "cp1254": "Pijamalı hasta yağız şoföre çabucak güvendi. İstanbul büyük bir şehir.",
    "utf-8": "Zażółć gęślą jaźń naïve",
}


def page(charset: str, head: str = "") -> tuple[bytes, str]:
    text = f"<html><head>{head}</head><body><p>{(TEXTS[charset] + ' ') * 5}</p></body></html>"
    return text.encode(charset), text


@pytest.mark.parametrize("charset", TEXTS)
def test_an_undeclared_charset_is_detected(charset: str) -> None:
    body, text = page(charset)
    found = decode_page(body)
    assert found.text == text
    assert found.charset_from == ("bytes" if charset == "utf-8" else "detection")


@pytest.mark.parametrize("charset", TEXTS)
@pytest.mark.parametrize("header", ["iso-8859-1", "utf-8", "windows-1252", "no-such-charset"])
def test_a_wrong_header_is_passed_over(charset: str, header: str) -> None:
    body, text = page(charset)
    assert decode_page(body, header).text == text


@pytest.mark.parametrize("charset", TEXTS)
def test_a_right_meta_element_stands_behind_a_wrong_header(charset: str) -> None:
    body, text = page(charset, f'<meta charset="{charset}">')
    found = decode_page(body, "windows-1252")
    assert found.text == text
    assert found.charset_from == ("header" if charset == "cp1252" else "meta")


@pytest.mark.parametrize("charset", TEXTS)
def test_a_wrong_meta_element_is_passed_over(charset: str) -> None:
    wrong = "euc-kr" if charset == "cp1251" else "windows-1251"
    body, text = page(charset, f'<meta http-equiv="Content-Type" content="text/html; charset={wrong}">')
    assert decode_page(body).text == text


def test_a_mark_of_byte_order_comes_first() -> None:
    text = "<p>Zażółć gęślą jaźń</p>"
    for charset in ("utf-8-sig", "utf-16"):
        found = decode_page(text.encode(charset), "koi8-r")
        assert (found.text, found.charset_from) == (text, "bom")


def test_two_charsets_in_one_page_are_told() -> None:
    body = ("é ü ñ – Ü € " * 20).encode() + "naïve".encode("cp1252")
    found = decode_page(body, "utf-8")
    assert (found.charset, found.n_replaced) == ("utf-8", 1)
    assert found.text.endswith("na\ufffdve")


def test_seven_bits_of_japanese_are_decoded_as_declared() -> None:
    assert decode_page("東京は日本".encode("iso2022_jp"), "iso-2022-jp").text == "東京は日本"


def test_bytes_that_are_no_text_are_rejected() -> None:
    with pytest.raises(BadRecord, match="plausible text in no charset"):
        decode_page(bytes(range(128, 256)) * 20)


def test_icelandic_keeps_its_letters() -> None:
    text = "Það er þannig, að öll börn á Íslandi læra að synda ýmislegt"
    assert decode_page(text.encode("cp1252"), "latin1").text == text


@given(st.binary(max_size=200), st.none() | st.text(max_size=20))
def test_any_bytes_are_decoded_or_rejected(body: bytes, header: str | None) -> None:
    with suppress(BadRecord):
        assert isinstance(decode_page(body, header).text, str)


@given(st.text())
def test_utf8_is_always_itself(text: str) -> None:
    body = text.encode("utf-8", "ignore")
    if not body.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")) and b"\x1b" not in body:
        assert decode_page(body, "latin1").text == body.decode()


@pytest.mark.parametrize(
    "text",
    [
        "Plain English with co\xadop\xadera\xadtion and hy\xadphen\xadation in its words, and nothing else.",
        "Joe\xb4s place. It\xb4s open daily, and we\xb4re glad to see you there.",
        "Die Gr\xfc\xdfe sind \xfcber\xadall, und das \xad Wetter ist sch\xf6n.",
        "T\xb7V n\xb012 a\xaeb are rare, but caf\xe9, na\xefve and fa\xe7ade are common words here.",
    ],
)
def test_western_pages_with_odd_signs_stay_western(text: str) -> None:
    assert decode_page(text.encode("latin-1"), "iso-8859-1").text == text


@pytest.mark.parametrize(
    "label, codec, text",
    [
        ("shift_jis", "cp932", "①東京は日本の首都です。㈱髙島屋のⅡ番館はとても大きいです。"),
        ("big5", "big5hkscs", "佢哋嘅首都係臺北。這是一個測試文章,我們在這裡用來檢測編碼。"),
        ("big5", "cp950", "裏面有碁盤。臺北是中華民國的首都,這是一個測試文章。"),
        ("euc-kr", "cp949", "똠방각하 대한민국의 수도는 서울입니다. 이것은 시험용 문장입니다."),
        ("x-mac-cyrillic", "mac_cyrillic", "Съешь же ещё этих мягких французских булок, да выпей чаю."),
    ],
)
def test_labels_mean_what_they_mean_to_browsers(label: str, codec: str, text: str) -> None:
    assert decode_page(text.encode(codec), label).text == text


def test_a_stray_byte_of_a_declared_charset_is_replaced_and_counted() -> None:
    body = ("Une façade naïve à l'été. " * 30).encode("cp1252") + b"\x81"
    page = decode_page(body, "windows-1252")
    assert (page.charset, page.n_replaced, page.text[-1]) == ("cp1252", 1, "\ufffd")


SCRIPT = "<script>" + "var a = 1; // as <meta charset=utf-8> says\n" * 3_000 + "</script>"


@pytest.mark.parametrize("charset", TEXTS)
@pytest.mark.parametrize("header", [None, "windows-1252", "utf-8"])
def test_the_letters_behind_much_script_tell_the_charset(charset: str, header: str | None) -> None:
    for comments in ("", f"<!-- {TEXTS[charset][:9]} -->"):
        body, text = page(charset, SCRIPT + comments)
        assert decode_page(body, header).text == text


@pytest.mark.parametrize("before", [SCRIPT, SCRIPT[:5_000] + "</script>", "<!-- <meta charset=utf-8> -->"])
def test_a_right_meta_element_is_found_behind_scripts_and_comments(before: str) -> None:
    body, text = page("koi8-r", f"{before}<meta charset=koi8-r>")
    found = decode_page(body)
    assert (found.text, found.charset_from) == (text, "meta")


def test_a_meta_element_in_the_body_or_in_a_script_declares_nothing() -> None:
    meta = "<meta charset=koi8-r>"
    text = f"<html><head><script>'{meta}'</script></head><body>{meta}{TEXTS['cp1251']}</body></html>"
    found = decode_page(text.encode("cp1251"))
    assert (found.text, found.charset_from) == (text, "detection")


@pytest.mark.parametrize("charset", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("header", [None, "utf-16", "utf-8", "windows-1252"])
def test_wide_letters_are_told_with_and_without_a_mark(charset: str, header: str | None) -> None:
    for text in ("<html><p>Zażółć 東京</html>", "\n <!doctype html><p>a", "<p>"):
        assert decode_page(text.encode(charset), header).text == text
        found = decode_page(("\ufeff" + text).encode(charset), header)
        assert (found.text, found.charset, found.charset_from) == (text, charset, "bom")
