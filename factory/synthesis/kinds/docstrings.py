"""Pairs of docstring and code from Python files, without a model: an exercise is a part of the file.

    direction: code         the signature with its docstring, then the body     (write the code)
    direction: docstring    the function without its docstring, then it         (describe the code)

Every function and method with a docstring of enough words, and a body beyond it, gives one record a
direction. The text is Python throughout, so it reads like a file.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping

import pyarrow as pa

from factory.errors import ConfigurationError
from factory.suggestions import unknown_name
from factory.synthesis.kind import ItemOutcome, NewRecord, Refusal, Value, WorkItem

DIRECTIONS = ("code", "docstring")
_LEAST_WORDS = 5
_LINE = re.compile(
    r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+"
)  # as Python counts lines; `splitlines` also ends them at \f
# Null characters, nesting that exhausts the stack of the compiler, and of the parser.
_UNPARSED = (SyntaxError, ValueError, RecursionError, MemoryError)
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Docstrings:
    """Functions with their docstrings.

    Options: `directions`, a list of `code` and `docstring` (both by default), and `least_words` of a
    docstring (5).
    """

    version = "1"
    schema = pa.schema(
        [
            pa.field("direction", pa.string(), False),
            pa.field("name", pa.string(), False),  # Class.method
            pa.field("line", pa.int64(), False),  # of `def`, from 1
            pa.field("n_words", pa.int64(), False),  # of the docstring
            pa.field("n_lines", pa.int64(), False),  # of the body without it
        ]
    )

    def __init__(self, options: Mapping[str, object]) -> None:
        for name in options:
            if name not in ("directions", "least_words"):
                raise ConfigurationError(
                    unknown_name("option of kind `docstrings`:", name, ("directions", "least_words"))
                )
        directions = options.get("directions", DIRECTIONS)
        if not isinstance(directions, list | tuple) or not directions:
            raise ConfigurationError(
                "Option `directions` of kind `docstrings` is a list of `code`, `docstring`."
            )
        for direction in directions:
            if direction not in DIRECTIONS:
                raise ConfigurationError(unknown_name("direction", str(direction), DIRECTIONS))
        least_words = options.get("least_words", _LEAST_WORDS)
        if not isinstance(least_words, int) or isinstance(least_words, bool) or least_words < 1:
            raise ConfigurationError("Option `least_words` of kind `docstrings` is a whole number from 1.")
        self._directions = [direction for direction in DIRECTIONS if direction in directions]
        self._least_words = least_words

    def __call__(self, document: WorkItem) -> Iterator[ItemOutcome]:
        try:
            tree = _parsed(document.text)
        except _UNPARSED as error:
            line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
            yield Refusal("", "not_python", f"Python does not parse it ({type(error).__name__}{line}).")
            return
        lines = _LINE.findall(document.text)
        for name, function in _functions(tree, ""):
            yield from self._records(name, function, lines)

    def _records(self, name: str, function: Function, lines: list[str]) -> Iterator[NewRecord]:
        docstring = ast.get_docstring(function)
        if docstring is None or len(function.body) < 2 or len(docstring.split()) < self._least_words:
            return
        first, second = function.body[0], function.body[1]
        begin = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
        assert first.end_lineno is not None
        assert function.end_lineno is not None
        if second.lineno <= first.end_lineno or first.lineno <= function.lineno:
            return  # two statements in a line: the text cannot be cut between lines
        head = lines[begin - 1 : first.lineno - 1]
        body = lines[first.end_lineno : function.end_lineno]
        docstring_lines = lines[first.lineno - 1 : first.end_lineno]
        values: dict[str, Value] = {
            "name": name,
            "line": function.lineno,
            "n_words": len(docstring.split()),
            "n_lines": len(body),
        }
        for direction in self._directions:
            parts = (
                [head, docstring_lines, body]
                if direction == "code"
                else [head, body, ["\n"], docstring_lines]
            )
            text = textwrap.dedent("".join(line for part in parts for line in part))
            yield NewRecord(f"{direction}:{name}:{function.lineno}", text, values | {"direction": direction})


def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():  # about escapes in the texts of others
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    """Yield functions of a module and its classes, with names; functions in functions are left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.If | ast.Try):
            yield from _functions(child, prefix)
