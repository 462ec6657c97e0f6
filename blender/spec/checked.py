"""Models of what people write, refused with a sentence for each field that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from blender.errors import InvalidBlend

Model = TypeVar("Model", bound=BaseModel)


def checked(model: type[Model], fields: Mapping[str, Any]) -> Model:
    """The model of `fields`; raises InvalidBlend with a sentence for each that is wrong."""
    try:
        return model.model_validate(dict(fields))
    except ValidationError as error:
        raise InvalidBlend(" ".join(_sentence(problem) for problem in error.errors())) from error


def _sentence(problem: Any) -> str:
    reason = problem.get("ctx", {}).get("error")
    if reason is not None:
        return str(reason)
    field = ".".join(str(part) for part in problem["loc"]) or "blend"
    return f"`{field}` is {problem['input']!r}: {problem['msg'][0].lower()}{problem['msg'][1:]}."
