"""The order by dependency, which every dataset of code has; it has no options."""

from __future__ import annotations

from collections.abc import Sequence

from factory.orchestration.chain.depsort import DependencyOrder
from factory.orchestration.chain.link import Link
from factory.orchestration.declare.part import Declared, Entry, Part


class DepsortPart(Part):
    """Files of code in the order of their dependencies."""

    def links(self, entry: Entry, file: Declared) -> Sequence[Link]:  # noqa: ARG002
        return [DependencyOrder()] if entry.kind == "code" else ()
