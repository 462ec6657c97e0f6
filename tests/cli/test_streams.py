"""Whose words reach a terminal once the JVM is dead."""

from __future__ import annotations

import subprocess
import sys
import threading
from io import StringIO
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from factory.cli import streams
from factory.cli.streams import no_traces_of_a_dead_jvm


def test_other_threads_are_heard_while_the_jvm_lives_and_not_when_it_is_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    jvm = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=jvm))

    def other(words: str) -> None:
        thread = threading.Thread(target=lambda: print(words, file=sys.stderr))
        thread.start()
        thread.join()

    with no_traces_of_a_dead_jvm():
        other("before")
        monkeypatch.setattr(streams, "_DYING_S", 30)  # a busy machine takes its time
        jvm.kill()
        other("found dead")
        print("a sentence", file=sys.stderr)
    other("found dead later")
    assert said.getvalue().splitlines() == ["before", "a sentence"]
    jvm.communicate()
