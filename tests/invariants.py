"""The invariants, from the marks on the tests that hold them.

    @pytest.mark.invariant("No verified edge joins two kept documents.")
    def test_...

`python -m tests.invariants` prints them as docs/invariants.md, by the folder of their first test. Several
tests may hold one invariant: their marks have the same text.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "invariants.md"
_HEAD = """# Invariants

*Reference for contributors: the rules that always hold, and the tests that hold them.*

[ARCHITECTURE.md](../ARCHITECTURE.md) explains the invariants that shape the code.
`python -m tests.invariants > docs/invariants.md` writes this page from the marks `@pytest.mark.invariant`
on the tests.
"""


def marked(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the text of every invariant that a file of tests holds, with the id of the test."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            match decorator:
                case ast.Call(func=ast.Attribute(attr="invariant"), args=[ast.Constant(value=str(text))]):
                    yield text, f"{path.relative_to(ROOT).as_posix()}::{node.name}"


def invariants() -> dict[str, list[str]]:
    """The tests of every invariant."""
    tests: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for text, test in marked(path):
            tests.setdefault(text, []).append(test)
    return tests


def page() -> str:
    """The page of all invariants."""
    by_folder: dict[str, list[str]] = {}
    for text, tests in invariants().items():
        folder = tests[0].split("/")[1]
        heading = "the whole system" if folder.partition("::")[0].endswith(".py") else folder
        rule = textwrap.fill(f"- {text}", 126, subsequent_indent="  ", break_on_hyphens=False)
        held = "\n".join(f"  - `{test}`" for test in tests)
        by_folder.setdefault(heading, []).append(f"{rule}\n{held}\n")
    sections = (f"\n## {heading}\n\n{''.join(lines)}" for heading, lines in sorted(by_folder.items()))
    return _HEAD + "".join(sections)


if __name__ == "__main__":
    print(page(), end="")
