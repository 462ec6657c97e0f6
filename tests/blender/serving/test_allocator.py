"""Memory of large blocks is reused."""

from __future__ import annotations

import sys

import pytest

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


ONE_ARENA = """
import ctypes, threading
from blender.serving.allocator import keep_freed_memory

keep_freed_memory()
import numpy, pyarrow, grpc
import factory._native, blender.serving.serve

threads = [threading.Thread(target=bytes, args=(1 << 20,)) for _ in range(20)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
ctypes.CDLL(None).malloc_info(0, ctypes.c_void_p.in_dll(ctypes.CDLL(None), "stdout"))
ctypes.CDLL(None).fflush(None)
print(pyarrow.default_memory_pool().backend_name)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Other C libraries have no arenas.")
def test_all_threads_and_arrow_share_one_arena() -> None:
    printed = run(ONE_ARENA)
    assert printed.count("<heap nr=") == 1
    assert printed.splitlines()[-1] == "system"


def test_blocks_reuse_the_memory_of_earlier_blocks() -> None:
    is_kept, faults = run(PROGRAM).split()
    assert is_kept == str(sys.platform == "linux")
    if is_kept == "True":
        assert int(faults) < 2 * 3 * 256  # 256 pages a block: two rounds of 200 at most
