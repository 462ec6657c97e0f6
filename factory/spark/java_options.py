"""The options of the driver's JVM, which depend on how much a run reads.

HotSpot compiles hot code in two steps: a quick compiler first, then an optimizing one. Our jobs are many and
short, and their hot code is native. On a small corpus the optimizing compiler costs more than its code
saves; tasks that join and sort ten million rows cost two thirds more without it. A JVM keeps its compilers
until it ends, so the choice is made for a run, before its JVM starts:

    unknown size, or above SMALL_INPUT_BYTES    both compilers, the optimizing one late
    up to SMALL_INPUT_BYTES                     the quick compiler alone

FACTORY_JAVA_COMPILER overrides it.
"""

from __future__ import annotations

from factory.settings import Settings

SMALL_INPUT_BYTES = 300_000_000
"""Up to here the quick compiler alone is cheaper for a whole pipeline (300 MB of text: 97 instead of 130 CPU
seconds); compressed input may hold several times as much text, and then costs a little more."""

# At its default thresholds the JVM spends a third of its time optimizing code that does not run long enough
# to pay off, at ten times the defaults still a fifth. At a hundred times, code that stays hot is optimized
# some seconds later.
_OPTIMIZE_LATE = (
    "-XX:Tier4InvocationThreshold=500000 -XX:Tier4MinInvocationThreshold=200000 "
    "-XX:Tier4CompileThreshold=1500000 -XX:Tier4BackEdgeThreshold=4000000"
)
_QUICK_ONLY = "-XX:TieredStopAtLevel=1"
# The quick compiler alone has 48 MB for its code by default. A pipeline fills them, and then compiles its hot
# code again and again.
_CODE_SPACE = "-XX:ReservedCodeCacheSize=240m"
# The JVM starts with 21 MB for classes and collects the whole heap whenever it grows beyond; Spark needs 200.
_CLASS_SPACE = "-XX:MetaspaceSize=512m"
_COLLECT = "-XX:+UseParallelGC"  # pauses do not matter here, and G1 costs a small job a fifth more CPU time


def optimizes(settings: Settings, input_bytes: int | None) -> bool:
    """Whether the JVM of a run that reads `input_bytes`, None if unknown, has the optimizing compiler."""
    if settings.java_compiler != "auto":
        return settings.java_compiler == "optimizing"
    return input_bytes is None or input_bytes > SMALL_INPUT_BYTES


def compiler_options(*, optimizing: bool) -> str:
    """Return the options of the compilers, the collector and their memory."""
    return f"{_OPTIMIZE_LATE if optimizing else _QUICK_ONLY} {_CODE_SPACE} {_CLASS_SPACE} {_COLLECT}"


def is_quick_only(java_options: str) -> bool:
    """Whether a JVM with these options has no optimizing compiler."""
    return _QUICK_ONLY in java_options.split()
