"""A loading plan assigns the rows of a step to ranks and microbatches before a byte of them is read.

Blender names the rows of any step, so a plan is a pure function of a spec and an offset, the same in every
process (MegaScale-Data, sections 3 and 4).

    from blender.loading import Backbone, LoadingSpec, Mesh, open_planner

    spec = LoadingSpec(blend=blend, mesh=Mesh(dp=8), model=Backbone(hidden=4096, layers=32), microbatches=4)
    plan = open_planner(spec).plan(1_000)
    plan.figures["microbatch"].after            # 1.02: time of the slowest rank over equal ranks
    plan.rows_of(bucket=0, bin=3)               # array([17, 40]): rows of the step, in order

A bucket holds the rows of one node of the mesh in a step, and a bin is one of its microbatches. A trainer
reads its part of planned steps, from constructors or in its own process:

    loading = LoadingClient("10.0.0.5:50052").open()        # or open_loading(spec)
    for step in BlendLoader(LoadingDataset(loading)):
        for microbatch in step["microbatches"]: ...
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blender.loading.balance import register_balancer as register_balancer
    from blender.loading.client import LoadingClient as LoadingClient
    from blender.loading.columns import StepColumns as StepColumns
    from blender.loading.costs import Backbone as Backbone
    from blender.loading.costs import Encoder as Encoder
    from blender.loading.costs import tokens as tokens
    from blender.loading.durable import PlannedProduction as PlannedProduction
    from blender.loading.durable import planned_step as planned_step
    from blender.loading.durable_torch import planned_tensors as planned_tensors
    from blender.loading.embedded import open_loading as open_loading
    from blender.loading.graph import DGraph as DGraph
    from blender.loading.image_graph import ImageGraph as ImageGraph
    from blender.loading.image_input import ImageInput as ImageInput
    from blender.loading.pictures.rules import PictureRules as PictureRules
    from blender.loading.pictures.transforms import PictureTransform as PictureTransform
    from blender.loading.plan import Plan as Plan
    from blender.loading.planner import Planner as Planner
    from blender.loading.planner import open_planner as open_planner
    from blender.loading.raw_plans import raw_plan as raw_plan
    from blender.loading.spec import LoadingSpec as LoadingSpec
    from blender.loading.step import LoadedStep as LoadedStep
    from blender.loading.torch import LoadingDataset as LoadingDataset
    from blender.loading.torch import pixels as pixels
    from blender.loading.torch import require_same_plan as require_same_plan
    from blender.loading.tree import ClientPlaceTree as ClientPlaceTree
    from blender.spec.mesh import Mesh as Mesh
else:
    from blender.exports import exports

    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "LoadingSpec": "blender.loading.spec",
            "Mesh": "blender.spec.mesh",
            "ClientPlaceTree": "blender.loading.tree",
            "Backbone": "blender.loading.costs",
            "Encoder": "blender.loading.costs",
            "tokens": "blender.loading.costs",
            "DGraph": "blender.loading.graph",
            "ImageGraph": "blender.loading.image_graph",
            "ImageInput": "blender.loading.image_input",
            "register_balancer": "blender.loading.balance",
            "StepColumns": "blender.loading.columns",
            "Plan": "blender.loading.plan",
            "Planner": "blender.loading.planner",
            "open_planner": "blender.loading.planner",
            "raw_plan": "blender.loading.raw_plans",
            "open_loading": "blender.loading.embedded",
            "LoadingClient": "blender.loading.client",
            "LoadedStep": "blender.loading.step",
            "PlannedProduction": "blender.loading.durable",
            "planned_step": "blender.loading.durable",
            "planned_tensors": "blender.loading.durable_torch",
            "LoadingDataset": "blender.loading.torch",
            "pixels": "blender.loading.torch",
            "require_same_plan": "blender.loading.torch",
            "PictureRules": "blender.loading.pictures.rules",
            "PictureTransform": "blender.loading.pictures.transforms",
        },
    )
