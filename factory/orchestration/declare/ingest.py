"""The part of ingest: checks of the names and sources of datasets."""

from __future__ import annotations

from factory.orchestration.declare.located_yaml import InvalidValue
from factory.orchestration.declare.part import Declared, Part
from factory.suggestions import unknown_name


class Ingest(Part):
    """Datasets and their sources. `Dataset` is the base of each format's class, so it adds no fields here."""

    def check(self, file: Declared) -> None:
        _check_names(file)
        _check_from(file)


def _check_names(file: Declared) -> None:
    """Raise InvalidValue for the name of two datasets."""
    number_of: dict[str, int] = {}
    for number, entry in enumerate(file.datasets):
        first_number = number_of.setdefault(entry.name, number)
        if first_number != number:
            raise InvalidValue(
                (*entry.place, "name"),
                f"`{entry.name}` is the name of datasets[{first_number}] already. Give each dataset its own.",
            )


def _check_from(file: Declared) -> None:
    """Raise InvalidValue for a dataset from one that does not exist, or is made from it."""
    source_of = {entry.name: entry.dataset.from_ for entry in file.datasets}
    for entry in file.datasets:
        above = [entry.name]
        while (parent := source_of[above[-1]]) is not None:
            if parent not in source_of:
                raise InvalidValue((*entry.place, "from"), unknown_name("dataset", parent, source_of))
            if parent in above:
                ring = [f"`{name}`" for name in [*above[above.index(parent) :], parent]]
                way = f"{ring[0]} reads {', which reads '.join(ring[1:])}"
                raise InvalidValue((*entry.place, "from"), f"{way}. Name another dataset.")
            above.append(parent)
