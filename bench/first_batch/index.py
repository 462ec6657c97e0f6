"""Build, save and open a page index over many files in a process of its own.

Arguments: a Parquet file, how often it is listed, the index to save. Prints one JSON line: pages, CPU seconds
and seconds to build, bytes per page, seconds from opening the saved index to a first batch of 8 rows.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from blender.pages import get_idx_matrix, open_idx_matrix

path, times, saved = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
began, wall = time.process_time(), time.perf_counter()
matrix = get_idx_matrix([path] * times, "tokens")
built, taken = time.process_time() - began, time.perf_counter() - wall
matrix.save(saved)
wanted = np.random.default_rng(0).integers(0, matrix.n_rows, 8)
expected = matrix.read_rows(wanted)
del matrix
began = time.perf_counter()
opened = open_idx_matrix(saved)
same = opened.read_rows(wanted) == expected
first = time.perf_counter() - began
found = {
    "same": same,
    "pages": len(opened),
    "build_cpu_s": built,
    "build_s": taken,
    "bytes_a_page": saved.stat().st_size / len(opened),
    "first_batch_s": first,
}
print(json.dumps(found))
