"""The entry point of `factory`, which also answers if one of our own packages cannot be imported."""

from __future__ import annotations

import sys

from factory.cli.import_problems import import_problem


def main() -> None:
    """Run the command; end with a sentence and an exit code if its modules cannot be imported."""
    try:
        from factory.cli.main import main as run
    except ImportError as error:
        problem = import_problem(error)
        if problem is None:
            raise
        print(problem, file=sys.stderr)
        sys.exit(problem.exit_code)
    run()
