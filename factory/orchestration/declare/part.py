"""One stage's part of a datasets file: its fields, its checks, its links and its assets.

A datasets file is the sum of its parts (`factory.orchestration.declare.registry`). A part knows its own stage
alone: it sees the file as `Declared`, its datasets and variants as `Entry`, and the chains that the parts
before it have made.

Its fields and checks need neither Dagster nor a chain, so it imports these where it builds assets and links:
a file with a mistake is refused before imports that take seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from factory.frozen_model import FrozenModel
from factory.orchestration.declare.ingest_dataset import Dataset
from factory.orchestration.declare.located_yaml import LocatedYaml, YamlPath

if TYPE_CHECKING:
    import dagster as dg

    from factory.orchestration.chain.dedup.group import DedupGroup
    from factory.orchestration.chain.link import Chain, Link

F = TypeVar("F", bound=FrozenModel)


@dataclass(frozen=True)
class Entry:
    """A dataset or one of its variants: the name of its tables, its place in the file, its declared values.

    `dataset` is the dataset, also for a variant. The values have the fields of all parts, and a part asks for
    the class of the fields that it reads. A variant that `shares_comparisons` has the filters and comparisons
    of its dataset, and only decides in another way which similar documents stay.
    """

    name: str
    place: YamlPath
    values: FrozenModel
    dataset: Dataset
    variant: str | None = None
    shares_comparisons: bool = False

    @property
    def kind(self) -> Literal["prose", "code"]:
        """Whether its documents are prose or code."""
        return self.dataset.kind

    @property
    def base(self) -> str:
        """The name of its dataset."""
        return self.dataset.name

    def fields(self, part: type[F]) -> F:
        """Return the fields of a part as the dataset or the variant has them."""
        return _fields(self.values, part)

    def dataset_fields(self, part: type[F]) -> F:
        """Return the fields of a part as the dataset has them, also for a variant."""
        return _fields(self.dataset, part)

    def inherited_fields(self, part: type[F]) -> F:
        """Return the fields of a part that the variant sets, and the dataset's values of the others."""
        own = self.fields(part)
        changes = {name: getattr(own, name) for name in part.model_fields if name in own.model_fields_set}
        return self.dataset_fields(part).model_copy(update=changes)


@dataclass
class Declared:
    """A datasets file as its parts see it: values with their lines, entries, and what parts made of them.

    `entries` holds each dataset, followed by its variants. Parts extend `chains`, by name of the entry;
    `groups` are the dedup groups, once their part has declared them.
    """

    located: LocatedYaml
    file: FrozenModel
    entries: tuple[Entry, ...]
    chains: dict[str, Chain] = field(default_factory=dict)
    groups: dict[str, DedupGroup] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder of the file, to which paths are relative."""
        return self.located.path.parent

    def section(self, part: type[F]) -> F:
        """Return the fields of a part as the file has them."""
        return _fields(self.file, part)

    @property
    def datasets(self) -> list[Entry]:
        """The entries without variants."""
        return [entry for entry in self.entries if entry.variant is None]

    @property
    def variants(self) -> list[Entry]:
        """The variants of all datasets."""
        return [entry for entry in self.entries if entry.variant is not None]


def _fields(values: FrozenModel, part: type[F]) -> F:
    assert isinstance(values, part)
    return values


class Part:
    """A stage's share of a datasets file; a part overrides the methods that its stage needs.

    `dataset`, `variant` and `file` are models; their fields become fields of every dataset, of every variant
    and of the whole file. A part `compares` if its links read documents of several datasets; a variant that
    `shares_comparisons` has the links of its dataset before this part.
    """

    compares: bool = False

    dataset: type[FrozenModel] = FrozenModel
    variant: type[FrozenModel] = FrozenModel
    file: type[FrozenModel] = FrozenModel

    def check(self, file: Declared) -> None:
        """Raise InvalidValue for entries that do not fit together."""

    def assets(self, file: Declared) -> Iterable[dg.AssetsDefinition]:  # noqa: ARG002
        """Return the assets of no single dataset, such as dedup groups; raises InvalidValue."""
        return ()

    def links(self, entry: Entry, file: Declared) -> Sequence[Link]:  # noqa: ARG002
        """Return the links that extend the chain of a dataset or variant; raises InvalidValue."""
        return ()

    def comment(self, kind: str) -> Iterator[str]:  # noqa: ARG002
        """Yield the commented lines that `factory init` writes below a dataset of a kind."""
        yield from ()
