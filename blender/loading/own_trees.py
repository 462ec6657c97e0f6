"""The places of a spec's ranks: the levels of its mesh, or a tree of your own by the name of its function."""

from __future__ import annotations

from functools import lru_cache

from blender.errors import InvalidRequest
from blender.loading.spec import LoadingSpec
from blender.loading.tree import LEVELS, ClientPlaceTree
from blender.named_function import named_function
from blender.spec.mesh import Mesh
from factory.errors import FactoryError, first_line


def tree_of(spec: LoadingSpec) -> ClientPlaceTree:
    """The places of the ranks of a spec; raises InvalidRequest for a function that gives none."""
    if not spec.tree:
        return ClientPlaceTree(spec.mesh)
    tree = _made(spec.tree, spec.mesh)
    if not isinstance(tree, ClientPlaceTree) or tree.mesh != spec.mesh:
        of_mesh = getattr(tree, "mesh", None)
        raise InvalidRequest(
            f"The tree `{spec.tree}` is a {type(tree).__name__} of mesh {of_mesh}, and the spec has mesh "
            f"{spec.mesh}. Return a `ClientPlaceTree` of the mesh that the function is given."
        )
    tree.require_whole_samples()
    return tree


@lru_cache(maxsize=16)
def encoder_tree(name: str, mesh: Mesh) -> ClientPlaceTree:
    """The places of the ranks of `mesh` as an encoder has them, by the function of this name; may be empty.

    Raises InvalidRequest for a function that gives none of as many ranks.
    """
    if not name:
        return ClientPlaceTree(mesh)
    tree = _made(name, mesh)
    ranks = tree.mesh.ranks if isinstance(tree, ClientPlaceTree) else 0
    if ranks != mesh.ranks:
        raise InvalidRequest(
            f"The tree `{name}` of the encoder is a {type(tree).__name__} of {ranks:,} ranks, and the mesh "
            f"has {mesh.ranks:,}. Return a `ClientPlaceTree` of all of them."
        )
    return tree


def _made(name: str, mesh: Mesh) -> ClientPlaceTree:
    """The tree that a function makes of a mesh, with the nodes of each level."""
    function = named_function(name, "tree", "a mesh")
    try:
        tree: ClientPlaceTree = function(mesh)
        for level in LEVELS:
            tree.nodes(level)
    except FactoryError:
        raise
    except Exception as error:
        raise InvalidRequest(
            f"The tree `{name}` failed on mesh {mesh} ({type(error).__name__}: {first_line(error)}). Correct "
            "its function: it takes a mesh and returns a `ClientPlaceTree`."
        ) from error
    return tree
