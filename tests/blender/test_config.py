"""The definition of a blend and its id."""

from __future__ import annotations

import pytest

from blender.config import BlendConfig, BlendSource, blend_config, blend_source, pieces, updated
from blender.errors import InvalidBlend


def source(table: str = "packed.code", **fields: object) -> BlendSource:
    return blend_source(**{"table": table, "weight": 2, "content": "c0de-40", **fields})


GOLDEN_ID = "1930f04630d02ac524b21a8563723055"


def test_the_golden_id_never_changes() -> None:
    """Ids are on record in trainers' logs: what is hashed is law."""
    config = blend_config(
        [source(), source("packed.prose", weight=1, shuffle="row", oversample=True)], seed=7
    )
    assert config.canonical_json() == (
        b'{"format":1,"seed":7,"sources":[{"content":"c0de-40","table":"packed.code","weight":2},'
        b'{"content":"c0de-40","oversample":true,"shuffle":"row","table":"packed.prose","weight":1}]}'
    )
    assert config.id == GOLDEN_ID


@pytest.mark.parametrize(
    "change",
    [
        {"weight": 3},
        {"content": "beef-40"},
        {"oversample": True},
        {"shuffle": "row"},
        {"shuffle": "page", "page_rows": 8},
        {"shuffle": "page_window", "page_rows": 8, "window_pages": 2},
        {"columns": ("tokens", "chunk")},
        {"name": "other"},
        {"table": "packed.prose"},
    ],
)
def test_whatever_decides_a_row_is_in_the_id(change: dict[str, object]) -> None:
    assert blend_config([source(**change)]).id != blend_config([source()]).id


def test_snapshot_ids_are_not_in_the_id() -> None:
    assert blend_config([source(snapshot=5)]).id == blend_config([source(tag="x")]).id


def test_a_stored_config_is_the_one_that_was_stored() -> None:
    config = blend_config([source(name="a"), source(columns=("n_tokens",))], seed=2**64 - 1)
    assert BlendConfig.from_json(config.canonical_json()) == config


def test_another_format_is_refused_by_name() -> None:
    with pytest.raises(InvalidBlend, match="format 2"):
        BlendConfig.from_json(b'{"format":2,"sources":[]}')


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"weight": -1}, "`weight` is -1"),
        ({"shuffle": "pages"}, "`shuffle` is 'pages'"),
        ({"shuffle": "page"}, "Shuffle `page` needs `page_rows`, at least 1"),
        ({"shuffle": "page_window", "page_rows": 4}, "`page_window` needs `window_pages`"),
        ({"shuffle": "row", "page_rows": 4}, "`row` takes no `page_rows`. Leave it out"),
        ({"shuffle": "page", "page_rows": 4, "window_pages": 2}, "`page` takes no `window_pages`"),
        ({"shuffle": "page", "page_rows": -4}, "`page_rows` is -4"),
        ({"columns": ()}, "Name each column once"),
        ({"columns": ("tokens", "tokens")}, "Name each column once"),
        ({"columns": ("ordinal",)}, "`ordinal` is one Blender adds itself"),
        ({"snapshot": 1, "tag": "x"}, "names snapshot and tag"),
    ],
)
def test_a_wrong_source_is_refused_with_a_sentence(fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidBlend, match=sentence):
        source(**fields)


@pytest.mark.parametrize(
    "sources, sentence",
    [
        ([], "sum to 0 rows"),
        ([source(weight=0)], "sum to 0 rows"),
        ([source(weight=1 << 20), source("packed.prose")], "at most 1,048,576"),
        ([source(), source()], "Two sources are called `packed.code`"),
    ],
)
def test_a_wrong_blend_is_refused_with_a_sentence(sources: list[BlendSource], sentence: str) -> None:
    with pytest.raises(InvalidBlend, match=sentence):
        blend_config(sources)


def test_an_update_keeps_what_it_does_not_name_and_adds_at_the_end() -> None:
    parent = blend_config([source(name="a"), source(name="b")], seed=3)
    child = updated(parent, 100, {"a": 5}, [source(name="c", weight=1)])
    assert [(one.name, one.weight) for one in child.sources] == [("a", 5), ("b", 2), ("c", 1)]
    assert (child.parent, child.offset, child.seed) == (parent.id, 100, 3)


def test_an_update_of_an_unknown_source_names_those_there_are() -> None:
    with pytest.raises(InvalidBlend, match=r"no source `x`\. Its sources: a, b"):
        updated(blend_config([source(name="a"), source(name="b")]), 1, {"x": 1})


def test_an_update_replaces_what_was_planned_from_its_offset_on() -> None:
    first = blend_config([source(name="a")])
    second = updated(first, 100, {"a": 3})
    third = updated(second, 50, {}, [source(name="b", weight=4)])
    planned, starts = pieces([first, second, third])
    assert starts == [0, 50]
    assert [piece.weights.tolist() for piece in planned] == [[2, 0], [3, 4]]
