"""The whole pipeline on a small corpus: what must hold between its tables, its summary and its traces."""

from __future__ import annotations

import io
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr
from itertools import chain
from pathlib import Path

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from blender.catalog.blends import open_blends
from blender.records import Source
from blender.trainer.local import LocalBlender
from factory.cli import root
from factory.errors import DamagedFile, NotFound
from factory.explain.find import find_ids
from factory.explain.steps import served_by
from factory.explain.summary import summarize
from factory.explain.trace import trace_documents
from factory.lake import names
from factory.lake.files.checksums import sums_file
from factory.lake.files.parquet import fault
from factory.lake.identity import tokenizer_id
from factory.lake.names import TableName
from factory.lake.rejected import count_rejected
from factory.lake.schemas.packing import N_TOKENS, SEQUENCE_LENGTH, TOKENIZER_ID, VOCABULARY_SIZE
from factory.lake.tables import Lake
from factory.orchestration.host.instance import open_instance
from factory.settings import Settings
from tests.damage import REMADE, Readers, answer_of, damages, named, table_of
from tests.small_pipeline import CODE, PACKING, PROSE, materialize, write_corpus
from tests.undisturbed import SmallLake

pytestmark = [pytest.mark.spark, pytest.mark.long]
DATASETS = (CODE, PROSE)
GROUP = {CODE: "small_code", PROSE: "small_prose"}
PER_OUTCOME = 50


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def lake(spark: SparkSession, lake_settings: Settings, corpus: Path) -> Lake:
    materialize(corpus, lake_settings)
    return Lake(lake_settings)


@pytest.fixture(scope="module")
def blend(lake: Lake) -> str:
    return _create_blend(lake.settings)


def _create_blend(settings: Settings) -> str:
    sources = [
        Source(table=str(names.packed(dataset)), weight=weight, oversample=True, shuffle="row")
        for dataset, weight in ((CODE, 3), (PROSE, 1))
    ]
    return open_blends(settings).create(sources, seed=11).id


def ids(lake: Lake, table: TableName, where: str | None = None) -> list[str]:
    rows = lake.read(table, ["doc_id"], where) if where else lake.read(table, ["doc_id"])
    return rows["doc_id"].to_pylist()


def test_dagster_shows_every_run_and_no_number_that_a_browser_rounds(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")

    def numbers(value: object) -> Iterator[float]:
        if isinstance(value, Mapping):
            yield from chain.from_iterable(map(numbers, value.values()))
        elif isinstance(value, list | tuple):
            yield from chain.from_iterable(map(numbers, value))
        elif isinstance(value, int | float):
            yield value

    with open_instance(lake.settings) as instance:
        runs = instance.get_runs()
        assert [run.run_id for run in runs if run.remote_job_origin is None] == []
        shown = [
            value.value
            for run in runs
            for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
            for value in entry.asset_materialization.metadata.values()  # type: ignore[union-attr]
        ]
    found = list(chain.from_iterable(map(numbers, shown)))
    assert len(found) > len(DATASETS)
    assert [number for number in found if abs(number) > 2**53] == []


@pytest.mark.invariant(
    "Every input is in `raw` or in its `_rejected` table, never in both; the next stage either keeps or "
    "removes every id of a table."
)
@pytest.mark.parametrize("dataset", DATASETS)
def test_every_document_is_in_exactly_one_place_at_each_stage(lake: Lake, dataset: str) -> None:
    raw = ids(lake, names.raw(dataset))
    assert len(raw) == len(set(raw))
    assert not set(raw) & set(ids(lake, names.rejected(dataset)))
    assert Counter(ids(lake, names.filtered(dataset))) == Counter(raw)
    kept = ids(lake, names.filtered(dataset), "kept = true")
    decisions = names.dedup(GROUP[dataset], "decisions")
    assert Counter(ids(lake, decisions)) == Counter(kept)
    stays = ids(lake, decisions, "kept = true")
    assert Counter(ids(lake, names.deduplicated(dataset))) == Counter(stays)
    assert Counter(ids(lake, names.tokenized(dataset))) == Counter(stays)
    assert set(ids(lake, names.placements(dataset))) == set(stays)


@pytest.mark.invariant(
    "Every input is in `raw` or in its `_rejected` table, never in both; the next stage either keeps or "
    "removes every id of a table."
)
def test_every_file_and_line_of_the_corpus_is_accounted_for(lake: Lake, corpus: Path) -> None:
    files = [path for path in (corpus / "code").rglob("*") if path.is_file()]
    assert lake.published(names.raw(CODE)).rows + lake.published(names.rejected(CODE)).rows == len(files)
    lines = (corpus / "prose.jsonl").read_text().splitlines()
    n_rejected = sum(count_rejected(lake, names.rejected(PROSE)).values())
    assert lake.published(names.raw(PROSE)).rows + n_rejected == len(lines)
    assert lake.published(names.rejected(PROSE)).rows == n_rejected - 2  # three blank lines share a row


@pytest.mark.invariant(
    "No verified edge joins two kept documents, and every removed document names the document it duplicates, "
    "their similarity, and the kept document."
)
@pytest.mark.parametrize("dataset", DATASETS)
def test_no_kept_documents_are_similar_and_removed_ones_have_a_kept_like(lake: Lake, dataset: str) -> None:
    group = GROUP[dataset]
    decided = {row["doc_id"]: row for row in lake.read(names.dedup(group, "decisions")).to_pylist()}
    similar = {
        frozenset((row["left"], row["right"])): row["similarity"]
        for row in lake.read(names.dedup(group, "edges")).to_pylist()
    }
    content = dict(
        zip(
            *(
                lake.read(names.raw(dataset), ["doc_id", "content_hash"])[c].to_pylist()
                for c in ("doc_id", "content_hash")
            ),
            strict=True,
        )
    )
    for pair in similar:
        assert not all(decided[doc_id]["kept"] for doc_id in pair)
    removed = [row for row in decided.values() if not row["kept"]]
    assert removed
    for row in removed:
        partner = row["duplicate_of"]
        assert decided[row["kept_document"]]["kept"]
        if row["reason"] == "exact_copy":
            assert (content[partner], row["similarity"]) == (content[row["doc_id"]], 1.0)
            twin = decided[partner]
            assert row["kept_document"] == (partner if twin["kept"] else twin["kept_document"])
            continue
        assert content[partner] != content[row["doc_id"]]
        assert partner == row["kept_document"]
        if row["reason"] == "similar":
            assert row["similarity"] == similar[frozenset((row["doc_id"], partner))]


@pytest.mark.invariant(
    "Packing neither loses nor adds a token: a document's pieces are its tokens, and decoding them gives "
    "its text."
)
@pytest.mark.parametrize("dataset", DATASETS)
def test_tokens_in_are_tokens_out(lake: Lake, dataset: str) -> None:
    tokens = {row["doc_id"]: row for row in lake.read(names.tokenized(dataset)).to_pylist()}
    pieces: dict[str, dict[int, bytes]] = defaultdict(dict)
    for row in lake.read(names.packed(dataset)).to_pylist():
        assert len(row["tokens"]) == 2 * row["n_tokens"] <= 2 * PACKING.sequence_length
        at = 0
        for segment in row["segments"]:
            end = at + 2 * segment["length"]
            pieces[segment["doc_id"]][segment["doc_offset"]] = row["tokens"][at:end]
            at = end
        assert at == len(row["tokens"])
    for doc_id, row in tokens.items():
        assert b"".join(piece for _, piece in sorted(pieces[doc_id].items())) == row["tokens"]


@pytest.mark.invariant(
    "Packing neither loses nor adds a token: a document's pieces are its tokens, and decoding them gives "
    "its text."
)
@pytest.mark.parametrize("dataset", DATASETS)
def test_decoding_gives_back_every_document(lake: Lake, dataset: str) -> None:
    from tokenizers import Tokenizer

    (trained,) = lake.read(names.model("small"), ["tokenizer"])["tokenizer"].to_pylist()
    tokenizer = Tokenizer.from_str(trained)
    texts = {
        row["doc_id"]: row["text"]
        for row in lake.read(names.deduplicated(dataset), ["doc_id", "text"]).to_pylist()
    }
    for row in lake.read(names.tokenized(dataset)).to_pylist():
        decoded = tokenizer.decode(np.frombuffer(row["tokens"], "<u2").tolist(), skip_special_tokens=True)
        assert decoded == texts[row["doc_id"]]


@pytest.mark.invariant("Every dependency points backwards or is listed as broken.")
def test_every_dependency_points_backwards_or_is_listed_as_broken(lake: Lake) -> None:
    place = {
        row["doc_id"]: row
        for row in lake.read(names.sorted_table(CODE), ["doc_id", "repository", "position"]).to_pylist()
    }
    edges = lake.read(names.depsort(CODE, "dependencies")).to_pylist()
    assert edges
    for edge in edges:
        dependent, dependency = place[edge["doc_id"]], place[edge["depends_on"]]
        assert dependent["repository"] == dependency["repository"]
        assert edge["satisfied"] == (dependency["position"] < dependent["position"])
    by_repository = defaultdict(list)
    for row in place.values():
        by_repository[row["repository"]].append(row["position"])
    assert all(sorted(places) == list(range(len(places))) for places in by_repository.values())


@pytest.mark.invariant("A second query of the tables gives every figure of the demo.")
def test_every_figure_of_the_summary_follows_from_the_tables(lake: Lake, spark: SparkSession) -> None:
    found = summarize(lake, DATASETS, list(GROUP.values()))

    def one(query: str) -> float:
        return spark.sql(query).first()[0]  # type: ignore[index]

    for dataset in DATASETS:
        stages = {stage.table: stage for stage in found.stages}
        raw, bad = (
            one(f"SELECT count(*) FROM lake.raw.{dataset}"),
            one(f"SELECT sum(coalesce(n_records, 1)) FROM lake.raw.{dataset}_rejected"),
        )
        kept = one(f"SELECT count(*) FROM lake.filtered.{dataset} WHERE size(rejections) = 0")
        stay = one(f"SELECT count(*) FROM lake.deduplicated.{dataset}")
        packed = one(f"SELECT count(*) FROM lake.packed.{dataset}")
        assert (stages[f"raw.{dataset}"].rows_in, stages[f"raw.{dataset}"].rows_out) == (raw + bad, raw)
        assert (stages[f"filtered.{dataset}"].rows_in, stages[f"filtered.{dataset}"].rows_out) == (raw, kept)
        deduplicated = stages[f"deduplicated.{dataset}"]
        assert (deduplicated.rows_in, deduplicated.rows_out) == (kept, stay)
        assert stages[f"packed.{dataset}"].rows_out == packed == found.values("packing")[dataset]["sequences"]
        exploded = f"SELECT explode(rejections) r FROM lake.filtered.{dataset}"
        rules = spark.sql(f"SELECT r.rule, count(*) n FROM ({exploded}) GROUP BY 1").collect()
        assert found.values("rejections")[dataset] == {row.rule: row.n for row in rules}
        reasons = spark.sql(
            f"SELECT reason, sum(coalesce(n_records, 1)) n FROM lake.raw.{dataset}_rejected GROUP BY 1"
        ).collect()
        assert found.values("bad_records")[dataset] == {row.reason: row.n for row in reasons}
        packing = found.values("packing")[dataset]
        tokens = one(f"SELECT sum(n_tokens) FROM lake.tokenized.{dataset}")
        length = int(lake.table(names.packed(dataset)).properties[SEQUENCE_LENGTH])
        assert packing["tokens"] == tokens
        assert packing["fill"] == pytest.approx(tokens / (packed * length))
        assert packing["split_documents_that_fit"] == one(
            f"SELECT count(*) FROM (SELECT doc_id, count(*) pieces, sum(length) tokens "
            f"FROM lake.packed.{dataset}_placements GROUP BY doc_id) WHERE pieces > 1 AND tokens <= {length}"
        )
    for group in GROUP.values():
        counted = spark.sql(
            f"SELECT reason, count(*) n FROM lake.dedup.{group}_decisions GROUP BY 1"
        ).collect()
        assert found.values("duplicates")[group] == {row.reason: row.n for row in counted}
    order = found.values("order")[CODE]
    edges = f"lake.depsort.{CODE}_dependencies"
    assert order["edges"] == one(f"SELECT count(*) FROM {edges}")
    assert order["satisfied"] == one(f"SELECT count_if(satisfied) FROM {edges}")
    share = one(f"SELECT sum(if(satisfied, weight, 0)) / sum(weight) FROM {edges}")
    assert order["satisfied_weight"] == pytest.approx(share)
    assert order["external"] == one(
        f"SELECT count_if(resolution = 'external') FROM lake.depsort.{CODE}_symbols"
    )


@pytest.mark.parametrize("dataset", DATASETS)
def test_snapshots_of_tokens_say_which_tokenizer_made_them_and_how_many(lake: Lake, dataset: str) -> None:
    (model,) = lake.read(names.model("small"), ["tokenizer", "n_tokens"]).to_pylist()
    tokenized, packed = (lake.published(table_of(dataset)) for table_of in (names.tokenized, names.packed))
    assert {publication.properties[TOKENIZER_ID] for publication in (tokenized, packed)} == {
        tokenizer_id(model["tokenizer"])
    }
    n_tokens = sum(lake.read(packed.table, ["n_tokens"])["n_tokens"].to_pylist())
    assert int(packed.properties[N_TOKENS]) == n_tokens > 0
    assert int(packed.properties[VOCABULARY_SIZE]) == model["n_tokens"] > 0


def test_described_shares_of_tokens_are_those_of_the_tables(lake: Lake, blend: str) -> None:
    described = LocalBlender(lake.settings).describe(blend)
    counts = [0.0, 0.0]
    for one, weight in zip((CODE, PROSE), (3, 1), strict=True):
        n_tokens = lake.read(names.packed(one), ["n_tokens"])["n_tokens"].to_pylist()
        counts[(CODE, PROSE).index(one)] = weight * sum(n_tokens) / len(n_tokens)
    assert [source.token_share for source in described.sources] == pytest.approx(
        [count / sum(counts) for count in counts]
    )
    assert {source.tokenizer_table for source in described.sources} == {"models.small"}


@pytest.mark.invariant("`factory trace` answers for every outcome: served, filtered, duplicate, bad record.")
def test_trace_answers_for_fifty_documents_of_each_outcome(lake: Lake, blend: str) -> None:
    blends = [blend_served for blend_served in served_by(lake.settings)[0] if blend_served.id == blend]
    bad = ids(lake, names.rejected(PROSE))[:PER_OUTCOME]
    filtered = ids(lake, names.filtered(PROSE), "kept = false")[:PER_OUTCOME]
    duplicates = ids(lake, names.dedup("small_prose", "decisions"), "kept = false")[:PER_OUTCOME]
    served = ids(lake, names.deduplicated(PROSE))[:PER_OUTCOME]
    for expected, chosen in (
        ("bad_record", bad),
        ("filtered", filtered),
        ("duplicate", duplicates),
        ("served", served),
    ):
        assert len(chosen) == PER_OUTCOME
        traces = trace_documents(lake, chosen, blends)
        assert [trace.doc_id for trace in traces] == chosen
        assert {trace.outcome for trace in traces} == {expected}
        assert all(trace.reason for trace in traces)
    for trace in trace_documents(lake, served, blends):
        opened = blends[0]
        for serving in trace.servings:
            rows = opened.explain(serving.offset)
            assert any(segment.doc_id == trace.doc_id for row in rows for segment in row.segments)
    for trace in trace_documents(lake, duplicates, blends):
        (kept,) = trace_documents(lake, [str(trace.kept_document)], blends)
        assert kept.outcome == "served"


def test_a_document_is_found_by_its_key_and_an_unknown_one_is_not(lake: Lake) -> None:
    (found,) = find_ids(lake, "p3")
    assert trace_documents(lake, [found])[0].key == "p3"
    with pytest.raises(NotFound, match="`nowhere`"):
        find_ids(lake, "nowhere")


@pytest.mark.invariant(
    "One core with eight partitions and two cores with three make equal lakes of one corpus, table by "
    "table and batch by batch."
)
def test_lakes_of_one_corpus_are_equal_whatever_cores_partitions_and_compilers(
    lake: Lake, blend: str, undisturbed: SmallLake
) -> None:
    other = Lake(undisturbed.settings)
    for name in other.names():
        assert other.published(name).lineage.content == lake.published(name).lineage.content, name
    assert _create_blend(other.settings) == blend
    ours, theirs = open_blends(lake.settings).open(blend), open_blends(other.settings).open(blend)
    for offset in (0, 1, 17, 400):
        assert ours.step(offset).equals(theirs.step(offset))


@pytest.mark.invariant(
    "A flipped bit, a cut or a zeroed range in any file of a lake raises an error or changes no answer."
)
@pytest.mark.timeout(3_600)
def test_a_damaged_file_is_named_and_never_served(
    lake: Lake,
    blend: str,
    spark: SparkSession,
    n_damages: int,
    damage_seed: int,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(root, "lake_settings", lambda: lake.settings)
    document = min(ids(lake, names.deduplicated(CODE)))
    readers = Readers(lake.settings, document, blend, spark)
    for read in readers.everything().values():  # so that what is kept for readers is there
        read()
    whole: dict[tuple[str, object], str] = {}
    for number, damage in enumerate(damages(lake.settings.home, n_damages, damage_seed)):
        told = f"seed {damage_seed}, damage {number}: {damage}"
        for name, read in readers.of(damage).items():
            key = name, table_of(damage.file)
            if key not in whole:
                whole[key] = answer_of(read)
            caplog.clear()
            said = io.StringIO()
            with damage.done(), redirect_stderr(said):
                answer = answer_of(read)
            if answer == whole[key]:
                continue
            assert damage.kind != REMADE, f"{told}: {name} gives {answer}"
            assert named(damage, f"{answer} {said.getvalue()} {caplog.text}"), (
                f"{told}: {name} gives {answer}"
            )


@pytest.mark.invariant(
    "The search for the damaged file of a table accuses no whole file: only what pyarrow cannot read is "
    "damage, and a reader's failure that no file explains is called a failure of the machine. Only a "
    "failure of Spark to read Parquet starts the search, and a search that fails leaves Spark's own error"
    " in place."
)
def test_the_search_for_damage_is_silent_about_a_whole_lake(lake: Lake) -> None:
    paths = sorted(lake.settings.files.warehouse.rglob("*.parquet"))
    assert len(paths) > 20
    for path in paths:
        with pa.OSFile(str(path)) as file:
            assert fault(str(path), ["*"], file) is None


@pytest.mark.invariant("A damaged input ends the run that reads it, and nothing is published.")
@pytest.mark.parametrize("sums", [True, False])
def test_a_flipped_bit_in_raw_ends_the_run_that_reads_it(lake: Lake, corpus: Path, sums: bool) -> None:
    bags, raw = names.dedup(GROUP[CODE], "bags"), lake.table(names.raw(CODE))
    before = lake.published(bags).snapshot_id
    file = Path(next(iter(raw.scan().plan_files())).file.file_path.removeprefix("file:"))
    group = pq.read_metadata(file).row_group(0)
    (text,) = (it for n in range(group.num_columns) if (it := group.column(n)).path_in_schema == "text")
    end = (text.dictionary_page_offset or text.data_page_offset) + text.total_compressed_size
    whole, kept = file.read_bytes(), Path(sums_file(str(file)))
    sums_of_it = kept.read_bytes()
    try:
        file.write_bytes(whole[: end - 9] + bytes([whole[end - 9] ^ 2]) + whole[end - 8 :])
        if not sums:  # as in a store, where a page's own checksum is all there is
            kept.unlink()
        with pytest.raises(DamagedFile) as failed:
            materialize(corpus, lake.settings, str(bags), reuse=False)
    finally:
        file.write_bytes(whole)
        kept.write_bytes(sums_of_it)
    said = str(failed.value)
    assert f"{file} is not as it was" in said or f"{file}, column `text`, row group 0, page" in said
    assert sums or "column `text`" in said
    assert "\n\tat " not in said
    assert "Traceback" not in said
    assert lake.published(bags).snapshot_id == before


def test_another_input_changes_the_figures(
    lake: Lake, corpus: Path, spark: SparkSession, tmp_path: Path
) -> None:
    before = json.dumps(summarize(lake, DATASETS, list(GROUP.values())).plain(), sort_keys=True)
    lines = (corpus / "prose.jsonl").read_text().splitlines()
    try:
        (corpus / "prose.jsonl").write_text("\n".join(lines[10:]) + "\n")
        materialize(corpus, lake.settings, f"*deduplicated.{PROSE}")
        assert json.dumps(summarize(lake, DATASETS, list(GROUP.values())).plain(), sort_keys=True) != before
    finally:
        (corpus / "prose.jsonl").write_text("\n".join(lines) + "\n")
        materialize(corpus, lake.settings, f"*deduplicated.{PROSE}")
