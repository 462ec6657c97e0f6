"""The part of deduplication: groups, their options, and the decisions of variants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from factory.lake import names
from factory.orchestration.declare.dedup_fields import DECISIONS, DecisionFields, GroupFields, GroupsSection
from factory.orchestration.declare.dedup_groups import compared_entries, dedup_groups, group_of
from factory.orchestration.declare.located_yaml import InvalidValue
from factory.orchestration.declare.part import Declared, Entry, Part
from factory.suggestions import unknown_name

if TYPE_CHECKING:
    import dagster as dg

    from factory.orchestration.chain.link import Link


class DedupPart(Part):
    """Dedup groups, and the documents that they keep."""

    compares = True
    dataset = GroupFields
    variant = DecisionFields
    file = GroupsSection

    def check(self, file: Declared) -> None:
        """Raise InvalidValue for groups of two kinds, and for decisions and options that do not fit them."""
        _check_images(file)
        first_by_group = _first_by_group(file)
        _check_decisions(file)
        _check_groups(file, first_by_group)

    def assets(self, file: Declared) -> Iterator[dg.AssetsDefinition]:
        file.groups |= dedup_groups(file)
        for group in file.groups.values():
            yield from group.assets

    def links(self, entry: Entry, file: Declared) -> Sequence[Link]:
        from factory.orchestration.chain.dedup.exact_copies import ExactCopies
        from factory.orchestration.chain.dedup.group import Deduplication

        if entry.dataset.has_images:
            return [ExactCopies()]
        return [Deduplication(file.groups[group_of(entry)])]


def _check_images(file: Declared) -> None:
    """Raise InvalidValue for a dataset or variant with pictures that asks to be compared by text.

    Its decisions have the name of the dataset, so no group has it.
    """
    groups = {group_of(entry): entry for entry in compared_entries(file)}
    for entry in file.entries:
        if not entry.dataset.has_images:
            continue
        if entry.name in groups:
            place = (*groups[entry.name].place, "group")
            raise InvalidValue(
                place, f"`{entry.name}` is the name of a dataset with pictures. Choose another."
            )
        options = ("group",) if entry.variant is None else DECISIONS
        for option in options:
            if getattr(entry.values, option) is not None:
                raise InvalidValue(
                    (*entry.place, option),
                    f"`{entry.name}` has pictures, and a group compares captions alone: it would remove "
                    "different pictures of one caption. Leave it out: exact copies are removed anyway.",
                )


def _first_by_group(file: Declared) -> dict[str, Entry]:
    """Return the first dataset of each group; raises InvalidValue for a group of two kinds."""
    first_by_group: dict[str, Entry] = {}
    for entry in compared_entries(file):
        if entry.variant is not None:
            continue
        first = first_by_group.setdefault(group_of(entry), entry)
        if first.kind != entry.kind:
            raise InvalidValue(
                (*entry.place, "group"),
                f"`{group_of(entry)}` holds `{first.name}`, which is {first.kind}, and `{entry.name}` is "
                f"{entry.kind}. Give it another group.",
            )
    return first_by_group


def _check_decisions(file: Declared) -> None:
    """Raise InvalidValue if variants of one name, which share a group, are decided differently."""
    first_by_group: dict[str, Entry] = {}
    for entry in compared_entries(file):
        if entry.variant is None:
            continue
        group = group_of(entry)
        first = first_by_group.setdefault(group, entry)
        if _decisions(first) != _decisions(entry):
            raise InvalidValue(
                entry.place,
                f"`{first.name}` has {_decides_by(first)} and `{entry.name}` has {_decides_by(entry)}, "
                "and variants of one name in one group are decided together. Give one another name.",
            )
        if entry.shares_comparisons and group in file.section(GroupsSection).groups:
            raise InvalidValue(
                ("groups", group),
                f"`{entry.name}` takes the comparisons of `{names.base(group)}`, so its group has no "
                "options. Leave them out.",
            )


def _decisions(entry: Entry) -> dict[str, Any]:
    return {name: getattr(entry.fields(DecisionFields), name) for name in DECISIONS}


def _decides_by(entry: Entry) -> str:
    options = [f"{name} {choice}" for name, choice in _decisions(entry).items() if choice]
    return " and ".join(options) or "filters of its own"


def _check_groups(file: Declared, first_by_group: Mapping[str, Entry]) -> None:
    """Raise InvalidValue for options of a group that does not exist, or that has no such options."""
    groups = first_by_group.keys() | {
        group_of(entry) for entry in compared_entries(file) if entry.variant is not None
    }
    for name, options in file.section(GroupsSection).groups.items():
        if name not in groups:
            raise InvalidValue(("groups", name), unknown_name("group", name, sorted(groups)))
        if "kind" in options:
            raise InvalidValue(
                ("groups", name, "kind"), "A group has the kind of its datasets. Leave it out."
            )
        kind = first_by_group[names.base(name)].kind
        if "repositories" in options and kind != "code":
            raise InvalidValue(
                ("groups", name, "repositories"),
                f"`{name}` is {kind}, which has no repositories. Leave it out.",
            )
