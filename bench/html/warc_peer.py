"""datatrove's reader of WARC archives on one file; run in its environment.

Argument: the archive. Prints one JSON line: documents, and CPU seconds of reading without any extraction.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main(archive: str) -> None:
    from datatrove.pipeline.readers import WarcReader

    path = Path(archive)
    reader = WarcReader(str(path.parent), glob_pattern=path.name)
    began = time.process_time()
    documents = sum(1 for _ in reader.run(rank=0, world_size=1))
    print(json.dumps({"documents": documents, "seconds": time.process_time() - began}))


if __name__ == "__main__":
    main(*sys.argv[1:])
