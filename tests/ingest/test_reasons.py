"""Every reason a record can be rejected for is in the documentation, and no other."""

from __future__ import annotations

import ast
import re

from tests.conftest import ROOT


def test_the_documentation_lists_the_reasons_that_the_readers_give() -> None:
    calls = [
        node
        for path in [*(ROOT / "spark_udfs" / "ingest").rglob("*.py"), ROOT / "spark_udfs" / "pictures.py"]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("BadRecord", "BadPicture")
    ]
    given = {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}
    table = (ROOT / "docs" / "readers.md").read_text().partition("## Reasons for rejection")[2]
    table = table.partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    listed = [reason for row in rows for reason in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(map(str, given))
