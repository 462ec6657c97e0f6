"""The state of a reader in a checkpoint: its fields, and the errors about anything else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from blender.errors import InvalidRequest


@dataclass(frozen=True)
class StateKind:
    """The states of one kind of source."""

    source: str
    """What the sentences call the source, such as `a blend`."""
    fields: tuple[str, ...]
    earlier: tuple[str, ...] | None = None
    """The fields of states that earlier versions wrote."""

    def require(self, state: object) -> Mapping[str, Any]:
        """`state`, if it has all fields of a version and no other; else raises InvalidRequest about it."""
        if not isinstance(state, Mapping):
            raise self.fault(f"it is of type `{type(state).__name__}`")
        names = [str(name) for name in state]
        if self._has_fields(names):
            return state
        for name, part in state.items():
            if isinstance(part, Mapping) and self._has_fields(map(str, part)):
                raise InvalidRequest(
                    f"This is not the state of a reader of {self.source}, but it holds one as `{name}`. Load "
                    f"that part: `load_state_dict(state[{name!r}])`."
                )
        for other in KINDS:
            if other is not self and other._has_fields(names):
                raise InvalidRequest(
                    f"This is not the state of a reader of {self.source}, but of {other.source}. Open "
                    f"{other.source} with it, or start without it."
                )
        missing = [name for name in self.fields if name not in names]
        if missing:
            raise self.fault(f"it has {_listed(names) or 'nothing'}, and no {_listed(missing)}")
        unknown = [name for name in names if name not in self.fields]
        raise InvalidRequest(
            f"The state has {_listed(unknown)} besides {_listed(self.fields)}, which this version of the "
            "package does not know. Load it with the version that wrote it, or load what `state_dict` "
            "returned and no more."
        )

    def _has_fields(self, names: Iterable[str]) -> bool:
        own = sorted(names)
        return own == sorted(self.fields) or (self.earlier is not None and own == sorted(self.earlier))

    def fault(self, reason: str) -> InvalidRequest:
        """The error about anything but a state."""
        return InvalidRequest(
            f"This is not the state of a reader of {self.source}: {reason}. Load what `state_dict` returned."
        )


BLEND = StateKind("a blend", ("blend", "offset"))
DURABLE_BATCHES = StateKind(
    "durable batches",
    ("namespace", "step", "substep", "dp", "run", "content"),
    earlier=("namespace", "step", "content"),
)
KINDS = (BLEND, DURABLE_BATCHES)


def _listed(names: Iterable[str]) -> str:
    """At most four names, for a sentence."""
    literals = [f"`{name[:40]}`" for name in names]
    return ", ".join(literals[:4]) + (f" and {len(literals) - 4} more" if len(literals) > 4 else "")
