"""A function of the user's own, named as `module:function` on a command line or in a spec."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from blender.errors import InvalidRequest
from factory.errors import first_line


def named_function(name: str, kind: str, arguments: str) -> Callable[..., Any]:
    """The function of a name; errors mention its `kind` and the `arguments` that it takes.

    Raises InvalidRequest if it cannot be imported, or is not a function.
    """
    module, _, function = name.partition(":")
    if not function:
        raise InvalidRequest(f"`{name}` names no {kind}. Write it as `module:function`.")
    try:
        value = getattr(importlib.import_module(module), function)
    except (Exception, SystemExit) as error:  # a module may raise anything, also exit
        cause = f"{type(error).__name__}: {first_line(error)}"
        raise InvalidRequest(
            f"The {kind} `{name}` cannot be imported ({cause}). Correct its module, or put it on PYTHONPATH."
        ) from error
    if not callable(value):
        raise InvalidRequest(
            f"The {kind} `{name}` is a {type(value).__name__}. Name a function of {arguments}."
        )
    named: Callable[..., Any] = value
    return named
