"""Weights that imports and uses add to the edge between two files.

An import weighs 1 on the file it names, spread over the files of a package; DEFERRED where it runs late,
inside a function or for type checkers only; WEAK on files it only passes on the way. The packages around the
importer weigh AROUND: enough to come first if nothing opposes it, too little to count in the cycle that such
edges make of a package.
"""

from __future__ import annotations

DEFERRED = 0.6  # as certain as any import, but a cycle breaks here first
WEAK, AROUND = 0.2, 0.02
SAME_FOLDER, SAME_TOP_FOLDER, ELSEWHERE = 0.7, 0.5, 0.2  # factors of a use without an import
PRIVATE = 0.1  # factor of a use without an import of a name that starts with an underscore
