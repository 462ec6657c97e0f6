"""The text of a conversation: its messages, rendered by a chat template as models ship them.

    {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]}

    <|im_start|>user
    Hi<|im_end|>
    <|im_start|>assistant
    Hello!<|im_end|>

A template is Jinja, with the environment of Hugging Face's `apply_chat_template`: a sandbox that changes
nothing, `raise_exception`, `tojson`, `break` and `continue`, and `{% generation %}`. It gets no time of the
day, so that a conversation has the same text in each run. Printing an unknown name is an error; a test of it
is answered as if it were empty.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from jinja2 import TemplateError, Undefined, UndefinedError
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import Node
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

from spark_udfs.ingest.field_paths import cell_or_none
from spark_udfs.ingest.rows import BadRecord

# What a template may raise for a conversation that it was not made for.
REFUSALS = (
    TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
_FIELDS_SHOWN = 8
_CALLS = "tool_calls"  # the field of a message that may come without a content


@dataclass(frozen=True)
class Conversation:
    """How the messages in the field `field` of a record become its text.

    A message has its role and its content in the fields `role` and `content`; `roles` renames roles, for
    example `human` to `user`. Fields are paths, as in `Fields`. `template` is the text of a chat template,
    and `tokens` are further values that it may print, by name, such as `bos_token`.
    """

    field: str
    template: str
    role: str = "role"
    content: str = "content"
    roles: Mapping[str, str] = dataclasses.field(default_factory=dict)
    tokens: Mapping[str, str] = dataclasses.field(default_factory=dict)


class UnknownName(UndefinedError):
    """A template uses a name that nothing defines."""


class _Unknown(Undefined):
    """An unknown name or field: false and empty if it is asked for, an error if it is printed or called."""

    __slots__ = ()

    def _fail(self, *_arguments: Any, **_options: Any) -> NoReturn:
        if self._undefined_obj is missing:
            raise UnknownName(f"it uses `{self._undefined_name}`, which is not defined")
        self._fail_with_undefined_error()

    def __str__(self) -> str:
        self._fail()

    __call__ = __add__ = __radd__ = __getitem__ = _fail

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._fail()


class _Generation(Extension):
    """`{% generation %} ... {% endgeneration %}`, the marks around the assistant's words, print nothing."""

    tags = {"generation"}  # noqa: RUF012 (declared so by Jinja)

    def parse(self, parser: Parser) -> list[Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _tojson(fields: Any, ensure_ascii: bool = False, **options: Any) -> str:
    return json.dumps(fields, ensure_ascii=ensure_ascii, **options)


@lru_cache(maxsize=8)
def jinja_template(template: str) -> Any:
    """Return the compiled template; raises TemplateSyntaxError."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_Generation, loopcontrols],
        undefined=_Unknown,
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    return environment.from_string(template)


def render(conversation: Conversation, messages: list[dict[str, Any]]) -> str:
    """Return the text of messages; raises the errors of the template."""
    context = {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": False}
    return str(jinja_template(conversation.template).render(**conversation.tokens, **context))


def text_of(conversation: Conversation, values: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the text of a record's messages, and its facts: `turns`, their number, and the `roles`.

    Raises BadRecord `no_messages`, `messages_not_a_list`, `bad_message`, `no_content`, `content_not_text`,
    `empty`, and `template` for a conversation that the template refuses.
    """
    messages = _messages(conversation, cell_or_none(values, conversation.field))
    try:
        text = render(conversation, messages)
    except REFUSALS as error:
        cause = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise BadRecord("template", f"The template does not take the messages: {cause}.") from None
    roles = ",".join(dict.fromkeys(message["role"] for message in messages))
    return text, {"turns": str(len(messages)), "roles": roles}


def _messages(conversation: Conversation, values: Any) -> list[dict[str, Any]]:
    if values is None:
        raise BadRecord("no_messages", f"Field `{conversation.field}` is missing or null.")
    if not isinstance(values, list):
        detail = f"Field `{conversation.field}` holds {type(values).__name__}, not a list of messages."
        raise BadRecord("messages_not_a_list", detail)
    if not values:
        raise BadRecord("no_messages", f"Field `{conversation.field}` is an empty list.")
    messages = [_message(conversation, number, message) for number, message in enumerate(values, 1)]
    if not any(message["content"].strip() or message.get(_CALLS) for message in messages):
        raise BadRecord("empty", "All messages are empty.")
    return messages


def _message(conversation: Conversation, number: int, message: Any) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise BadRecord("bad_message", f"Message {number} is {type(message).__name__}, not an object.")
    role, content = (cell_or_none(message, path) for path in (conversation.role, conversation.content))
    if not isinstance(role, str) or not role:
        detail = f"Message {number} has no `{conversation.role}` that is text; it has {_fields(message)}."
        raise BadRecord("bad_message", detail)
    if content is None and message.get(_CALLS):
        content = ""
    if content is None:
        detail = f"Message {number} has no `{conversation.content}`; it has {_fields(message)}."
        raise BadRecord("no_content", detail)
    if not isinstance(content, str):
        kind = "a list of parts" if isinstance(content, list) else type(content).__name__
        raise BadRecord("content_not_text", f"The content of message {number} is {kind}, not text.")
    # A column of Parquet has every field of its type in each message.
    others = {
        name: other
        for name, other in message.items()
        if name not in (conversation.role, conversation.content) and other is not None
    }
    return {**others, "role": conversation.roles.get(role, role), "content": content}


def _fields(message: Mapping[str, Any]) -> str:
    present = [
        f"`{name.encode('utf-8', 'replace').decode()}`"
        for name, field in message.items()
        if field is not None
    ]
    return ", ".join(present[:_FIELDS_SHOWN]) or "no field"
