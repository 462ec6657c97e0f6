"""seqpacker's sequences and CPU seconds for lengths in a file; run in its environment.

Arguments: the file (numpy, int64, no zeros), the sequence length, and the number of runs. Prints one JSON
line: the number of sequences and the median CPU seconds of each of its strategies for whole documents.
"""

import json
import sys
from functools import partial
from statistics import median

import numpy
from seqpacker import Packer

from bench.timing import cpu_seconds

STRATEGIES = ("obfd", "bfd", "ffd", "mffd")

lengths = numpy.load(sys.argv[1])
capacity = int(sys.argv[2])
found = {}
for strategy in STRATEGIES:
    packer = Packer(capacity=capacity, strategy=strategy)
    seconds = cpu_seconds(partial(packer.pack_flat, lengths), int(sys.argv[3]))
    _, offsets = packer.pack_flat(lengths)
    found[strategy] = {"sequences": len(offsets) + 1, "cpu_s": median(seconds)}
print(json.dumps(found))
