"""The parts of a datasets file, in the order of their links; a stage adds one line."""

from __future__ import annotations

from factory.orchestration.declare.blend import BlendPart
from factory.orchestration.declare.clusters import BalanceStep, ClusterStep, DistributionPart
from factory.orchestration.declare.dedup import DedupPart
from factory.orchestration.declare.depsort import DepsortPart
from factory.orchestration.declare.filters import FiltersPart
from factory.orchestration.declare.images import ImagesPart
from factory.orchestration.declare.ingest import Ingest
from factory.orchestration.declare.ingest_facts import FactsPart
from factory.orchestration.declare.ingest_partitions import PartitionsPart
from factory.orchestration.declare.models import ModelsPart
from factory.orchestration.declare.models_tokenizers import TokenizersPart
from factory.orchestration.declare.packing import PackingPart
from factory.orchestration.declare.part import Part
from factory.orchestration.declare.synthesis import SynthesisPart

PARTS: list[Part] = [
    Ingest(),
    SynthesisPart(),
    PartitionsPart(),
    FactsPart(),
    ImagesPart(),
    ModelsPart(),
    FiltersPart([ClusterStep(), BalanceStep()]),
    DedupPart(),
    DistributionPart(),
    DepsortPart(),
    TokenizersPart(),
    PackingPart(),
    BlendPart(),
]
