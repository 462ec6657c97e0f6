"""Datasets of conversations in a datasets file: their sentences, their texts, and templates that change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from factory.errors import ConfigurationError
from factory.lake import names
from factory.lake.tables import Lake
from factory.orchestration.datasets.check import check
from factory.orchestration.datasets.file import datasets_file
from factory.orchestration.declare.located_yaml import LocatedYaml
from factory.orchestration.table import progress
from factory.settings import Settings
from tests.orchestration.declared import declared, refusal
from tests.orchestration.runs import run

TEXT = """datasets:
- name: NAME
  kind: prose
  format: jsonl
  paths: a.jsonl
  messages: messages
  template: mine.jinja
  rules: [c4]
  predicates: {metadata.turns: {at_least: 2}}
"""
MINE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """A folder of two conversations, a record that is none, and a template."""
    records: list[Any] = [
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}],
        [{"role": "user", "content": "Nobody answers."}],
        "no list",
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"messages": record}) + "\n" for record in records))
    (tmp_path / "mine.jinja").write_text(MINE)
    return tmp_path


@pytest.mark.parametrize(
    "good, bad, sentence",
    [
        ("  template: mine.jinja\n", "", "line 6, datasets[0].messages: `messages` needs `template` too."),
        ("  messages: messages\n", "", "line 6, datasets[0].template: `template` needs `messages` too."),
        ("  kind", "  text: body\n  kind", "line 3, datasets[0].text: The text is made of `messages`."),
        ("mine.jinja", "chatlm", "line 7, datasets[0].template: Unknown template `chatlm`. Did you mean"),
        (": messages\n", ": {feld: m}\n", "line 6, datasets[0].messages.feld: Unknown field `feld`."),
        (": messages\n", ": [m]\n", "line 6, datasets[0].messages: Expected fields with values"),
    ],
)
def test_what_is_wrong_is_told_with_file_line_and_field(
    chat: Path, good: str, bad: str, sentence: str
) -> None:
    assert refusal(chat, TEXT.replace("NAME", "web").replace(good, bad, 1)).startswith(f"my.yaml, {sentence}")


def test_a_mistake_in_a_template_ends_check_and_run_before_anything_is_read(chat: Path) -> None:
    (chat / "mine.jinja").write_text("{{ eos_token }}")
    sentence = refusal(chat, TEXT.replace("NAME", "web"))
    assert sentence.startswith("my.yaml, line 7, datasets[0].template: `mine.jinja` cannot render messages: ")


@pytest.mark.parametrize(
    "good, bad, sentence",
    [
        (
            ": messages\n",
            ": mesages\n",
            "line 6, datasets[0].messages: The first records of `a.jsonl` have no field `mesages`, only "
            "`messages`. Did you mean `messages`?",
        ),
        (
            ": messages\n",
            ": {role: speaker}\n",
            "line 6, datasets[0].messages: `a.jsonl`, line 1: Message 1 has no `speaker` that is text; it "
            "has `role`, `content`.",
        ),
    ],
)
def test_check_reads_the_first_conversations(chat: Path, good: str, bad: str, sentence: str) -> None:
    (chat / "my.yaml").write_text(TEXT.replace("NAME", "web").replace(good, bad))
    with pytest.raises(ConfigurationError) as caught:
        check(chat / "my.yaml")
    assert str(caught.value).startswith(f"my.yaml, {sentence}")


def test_the_text_of_the_template_decides_the_documents(chat: Path) -> None:
    (chat / "my.yaml").write_text(TEXT.replace("NAME", "web"))

    def reading() -> dict[str, Any]:
        [entry] = LocatedYaml.read(chat / "my.yaml").build(datasets_file()).datasets
        assert str(chat) not in str(entry.reading())
        return entry.reading()

    before = reading()
    (chat / "mine.jinja").write_text(MINE.replace(":", "!"))
    assert reading() != before
    (chat / "mine.jinja").write_text(MINE)
    assert reading() == before
    (chat / "tokenizer_config.json").write_text('{"bos_token": "<s>"}')
    assert reading() != before


@pytest.mark.spark
def test_conversations_are_documents_whose_turns_predicates_compare(
    lake_settings: Settings, unique: str, chat: Path
) -> None:
    lake = Lake(lake_settings)
    keys = [dg.AssetKey(f"raw.{unique}{end}") for end in ("", "_rejected")]
    keys += [dg.AssetKey(f"{stage}.{unique}") for stage in ("signals", "filtered")]

    def reasons() -> dict[str, str]:
        events: list[progress.Progress] = []
        assets = declared(chat, TEXT.replace("NAME", unique)).assets
        with progress.listening(events.append):
            assert run(lake_settings, *assets, selection=keys, reuse=True).success
        return {event.asset: event.reason for event in events if event.phase == "published"}

    reasons()
    rows = {row["key"]: row for row in lake.read(names.raw(unique)).to_pylist()}
    assert {key: row["text"] for key, row in rows.items()} == {
        "a.jsonl:1": "user: Hi\nassistant: Hello!\n",
        "a.jsonl:2": "user: Nobody answers.\n",
    }
    assert dict(rows["a.jsonl:1"]["metadata"]) == {"turns": "2", "roles": "user,assistant"}
    [bad] = lake.read(names.rejected(unique), ["location", "reason"]).to_pylist()
    assert bad == {"location": "line 3", "reason": "messages_not_a_list"}
    verdicts = lake.read(names.filtered(unique), ["doc_id", "rejections"]).to_pylist()
    rules = {row["doc_id"]: [rejection["rule"] for rejection in row["rejections"]] for row in verdicts}
    assert "metadata.turns" not in rules[rows["a.jsonl:1"]["doc_id"]]
    assert "metadata.turns" in rules[rows["a.jsonl:2"]["doc_id"]]

    (chat / "mine.jinja").write_text(MINE.replace(": ", " says "))
    assert "template" in reasons()[f"raw.{unique}"]
    assert lake.read(names.raw(unique), ["text"])["text"][0].as_py().startswith("user says ")
