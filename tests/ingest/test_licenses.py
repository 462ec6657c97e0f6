"""The license of a source tree: the declared one, or one whose text is certain."""

from __future__ import annotations

import re
from importlib.metadata import distributions
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from identify.vendor.licenses import LICENSES

from factory.ingest.license_texts import recognized
from factory.ingest.licenses import expression, license_of

TEXTS = dict(LICENSES)
MIT, APACHE = TEXTS["MIT"], TEXTS["Apache-2.0"]
PROPRIETARY = "This software may not be copied, shared or used but by a contract with us. " * 40


@pytest.mark.parametrize("name", TEXTS)
def test_a_license_is_recognized_in_any_layout_case_and_owner(name: str) -> None:
    paragraphs = [" ".join(lines.upper().split()) for lines in TEXTS[name].split("\n\n")]
    text = "\n\n".join(["Copyright (c) 2019-2024 Somebody\nAll rights reserved.", *paragraphs])
    assert recognized(TEXTS[name]) == recognized(text) == name


def test_the_apache_license_is_recognized_without_its_appendix() -> None:
    assert recognized(APACHE[: APACHE.index("APPENDIX")]) == "Apache-2.0"


@pytest.mark.parametrize("name", TEXTS)
def test_a_third_party_license_at_the_end_names_nothing(name: str) -> None:
    assert recognized(PROPRIETARY + TEXTS["BSL-1.0"]) is None
    assert recognized(TEXTS[name] + TEXTS["BSD-3-Clause"] + TEXTS["ISC"]) in (None, name)
    assert recognized(MIT + TEXTS[name]) in (None, name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "All rights reserved. Ask us.",
        "Licensed under the MIT licence.",
        "// SPDX-License-Identifier: MIT\n" + PROPRIETARY,
        MIT.replace("without restriction, including", "for research only, excluding") + "No warranty. " * 9,
    ],
)
def test_a_text_that_is_not_a_license_as_a_whole_names_nothing(text: str) -> None:
    assert recognized(text) is None


@pytest.mark.parametrize("unit", ["\n", ".\n", "(c\n", "copyright ", "(", "1.\n", "all rights reserved."])
def test_a_file_of_any_unit_is_read_once(unit: str) -> None:
    """A quarter of a megabyte of blank lines would take hours if each were tried with all behind it."""
    assert recognized(unit * ((256 << 10) // len(unit))) is None


@given(st.text(max_size=400))
def test_any_text_is_answered(text: str) -> None:
    assert recognized(text) is None
    found = expression(text)
    assert found is None or expression(found) == found


def test_no_installed_text_is_taken_for_an_undeclared_license() -> None:
    """But for `LICENSE.eigen` and its like: the license of a part that a distribution brings with it."""
    right, wrong = 0, []
    for distribution in distributions():
        declared = distribution.metadata.get("License-Expression")
        shipped = distribution.metadata.get_all("License-File") or ()
        for file in distribution.files or ():
            if declared and any(str(file).endswith(f".dist-info/licenses/{name}") for name in shipped):
                found = recognized(Path(str(distribution.locate_file(file))).read_text("utf-8", "replace"))
                if found in re.split(r"(?:-only|-or-later)?(?:[ ()]+|$)", declared):
                    right += 1
                elif found is not None and file.suffix in ("", ".txt", ".md", ".rst"):
                    wrong.append((str(file), declared, found))
    assert wrong == []
    assert right > 40  # of some 200, most of the others files of several licenses


@pytest.mark.parametrize(
    "declared, found",
    [
        ("MIT OR Apache-2.0", "MIT OR Apache-2.0"),
        ("mit or apache-2.0", "MIT OR Apache-2.0"),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", "Apache-2.0 AND Unicode-3.0 OR MIT AND Unicode-3.0"),
        ("Apache-2.0 WITH LLVM-exception", "Apache-2.0 WITH LLVM-exception"),
        ("GPL-3.0+", "GPL-3.0-or-later"),
        ("LicenseRef-Ours", "LicenseRef-Ours"),
        ("SEE LICENSE IN LICENSE", None),
        ("MIT License", None),
        ("(MIT", None),
        ("() OR MIT", None),
        ("(MIT OR ISC)" + " AND (MIT OR ISC)" * 20, None),
    ],
)
def test_an_expression_has_one_form_without_parentheses(declared: str, found: str | None) -> None:
    assert expression(declared) == found


@pytest.mark.parametrize(
    "name, text, license",
    [
        ("Cargo.toml", '[package]\nname = "a"\nlicense = "ISC OR Apache-2.0"\n', "ISC OR Apache-2.0"),
        ("Cargo.toml", '[package]\nname = "a"\nlicense = "ISC/Apache-2.0"\n', "ISC OR Apache-2.0"),
        ("package.json", '{"license": "isc"}', "ISC"),
        ("package.json", '{"license": "SEE LICENSE IN LICENSE"}', "SEE LICENSE IN LICENSE"),
        ("package.json", '{"license": {"type": "ISC"}}', "MIT"),
        ("package.json", "{broken", "MIT"),
        ("pyproject.toml", '[project]\nlicense = "BSD-3-Clause"\n', "BSD-3-Clause"),
        ("pyproject.toml", '[project]\nlicense = {text = "Apache-2.0"}\n', "Apache-2.0"),
        ("pyproject.toml", f'[project]\nlicense = {{text = """{TEXTS["ISC"]}"""}}\n', "ISC"),
        ("pyproject.toml", "[tool.x]\n", "MIT"),
        ("LICENSE-APACHE", APACHE, "Apache-2.0 AND MIT"),
        ("COPYING", "Ask us.", None),  # it may add other terms
    ],
)
def test_a_declaration_goes_before_texts(tmp_path: Path, name: str, text: str, license: str | None) -> None:
    (tmp_path / "LICENSE.txt").write_text(MIT)
    (tmp_path / name).write_text(text)
    assert license_of(tmp_path) == license


def test_a_tree_without_a_license_has_none(tmp_path: Path) -> None:
    (tmp_path / "LICENSE").symlink_to(tmp_path / "LICENSE")
    (tmp_path / "licenses").mkdir()
    assert license_of(tmp_path) is None
