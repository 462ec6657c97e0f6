"""Runs of clusters and balance killed by SIGKILL at random instants, and a last run that finishes.

`make test-crash POINTS=10 SEED=7` chooses the number of kills.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from factory.settings import Settings
from tests.killed_runs import ROOT, command, contents, kill_run

ROUNDS = """\
classifiers:
  mail:
    positives: {table: web, predicates: {metadata.kind: [template]}}
    negatives: {table: web, predicates: {metadata.kind: [topic0, topic1, topic2]}}
datasets:
  - name: web
    kind: prose
    format: jsonl
    paths: data
    text: text
    key: id
    metadata: [kind]
    rounds:
      - rules: [word_count]
        limits: {word_count: [1, 100000]}
      - clusters: {cells: 8}
      - rules: [mail]
        limits: {mail: {at_most: 0.5}}
      - balance: {over: [cell, length], size: 0.6}
"""
_LONGEST_S = 12.0  # until a run is killed, counted from its first table


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(3_600)
def test_rounds_killed_at_random_instants_end_with_the_tables_of_an_undisturbed_lake(
    tmp_path: Path, kill_points: int, kill_seed: int
) -> None:
    if kill_points < 2:
        pytest.skip("a target of its own: make test-crash POINTS=10")
    subprocess.run([sys.executable, ROOT / "examples/topics.py", tmp_path / "data/topics.jsonl"], check=True)
    (tmp_path / "datasets.yaml").write_text(ROUNDS)
    draw = random.Random(kill_seed)
    for point in range(kill_points):
        seconds = round(draw.uniform(0, _LONGEST_S), 2)
        print(f"seed {kill_seed}, point {point}: {seconds} s after the first table")
        kill_run(tmp_path, seconds)
    for lake in ("killed", "alone"):
        run = command(tmp_path, lake)
        assert run.wait() == 0, (tmp_path / f"{lake}.log").read_text()
    after_kills, alone = (contents(Settings(home=tmp_path / lake)) for lake in ("killed", "alone"))
    assert after_kills == alone
    assert {"clusters.web_verdicts", "clusters.web_distribution", "packed.web"} <= after_kills.keys()
