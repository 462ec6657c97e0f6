"""Follow a durable batch to its documents, and a step of a blend to the namespaces that hold it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from blender.catalog.namespaces import RegisteredNamespace, registered_namespaces
from blender.errors import InvalidRequest
from blender.global_batches.batch_description import BatchDescription, describe_batch
from blender.global_batches.follower import Follower
from blender.global_batches.log import names
from blender.global_batches.namespace import open_namespace
from blender.global_batches.store.namespace_store import open_store
from factory.errors import DamagedFile, FactoryError
from factory.explain.steps import StepTrace, trace_step
from factory.explain.trace import DocumentTrace, StoredStep
from factory.settings import Settings

_PATIENCE_S = 10.0  # for a store of a namespace, of which a document's trace is only an addition


@dataclass(frozen=True)
class BatchTrace:
    """A step of a namespace, and the step of the blend that it was made of."""

    batch: BatchDescription
    step: StepTrace


def trace_batch(settings: Settings, uri: str, step: int) -> BatchTrace:
    """A step of a namespace, followed to its documents.

    Raises InvalidRequest for a batch without a blend in its origin, and the errors of `describe_batch` and
    `trace_step`.
    """
    batch = describe_batch(uri, step, settings=settings)
    origin = batch.origin if isinstance(batch.origin, dict) else {}
    blend, offset = origin.get("blend"), origin.get("offset")
    if not isinstance(blend, str) or not isinstance(offset, int):
        raise InvalidRequest(
            f"Step {step:,} of {batch.uri} names no step of a blend: its origin is {batch.origin!r}. Look "
            "there for what its producer read."
        )
    return BatchTrace(batch, trace_step(settings, blend, offset))


def add_stored_steps(settings: Settings, traces: Iterable[DocumentTrace]) -> list[str]:
    """Add to each trace the steps of registered namespaces that hold its document.

    Returns a sentence for each namespace that could not be read.
    """
    served = [trace for trace in _with_variants(traces) if trace.servings]
    blends = {serving.blend for trace in served for serving in trace.servings}
    unread: list[str] = []
    for namespace in registered_namespaces(settings):
        if namespace.blend in blends:
            try:
                _add_steps_of(settings, namespace, served)
            except FactoryError as error:
                unread.append(f"Namespace {namespace.id} is left out: {error}")
    return unread


def _add_steps_of(
    settings: Settings, registered: RegisteredNamespace, traces: Sequence[DocumentTrace]
) -> None:
    store = open_store(registered.uri, settings, patience_s=_PATIENCE_S)
    namespace = open_namespace(store)
    if namespace.id != registered.id:
        raise DamagedFile(f"{registered.uri} holds another one now. Delete its record if it is gone.")
    follower = Follower(store, namespace.client(), lambda: None)
    follower.poll()
    lanes = namespace.lanes or 1
    wanted = {
        (f"{serving.offset % lanes}", serving.offset // lanes)
        for trace in traces
        for serving in trace.servings
        if serving.blend == registered.blend
    }
    steps: dict[tuple[str, int], int] = {}
    stored_steps = range(follower.first_kept, follower.steps)
    for step in _candidates(namespace.order == "assigned", wanted, lanes, stored_steps):
        lane, _, sequence = names.parts_of_batch(follower.batch(step).name)
        if (lane, sequence) in wanted:
            steps[lane, sequence] = step
    for trace in traces:
        for serving in trace.servings:
            place = f"{serving.offset % lanes}", serving.offset // lanes
            if serving.blend == registered.blend and place in steps:
                trace.stored.append(StoredStep(registered.uri, registered.id, steps[place], serving.offset))


def _candidates(
    is_assigned: bool, wanted: Iterable[tuple[str, int]], lanes: int, stored_steps: range
) -> Iterable[int]:
    """The kept steps that may hold the batches of some lanes: in arrival order any."""
    if not is_assigned:
        return stored_steps
    steps = (int(lane) + lanes * sequence for lane, sequence in wanted)
    return sorted(step for step in steps if step in stored_steps)


def _with_variants(traces: Iterable[DocumentTrace]) -> Iterable[DocumentTrace]:
    for trace in traces:
        yield trace
        yield from _with_variants(trace.variants.values())
