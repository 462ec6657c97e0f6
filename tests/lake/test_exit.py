"""A process that used a store ends when its work does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.process
def test_a_process_that_used_a_store_by_a_role_exits(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("as a cluster gives its pods")
    role = {
        "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/reader",
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
        "AWS_REGION": "us-east-1",
    }
    used = "from pyarrow.fs import S3FileSystem; store = S3FileSystem()"  # as PyIceberg makes it
    subprocess.run([sys.executable, "-c", used], env=os.environ | role, check=True, timeout=120)
