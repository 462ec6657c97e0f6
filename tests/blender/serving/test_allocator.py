"""Memory of large blocks is reused."""

from __future__ import annotations

import sys

from tests.blender.programs import run

PROGRAM = """
import resource, threading
from blender.serving.allocator import keep_freed_memory

def faults_of_blocks():
    one = bytes(1 << 20)
    for _ in range(20):
        b"".join([one, one[:9]])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(200):
        kept = [b"".join([one, one[:9]]) for _ in range(3)]
        del kept
    print(kept_memory, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

kept_memory = keep_freed_memory()
thread = threading.Thread(target=faults_of_blocks)
thread.start()
thread.join()
"""


def test_blocks_reuse_the_memory_of_earlier_blocks() -> None:
    is_kept, faults = run(PROGRAM).split()
    assert is_kept == str(sys.platform == "linux")
    if is_kept == "True":
        assert int(faults) < 2 * 3 * 256  # 256 pages a block: two rounds of 200 at most
