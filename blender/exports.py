"""Names that a package exports, each loaded with its module when it is first used.

    __getattr__, __dir__, __all__ = exports(__name__, {"Batch": "blender.batch"})

A client thus loads neither an engine nor PyTorch for the names that it does not use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def exports(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, from its names and the module of each."""
    namespace = vars(sys.modules[package])

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module `{package}` has no attribute `{name}`")
        try:
            module = import_module(modules[name])
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise ModuleNotFoundError(
                f"`{package}.{name}` needs PyTorch, which is not installed. Install it with "
                "`pip install torch`.",
                name="torch",
            ) from None
        namespace[name] = value = getattr(module, name)
        return value

    return load, lambda: sorted({*namespace, *modules}), list(modules)
