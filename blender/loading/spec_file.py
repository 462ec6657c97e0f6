"""The fields of a loading spec that a command line takes from a file: a vision encoder, and pictures.

    images: {patch: 14, merge: 2, most_patches: 4096}
    encoder: {hidden: 1664, layers: 48}
    encoder_level: interleaved
    pictures: {on_failure: gray, transforms: [{name: flip}]}
    row_tokens: 8192

All other fields of a spec are options of the command.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from blender.errors import InvalidRequest
from blender.loading.spec import LoadingSpec
from factory.errors import first_line

FIELDS = (
    *("images", "encoder", "encoder_level", "encoder_tree", "pictures", "row_tokens"),
    *("loader_do_plan", "constructor_do_plan"),
)


def fields_of_file(path: str | None) -> dict[str, Any]:
    """The fields in a YAML file, none without a file; raises InvalidRequest for a file of other things."""
    if path is None:
        return {}
    try:
        fields = yaml.safe_load(Path(path).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        cause = getattr(error, "strerror", None) or first_line(error)
        raise InvalidRequest(
            f"The file of the spec, `{path}`, cannot be read ({cause}). Name one."
        ) from error
    except yaml.YAMLError as error:
        raise InvalidRequest(f"`{path}` is not YAML ({first_line(error)}). Correct it.") from error
    if not isinstance(fields, dict):
        raise InvalidRequest(
            f"`{path}` holds a {type(fields).__name__}, and a spec has fields. Write `field: value`."
        )
    for field in fields:
        if field in FIELDS:
            continue
        if field in LoadingSpec.model_fields:
            raise InvalidRequest(
                f"`{path}` has the field `{field}`, which is an option of the command. Give it there."
            )
        raise InvalidRequest(f"`{path}` has the unknown field `{field}`. Fields: {', '.join(FIELDS)}.")
    return fields
