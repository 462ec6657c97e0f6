"""The lineage of a table, stored in the properties of its snapshots."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

_PREFIX = "factory."
_PLAIN_CHARACTERS = 512  # of values; more are compressed, mostly to a fifth


@dataclass(frozen=True)
class Lineage:
    """The origin and content of a published snapshot.

    `upstream` maps `namespace.table` to the snapshot id that was read; `content` is the table's content
    fingerprint; `config` is the hash of the asset's configuration, and `values` are its values as text
    (`factory.orchestration.table.configuration`). `partitions` maps each replaced partition
    to the fingerprint of its rows; it is empty if the snapshot replaced the whole table or appended rows.
    `inputs` maps each partition that a source read, or "" for the whole table, to the state of its files, and
    `listings` to their listing as text (`factory.ingest.state`). `code` has the parts of the code as text
    (`factory.orchestration.table.code_parts`).
    """

    asset: str
    run_id: str
    code_version: str
    config: str = ""
    upstream: dict[str, int] = field(default_factory=dict)
    content: str = ""
    partitions: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    listings: dict[str, str] = field(default_factory=dict)
    code: str = ""

    def to_properties(self) -> dict[str, str]:
        """Return the snapshot properties, `factory.asset` and so on."""
        return {
            f"{_PREFIX}asset": self.asset,
            f"{_PREFIX}run-id": self.run_id,
            f"{_PREFIX}code-version": self.code_version,
            f"{_PREFIX}config": self.config,
            f"{_PREFIX}partition": json.dumps(self.partitions, sort_keys=True) if self.partitions else "",
            f"{_PREFIX}upstream": json.dumps(self.upstream, sort_keys=True),
            f"{_PREFIX}content": self.content,
            f"{_PREFIX}inputs": json.dumps(self.inputs, sort_keys=True) if self.inputs else "",
            f"{_PREFIX}values": compact_text(self.values) if self.values else "",
            f"{_PREFIX}listings": json.dumps(self.listings, sort_keys=True) if self.listings else "",
            f"{_PREFIX}code": self.code,
        }

    def with_content(self, content: str, partitions: Mapping[str, str] | None = None) -> Lineage:
        """Return the lineage with the content of the table and of its replaced partitions."""
        return replace(self, content=content, partitions=dict(partitions or {}))

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Lineage:
        """Parse the result of `to_properties`; missing properties are empty."""

        def value(name: str) -> str:
            return properties.get(_PREFIX + name, "")

        return cls(
            asset=value("asset"),
            run_id=value("run-id"),
            code_version=value("code-version"),
            config=value("config"),
            upstream=json.loads(value("upstream") or "{}"),
            content=value("content"),
            partitions=json.loads(value("partition") or "{}"),
            inputs=json.loads(value("inputs") or "{}"),
            values=_values_of(value("values")),
            listings=json.loads(value("listings") or "{}"),
            code=value("code"),
        )


def compact_text(values: Mapping[str, str]) -> str:
    """Return values as text: JSON, compressed if there are many, because each snapshot repeats them."""
    text = json.dumps(values, sort_keys=True)
    if len(text) <= _PLAIN_CHARACTERS:
        return text
    return base64.b85encode(zlib.compress(text.encode(), level=9)).decode()


def _values_of(text: str) -> dict[str, str]:
    if text and not text.startswith("{"):
        text = zlib.decompress(base64.b85decode(text)).decode()
    return dict(json.loads(text or "{}"))
