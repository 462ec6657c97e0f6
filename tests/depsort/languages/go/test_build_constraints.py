"""Go files that are never built together."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_udfs.depsort.languages.go.build_constraints import (
    Constraint,
    build_line,
    constraint_text,
    together,
)

TAGS = (*("linux", "windows", "android", "unix", "amd64", "arm64", "cgo", "race"), *"abcdefg")


def can_meet(one: str, other: str) -> bool:
    return together(Constraint(one), Constraint(other))


@pytest.mark.parametrize(
    "one, other, expected",
    [
        ("", "linux", True),
        ("linux", "windows", False),
        ("linux", "unix", True),
        ("unix", "windows", False),
        ("unix", "!linux && !darwin", True),
        ("linux", "android", True),
        ("!linux", "android", False),
        ("linux && amd64", "linux && arm64", False),
        ("cgo", "!cgo", False),
        ("cgo", "race", True),
        ("(linux || darwin) && cgo", "!(linux && cgo)", True),
        ("(linux || darwin) && cgo", "!cgo || windows", False),
        ("!(linux", "windows", True),  # no condition at all
        ("a && b && c && d", "e && f && g && !a", True),  # too many to try
    ],
)
def test_conditions_meet_where_some_build_fulfils_both(one: str, other: str, expected: bool) -> None:
    assert can_meet(one, other) is can_meet(other, one) is expected


@pytest.mark.parametrize(
    "path, line, expected",
    [
        ("a/x.go", None, ""),
        ("a/x_linux.go", None, "linux"),
        ("a/x_linux_amd64_test.go", None, "amd64 && linux"),
        ("a/linux.go", None, ""),
        ("a/x_amd64_linux.go", "cgo", "linux && (cgo)"),
        ("a/x_test.go", None, ""),
    ],
)
def test_a_file_s_name_and_its_line_are_its_condition(path: str, line: str | None, expected: str) -> None:
    assert constraint_text(path, line) == expected


@pytest.mark.parametrize(
    "source, expected",
    [
        ("package a\n//go:build linux\n", None),
        ("// Copyright\n\n//go:build linux && !cgo // why\n\npackage a\n", "linux && !cgo"),
        ("//go:build a\n// +build b\n\npackage a\n", "a"),
        ("// +build linux,cgo ios\n// +build !race\npackage a\n", "((linux && cgo) || (ios)) && ((!race))"),
        ("//go:build\npackage a\n", None),
    ],
)
def test_the_line_stands_before_the_package_clause(source: str, expected: str | None) -> None:
    assert build_line(source.encode()) == expected


@settings(deadline=None, max_examples=200)
@given(st.text(alphabet="()!&| ab", max_size=300), st.sampled_from(TAGS))
def test_any_line_is_read_and_meets_itself_or_nothing(line: str, tag: str) -> None:
    assert together(Constraint(line), Constraint("")) in (True, False)
    assert together(Constraint("(" * 300), Constraint(tag))
