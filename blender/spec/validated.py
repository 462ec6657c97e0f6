"""User input through pydantic; errors become one sentence per wrong field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from blender.errors import InvalidBlend

Built = TypeVar("Built")


def validated(validate: Callable[[Any], Built], fields: Mapping[str, Any]) -> Built:
    """The result of pydantic's `validate`; raises InvalidBlend with a sentence for each wrong field."""
    try:
        return validate(dict(fields))
    except ValidationError as error:
        raise InvalidBlend(sentences(error, "blend")) from error


def sentences(error: ValidationError, whole: str) -> str:
    """A sentence for each wrong field; `whole` names the validated object."""
    return " ".join(_sentence(problem, whole) for problem in error.errors())


def _sentence(problem: Any, whole: str) -> str:
    reason = problem.get("ctx", {}).get("error")
    if reason is not None:
        return str(reason)
    field = ".".join(str(part) for part in problem["loc"]) or whole
    return f"`{field}` is {problem['input']!r}: {problem['msg'][0].lower()}{problem['msg'][1:]}."
