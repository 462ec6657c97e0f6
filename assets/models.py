"""Models trained on the corpus: its tokenizer."""

from __future__ import annotations

from factory.api import tokenizer

ASSETS = [tokenizer("tokenizer", ["python_code", "python_prose"])]
