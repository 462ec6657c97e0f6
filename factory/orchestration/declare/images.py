"""The part of pictures: each dataset of them has a table of facts for the rules of the set `images`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from factory.filters.rules.pictured import ImageRule
from factory.orchestration.declare.filters import rounds_of
from factory.orchestration.declare.located_yaml import InvalidValue
from factory.orchestration.declare.part import Declared, Entry, Part

if TYPE_CHECKING:
    from factory.orchestration.chain.link import Link


class ImagesPart(Part):
    """The facts of pictures; it has no options."""

    def check(self, file: Declared) -> None:
        """Raise InvalidValue for a rule on pictures of a dataset that has none."""
        for entry in file.entries:
            if entry.dataset.has_images or entry.shares_comparisons:
                continue
            for rule in (rule for filters in rounds_of(entry) for rule in filters.build()):
                if isinstance(rule, ImageRule):
                    raise InvalidValue(
                        (*entry.place, "rules"),
                        f"`{rule.name}` judges pictures, and `{entry.name}` has none. Leave the rule out, or "
                        "read the files with `format: images`.",
                    )

    def links(self, entry: Entry, file: Declared) -> Sequence[Link]:  # noqa: ARG002
        from factory.orchestration.chain.images import ImageFacts

        return [ImageFacts()] if entry.dataset.has_images and entry.variant is None else ()
