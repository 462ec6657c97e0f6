"""A dry run says of each table what the run after it does, whatever was edited before."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.orchestration.host.partitions import batches
from factory.orchestration.table.declaration import PartitionSelection
from factory.orchestration.table.forecast import Forecast, forecast
from factory.orchestration.table.reuse import Request, listings_of, reasons
from factory.orchestration.table.table_asset import declaration_of
from factory.settings import Settings
from tests.orchestration.runs import COLUMNS, component_table, run
from tests.orchestration.table.published import component, publish

SOURCES = ("one", "two", "more")
TEXTS = st.sampled_from(["a", "bb", "ccc", "dddd"])
Edit = tuple[str, str, str]  # what, the source or the limit, and a text
EDITS = st.tuples(
    st.sampled_from(["touch", "same", "write", "new", "remove", "shortest", "longest", "declare"]),
    st.sampled_from(SOURCES),
    TEXTS,
)
SELECTIONS = st.sampled_from(["*", "*", "one", "two", "one*", "joined*", "trained*"])
STEPS = st.lists(
    st.tuples(st.lists(EDITS, max_size=2), SELECTIONS, st.booleans() | st.just(True)), min_size=1, max_size=4
)
ONE_AS_BEFORE = [([("write", "one", "bb")], "one", True), ([("write", "one", "ccc")], "*", True)]
A_NEW_SOURCE = [([("declare", "more", "a")], "*", True), ([("declare", "more", "a")], "*", True)]
ANOTHER_TRAINED = [([("write", "one", "bb")], "*", True), ([], "trained*", False)]
MORE_OF_TWO_LESS_OF_ONE = [
    ([("new", "one", "a"), ("new", "one", "bb")], "*", True),
    ([("new", "two", "b" * n) for n in range(4, 9)], "two", True),
    ([("longest", "one", "a")], "*", True),
]


@pytest.fixture(autouse=True)
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("factory.ingest.state.SETTLED_NS", -(10**9))  # as if the files were old


@dataclass
class Corpus:
    """Two folders of texts and the tables made from them: those not too short, of both, not too long.

    one -> kept_one -> joined -> trained (lasting), ended (lasting until trained), grown (frozen), last
    two ------------->        -> grown
    more, if it is declared, -> joined, trained
    plain, whose files are not declared, -> last
    """

    folder: Path
    limits: dict[str, int] = field(default_factory=lambda: {"shortest": 1, "longest": 9})
    rows: dict[str, list[str]] = field(default_factory=dict)
    declares_more: bool = False

    def __post_init__(self) -> None:
        for name in SOURCES:
            (self.folder / name).mkdir()
            (self.folder / name / "0.txt").write_text("ccc")

    @property
    def upstream(self) -> dict[str, tuple[str, ...]]:
        more = ("more",) if self.declares_more else ()
        return {
            "one": (),
            "two": (),
            **dict.fromkeys(more, ()),
            "plain": (),
            "kept_one": ("one",),
            "joined": ("kept_one", "two", *more),
            "trained": ("joined", *more),
            "ended": ("joined", "trained"),
            "grown": ("joined", "two"),
            "last": ("joined", "grown", "trained", "ended", "plain"),
        }

    def assets(self) -> list[dg.AssetsDefinition]:
        options = {
            **{name: {"files": self._files(name)} for name in SOURCES},
            "kept_one": {"config": str(self.limits["shortest"])},
            "joined": {"config": str(self.limits["longest"])},
            "trained": {"lasting": True},
            "ended": {"lasting": True, "until": [TableName("dedup", "trained")]},
            "grown": {"growth": 2},
        }
        return [component(name, *of, **options.get(name, {})) for name, of in self.upstream.items()]

    def _files(self, name: str) -> Callable[[str | None], Sequence[Path]]:
        return lambda _: [self.folder / name]

    def edit(self, how: str, name: str, text: str) -> None:
        files = sorted((self.folder / name).iterdir())
        if how == "declare":
            self.declares_more = not self.declares_more
        elif how in self.limits:
            self.limits[how] = len(text)
        elif how == "new":
            (self.folder / name / f"{len(files)}.txt").write_text(text)
        elif files and how == "remove":
            files[-1].unlink()
        elif files and how == "touch":
            os.utime(files[0])
        elif files:
            files[0].write_text(text if how == "write" else files[0].read_text())

    def rows_of(self, name: str) -> list[str]:
        """The rows that a run gives a table, of those upstream as they are."""
        if name in SOURCES:
            return sorted({file.read_text() for file in (self.folder / name).iterdir()})
        texts = {text for above in self.upstream[name] for text in self.rows[above]} or {"plain"}
        if name == "kept_one":
            texts = {text for text in texts if len(text) >= self.limits["shortest"]}
        if name == "joined":
            texts = {text for text in texts if len(text) <= self.limits["longest"]}
        return sorted(texts)

    def selected(self, selection: str) -> list[str]:
        """All tables for `*`, a table by its name, and it with everything downstream for `name*`.

        A source that no run has read yet comes along, since a run cannot do without it.
        """
        found = {selection.rstrip("*")} if selection != "*" else set(self.upstream)
        for below, above in self.upstream.items():
            if selection.endswith("*") and found & set(above):
                found.add(below)
        unread = {name for name in self.upstream if name in SOURCES and name not in self.rows}
        return [name for name in self.upstream if name in found | unread]


def tables_made(
    lake: Lake, corpus: Corpus, assets: Sequence[dg.AssetsDefinition], selected: Sequence[str], *, reuse: bool
) -> dict[str, str]:
    """Do what a run of the `selected` tables does; return those that it makes, and why."""
    keys = keys_of(assets, selected)
    made: dict[str, str] = {}
    for asset in assets:
        declared = declaration_of(asset)
        name = declared.table.name
        if name in selected:
            upstream = {str(table): lake.published(table) for table in declared.upstream.values()}
            request = Request.of(declared, keys, reuse=reuse)
            listings = listings_of(declared, [None])
            if why := reasons(lake, declared, upstream, PartitionSelection(), request, listings):
                corpus.rows[name] = corpus.rows_of(name)
                publish(lake, asset, *corpus.rows[name])
                made[name] = why[None]
    return made


def keys_of(assets: Sequence[dg.AssetsDefinition], names: Sequence[str]) -> list[dg.AssetKey]:
    return [key for asset in assets for key in asset.keys if declaration_of(asset).table.name in names]


def said(
    lake: Lake, assets: Sequence[dg.AssetsDefinition], selected: Sequence[str], *, reuse: bool
) -> list[Forecast]:
    instance = dg.DagsterInstance.ephemeral()
    runs = batches(assets, keys_of(assets, selected), instance, None)
    return forecast(lake, assets, runs, instance, reuse=reuse)


def require_truth(
    found: Sequence[Forecast], made: dict[str, str], upstream: dict[str, tuple[str, ...]]
) -> None:
    verdicts = {forecast_row.table.name: forecast_row.verdict for forecast_row in found}
    assert {name for name, verdict in verdicts.items() if verdict == "make"} <= made.keys()
    assert made.keys() <= {name for name, verdict in verdicts.items() if verdict in ("make", "maybe")}
    for it in found:
        if it.verdict == "make":  # in the same words; the run may find that more tables changed
            phrases = [text for text in it.reason.split(", ") if not re.search("changed$|selected$", text)]
            assert all(text in made[it.table.name] for text in phrases), it
        if it.verdict == "maybe":  # only where it depends on a table that the run makes first, or may make
            above = {verdicts.get(name) for name in upstream[it.table.name]}
            assert above & {"make", "maybe"}, it
        assert {verdicts[root.name] for root in it.roots} <= {"make", "maybe"}, it


@pytest.mark.invariant(
    "A run and its dry run decide by the same reasons, which `factory.orchestration.table.reuse` finds."
)
@pytest.mark.filterwarnings("ignore:Delete operation did not match")  # a table may have no row to replace
@settings(max_examples=5, deadline=None)
@given(steps=STEPS)
@example(steps=ONE_AS_BEFORE)
@example(steps=ANOTHER_TRAINED)
@example(steps=A_NEW_SOURCE)
@example(steps=MORE_OF_TWO_LESS_OF_ONE)
def test_the_run_makes_what_is_said_and_keeps_the_rest(
    steps: list[tuple[list[Edit], str, bool]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "data").mkdir()
        lake, corpus = Lake(Settings(home=Path(folder) / "lake")), Corpus(Path(folder) / "data")
        for edits, selection, reuse in [([], "*", True), *steps]:
            for edit in edits:
                corpus.edit(*edit)
            assets, selected = corpus.assets(), corpus.selected(selection)
            found = said(lake, assets, selected, reuse=reuse)
            made = tables_made(lake, corpus, assets, selected, reuse=reuse)
            require_truth(found, made, corpus.upstream)


def test_a_source_that_is_read_again_may_give_what_was_made_from_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    lake, corpus = Lake(Settings(home=tmp_path / "lake")), Corpus(tmp_path / "data")

    def step(selection: list[str]) -> dict[str, tuple[str, str]]:
        assets = corpus.assets()
        found = said(lake, assets, selection, reuse=True)
        require_truth(found, tables_made(lake, corpus, assets, selection, reuse=True), corpus.upstream)
        return {
            forecast_row.table.name: (forecast_row.verdict, forecast_row.reason) for forecast_row in found
        }

    step(list(corpus.upstream))
    corpus.edit("write", "one", "bb")
    step(["one"])  # and no table behind it, as if a run ended there
    corpus.edit("write", "one", "ccc")
    found = step(list(corpus.upstream))
    assert found["one"] == ("make", "1 changed: 0.txt")
    assert found["kept_one"] == ("maybe", "dedup.one still differs from what was read")
    assert found["joined"] == ("maybe", "dedup.kept_one changes")


@pytest.mark.spark
def test_spark_makes_what_is_said(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    names = [f"{unique}_{name}" for name in ("read", "kept", "last")]
    upstream = dict(zip(names, ((), (names[0],), (names[1],)), strict=True))
    lake, file = Lake(lake_settings), tmp_path / "a.txt"

    def assets(limit: int) -> Iterator[dg.AssetsDefinition]:
        read, kept, last = names

        @component_table(name=read, files=lambda _: [tmp_path])
        def documents(pyspark) -> DataFrame:  # type: ignore[no-untyped-def]
            rows = [(path.read_text(), "1") for path in sorted(tmp_path.iterdir())]
            return pyspark.spark_session.createDataFrame(rows, COLUMNS)

        @component_table(
            name=kept, upstream={"rows": TableName("dedup", read)}, config={"word_count": [limit, None]}
        )
        def long_ones(rows: DataFrame) -> DataFrame:
            return rows.where(f"length(doc_id) >= {limit}")

        @component_table(name=last, upstream={"rows": TableName("dedup", kept)})
        def copies(rows: DataFrame) -> DataFrame:
            return rows

        yield from (documents, long_ones, copies)

    def step(limit: int) -> dict[str, str]:
        """Run after a dry run; return its reasons, after Dagster's for what it made."""
        declared = list(assets(limit))
        found = said(lake, declared, names, reuse=True)
        result = run(lake_settings, *declared, reuse=True)
        assert result.success
        reasons = {
            event.asset_key.to_user_string().removeprefix("dedup."): event.materialization.metadata
            for event in result.get_asset_materialization_events()
        }
        made = {name: str(of["made because"].value) for name, of in reasons.items() if "reused" not in of}
        require_truth(found, made, upstream)
        certain = {
            forecast_row.table.name: forecast_row.reason
            for forecast_row in found
            if forecast_row.verdict == "make"
        }
        assert certain.items() <= made.items()  # in the same words
        return {name.removeprefix(f"{unique}_"): why.replace(unique, "t") for name, why in made.items()}

    file.write_text("ccc")
    assert step(limit=1) == dict.fromkeys(("read", "kept", "last"), "it is new")
    assert step(limit=1) == {}
    assert step(limit=2) == {"kept": "word_count 1 -> 2"}
    os.utime(file)
    assert step(limit=2) == {"read": "1 changed: a.txt"}
    (tmp_path / "b.txt").write_text("bb")
    after = {"kept": "dedup.t_read changed", "last": "dedup.t_kept changed"}
    assert step(limit=2) == {"read": "+1 b.txt", **after}
    assert step(limit=3) == {"kept": "word_count 2 -> 3", "last": "dedup.t_kept changed"}
