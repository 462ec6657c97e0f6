"""Small files of a repository, to which rules about bulk do not apply.

An empty `__init__.py`, a module of constants, a re-export: alone they are not worth a document, but other
files of their repository import them, and an order by dependency needs them. In a short file the shares of
comments, letters or digits mean nothing either.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

SMALL = 1_000  # characters; the limits of OpenCoder, 10 lines of at most 100, reach no further
PACKAGE_FILES = (  # a package's own file stays at any size, even if it holds only license and purpose
    *("__init__.py", "__init__.pyi", "__main__.py", "mod.rs", "lib.rs", "doc.go"),
    *("index.js", "index.mjs", "index.jsx", "index.ts", "index.tsx"),
    *("package-info.java", "module-info.java"),
)


def small_files(texts: pa.Array, repositories: pa.Array, paths: pa.Array) -> pa.Array:
    """Return for each document whether it belongs to a repository and is short or a package's own file."""
    short = pc.less(pc.utf8_length(texts), SMALL)
    names = pc.replace_substring_regex(paths.cast(pa.string()), r"^.*/", "")
    either = pc.or_kleene(short, pc.is_in(names, pa.array(PACKAGE_FILES)))
    return pc.fill_null(pc.and_(pc.is_valid(repositories), either), False)
