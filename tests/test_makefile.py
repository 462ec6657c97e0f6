"""The set-up counts packages in place on a terminal, and in a few lines in a log."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINES_OF_PIP = "for n in $$(seq 120); do echo Collecting package-$$n; done; echo Installing packages"
COUNT = ["make", "-s", f"--eval=count-packages: ; @{{ {LINES_OF_PIP}; }} | $(COUNTED)", "count-packages"]


def test_a_log_gets_a_line_every_50_packages() -> None:
    log = subprocess.run(COUNT, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"  50 packages\n  100 packages\n  120 packages, installing them, \d+ s\n", log)


def test_a_terminal_gets_one_line_that_counts() -> None:
    reader, terminal = pty.openpty()
    subprocess.run(COUNT, cwd=ROOT, stdout=terminal, check=True)
    os.close(terminal)
    shown = ""
    while not shown.endswith("\n"):
        shown += os.read(reader, 4096).decode()
    os.close(reader)
    assert shown.count("\n") == 1
    assert shown.count("\r  ") == 121
    assert shown.rpartition("\r  ")[2].startswith("120 packages, installing them, ")
