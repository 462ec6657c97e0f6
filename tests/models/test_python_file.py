"""Files of users that are run as modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.models.python_file import run_file


@pytest.mark.parametrize(
    "line, reason",
    [
        ("raise ValueError('no rule')", "ValueError: no rule"),
        ("rule =", "SyntaxError: invalid syntax"),
        ("import sys; sys.exit('no license')", "SystemExit: no license"),
    ],
)
def test_a_file_that_fails_or_ends_the_process_is_named(tmp_path: Path, line: str, reason: str) -> None:
    file = tmp_path / "rules.py"
    file.write_text(line)
    with pytest.raises(ConfigurationError, match=f"rules.py fails with {reason}"):
        run_file(file)
