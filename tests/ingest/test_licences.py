"""The licence of a source tree: as declared, else as its text says for certain."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from factory.ingest.licences import licence_of, recognised

MIT = """The MIT License

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal ...
The above copyright notice and this permission notice shall be included in ...
"""
BSD = "Redistribution and use in source and binary\nforms, with or without modification, are permitted"


@pytest.mark.parametrize(
    "text, licence",
    [
        (MIT, "MIT"),
        (BSD, "BSD-2-Clause"),
        (f"{BSD}\nNeither the name of the copyright holder nor", "BSD-3-Clause"),
        ("  Apache License\n  Version 2.0, January 2004\n", "Apache-2.0"),
        (
            "GNU LESSER GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007\nthe GNU General Public License",
            "LGPL-3.0",
        ),
        ("GNU GENERAL PUBLIC LICENSE\n  Version 2, June 1991", "GPL-2.0"),
        ("// SPDX-License-Identifier: MIT OR Apache-2.0\n", "MIT OR Apache-2.0"),
        ("All rights reserved. Ask us.", None),
        ("Licensed under the MIT licence.", None),  # a mention is no licence text
    ],
)
def test_a_text_is_recognised_or_gives_nothing(text: str, licence: str | None) -> None:
    assert recognised(text) == licence


@pytest.mark.parametrize(
    "name, text, licence",
    [
        ("Cargo.toml", '[package]\nname = "a"\nlicense = "MIT OR Apache-2.0"\n', "MIT OR Apache-2.0"),
        ("package.json", '{"license": "ISC"}', "ISC"),
        ("package.json", '{"license": {"type": "ISC"}}', "MIT"),
        ("package.json", "{broken", "MIT"),
        ("pyproject.toml", '[project]\nlicense = "BSD-3-Clause"\n', "BSD-3-Clause"),
        ("pyproject.toml", '[project]\nlicense = {text = "Apache-2.0"}\n', "Apache-2.0"),
        ("pyproject.toml", "[tool.x]\n", "MIT"),
        ("LICENSE-APACHE", "Apache License\nVersion 2.0, January 2004\n", "Apache-2.0; MIT"),
        ("COPYING", "Ask us.", "MIT"),
    ],
)
def test_what_a_tree_declares_goes_before_its_texts(
    tmp_path: Path, name: str, text: str, licence: str
) -> None:
    (tmp_path / "LICENSE.txt").write_text(MIT)
    (tmp_path / name).write_text(text)
    assert licence_of(tmp_path) == licence


def test_a_tree_without_a_licence_has_none(tmp_path: Path) -> None:
    (tmp_path / "LICENSE").symlink_to(tmp_path / "LICENSE")
    (tmp_path / "licenses").mkdir()
    assert licence_of(tmp_path) is None


def test_the_texts_that_packages_ship_are_what_the_packages_declare() -> None:
    site = Path(sysconfig.get_path("purelib"))
    shipped = {"attrs": "MIT", "grpcio": "Apache-2.0", "idna": "BSD-3-Clause", "pathspec": "MPL-2.0"}
    found = {}
    for name in shipped:
        [info] = site.glob(f"{name}-*.dist-info")
        text = next(path for path in sorted(info.rglob("*")) if path.name.startswith("LICENSE")).read_text()
        found[name] = recognised(text)
    assert found == shipped
