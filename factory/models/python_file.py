"""Python files of users, with rules and embedders of their own."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

from factory.errors import ConfigurationError


def run_file(path: Path) -> ModuleType:
    """Run a file as a module of its own; cached bytecode would miss two changes within a second.

    Raises ConfigurationError for a file that fails.
    """
    module = ModuleType(re.sub(r"\W", "_", str(path)))
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        exec(compile(path.read_bytes(), path, "exec", dont_inherit=True), vars(module))
    except (Exception, SystemExit) as error:  # `sys.exit()` would end the command without a sentence
        reason = f"{type(error).__name__}: {error}"
        raise ConfigurationError(f"{path.name} fails with {reason}. Correct it.") from error
    return module
