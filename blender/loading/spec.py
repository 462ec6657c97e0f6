"""All that a loading plan depends on but the offset, under an id that is its hash.

    spec = LoadingSpec(blend="f0c6...", mesh=Mesh(dp=8), model=Backbone(hidden=4096, layers=32))
    spec.id                                     # 32 hexadecimal digits
    LoadingSpec.from_json(spec.canonical_json()) == spec

Two processes with one spec make the same plans. A run that changes its mesh or model continues under another
spec.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from blender.chunks import Chunking
from blender.errors import InvalidRequest
from blender.loading.bin_order import Barrier
from blender.loading.costs import Backbone, Encoder
from blender.loading.image_input import ImageInput
from blender.loading.pictures.rules import PictureRules
from blender.loading.placement import MOST_BINS, Grid, LevelName
from blender.loading.tree import Broadcast
from blender.records import Schedule
from blender.spec.mesh import Mesh
from blender.spec.validated import sentences
from blender.spec.whole_number import MOST
from blender.trainer.reader import Blender
from factory.errors import first_line

FORMAT = 2  # of a plan's rows; another way to balance the same spec needs another format


class LoadingSpec(BaseModel):
    """A blend, the mesh that trains on it, and how its rows are balanced. Raises InvalidRequest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    blend: str
    mesh: Mesh
    model: Backbone
    """The model, whose costs decide a plan."""
    strategy: str = "llm"
    """A strategy of `blender.loading.strategies`, or one of your own as `module:function`."""
    tree: str = ""
    """A function of the mesh as `module:function`, which gives the `ClientPlaceTree` of its ranks; empty for
    the levels of the mesh."""
    microbatches: int = Field(1, ge=1, le=MOST_BINS)
    """Microbatches of a bucket in a step."""
    limit: int | None = Field(None, ge=1, le=MOST)
    """The most tokens of a microbatch; None for any number."""
    equal_counts: bool = True
    """Whether all microbatches hold the same number of rows, as tensors of one shape do."""
    barrier: Barrier | None = None
    """Where ranks wait for each other; None for `pipeline` if the mesh has stages, else `microbatch`."""
    group_size: int | None = Field(None, ge=1, le=MOST)
    """Neighboring buckets that are balanced as one before rows are dealt to them; None for all at once."""
    chunking: Chunking = "row"
    """What context parallel ranks divide: whole rows, or each document."""
    encoder: Encoder | None = None
    """The vision encoder; its costs decide which rank encodes a picture. None for a model of text alone."""
    encoder_level: LevelName = "intra"
    """Where strategy `vlm` encodes a picture: `intra` in the microbatch of its row, `inter` and `interleaved`
    in any microbatch of the step, for a trainer that encodes its pictures first."""
    encoder_tree: str = ""
    """A function of the mesh as `module:function`, which gives the places of the ranks as the encoder has
    them, in any mesh of as many ranks; empty for a node a rank."""
    images: ImageInput | None = None
    """How the model takes pictures; None where they are not read."""
    pictures: PictureRules = PictureRules()
    """How pictures become patches: transforms, and the rule for pictures that do not decode."""
    row_tokens: int | None = Field(None, ge=1, le=MOST)
    """The tokens of a row, into which the samples of a microbatch are joined; None for a row a sample."""
    loader_do_plan: str = ""
    """A program of yours that source loaders run on the rows they read, as `module:function`."""
    constructor_do_plan: str = ""
    """A program of yours that constructors run on the rows of a bucket, as `module:function`."""
    broadcast: tuple[str, ...] = ("tp",)
    """Axes on which the first rank reads for the others: `tp`, or `tp/4` for groups of four."""

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise InvalidRequest(sentences(error, "spec")) from error
        if self.strategy == "vlm" and (self.encoder is None or self.images is None):
            raise InvalidRequest(
                "Strategy `vlm` balances pictures over an encoder, and the spec has no "
                f"`{'images' if self.encoder else 'encoder'}`. Give both, or use `llm`."
            )
        self.broadcasts  # noqa: B018 - refuses others
        Grid(self.mesh.dp, self.microbatches, stages=self.mesh.pp)  # refuses what cannot be planned

    @property
    def broadcasts(self) -> tuple[Broadcast, ...]:
        """`broadcast`, parsed."""
        return tuple(Broadcast.parse(dim) for dim in self.broadcast)

    @property
    def waits_at(self) -> Barrier:
        """The barrier of the plan."""
        return self.barrier or ("pipeline" if self.mesh.pp > 1 else "microbatch")

    @property
    def balancing(self) -> dict[str, Any]:
        """What `DGraph.balance` takes from a spec."""
        return {
            "bins": self.microbatches,
            "barrier": self.waits_at,
            "equal_counts": self.equal_counts,
            "limit": self.limit,
        }

    @property
    def id(self) -> str:
        """32 hexadecimal digits."""
        return hashlib.blake2b(self.canonical_json(), digest_size=16).hexdigest()

    def canonical_json(self) -> bytes:
        """The hashed form: sorted, without fields at their default, so that a new field keeps old ids."""
        fields = {"format": FORMAT, **self.model_dump(mode="json", exclude_defaults=True)}
        return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, content: bytes) -> Self:
        """The inverse of `canonical_json`; raises InvalidRequest for other data and for another format."""
        try:
            fields = json.loads(content)
        except ValueError as error:  # also bytes that are not UTF-8
            raise InvalidRequest(
                f"The JSON of the spec is damaged ({first_line(error)}). Write it by `canonical_json`."
            ) from error
        if not isinstance(fields, dict):
            raise InvalidRequest(
                f"The JSON of a spec is an object, and this is a {type(fields).__name__}. Write it by "
                "`canonical_json`."
            )
        written = fields.pop("format", None)
        if type(written) is not int or written != FORMAT:
            raise InvalidRequest(
                f"This spec has format {written!r}, and this loader plans format {FORMAT}. "
                "Load with the version that made it."
            )
        return cls(**fields)

    def scheduled(self, blender: Blender, offset: int, schedule: Schedule) -> Self:
        """The spec with an update of its blend, which `blender` stores: `schedule` from step `offset` on.

        A plan reads no clock and writes nothing, so a new mixture is a new blend. Raises InvalidBlend for a
        schedule that names a source the blend lacks.
        """
        updated = blender.update(self.blend, offset, schedule=schedule)
        return self.model_copy(update={"blend": updated.id})
