"""Programs of the page on frameworks: each row once, left, resumed and on two ranks, or a sentence."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from blender.catalog.blends import open_blends
from blender.records import Source
from blender.trainer.local import LocalBlender
from factory.lake.schemas.packing import VOCABULARY_SIZE
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE, ROOT, packed_rows, serving, write_table
from tests.framework_runner import checksums
from tests.pages import fenced
from tests.ports import free_ports

PAGE = ROOT / "docs" / "frameworks.md"
PYTHON = Path(f"{sys.prefix}-frameworks", "bin", "python")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.process,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not PYTHON.exists(), reason="`make test-rest` installs the frameworks"),
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home = tmp_path_factory.mktemp("frameworks") / "lake"
    settings = Settings(home=home, cache=home / "cache")
    for table, n_rows in ((CODE, 40), (PROSE, 300)):
        rows = packed_rows(table, n_rows)
        write_table(settings, table, rows, snapshot_properties={VOCABULARY_SIZE: "30000"})
    return settings


@pytest.fixture(scope="module")
def blend(lake: Settings) -> str:
    """One of 150 steps."""
    return (
        open_blends(lake)
        .create([Source(CODE, 6, oversample=True, shuffle="row"), Source(PROSE, 2)], seed=7)
        .id
    )


@pytest.fixture(scope="module")
def endless(lake: Settings) -> str:
    return open_blends(lake).create([Source(CODE, 8, oversample=True, shuffle="row")], seed=7).id


@pytest.fixture(scope="module")
def address(lake: Settings) -> Iterator[str]:
    with serving(lake.home) as server:
        yield server.address


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the page's programs."""
    folder = tmp_path_factory.mktemp("programs")
    for text in fenced(PAGE, "python"):
        name = re.match(r"# (\w+\.py)\n", text)
        assert name
        (folder / name[1]).write_text(text)
    return folder


def printed(arguments: list[str], folder: Path, ranks: int = 1, status: int = 0) -> str:
    """What a program prints on so many ranks, by torchrun if there are several."""
    command = [str(PYTHON)]
    if ranks > 1:
        port = free_ports(1)[0]
        command += ["-m", "torch.distributed.run", f"--nproc-per-node={ranks}", f"--master-port={port}"]
    environment = {
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
        "JAX_PLATFORMS": "cpu",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
    }
    if ranks == 1 and "checkpoint.py" in arguments[1]:
        port = free_ports(1)[0]
        environment |= {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    ended = subprocess.run(
        command + arguments,
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert (ended.returncode == 0) == (status == 0), f"{ended.stdout}\n{ended.stderr}"
    return ended.stdout + ended.stderr


def rows_of_steps(
    lake: Settings, blend: str, first: int, stop: int, rank: int, ranks: int
) -> list[list[int]]:
    steps = LocalBlender(lake).fetch(blend, first, stop - first, rank, ranks)
    return [checksums(step.tokens) for step in steps]


@pytest.mark.parametrize(
    "program, framework, ranks_of_runs",
    [
        ("hf_trainer", "transformers", (1, 2)),
        ("accelerate_loop", "loop", (1, 2)),
        ("lightning_fit", "lightning", (1, 2)),
        ("checkpoint", "loop", (1, 2)),
        ("stateful", "torchdata", (2, 2)),
    ],
)
def test_each_row_comes_once_and_a_resumed_run_goes_on_at_the_saved_step(
    lake: Settings,
    blend: str,
    address: str,
    programs: Path,
    program: str,
    framework: str,
    ranks_of_runs: tuple[int, int],
    tmp_path: Path,
) -> None:
    runner = str(ROOT / "tests" / "framework_runner.py")
    for first, stop, ranks in zip((0, 3), (3, 5), ranks_of_runs, strict=True):
        text = str(programs / f"{program}.py")
        output = printed([runner, text, framework, address, blend, str(stop), "."], tmp_path, ranks)
        for rank in range(ranks):
            steps = re.findall(rf"rows {rank} (\[.*?\])", output)
            expected = rows_of_steps(lake, blend, first, stop, rank, ranks)
            assert [ast.literal_eval(rows) for rows in steps] == expected, output


@pytest.mark.parametrize("program, workers", [("stateful", ["0"]), ("stateful", ["2"]), ("arrays", [])])
def test_each_step_comes_once_and_a_resumed_run_goes_on(
    blend: str, address: str, programs: Path, program: str, workers: list[str], tmp_path: Path
) -> None:
    for first, stop in ((0, 3), (3, 5)):
        output = printed(
            [str(programs / f"{program}.py"), address, blend, str(stop), ".", *workers], tmp_path
        )
        expected = [f"rank 0, step {step}, 8 rows" for step in range(first, stop)]
        assert [line for line in output.splitlines() if line.startswith("rank ")] == expected


WRONG = """
import sys, types
import torch
from accelerate import Accelerator, DataLoaderConfiguration, skip_first_batches
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
import lightning
from blender import BlendDataset, BlenderClient, BlendLoader, tensors

client = BlenderClient(sys.argv[1])
finite, endless = map(client.open, sys.argv[2:4])

def inputs(batch):
    tokens = tensors(batch, ("tokens",))["tokens"].long()
    return {"input_ids": tokens, "labels": tokens}

def hugging_face():
    dataset = BlendDataset(finite, stop=8, tensors=inputs)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=30000, n_positions=8, n_embd=8, n_layer=1, n_head=1))
    size = {"max_steps": 2, "per_device_train_batch_size": 4, "use_cpu": True, "report_to": []}
    Trainer(model, TrainingArguments("out", **size), train_dataset=dataset).train()

def prepared(workers=0, size=None, **options):
    dataset = BlendDataset(finite, stop=8)
    context = "spawn" if workers else None
    made = DataLoader(dataset, size, num_workers=workers, multiprocessing_context=context)
    next(iter(Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**options)).prepare(made)))

def skipped():
    next(iter(skip_first_batches(BlendLoader(BlendDataset(finite, stop=8)), 2)))

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
    def training_step(self, batch, number):
        return self.layer(torch.ones(1)).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters())

def fit(loader):
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    lightning.Trainer(accelerator="cpu", max_steps=2, **quiet).fit(Model(), loader)

ways = {
    "Trainer": hugging_face,
    "prepare": prepared,
    "prepare, workers": lambda: prepared(workers=2),
    "prepare, no dispatch": lambda: prepared(size=1, dispatch_batches=False),
    "skip": skipped,
    "Lightning": lambda: fit(BlendLoader(BlendDataset(endless))),
    "Lightning, DataLoader": lambda: fit(DataLoader(BlendDataset(endless), batch_size=None)),
}
if __name__ == "__main__":
    for name in sys.argv[4:] or ways:
        try:
            ways[name]()
        except Exception as error:
            print(f"refused {name}: {type(error).__name__}", flush=True)
"""


def test_a_framework_that_would_read_other_rows_is_refused(
    blend: str, endless: str, address: str, tmp_path: Path
) -> None:
    program = tmp_path / "wrong.py"
    program.write_text(WRONG)
    output = printed([str(program), address, blend, endless], tmp_path)
    refused = dict(re.findall(r"^refused (.+): (\w+)$", output, re.MULTILINE))
    assert refused == {
        "Trainer": "PreparedByAccelerate",
        "prepare": "PreparedByAccelerate",
        "prepare, workers": "PreparedByAccelerate",
        "prepare, no dispatch": "PreparedByAccelerate",
        "skip": "PreparedByAccelerate",
        "Lightning": "FetchedAhead",
        "Lightning, DataLoader": "FetchedAhead",
    }, output


@pytest.mark.parametrize("way", ["prepare", "prepare, no dispatch"])
def test_accelerate_on_two_ranks_is_refused(
    blend: str, endless: str, address: str, way: str, tmp_path: Path
) -> None:
    program = tmp_path / "wrong.py"
    program.write_text(WRONG.replace("flush=True)", "flush=True)\n            raise SystemExit(1)"))
    output = printed([str(program), address, blend, endless, way], tmp_path, ranks=2, status=1)
    assert f"{way}: PreparedByAccelerate" in output


@pytest.mark.parametrize(
    "file", ["tests/clusters/test_checkpoint_losses.py", "tests/models/test_sentence_embedder.py"]
)
def test_tests_of_models_pass_where_the_frameworks_are(file: str) -> None:
    """These files skip themselves elsewhere, so a skipped test here is an error."""
    summary = printed(["-m", "pytest", "-n0", "-p", "no:cacheprovider", str(ROOT / file)], ROOT)
    assert re.search(r"^\d+ passed in ", summary, re.MULTILINE), summary
