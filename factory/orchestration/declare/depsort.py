"""The order by dependency, which every dataset of code has; it has no options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from factory.orchestration.declare.part import Declared, Entry, Part

if TYPE_CHECKING:
    from factory.orchestration.chain.link import Link


class DepsortPart(Part):
    """Files of code in the order of their dependencies."""

    def links(self, entry: Entry, file: Declared) -> Sequence[Link]:  # noqa: ARG002
        from factory.orchestration.chain.depsort import DependencyOrder

        return [DependencyOrder()] if entry.kind == "code" else ()
