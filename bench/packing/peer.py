"""seqpacker's sequences and CPU seconds for lengths in a file; run in its environment.

Arguments: the file (numpy, int64, no zeros) and the sequence length. Prints one JSON line: the number of
sequences and the CPU seconds of each of its strategies for whole documents.
"""

import json
import sys
import time

import numpy
from seqpacker import Packer

STRATEGIES = ("obfd", "bfd", "ffd", "mffd")

lengths = numpy.load(sys.argv[1])
capacity = int(sys.argv[2])
found = {}
for strategy in STRATEGIES:
    packer = Packer(capacity=capacity, strategy=strategy)
    began = time.process_time()
    _, offsets = packer.pack_flat(lengths)
    found[strategy] = {"sequences": len(offsets) + 1, "cpu_s": time.process_time() - began}
print(json.dumps(found))
