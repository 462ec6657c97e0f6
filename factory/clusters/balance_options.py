"""The options of `balance` in a round: the categories, the target and the size.

balance: {over: [cell, length], target: uniform, size: 0.5}
balance: {over: metadata.topic, target: {temperature: 0.5}, size: 200000}
balance: {over: source, target: {shares: {books: 0.3, forum: 0.1}}, size: 0.4}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from factory.errors import ConfigurationError
from factory.frozen_model import FrozenModel, WordList
from factory.suggestions import quoted, unknown_name

CLUSTER_FIELDS = ("cell", "cluster")
COLUMNS = (
    *("source", "media_type", "language", "repository", "path"),
    *("revision", "license", "fork_of", "stars", "partition"),
)
LENGTH, METADATA, FACTS = "length", "metadata.", "facts."
_ROUNDING = 1e-9  # by which shares that add up to one may miss it


@dataclass(frozen=True)
class Temperature:
    """Target by the numbers of documents to the power of `temperature`: 0 is uniform, 1 changes nothing."""

    temperature: float

    def __post_init__(self) -> None:
        if not (_is_number(self.temperature) and 0 <= self.temperature <= 1):
            raise ValueError(
                f"A temperature of {self.temperature} is out of range. Give one from 0, which is uniform, to "
                "1, which keeps the distribution."
            )


@dataclass(frozen=True)
class NamedShares:
    """Target by the share of each category; the other categories divide the rest as they are."""

    shares: Mapping[str, float]

    def __post_init__(self) -> None:
        if not isinstance(self.shares, Mapping) or not self.shares:
            raise ValueError("`shares` names no category. Write `category: share`, such as `books: 0.3`.")
        for category, share in self.shares.items():
            if not isinstance(category, str):
                raise ValueError(
                    f"YAML reads the category {category!r} as {type(category).__name__}, which is not text. "
                    "Put it in quotes."
                )
            if not (_is_number(share) and share >= 0):
                raise ValueError(
                    f"The share of `{category}` is {share!r}. Give a number from 0 to 1, such as 0.3."
                )
        if (total := sum(self.shares.values())) > 1 + _ROUNDING:
            raise ValueError(f"The shares add up to {total:.10g}. Lower them to a sum of at most 1.")


Target = Literal["uniform"] | Temperature | NamedShares


def parse_target(plain: Any) -> Target:
    """Return the target that a plain value means; raises ValueError for another value."""
    match plain:
        case "uniform" | Temperature() | NamedShares():
            return plain
        case {"temperature": temperature, **others} if not others:
            return Temperature(temperature)
        case {"shares": shares, **others} if not others:
            return NamedShares(shares)
    raise ValueError(
        f"The target is {plain!r}. Write `uniform`, `{{temperature: 0.5}}` or `{{shares: {{books: 0.3}}}}`."
    )


def _size(plain: Any) -> int | float:
    if not (_is_number(plain) and plain > 0):
        raise ValueError(
            f"The size is {plain!r}. Give a share of the documents up to 1, or a number of documents."
        )
    if plain > 1 and not float(plain).is_integer():
        raise ValueError(f"The size is {plain:g}, but documents are whole. Give a share up to 1 or a number.")
    return int(plain) if plain > 1 else float(plain)


def _fields(plain: Any) -> Any:
    words = [plain] if isinstance(plain, str) else plain
    if not words or not isinstance(words, list | tuple):
        raise ValueError("`over` names no field. Name one or several, such as `[cell, length]`.")
    for word in words:
        if words.count(word) > 1:
            raise ValueError(f"`over` names `{word}` twice. Name it once.")
        if word in (METADATA, FACTS):
            raise ValueError(f"`{word}` lacks a name. Write `{word}name`.")
    return words


class BalanceOptions(FrozenModel):
    """How a round balances its documents."""

    over: Annotated[WordList, BeforeValidator(_fields)] = Field(
        description="the field with the categories, or several for their combinations"
    )
    target: Annotated[Target, BeforeValidator(parse_target)] = Field(
        default="uniform",
        description="`uniform`, a `temperature` from 0 (uniform) to 1 (no change), or `shares` by category",
    )
    size: Annotated[int | float, BeforeValidator(_size)] = Field(
        description="documents that stay: a share up to 1, or their number"
    )


def table_of(field: str) -> str | None:
    """Return the role of the table that holds a field: `clusters`, `facts`, a classifier's name, or None.

    None means the table of the documents.
    """
    if field in CLUSTER_FIELDS:
        return "clusters"
    if field.startswith(FACTS):
        return "facts"
    return None if field == LENGTH or field in COLUMNS or field.startswith(METADATA) else field


def require_fields(over: Iterable[str], tables: Iterable[str]) -> None:
    """Raise ConfigurationError for a field that neither the documents nor one of `tables` has.

    `tables` are the roles at hand: `clusters` after a round with `clusters`, `facts`, classifiers by name.
    """
    roles = set(tables)
    for field in over:
        if (role := table_of(field)) is None or role in roles:
            continue
        if role == "clusters":
            raise ConfigurationError(
                f"`balance` is over `{field}`, but no earlier round has `clusters`. Add such a round."
            )
        if role == "facts":
            raise ConfigurationError(
                f"`balance` is over `{field}`, but the dataset has no `facts`. Declare them."
            )
        classifiers = sorted(roles - {"clusters", "facts"})
        words = [*CLUSTER_FIELDS, LENGTH, *COLUMNS, *classifiers]
        prefixes = quoted((f"{METADATA}<key>", f"{FACTS}<name>"), " and ")
        raise ConfigurationError(
            f"{unknown_name('field of `balance`:', field, words)} {prefixes} are fields too."
        )


def _is_number(plain: Any) -> bool:
    return isinstance(plain, int | float) and not isinstance(plain, bool)
