"""Chat templates by name, or from the files that models ship.

    chat_template("chatml")                                    # one of TEMPLATES
    chat_template("models/smol/tokenizer_config.json", folder) # its `chat_template`, with its special tokens
    chat_template("models/smol", folder)                       # a folder of a model
    chat_template("mine.jinja", folder)                        # a template of one's own

The `tokenizer_config.json` in a template's folder has the special tokens that it prints, such as `bos_token`.
A template is tried out as soon as it is read, so that a mistake in it ends a run before a record is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import TemplateSyntaxError

from factory.errors import ConfigurationError
from factory.suggestions import quoted, unknown_name
from spark_udfs.ingest.messages import (
    REFUSALS,
    Conversation,
    UnknownName,
    jinja_template,
    render,
)

TEMPLATES = ("chatml", "llama3", "gemma", "plain")
_FOLDER = Path(__file__).with_name("chat_templates")
_CONFIG, _TEMPLATE = "tokenizer_config.json", "chat_template.jinja"  # as models ship them
_TRIALS = (
    [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
    [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}],
)


@dataclass(frozen=True)
class ChatTemplate:
    """The text of a chat template, and the special tokens that it may print, by name."""

    text: str
    tokens: Mapping[str, str] = field(default_factory=dict)


def chat_template(name: str, folder: Path = Path()) -> ChatTemplate:
    """Return one of `TEMPLATES`, or a model's from its file or folder; paths are relative to `folder`.

    Raises ConfigurationError for an unknown name, a file without a template, and a mistake in the template.
    """
    if name in TEMPLATES:
        return ChatTemplate((_FOLDER / f"{name}.jinja").read_text(encoding="utf-8"))
    path = folder / Path(name).expanduser()
    if not path.exists():
        if "/" in name or "." in name:
            raise ConfigurationError(
                f"There is no file `{name}`. Paths are relative to the folder of this file, "
                f"{folder.resolve()}; the templates with a name are {quoted(TEMPLATES)}."
            )
        raise ConfigurationError(f"{unknown_name('template', name, TEMPLATES)} Or name a file of a template.")
    if path.is_dir():
        path = path / _TEMPLATE if (path / _TEMPLATE).is_file() else path / _CONFIG
        if not path.is_file():
            raise ConfigurationError(f"The folder `{name}` has no {_TEMPLATE} and no {_CONFIG}. Name a file.")
    config = _config_of(path.with_name(_CONFIG) if path.suffix != ".json" else path)
    text = _in_config(config, path) if path.suffix == ".json" else _read(path)
    template = ChatTemplate(text, _tokens(config))
    _try_out(template, path.name)
    return template


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigurationError(f"`{path.name}` cannot be read ({cause}). Name another file.") from error


def _config_of(path: Path) -> dict[str, Any]:
    """Return the fields of a model's `tokenizer_config.json`; none where it is missing."""
    if not path.is_file():
        return {}
    try:
        config = json.loads(_read(path))
    except json.JSONDecodeError as error:
        raise ConfigurationError(
            f"`{path.name}` is not JSON (line {error.lineno}: {error.msg}). Fetch it again."
        ) from error
    return config if isinstance(config, dict) else {}


def _in_config(config: Mapping[str, Any], path: Path) -> str:
    templates = config.get("chat_template")
    if isinstance(templates, list):  # several, each with a name
        entries = [entry for entry in templates if isinstance(entry, dict)]
        by_name = {entry.get("name"): entry.get("template") for entry in entries}
        templates = by_name.get("default") or next(iter(by_name.values()), None)
    if isinstance(templates, str):
        return templates
    beside = f" Name {_TEMPLATE} beside it." if path.with_name(_TEMPLATE).is_file() else " Name another file."
    raise ConfigurationError(f"`{path.name}` has no `chat_template`.{beside}")


def _tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the special tokens by name; one is a text, or an object with its `content`."""
    tokens = {
        name: token.get("content") if isinstance(token, dict) else token
        for name, token in config.items()
        if name.endswith("_token")
    }
    return {name: token for name, token in tokens.items() if isinstance(token, str)}


def _try_out(template: ChatTemplate, file: str) -> None:
    """Raise ConfigurationError for a template that is not Jinja, or that uses what nothing defines."""
    try:
        jinja_template(template.text)
    except TemplateSyntaxError as error:
        cause = " ".join(str(error.message).split()).rstrip(".")
        raise ConfigurationError(
            f"`{file}`, line {error.lineno}: this is not a template of Jinja ({cause}). Correct it."
        ) from error
    conversation = Conversation("messages", template.text, tokens=template.tokens)
    for messages in _TRIALS:
        try:
            render(conversation, [dict(message) for message in messages])
        except UnknownName as error:
            raise ConfigurationError(
                f"`{file}` cannot render messages: {error.message}. Correct the name, or put the {_CONFIG} "
                "of its model beside it, whose tokens it may print."
            ) from error
        except REFUSALS:  # it refuses these roles or their order, and may take others
            continue
