"""Programs run in processes of their own, and the Python environments of other tools.

A bench runs a program as `python -m bench.<subject>.<module>` and reads the JSON of its last line. A peer is
another tool with an environment of its own below FACTORY_CACHE, made once: its pins are not ours, and two
peers may not even share one environment (`fasttext` belongs to two packages). A program that runs there
imports modules of `bench` that need nothing else of this project.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from factory.errors import CheckFailed
from factory.settings import settings

ROOT = Path(__file__).parents[1]


class PeerFailed(CheckFailed):
    """A peer could not be installed, or a program ended with an error."""


@dataclass(frozen=True)
class Peer:
    """A Python environment that holds exactly `requirements`, each pinned."""

    name: str
    requirements: tuple[str, ...]

    def python(self, console: Console) -> Path:
        """Return the environment's interpreter; install the environment first if it is missing."""
        home = settings().cache.absolute() / "bench" / self.name
        python = home / "bin" / "python"
        stamp = home / "requirements"
        wanted = "\n".join(self.requirements)
        if not stamp.exists() or stamp.read_text() != wanted:
            console.print(f"installing {', '.join(self.requirements)} into {home}")
            _run([sys.executable, "-m", "venv", "--clear", str(home)])
            _run([str(python), "-m", "pip", "install", "--quiet", *self.requirements])
            stamp.write_text(wanted)
        return python

    def answer(self, module: str, *arguments: object, console: Console) -> Any:
        """Run `module` in this environment; see `answer`."""
        return answer(module, *arguments, python=self.python(console))

    def convert(self, arrays: Iterable[Path], form: str, console: Console) -> None:
        """Write the rows of `.npy` files in a format of `bench.formats`, next to them, if that is missing."""
        for array in arrays:
            target = array.with_suffix(f".{form}")
            done = target.with_name(f"{target.name}.done")
            if not done.exists():
                console.print(f"writing {target}")
                self.answer("bench.formats", form, target, array, console=console)
                done.touch()


# torch and its libraries take 6 GB, so the tools that need torch share an environment.
TORCH = Peer("torch", ("torch==2.15.0", "mosaicml-streaming==0.13.0", "litdata==0.2.76"))
HUGGING_FACE = Peer("pages-hf", ("datasets==5.2.0",))
GRAIN = Peer("grain", ("grain==0.2.18", "array-record==0.8.6", "numpy==2.4.6"))
LANCE = Peer("pages-lance", ("pylance==14.0.2",))
DATATROVE = Peer(
    "datatrove", ("datatrove[processing]==0.10.1", "spacy==3.8.18", "numpy==2.4.6", "pyarrow==26.0.1")
)
DATATROVE_WARC = Peer(
    "datatrove-warc",
    (
        "datatrove==0.10.1",
        "warcio==1.8.1",
        "faust-cchardet==2.1.19",
        "python-magic==0.4.27",
        "orjson==3.11.4",
    ),
)
DATATROVE_READERS = Peer(
    "datatrove-readers", ("datatrove[io,s3]==0.10.1", "s3fs==2026.9.0", "orjson==3.11.4", "pyarrow==26.0.1")
)
MINHASH = Peer("minhash", ("datasketch==2.0.0", "rensa==0.5.0", "scipy==1.17.1", "pyarrow==26.0.1"))
SEQPACKER = Peer("seqpacker", ("seqpacker==0.1.3", "numpy==2.4.6"))
FLORET = Peer("floret", ("floret==0.10.5", "numpy==1.26.4"))  # its predict fails with numpy 2
HTML = Peer(
    "html",
    ("resiliparse==2.0.1", "trafilatura==2.3.1", "lxml-html-clean==0.4.6", "justext==3.0.2"),
)
NLTK = Peer("nltk", ("nltk==3.9.2",))
FAISS = Peer("faiss", ("faiss-cpu==1.15.1", "numpy==2.4.6"))
CLANG = Peer("libclang", ("libclang==18.1.1",))


def answer(module: str, *arguments: object, python: Path | str = sys.executable) -> Any:
    """Run `python -m module arguments` and return the JSON of its last line. Raises PeerFailed."""
    printed = _run([str(python), "-m", module, *map(str, arguments)], environment())
    return json.loads(printed.strip().splitlines()[-1])


def environment() -> dict[str, str]:
    """Variables for a program of any interpreter: it finds `bench`, and no peer calls Hugging Face's hub."""
    return os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}


def _run(command: list[str], variables: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "it printed nothing").splitlines()[-1]
        raise PeerFailed(f"`{' '.join(command[:4])} ...` failed: {last} Run it by hand to see all of it.")
    return done.stdout
