"""The assets of a selection on the command line, and the list of all assets by dataset."""

from __future__ import annotations

import dagster as dg
import pytest

from factory.cli.selection import by_dataset, listed, select, spelled_tables
from factory.errors import ConfigurationError

GRAPH = {
    "raw.web": [],
    "raw.web_rejected": [],
    "raw.books": [],
    "filtered.web_r1": ["raw.web"],
    "filtered.web": ["raw.web", "filtered.web_r1"],
    "filtered.web__long": ["raw.web"],
    "filtered.books": ["raw.books"],
    "dedup.prose_edges": ["filtered.web", "filtered.books"],
    "dedup.prose_decisions": ["dedup.prose_edges"],
    "dedup.prose_sweep": ["dedup.prose_edges"],
    "deduplicated.web": ["raw.web", "dedup.prose_decisions"],
    "models.tokenizer": ["deduplicated.web"],
    "packed.web": ["deduplicated.web", "models.tokenizer"],
}


def key(text: str) -> dg.AssetKey:
    return dg.AssetKey(text)


@pytest.fixture(scope="module")
def defined() -> dg.Definitions:
    assets = []
    for number, (name, upstream) in enumerate(GRAPH.items()):
        spec = dg.AssetSpec(key(name), deps=[key(of) for of in upstream])
        assets.append(dg.multi_asset(name=f"asset_{number}", specs=[spec])(lambda: None))
    return dg.Definitions(assets=assets)


def selected(defined: dg.Definitions, selection: str, *published: str) -> set[str]:
    found = select(defined, selection, [key(it) for it in published] if published else None)
    return {it.to_user_string() for it in found}


@pytest.mark.parametrize(
    "selection, spelled",
    [
        ("*", []),
        ("web", []),
        ("dedup.prose_sweep", ["dedup.prose_sweep"]),
        ("dedup/prose_sweep", ["dedup.prose_sweep"]),
        ('key:"dedup.prose_edges" or key:"dedup.prose_sweep"', ["dedup.prose_edges", "dedup.prose_sweep"]),
        ("dedup.prose_edges*", ["dedup.prose_edges"]),
        ('key:"dedup.*"', []),
    ],
)
def test_the_tables_that_a_selection_spells_out_are_told_from_the_rest(
    defined: dg.Definitions, selection: str, spelled: list[str]
) -> None:
    keys = select(defined, selection)
    assert list(map(str, spelled_tables(selection, keys))) == spelled


def test_a_dataset_selects_the_way_from_its_source_to_its_sequences(defined: dg.Definitions) -> None:
    of_web = {
        "raw.web",
        "raw.web_rejected",
        "filtered.web_r1",
        "filtered.web",
        "dedup.prose_edges",
        "dedup.prose_decisions",
        "deduplicated.web",
        "models.tokenizer",
        "packed.web",
    }
    assert selected(defined, "web") == of_web
    assert selected(defined, "web__long") == {"raw.web", "filtered.web__long"}
    # The tables of other datasets that it needs come along until they exist.
    assert selected(defined, "web", "raw.web") == of_web | {"raw.books", "filtered.books"}
    assert selected(defined, "web", "raw.books", "filtered.books") == of_web


def test_a_wildcard_selects_a_namespace_or_a_name(defined: dg.Definitions) -> None:
    for raw in ("raw.*", "raw/*", 'key:"raw.*"', 'key:"raw/*"'):
        assert selected(defined, raw) == {"raw.web", "raw.web_rejected", "raw.books"}
    assert selected(defined, "*.books") == selected(defined, "*/books") == {"raw.books", "filtered.books"}
    assert selected(defined, "dedup.prose_*") == {name for name in GRAPH if name.startswith("dedup.")}
    assert selected(defined, "*.prose_*s") == {"dedup.prose_edges", "dedup.prose_decisions"}
    assert selected(defined, "*ed.books") == {"filtered.books"}
    assert selected(defined, "raw.books*") >= {"raw.books", "packed.web"}  # downstream, as ever
    assert selected(defined, "*filtered.books") == {"raw.books", "filtered.books"}  # upstream


@pytest.mark.parametrize(
    "slash, dot",
    [
        ("raw/web", "raw.web"),
        (" raw/web ", "raw.web"),
        ("raw/web*", "raw.web*"),
        ("*packed/web", "*packed.web"),
        ("+filtered/web+", "+filtered.web+"),
        ('+key:"dedup/*"', '+key:"dedup.*"'),
        ('key:"raw/web" or 1+key:"dedup/*_edges"', 'key:"raw.web" or 1+key:"dedup.*_edges"'),
        ('not (key:"raw/web" or key:"*/books")', 'not (key:"raw.web" or key:"*.books")'),
    ],
)
def test_a_slash_means_the_dot_of_a_table(defined: dg.Definitions, slash: str, dot: str) -> None:
    assert selected(defined, slash) == selected(defined, dot)


def test_the_slash_of_a_group_stays() -> None:
    in_group = dg.AssetSpec(key("dedup.web_bags"), group_name="dedup/web")
    defined = dg.Definitions(assets=[dg.multi_asset(name="bags", specs=[in_group])(lambda: None)])
    assert selected(defined, 'group:"dedup/web"') == {"dedup.web_bags"}


def test_assets_are_grouped_by_dataset_upstream_first(defined: dg.Definitions) -> None:
    assert listed(by_dataset(defined)).splitlines() == [
        "  books: raw.books, filtered.books",
        "  web: raw.web, raw.web_rejected, filtered.web_r1, filtered.web, deduplicated.web, packed.web",
        "  web__long: filtered.web__long",
        "  dedup group prose: dedup.prose_edges, dedup.prose_decisions, dedup.prose_sweep",
        "  models: models.tokenizer",
    ]


def test_an_unknown_name_lists_the_assets_by_dataset(defined: dg.Definitions) -> None:
    with pytest.raises(ConfigurationError) as caught:
        select(defined, "xyzzy")
    assert str(caught.value).startswith("The selection `xyzzy` names no asset. Name a dataset or an asset:")
    assert "\n  books: raw.books, filtered.books\n" in str(caught.value)


@pytest.mark.parametrize(
    "given, meant",
    [
        ("boks", "books"),
        ("raw.wep", "raw.web"),
        ("raw/wep", "raw.web"),
        ("raw/webs*", "raw.web"),
        ("dedup.code_*", "dedup.prose_sweep"),
    ],
)
def test_a_misspelled_name_is_answered_with_the_nearest(
    defined: dg.Definitions, given: str, meant: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"Did you mean `{meant}`"):
        select(defined, given)


def test_an_asset_that_no_run_makes_is_not_selected(defined: dg.Definitions) -> None:
    blend = dg.AssetSpec("blend", deps=[key("packed.web")])
    with_blend = dg.Definitions(assets=[*(defined.assets or ()), blend])
    assert selected(with_blend, "packed.web*") == {"packed.web"}
    assert selected(with_blend, "*") == set(GRAPH)


@pytest.mark.parametrize(
    "given, meant",
    [
        ("raw/web* or raw/books*", 'key:"raw.web"+ or key:"raw.books"+'),
        ("*raw/web and packed/web", '+key:"raw.web" and key:"packed.web"'),
        ("raw/web, raw/books", 'key:"raw.web" or key:"raw.books"'),
        ("raw/web* raw.books+", 'key:"raw.web"+ or key:"raw.books"+1'),
        ("((", 'key:"raw.web"+ or key:"raw.books"+'),
    ],
)
def test_a_selection_that_does_not_parse_is_answered_with_one_that_does(given: str, meant: str) -> None:
    assert dg.AssetSelection.from_string(meant)
    with pytest.raises(ConfigurationError) as caught:
        select(dg.Definitions(), given)
    assert str(caught.value).endswith(f"Write '{meant}'.")
