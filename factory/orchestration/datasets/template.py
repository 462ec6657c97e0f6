"""The text of a datasets file for guessed datasets, with other options as comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from factory.counted import counted
from factory.orchestration.datasets.formats import MessageFields
from factory.orchestration.datasets.guess import Guess
from factory.orchestration.datasets.record_guess import RecordFields
from factory.orchestration.declare.registry import PARTS

_PLAIN = re.compile(r"[A-Za-z][\w./-]*")
_RESERVED = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}  # YAML reads these as no text

_HEAD = """\
# The datasets of this folder, guessed from its files. Correct wrong guesses, then:
#
#     factory check {file}
#     factory materialize -f {file} '*'
#
# docs/datasets.md of the repository explains every field. Paths are relative to the folder of this file.

datasets:
"""

_BLEND_OF_PICTURES = """
# A row of pictures is one document, so rows differ in length.
blend:
  pad: true
"""

_TAIL = """\
# Each kind is deduplicated together, from this similarity on:
# groups:
#   {kind}: {{threshold: 0.8}}

# All datasets train one tokenizer; a small corpus needs a small vocabulary. `file` names an existing one.
# tokenizers:
#   tokenizer: {{vocabulary: 16384}}

# The blend that `factory demo` serves, in rows per step:
# blend:
#   weights: {{{weights}}}
"""


def template(guesses: Sequence[Guess], file: str) -> str:
    """Return the text of a datasets file; `file` is its name in the commands that its head shows."""
    entries = "\n".join("".join(f"{line}\n" for line in _entry(guess)) for guess in guesses)
    weights = ", ".join(f"{scalar(guess.name)}: 1" for guess in guesses)
    tail = _TAIL.format(kind=guesses[0].kind, weights=weights)
    if any(guess.of_images for guess in guesses):
        tail += _BLEND_OF_PICTURES
    return _HEAD.format(file=file) + entries + "\n" + tail


def _entry(guess: Guess) -> Iterator[str]:
    if guess.note:
        yield f"  # {guess.note}"
    yield f"  - name: {scalar(guess.name)}"
    yield f"    kind: {guess.kind}"
    yield f"    format: {guess.format} # {counted(guess.files, 'file')}"
    paths = ", ".join(map(scalar, guess.paths))
    yield f"    paths: {paths if len(guess.paths) == 1 else f'[{paths}]'}"
    if guess.include:
        yield f"    include: [{', '.join(json.dumps(pattern) for pattern in guess.include)}]"
    if guess.exclude:
        yield "    exclude: # without a line, its files are read"
        for exclusion in guess.exclude:
            about = f"{counted(exclusion.files, 'file')}, {exclusion.reason}"
            yield f"      - {json.dumps(exclusion.pattern)} # {about}"
    if guess.fields is not None:
        yield from _fields(guess.fields)
    if guess.kind == "code" and guess.format == "files":
        yield f"    repository: {scalar(guess.name)}"
    if guess.license:
        yield f"    license: {scalar(guess.license)} # of the card, README.md"
    else:
        yield "    # license: CC-BY-4.0 # of documents that do not name one"
    yield from (f"    {line}" for part in PARTS for line in part.comment(guess.kind))


def _fields(fields: RecordFields) -> Iterator[str]:
    if fields.messages is not None:
        yield f"    messages: {_messages(fields.messages)}"
        yield "    template: chatml # or llama3, gemma, plain, or the file of your model's chat template"
    elif fields.text is None:
        yield "    text: text # no text was found in the first record: name its field"
    elif fields.parts:
        yield f"    text: {scalar(fields.text)} # a template: add labels such as `Answer: ` if you want them"
    else:
        yield f"    text: {scalar(fields.text)}"
    if fields.key is not None:
        yield f"    # key: {scalar(fields.key)} # if it identifies a record; by default its file and line do"
    if fields.columns:
        pairs = ", ".join(f"{column}: {scalar(name)}" for column, name in fields.columns.items())
        yield f"    columns: {{{pairs}}}"
    if fields.others:
        yield f"    # metadata: [{', '.join(map(scalar, fields.others))}] # further fields to keep"


def _messages(fields: MessageFields) -> str:
    """The field of messages, with its names where they are not the usual ones."""
    names = fields.model_dump(exclude_defaults=True)
    if names.keys() <= {"field"}:
        return scalar(fields.field)
    roles = ", ".join(f"{scalar(old)}: {scalar(new)}" for old, new in names.pop("roles", {}).items())
    pairs = {"field": fields.field} | names
    plain = ", ".join(f"{name}: {scalar(text)}" for name, text in pairs.items())
    return f"{{{plain}, roles: {{{roles}}}}}"


def scalar(text: str) -> str:
    """Return `text` as YAML reads it back: plain if it can be, else in quotes."""
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    return json.dumps(text)
