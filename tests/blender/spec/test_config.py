"""The definition of a blend and its id."""

from __future__ import annotations

import pytest

from blender.errors import InvalidBlend
from blender.records import Schedule, Source
from blender.spec.config import BlendConfig, blend_config, updated
from blender.spec.mixture import MAX_OFFSET, WHOLE
from blender.spec.source import wellformed


def source(table: str = "packed.code", **fields: object) -> Source:
    return wellformed(Source(**{"table": table, "weight": 2, "content": "c0de-40", **fields}))


GOLDEN_ID = "1930f04630d02ac524b21a8563723055"


@pytest.mark.invariant("Published hashes never change.")
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


@pytest.mark.invariant(
    "No release changes the rows of a published blend; a new order needs a new format number."
)
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
        ({"columns": ("ordinal",)}, "Blender adds column `ordinal` itself"),
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
def test_a_wrong_blend_is_refused_with_a_sentence(sources: list[Source], sentence: str) -> None:
    with pytest.raises(InvalidBlend, match=sentence):
        blend_config(sources)


def test_an_update_keeps_what_it_does_not_name_and_adds_at_the_end() -> None:
    parent = blend_config([source(name="a"), source(name="b")], seed=3)
    child = updated(parent, 100, {"a": 5}, [source(name="c", weight=1)])
    assert [(source.name, source.weight) for source in child.sources] == [("a", 5), ("b", 2), ("c", 1)]
    assert (child.parent, child.offset, child.seed) == (parent.id, 100, 3)


def test_an_update_of_an_unknown_source_names_those_there_are() -> None:
    with pytest.raises(InvalidBlend, match=r"no source `x`\. Its sources: a, b"):
        updated(blend_config([source(name="a"), source(name="b")]), 1, {"x": 1})


def test_a_schedule_is_in_the_id_and_its_scale_is_not() -> None:
    sources = [source(name="a", weight=0), source(name="b", weight=0)]

    def blend(first: float, second: float, **fields: object) -> BlendConfig:
        options = {"rows_per_step": 8, "kind": "linear", **fields}
        return blend_config(
            sources, 7, Schedule(knots=((0, {"a": 1}), (9, {"a": first, "b": second})), **options)
        )

    same = blend(6, 4)
    assert same.id == blend(0.6, 0.4).id == blend(3, 2).id
    others = [blend(6, 5), blend(6, 4, kind="cosine"), blend(6, 4, rows_per_step=16)]
    assert len({same.id, *(other.id for other in others)}) == 4
    assert BlendConfig.from_json(same.canonical_json()) == same


GOLDEN_SCHEDULE_ID = "2761de260a0eebe38ead1b93c918b768"


def test_the_golden_id_of_a_schedule_never_changes() -> None:
    knots = ((0, {"a": 1, "b": 0}), (100, {"a": 0.5, "b": 0.5}))
    config = blend_config([source(name="a", weight=0), source(name="b", weight=0)], 7, Schedule(8, knots))
    assert config.canonical_json() == (
        b'{"format":1,"schedule":{"kind":"linear","knots":[{"offset":0,"shares":[4294967296,0]},'
        b'{"offset":100,"shares":[2147483648,2147483648]}],"rows_per_step":8},"seed":7,"sources":'
        b'[{"content":"c0de-40","name":"a","table":"packed.code"},'
        b'{"content":"c0de-40","name":"b","table":"packed.code"}]}'
    )
    assert config.id == GOLDEN_SCHEDULE_ID


@pytest.mark.parametrize(
    "asked, sentence",
    [
        (Schedule(8, ((0, {"a": 1}),), "sine"), "Unknown schedule `sine`"),
        (Schedule(8, ()), "linear schedule has 0 knots. Give it at least one"),
        (Schedule(8, ((0, {"a": 1}), (1, {"a": 1})), "constant"), "constant schedule has 2 knots"),
        (Schedule(0, ((0, {"a": 1}),)), "has 0 rows a step"),
        (Schedule((1 << 20) + 1, ((0, {"a": 1}),)), "has 1,048,577 rows a step"),
        (Schedule(8, ((0, {"x": 1}),)), r"knot at step 0 names the unknown source `x`. Sources: a, b"),
        (Schedule(8, ((0, {"a": 1, "b": -0.5}),)), r"knot at step 0 makes no step: A proportion is -0\.5"),
        (Schedule(8, ((3, {"a": 0}),)), "knot at step 3 makes no step: All proportions are zero"),
        (Schedule(8, ((3, {"a": float("nan")}),)), "A proportion is nan"),
        (Schedule(8, ((3, {"a": 1}), (3, {"a": 1}))), "knot at step 3 follows one at 3"),
        (Schedule(8, ((3, {"a": 1}), (2, {"a": 1}))), "knot at step 2 follows one at 3"),
        (Schedule(8, ((-1, {"a": 1}),)), "knot is at step -1"),
        (Schedule(8, ((MAX_OFFSET + 1, {"a": 1}),)), "knot is at step 4,398,046,511,105"),
    ],
)
def test_a_wrong_schedule_is_refused_with_a_sentence(asked: Schedule, sentence: str) -> None:
    with pytest.raises(InvalidBlend, match=sentence):
        blend_config([source(name="a", weight=0), source(name="b", weight=0)], 0, asked)


def test_weights_and_a_schedule_together_are_refused() -> None:
    schedule = Schedule(8, ((0, {"a": 1}),))
    with pytest.raises(InvalidBlend, match="a schedule and weights that sum to 2 rows a step"):
        blend_config([source(name="a")], 0, schedule)
    with pytest.raises(InvalidBlend, match="The update has weights and a schedule"):
        updated(blend_config([source(name="a")]), 5, {"a": 1}, schedule=schedule)


def test_an_update_starts_and_ends_a_schedule() -> None:
    parent = blend_config([source(name="a"), source(name="b")])
    schedule = Schedule(8, ((100, {"a": 1}), (200, {"b": 1, "c": 1})))
    child = updated(parent, 100, {}, [source(name="c", weight=0)], schedule)
    assert [source.weight for source in child.sources] == [0, 0, 0]
    assert child.schedule is not None
    assert child.schedule.knots[1].shares == (0, WHOLE // 2, WHOLE // 2)
    with pytest.raises(
        InvalidBlend, match="first knot is at step 100, and the update holds from step 101 on"
    ):
        updated(parent, 101, {}, [source(name="c", weight=0)], schedule)
    back = updated(child, 300, {"b": 3})
    assert [source.weight for source in back.sources] == [0, 3, 0]
    assert back.schedule is None
    with pytest.raises(InvalidBlend, match="sum to 0 rows a step"):
        updated(child, 300, {})


def test_a_blend_of_a_thousand_sources_is_checked_as_one_of_three() -> None:
    sources = [source(name=f"s{number}", weight=0) for number in range(1000)]
    knots = tuple(
        (step, {f"s{(number * 7) % 1000}": 1 + number for number in range(1000)}) for step in (0, 10)
    )
    config = blend_config(sources, 1, Schedule(1 << 12, knots, "cosine"))
    assert config.piece.n_sources == 1000
    assert BlendConfig.from_json(config.canonical_json()).id == config.id
