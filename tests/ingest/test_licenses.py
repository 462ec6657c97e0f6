"""The license of a source tree: the declared one, or one whose text is certain."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from importlib.metadata import distributions
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from identify.vendor.licenses import LICENSES

from factory.ingest.license_manifests import MALFORMED, MANIFESTS, LicenseDeclaration
from factory.ingest.license_texts import recognized
from factory.ingest.licenses import expression, license_of
from spark_udfs.ingest.place import LocalFiles

TEXTS = dict(LICENSES)
MIT, APACHE = TEXTS["MIT"], TEXTS["Apache-2.0"]
R_CHOICE = "GPL-2.0-or-later OR BSD-3-Clause"
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
        ("package.json", '\ufeff{"license": "isc"}', "ISC"),
        ("package.json", '{"license": "SEE LICENSE IN <LICENSE.txt>"}', "MIT"),
        ("package.json", json.dumps({"license": "SEE LICENSE IN " + "\xe9" * 199}), None),
        ("package.json", json.dumps({"license": "SEE LICENSE IN " + "/".join(["a" * 99] * 60)}), None),
        ("package.json", '{"license": "SEE LICENSE IN LICENSE.txt"}', "MIT"),
        ("package.json", '{"license": "SEE LICENSE IN package.json"}', None),
        ("package.json", '{"license": "SEE LICENSE IN missing.txt"}', None),
        ("package.json", '{"license": {"type": "ISC"}}', "ISC"),
        ("package.json", '{"licenses": [{"type": "ISC"}, {"type": "Apache-2.0"}]}', "ISC OR Apache-2.0"),
        ("package.json", '{"license": "UNLICENSED"}', "UNLICENSED"),  # npm's word for no permission
        ("package.json", '{"license": []}', "MIT"),
        ("Cargo.toml", '[workspace.package]\nlicense = "ISC"\n', "ISC"),
        ("Cargo.toml", '[package]\nlicense.workspace = true\n[workspace.package]\nlicense = "ISC"\n', "ISC"),
        ("Cargo.toml", '[package]\nlicense-file = "LICENSE.txt"\n', "MIT"),
        ("composer.json", '{"license": ["ISC", "GPL-3.0+"]}', "ISC OR GPL-3.0-or-later"),
        ("composer.json", '{"license": "proprietary"}', "proprietary"),
        ("setup.cfg", "[metadata]\nlicense = ISC\n", "ISC"),
        ("setup.cfg", "[metadata]\nclassifiers =\n  License :: OSI Approved :: ISC License (ISCL)\n", "ISC"),
        ("setup.cfg", "[metadata]\nname = a%b\n", "MIT"),
        ("setup.cfg", "[metadata]\nlicense = ISC License (ISCL)\n", "ISC"),
        ("pyproject.toml", '[project]\nlicense = {text = "Apache License 2.0"}\n', "Apache-2.0"),
        ("DESCRIPTION", "Package: x\nLicense: GPL (>= 2) |\n  BSD_3_clause + file LICENSE\n", R_CHOICE),
        ("DESCRIPTION", "Package: x\nLicense: GPL-3\n", "GPL-3.0-only"),
        ("DESCRIPTION", "Package: x\nLicense: LGPL (== 2.1)\n", "LGPL-2.1-only"),
        ("DESCRIPTION", "Package: x\nLicense: Apache License 2.0\n", "Apache-2.0"),
        ("DESCRIPTION", "Package: x\nLicense: Apache License (== 2)\n", "Apache-2.0"),
        ("DESCRIPTION", "Package: x\nLicense: CC BY-SA 4.0\n", "CC-BY-SA-4.0"),
        ("DESCRIPTION", "Package: x\nLicense: file LICENSE\n", None),  # there is none of that name
        ("DESCRIPTION", "Package: x\nLicense: Unlimited\n", "Unlimited"),
        ("DESCRIPTION", "A description.\nLicense: see below\n", "MIT"),
        ("DESCRIPTION", "Package: x\nLicense: GPL (" + " " * 200_000 + "x", "GPL ( x"),
        ("package.json", json.dumps({"license": "SEE LICENSE IN " + "a" * 5_000}), None),
        ("package.json", '{"license": "SEE LICENSE IN /etc/hostname"}', None),
        ("package.json", '{"license": "SEE LICENSE IN ../outside.txt"}', None),
        ("package.json", '{"license": "SEE LICENSE IN a\\u0000b"}', None),
        ("package.json", '{"license": "a\\ud800b"}', "MIT"),
        ("pyproject.toml", "a." * 100_000 + "b = 1\n", "MIT"),
        ("DESCRIPTION", "A folder of things.\n", "MIT"),
        ("package.json", "{broken", "MIT"),
        ("pyproject.toml", '[project]\nlicense = "BSD-3-Clause"\n', "BSD-3-Clause"),
        ("pyproject.toml", '[project]\nlicense = {text = "Apache-2.0"}\n', "Apache-2.0"),
        ("pyproject.toml", f'[project]\nlicense = {{text = """{TEXTS["ISC"]}"""}}\n', "ISC"),
        ("pyproject.toml", '[project]\nlicense = {file = "LICENSE.txt"}\n', "MIT"),
        ("pyproject.toml", '[tool.poetry]\nlicense = "ISC"\n', "ISC"),
        (
            "pyproject.toml",
            '[project]\nclassifiers = ["License :: OSI Approved :: ISC License (ISCL)", "Topic :: Games"]\n',
            "ISC",
        ),
        (
            "pyproject.toml",
            '[project]\nclassifiers = ["License :: OSI Approved :: BSD License"]\n',  # of unknown version
            "MIT",
        ),
        ("pyproject.toml", "[tool.x]\n", "MIT"),
        ("LICENSE-APACHE", APACHE, "Apache-2.0 AND MIT"),
        ("COPYING", "Ask us.", None),  # it may add other terms
    ],
)
def test_a_declaration_goes_before_texts(tmp_path: Path, name: str, text: str, license: str | None) -> None:
    (tmp_path / "outside.txt").write_text(APACHE)
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "LICENSE.txt").write_text(MIT)
    (tree / name).write_text(text)
    assert license_of(LocalFiles.at(tree)) == license


@pytest.mark.parametrize(
    "name",
    [
        *("LICENSE", "license.rst", "LICENCE.md", "UNLICENSE", "COPYING", "LICENSE-MIT", "LICENSE.MIT"),
        *(
            "MIT-LICENSE",
            "MIT_LICENSE.txt",
            "LICENSE_1_0.txt",
            "LICENSE.adoc",
            "mit.license",
            "LICENSE.eigen",
        ),
    ],
)
@pytest.mark.parametrize(
    "contents",
    [
        MIT.encode(),
        ("\ufeff" + MIT).encode(),
        MIT.encode("utf-16"),
        MIT.replace("\n", "\r").encode(),
        MIT.replace("\n", "\r\n").replace("[fullname]", "J\xf6rg").encode("latin-1"),
    ],
    ids=["UTF-8", "byte order mark", "UTF-16", "CR", "Latin-1"],
)
def test_a_license_file_has_any_of_its_names_and_encodings(
    tmp_path: Path, name: str, contents: bytes
) -> None:
    (tmp_path / name).write_bytes(contents)
    assert license_of(LocalFiles.at(tmp_path)) == "MIT"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "license_checker.py",
            "licenses.json",
            "License.java",
            "license.go",
            "LICENSE_HEADER",
            "license.svg",
        ),
        *("LICENSE-THIRD-PARTY.txt", "licenses_bundled.txt", "NOTICE", "copying.c"),
        *("license-faq.md", "copying_files", "driver-license-ocr.md", "licensee.txt", "unlicensed.md"),
        *("license.key", "license.cfg", "LICENSE~", "LICENSE.orig", "LICENSE.txt.asc", "license.pdf"),
    ],
)
def test_a_file_about_licenses_is_not_the_license(tmp_path: Path, name: str) -> None:
    (tmp_path / "LICENSE").write_text(MIT)
    (tmp_path / name).write_text("Ask us.")
    (tmp_path / "LICENSE-third-party.txt").write_text(APACHE)
    assert license_of(LocalFiles.at(tmp_path)) == "MIT"


@pytest.mark.parametrize("name", ["LICENSE-COMMERCIAL", "LICENSE.enterprise", "license-ee.txt"])
def test_unknown_terms_beside_a_license_leave_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "LICENSE").write_text(MIT)
    (tmp_path / name).write_text("Ask us.")
    assert license_of(LocalFiles.at(tmp_path)) is None


def test_a_reuse_folder_names_the_licenses_of_the_parts(tmp_path: Path) -> None:
    folder = tmp_path / "LICENSES"
    (folder / "ISC").mkdir(parents=True)
    for name in ("mit", "CC0-1.0", "LicenseRef-Ours", "Classpath-exception-2.0"):
        (folder / f"{name}.txt").write_text("The text.")
    for name in (".gitkeep", "README.md"):
        (folder / name).touch()
    assert license_of(LocalFiles.at(tmp_path)) == "CC0-1.0 AND LicenseRef-Ours AND MIT"
    (folder / "MIT OR ISC.txt").write_text("Not REUSE.")
    assert license_of(LocalFiles.at(tmp_path)) is None


def test_the_lesser_license_includes_the_text_it_supplements(tmp_path: Path) -> None:
    (tmp_path / "COPYING").write_text(TEXTS["GPL-3.0"])
    (tmp_path / "COPYING.LESSER").write_text(TEXTS["LGPL-3.0"])
    assert license_of(LocalFiles.at(tmp_path)) == "LGPL-3.0"


@given(st.sampled_from(sorted(MANIFESTS)), st.text(max_size=200))
def test_any_manifest_is_read_or_malformed(name: str, text: str) -> None:
    with suppress(MALFORMED):
        assert isinstance(MANIFESTS[name](text), LicenseDeclaration)


def test_a_tree_without_a_license_has_none(tmp_path: Path) -> None:
    (tmp_path / "LICENSE").symlink_to(tmp_path / "LICENSE")
    (tmp_path / "licenses").mkdir()
    assert license_of(LocalFiles.at(tmp_path)) is None
