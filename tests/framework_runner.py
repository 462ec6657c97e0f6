"""Run a program of a page and print, for each step that a framework trains on, the rows that it got.

As `python framework_runner.py PROGRAM ARGUMENTS`, in an environment that has the framework. It knows
nothing of pytest. A line is `rows RANK [...]`, with a checksum of each row's tokens.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
import zlib
from collections.abc import Callable
from typing import Any


def checksums(tokens: Any) -> list[int]:
    """A number for each row of tokens, whatever type they have."""
    return [zlib.crc32(bytes(str([int(token) for token in row]), "ascii")) for row in tokens.tolist()]


def say(tokens: Any) -> None:
    """Print the rows of a step, by one write, since ranks share a stream."""
    os.write(1, f"rows {os.environ.get('RANK', '0')} {checksums(tokens)}\n".encode())


def listen(module: str, owner: str, method: str, tokens_of: Callable[[tuple[Any, ...]], Any]) -> None:
    """Print the rows of each call of a method that trains on a step."""
    cls = getattr(importlib.import_module(module), owner)
    trained = getattr(cls, method)

    def training(*arguments: Any, **named: Any) -> Any:
        say(tokens_of(arguments))
        return trained(*arguments, **named)

    setattr(cls, method, training)


def listen_to_loop(module: str, owner: str) -> None:
    """Print the rows of each step of a loader, for programs that write their loop themselves."""
    cls = getattr(importlib.import_module(module), owner)
    steps = cls.__iter__

    def loop(loader: Any) -> Any:
        for batch in steps(loader):
            say(batch["tokens"])
            yield batch

    cls.__iter__ = loop


def main(program: str, framework: str, *arguments: str) -> None:
    """Listen where the framework trains, and run the program."""
    match framework:
        case "transformers":
            listen("transformers", "Trainer", "training_step", lambda given: given[2]["input_ids"])
        case "lightning":
            strategy = "lightning.pytorch.strategies.strategy"
            listen(strategy, "Strategy", "training_step", lambda given: given[1]["tokens"])
        case "loop":
            listen_to_loop("blender.trainer.torch", "BlendLoader")
        case "torchdata":
            listen_to_loop("torchdata.stateful_dataloader", "StatefulDataLoader")
    sys.argv = [program, *arguments]
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
