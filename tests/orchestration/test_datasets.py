"""Datasets declared in YAML: the assets they make, and the sentence for everything that can be wrong."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg
import pytest

from factory.errors import ConfigurationError
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.orchestration.corpus import Corpus
from factory.orchestration.datasets import corpus
from factory.orchestration.datasets_file import DatasetsFile
from factory.orchestration.line import definitions
from factory.orchestration.located_yaml import LocatedYaml
from factory.orchestration.partitions import RANGE_FIRST, RANGE_LAST
from factory.orchestration.resources import resources
from factory.settings import Settings
from jobs.sensors import Watched, notice

GOOD = """\
datasets:
  - name: notes
    kind: prose
    format: files
    paths: notes
    include: "**/*.md"
    limits: {word_count: [20, 100000], stop_words: 1}
    variants:
      long: {limits: {word_count: [200, 100000]}}
      other: {rules: [stop_words]}
      same:
  - name: pages
    kind: prose
    format: jsonl
    paths: [p.jsonl]
    text: body
    columns: {created_at: date}
    rounds:
      - {rules: [gopher_quality]}
      - {rules: [gopher_repetition], languages: [en]}
  - name: mine
    kind: code
    format: repositories
    paths: repos
    licence: MIT
    packing: {sequence_length: 2048}
groups:
  prose: {threshold: 0.7}
tokenizers:
  tokenizer: {vocabulary: 1000}
blend:
  weights: {mine: 6, notes: 2, notes__long: 1}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with everything that GOOD names."""
    for path in ("notes/a.md", "repos/a/x.py", "p.jsonl"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("{}\n")
    return tmp_path


def declared(folder: Path, text: str) -> Corpus:
    (folder / "my.yaml").write_text(text)
    return corpus(folder / "my.yaml")


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        declared(folder, text)
    return str(caught.value)


def tables(found: Corpus) -> set[str]:
    return {".".join(key.path) for asset in found.assets for key in asset.keys}


def test_a_file_makes_the_assets_that_refine_makes(folder: Path) -> None:
    found = declared(folder, GOOD)
    names = tables(found)
    assert found.datasets == ("notes", "notes__long", "notes__other", "notes__same", "pages", "mine")
    assert found.groups == ("code", "prose", "prose__long", "prose__other", "prose__same")
    assert {"raw.notes_rejected", "filtered.pages_r1", "sorted.mine", "packed.notes__long"} <= names
    assert not {"sorted.pages", "raw.notes__long", "signals.notes__long", "signals.notes__same"} & names
    assert dict(found.weights) == {"mine": 6, "notes": 2, "notes__long": 1}
    definitions(found.assets, Settings(home=folder / "lake"))  # every table that is read has a writer


@pytest.mark.parametrize("kind, last", [("prose", "deduplicated.only"), ("code", "sorted.only")])
def test_one_dataset_of_either_kind_is_enough(folder: Path, kind: str, last: str) -> None:
    found = declared(folder, f"datasets:\n- {{name: only, kind: {kind}, format: files, paths: notes}}\n")
    assert {last, "packed.only", "models.tokenizer"} <= tables(found)
    assert dict(found.weights) == {"only": 1}
    definitions(found.assets, Settings(home=folder / "lake"))


def test_a_variant_takes_what_it_does_not_say_from_its_dataset(folder: Path) -> None:
    (folder / "my.yaml").write_text(GOOD)
    notes = LocatedYaml.read(folder / "my.yaml").build(DatasetsFile).datasets[0]
    limits = {
        name: {rule.name: str(rule.limit) for rule in given.in_rounds()[0].build()}
        for name, given in {"notes": notes, **notes.variants}.items()
    }
    assert limits["notes"]["word_count"] == limits["same"]["word_count"] == "20 to 100,000"
    assert limits["long"]["word_count"] == "200 to 100,000"
    assert limits["long"]["stop_words"] == limits["notes"]["stop_words"] == ">= 1"
    assert limits["long"].keys() == limits["notes"].keys() > {"top_2_gram"}
    assert limits["other"] == {"stop_words": ">= 2"}


def test_options_of_a_group_reach_its_variants_unless_they_have_their_own(folder: Path) -> None:
    text = GOOD.replace(
        "  prose: {threshold: 0.7}\n", "  prose: {threshold: 0.7}\n  prose__long: {seed: 1}\n"
    )
    checks = {
        check.key.asset_key.path[-1]: check.description
        for asset in declared(folder, text).assets
        for check in asset.check_specs
        if check.name == "every_edge_is_similar"
    }
    assert checks["prose_edges"] == checks["prose__same_edges"] == "similarity >= 0.7 in every row."
    assert checks["prose__long_edges"] == "similarity >= 0.8 in every row."


def test_what_decides_the_documents_holds_no_folder_of_the_machine(folder: Path) -> None:
    (folder / "my.yaml").write_text(GOOD)
    for entry in LocatedYaml.read(folder / "my.yaml").build(DatasetsFile).datasets:
        assert entry.reading()["paths"] == list(entry.paths)
        assert str(folder) not in str(entry.reading())


@pytest.mark.parametrize(
    "good, bad, said",
    [
        ("include:", "inclde:", "line 6, datasets[0].inclde: `inclde` is no field here."),
        ("kind: prose", "kind: prse", "line 3, datasets[0].kind: `prse` is no kind. Did you mean `prose`?"),
        ("format: files", "format: fils", "line 4, datasets[0].format: `fils` is no format. Did"),
        ("    format: files\n", "", "line 2, datasets[0].format: `format` is missing. Add it."),
        ("    paths: notes\n", "", "line 2, datasets[0].paths: `paths` is missing. Add it."),
        ("name: pages", "name: notes", "line 12, datasets[1].name: `notes` is the name of"),
        ("gopher_quality", "gophr_quality", "line 19, datasets[1].rounds[0].rules: `gophr_quality`"),
        ("[stop_words]", "[stop_word]", "line 10, datasets[0].variants.other.rules: `stop_word` is no"),
        ("{word_count: [200", "{word_cont: [200", "line 9, datasets[0].variants.long.limits: `word_cont`"),
        ("long: {limits", "long: {limts", "line 9, datasets[0].variants.long.limts: `limts` is no field"),
        ("long:", "1:", "line 8, datasets[0].variants[1]: YAML reads this as 1, which is no text. Put it in"),
        ("long:", "l-ong:", "line 8, datasets[0].variants: `x__l-ong` is no name of a dataset"),
        ("created_at", "creatd_at", "line 17, datasets[1].columns: `creatd_at` is no column"),
        ("languages: [en]", "languages: [xx]", "line 20, datasets[1].rounds[1].languages: `xx` is no"),
        ("    rounds:", "    rules: [c4]\n    rounds:", "line 18, datasets[1].rules: `rules` stands beside"),
        ("{word_count: [200", "{word_count: [.nan", "line 9, datasets[0].variants.long.limits: The limit of"),
        ("paths: notes", "paths: ~nobody_here/x", "line 5, datasets[0].paths[0]: `~nobody_here/x` cannot be"),
        ("paths: notes", f"paths: {'a' * 300}", "line 5, datasets[0].paths[0]: `aaa"),
        (
            "{threshold",
            "{value_bits: 3, threshold",
            "line 28, groups.prose.value_bits: `3` is no value_bits. Use one of `1`, `2`, `4`, `8`, `16`.",
        ),
        ("paths: [p.jsonl]", "paths: []", "line 15, datasets[1].paths: It is empty. Give at least one."),
        ("paths: notes", "paths: {a: b}", "line 5, datasets[0].paths: `{'a': 'b'}` does not fit."),
        ("name: mine", "name: mine_r1", "line 21, datasets[2].name: `mine_r1` is no name of a dataset"),
        ("name: mine", "name: mine__x", "line 21, datasets[2].name: `mine__x` holds two underscores"),
        ("licence: MIT", "licence: no", "line 25, datasets[2].licence: YAML reads this as False"),
        ("kind: code", "kind: code\n    group: prose", "line 23, datasets[2].group: `prose` holds `notes`"),
        ("{sequence_length", "{sequence_len", "line 26, datasets[2].packing.sequence_len: `sequence_len` is"),
        ("{sequence_length", "{token_bytes: 4, s", "line 26, datasets[2].packing.token_bytes: It follows"),
        ("threshold", "treshold", "line 28, groups.prose.treshold: `treshold` is no field here."),
        ("0.7", "7", "line 28, groups.prose.threshold: `7` does not fit. It should be less than 1."),
        ("{threshold", "{kind: code, threshold", "line 28, groups.prose.kind: A group has the kind of its"),
        ("  prose: {", "  proze: {", "line 28, groups.proze: `proze` is no group of a dataset. Did you mean"),
        ("tokenizer: {v", "tok: {v", "line 30, tokenizers.tok: `tok` is no tokenizer of a dataset"),
        ("mine: 6", "mne: 6", "line 32, blend.weights.mne: `mne` is no dataset or variant."),
        ("mine: 6", "mine: 0", "line 32, blend.weights.mine: `0` does not fit"),
        ("kind: code", "kind: code\n    tokenizer: t2", "line 33, blend.weights.notes: `notes` has"),
        ("text: body", "text: body\n    text: x", "line 17: `text` stands on line 16 already. Keep one."),
        ("datasets:", "dataset:", "line 1, dataset: `dataset` is no field here. Did you mean `datasets`?"),
        ("  - name: mine", "\t- name: mine", "line 21: this is no YAML (found character '\\t'"),
    ],
)
def test_what_is_wrong_is_told_with_file_line_and_field(folder: Path, good: str, bad: str, said: str) -> None:
    assert GOOD.count(good)
    sentence = refusal(folder, GOOD.replace(good, bad, 1)).splitlines()[0]
    assert sentence.startswith(f"my.yaml, {said}")


def test_a_path_that_is_missing_says_what_it_is_relative_to(folder: Path) -> None:
    said = refusal(folder, GOOD.replace("paths: notes", "paths: note"))
    assert said == (
        "my.yaml, line 5, datasets[0].paths[0]: `note` does not exist. "
        f"Paths are relative to the folder of this file, {folder}."
    )


PARTED = """\
datasets:
  - name: letters
    kind: prose
    format: files
    paths: "letters/{partition}"
    partitions: {by: key, keys: [de, en]}
  - name: web
    kind: prose
    format: jsonl
    paths: ["web/{partition}/a.jsonl"]
    partitions: {by: day, start: 2026-01-01, end: 2026-01-04}
    variants: {long: {limits: {word_count: [200, 100000]}}}
  - name: deliveries
    kind: prose
    format: files
    paths: deliveries
    partitions: {by: folder}
  - {name: plain, kind: prose, format: files, paths: letters}
"""


@pytest.fixture
def parted(folder: Path) -> Path:
    """A folder with everything that PARTED names."""
    for path in ("letters/de", "letters/en", "web", "deliveries/first"):
        (folder / path).mkdir(parents=True)
    return folder


def test_partitions_by_key_time_and_folder_are_dagsters_up_to_the_verdicts(parted: Path) -> None:
    found = declared(parted, PARTED)
    by_table = {key.to_user_string(): it.partitions_def for it in found.assets for key in it.keys}
    letters, web, deliveries = (by_table[f"raw/{name}"] for name in ("letters", "web", "deliveries"))
    assert letters == dg.StaticPartitionsDefinition(["de", "en"])
    assert web == dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-01-04")
    assert web is not None
    assert list(web.get_partition_keys()) == ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert deliveries == dg.DynamicPartitionsDefinition(name="deliveries")
    assert by_table["signals/web"] == by_table["filtered/web__long"] == web
    whole = {by_table[name] for name in ("raw/plain", "dedup/prose_decisions", "packed/letters")}
    assert whole == {None}
    assert dict(found.partitions) == {"letters": letters, "web": web, "deliveries": deliveries}
    definitions(found.assets, Settings(home=parted / "lake"))


def test_the_sensor_sees_the_partitions_of_a_file_each_by_itself(parted: Path) -> None:
    (parted / "web" / "2026-01-02").mkdir()
    (parted / "web" / "2026-01-02" / "a.jsonl").write_text("{}")
    (parted / "web" / "notes.txt").write_text("of no partition")
    found = declared(parted, PARTED)
    watched = [Watched(it, paths, found.partitions.get(it)) for it, paths in found.paths.items()]
    assert {of.dataset: of.inputs() for of in watched} == {
        "letters": {key: [parted / "letters" / key] for key in ("de", "en")},
        "web": {"2026-01-02": [parted / "web" / "2026-01-02" / "a.jsonl"]},
        "deliveries": {"first": [parted / "deliveries" / "first"]},
        "plain": {"": [parted / "letters"]},
    }
    instance = dg.DagsterInstance.ephemeral()
    notice(watched, instance)
    assert instance.get_dynamic_partitions("deliveries") == ["first"]


def test_a_folder_whose_name_is_no_text_is_told_and_not_made_a_partition(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).mkdir()
    of = dg.DynamicPartitionsDefinition(name="deliveries")
    with pytest.raises(ConfigurationError, match=r"the folder b'\\xff' is no UTF-8"):
        notice([Watched("web", (tmp_path,), of)], dg.DagsterInstance.ephemeral())


def test_a_partition_whose_folder_is_gone_is_no_partition_until_it_is_back(tmp_path: Path) -> None:
    of = dg.DynamicPartitionsDefinition(name="deliveries")
    for name in ("a/mon", "b/tue", "b/.cache", "b/__pycache__"):
        (tmp_path / name).mkdir(parents=True)
    watched = [Watched("one", (tmp_path / "a",), of), Watched("two", (tmp_path / "b",), of)]
    instance = dg.DagsterInstance.ephemeral()
    instance.add_dynamic_partitions("deliveries", ["teu"])  # named once by mistake
    assert notice(watched, instance) == ["deliveries/teu"]
    (tmp_path / "b" / "tue").rmdir()
    assert notice(watched, instance) == ["deliveries/tue"]
    assert instance.get_dynamic_partitions("deliveries") == ["mon"]
    (tmp_path / "b" / "tue").mkdir()
    assert notice(watched, instance) == []
    assert instance.get_dynamic_partitions("deliveries") == ["mon", "tue"]
    (tmp_path / "a").rename(tmp_path / "elsewhere")
    assert notice(watched, instance) == []  # what is not mounted is not gone
    assert instance.get_dynamic_partitions("deliveries") == ["mon", "tue"]


@pytest.mark.parametrize(
    "good, bad, said",
    [
        ("by: key", "by: ky", "line 6, datasets[0].partitions.by: `ky` is no by. Did you mean `key`?"),
        ("by: key, ", "", "line 6, datasets[0].partitions.by: `by` is missing. Add it."),
        ("keys: [de", "kys: [de", "line 6, datasets[0].partitions.keys: `keys` is missing. Add it."),
        ("[de, en]", "[]", "line 6, datasets[0].partitions.keys: It is empty. Give at least one."),
        ("[de, en]", "[de, no]", "line 6, datasets[0].partitions.keys[1]: YAML reads this as False"),
        ("[de, en]", "[de, ../x]", "line 6, datasets[0].partitions.keys: `../x` is no key of a partition."),
        ("[de, en]", "[de, de]", "line 6, datasets[0].partitions.keys: `de` stands twice. Keep one."),
        (
            "[de, en]",
            f"[{'d' * 300}]",
            "line 6, datasets[0].partitions.keys: `dddddddddddddddddddd...` has 300",
        ),
        ("start: 2026-01-01, ", "", "line 11, datasets[1].partitions.start: `start` is missing. Add it."),
        ("start: 2026-01-01", "start: soon", "line 11, datasets[1].partitions.start: `soon` does not fit."),
        ("2026-01-04", "2025-01-04", "line 11, datasets[1].partitions.end: It is not after `start`,"),
        ("by: day", "by: day, keys: [a]", "line 11, datasets[1].partitions.keys: `keys` is no field here."),
        ("{by: folder}", "[a]", "line 17, datasets[2].partitions: Here stands `['a']`, where fields"),
        ("letters/{partition}", "letters", "line 5, datasets[0].paths[0]: `letters` would be read for every"),
        ("paths: deliv", "paths: '{partition}'  # ", "line 16, datasets[2].paths[0]: `{partition}` names a"),
        ("web/{", "wbe/{", "line 10, datasets[1].paths[0]: `wbe/{partition}/a.jsonl` does not exist."),
    ],
)
def test_what_is_wrong_with_partitions_is_told_with_file_line_and_field(
    parted: Path, good: str, bad: str, said: str
) -> None:
    assert PARTED.count(good)
    sentence = refusal(parted, PARTED.replace(good, bad, 1)).splitlines()[0]
    assert sentence.startswith(f"my.yaml, {said}")


@pytest.mark.spark
def test_a_range_of_partitions_of_a_file_is_backfilled_and_a_missing_one_is_named(
    lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    (tmp_path / "days").mkdir()
    for day in (1, 2, 3):
        (tmp_path / "days" / f"2026-01-0{day}.jsonl").write_text(f'{{"text": "of day {day}"}}\n')
    text = (
        f"datasets:\n- name: {unique}\n  kind: prose\n  format: jsonl\n"
        '  paths: "days/{partition}.jsonl"\n'
        "  partitions: {by: day, start: 2026-01-01, end: 2026-01-05}\n"
    )
    found = declared(tmp_path, text)
    chosen = [dg.AssetKey(["raw", unique + end]) for end in ("", "_rejected")]
    chosen += [dg.AssetKey(["signals", unique]), dg.AssetKey(["filtered", unique])]

    def run(first: str, last: str) -> dg.ExecuteInProcessResult:
        return dg.materialize(
            found.assets,
            selection=chosen,
            resources=resources(lake_settings),
            raise_on_error=False,
            tags={RANGE_FIRST: first, RANGE_LAST: last},
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )

    def held() -> dict[str, str]:
        rows = Lake(lake_settings).read(TableName("raw", unique), ["text", "partition"]).to_pylist()
        return {row["partition"]: row["text"] for row in rows}

    assert run("2026-01-02", "2026-01-03").success
    assert held() == {"2026-01-02": "of day 2", "2026-01-03": "of day 3"}
    assert Lake(lake_settings).published(TableName("filtered", unique)).rows == 2
    missing = run("2026-01-01", "2026-01-04")
    [failure] = [it for it in missing.all_events if it.is_step_failure]
    said = "my.yaml, line 5, datasets[0].paths: there is no file of partition `2026-01-04` to read"
    assert said in str(failure.step_failure_data)
    assert held() == {"2026-01-02": "of day 2", "2026-01-03": "of day 3"}


def test_everything_that_is_wrong_is_told_at_once(folder: Path) -> None:
    said = refusal(folder, GOOD.replace("include:", "inclde:").replace("mine: 6", "mine: x"))
    assert [line.split(":")[0] for line in said.splitlines()] == [
        "my.yaml, line 6, datasets[0].inclde",
        "my.yaml, line 32, blend.weights.mine",
    ]


def test_a_rule_that_is_wrong_is_told_of_its_dataset_and_not_of_each_variant(folder: Path) -> None:
    said = refusal(folder, GOOD.replace("stop_words: 1}", "stop_wards: 1}"))
    assert said.splitlines()[0].startswith("my.yaml, line 7, datasets[0].limits: `stop_wards` is no rule")
    assert "variants.same" not in said


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "my.yaml, line 1: Here stands nothing, where fields"),
        ("[]", "my.yaml, line 1: Here stands `[]`"),
        ("datasets:", "my.yaml, line 1, datasets: nothing does not fit. It should be a valid list."),
        ("datasets: [1]", "my.yaml, line 1, datasets[0]: Here stands `1`"),
        ("x: [", "my.yaml, line 1: this is no YAML"),
        ("? [a]\n: 1", "my.yaml, line 1: a list or mapping is no name."),
        ("a: {b: 1,\n b: 2}", "my.yaml, line 2: `b` stands on line 1 already. Keep one."),
        (
            "b: 1\na: 2024-02-31",
            "my.yaml, line 2, a: `2024-02-31` cannot be read (day is out of range for month). Correct or",
        ),
        ("a: \x01", "my.yaml is no YAML (unacceptable character #x0001"),
        ("a: &x [*x]", "my.yaml, line 1, a: `a` is no field here."),
        ("a: " + "[" * 5000, "my.yaml is nested too deeply."),
    ],
)
def test_what_is_no_file_of_datasets_is_one_sentence(folder: Path, text: str, said: str) -> None:
    assert refusal(folder, text).startswith(said)


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file or directory"):
        corpus(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes("a: é".encode("latin-1"))
    with pytest.raises(ConfigurationError, match="is no UTF-8"):
        corpus(tmp_path / "latin.yaml")
