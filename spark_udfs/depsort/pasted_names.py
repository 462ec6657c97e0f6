"""Names that macros paste from their arguments: `TEST(x)` makes `run_x` where `TEST(n)` means `run_##n`.

A macro and its calls stand in different files, so this needs all files of a repository. A call followed by a
body defines the name; any other call declares and uses it. Names that a macro pastes through another macro
are missed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from spark_udfs.depsort.model import FileSymbols

MAX_TRIED = 20_000  # per file: calls of macros, times the names that each macro pastes
_ARGUMENT = re.compile(r"#(\d)")


def with_pasted_names(files: Sequence[FileSymbols]) -> list[FileSymbols]:
    """`files` with the names that their calls of macros paste."""
    templates: dict[str, dict[str, None]] = {}
    for file in files:
        for macro, words in file.expansions.items():
            for word in words:
                if "#" in word:
                    templates.setdefault(macro, {})[word] = None
    return [_with_pasted(file, templates) if templates else file for file in files]


def _with_pasted(file: FileSymbols, templates: dict[str, dict[str, None]]) -> FileSymbols:
    definitions: Counter[str] = Counter()
    uses: Counter[str] = Counter()
    macros = [macro for macro in file.calls if macro in templates]
    tried = (
        (call, template) for macro in macros for call in file.calls[macro] for template in templates[macro]
    )
    for call, template in islice(tried, MAX_TRIED):
        (definitions if call.endswith("{") else uses).update(_filled(template, call.rstrip("{").split(",")))
    if not definitions and not uses:
        return file
    announced = {
        name: n for name, n in sorted(uses.items()) if name not in definitions.keys() | file.definitions
    }
    return replace(
        file,
        definitions=dict(sorted((definitions + Counter(file.definitions)).items())),
        declarations=dict(sorted((Counter(announced) + Counter(file.declarations)).items())),
        references=dict(sorted((uses + Counter(file.references)).items())),
    )


def _filled(template: str, arguments: Sequence[str]) -> Iterator[str]:
    """The name that a template makes of arguments, if they are complete."""
    needed = {int(number) for number in _ARGUMENT.findall(template)}
    if all(number < len(arguments) and arguments[number] for number in needed):
        yield _ARGUMENT.sub(lambda match: arguments[int(match[1])], template)
