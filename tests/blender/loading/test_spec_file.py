"""Fields of a loading spec from a file, and a sentence for each file that has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from blender.errors import InvalidRequest
from blender.loading.costs import Backbone
from blender.loading.spec import LoadingSpec
from blender.loading.spec_file import FIELDS, fields_of_file
from blender.spec.mesh import Mesh

FILE = """
images: {patch: 16, merge: 1, most_patches: 256}
encoder: {hidden: 64, layers: 2}
encoder_level: interleaved
pictures: {on_failure: gray}
row_tokens: 512
"""


def spec_with(path: Path) -> LoadingSpec:
    return LoadingSpec(
        blend="0" * 32, mesh=Mesh(dp=2), model=Backbone(64, 2), strategy="vlm", **fields_of_file(str(path))
    )


def test_a_file_has_the_fields_that_are_no_options(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(FILE)
    spec = spec_with(path)
    assert spec.images is not None
    assert (spec.images.patch, spec.row_tokens, spec.pictures.on_failure) == (16, 512, "gray")
    assert LoadingSpec.from_json(spec.canonical_json()) == spec
    assert set(FIELDS) < set(LoadingSpec.model_fields)
    assert fields_of_file(None) == {}


@pytest.mark.parametrize(
    "content, sentence",
    [
        ("mesh: dp=2", "has the field `mesh`, which is an option of the command. Give it there."),
        ("image: {}", "has the unknown field `image`. Fields: images, encoder"),
        ("- images", "holds a list, and a spec has fields."),
        ("", "holds a NoneType, and a spec has fields."),
        ("images: {", "is not YAML (while parsing a flow"),
        ("images: {patch: 0}", "`images.patch` is 0: input should be greater than or equal to 1"),
        ("images: {}\nencoder: {hidden: many, layers: 2}", "encoder"),
        ("images: {patch: 14, merge: 9, most_patches: 80}", "below the 81 patches of one token"),
    ],
)
def test_a_file_of_other_things_is_refused_in_a_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(content)
    with pytest.raises(InvalidRequest) as refusal:
        spec_with(path)
    assert sentence in str(refusal.value)
