"""Conversations as texts: what a template makes of them, and why some are rejected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.errors import ConfigurationError
from factory.ingest.chat_template import TEMPLATES, chat_template
from spark_udfs.ingest.jsonl import jsonl_file
from spark_udfs.ingest.messages import Conversation, text_of
from spark_udfs.ingest.parquet import parquet_file
from spark_udfs.ingest.records import Fields
from tests.ingest.inputs import read, rejected, source

CHATML = Conversation("messages", chat_template("chatml").text)
HELLO = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!\n"}]
# What models write in theirs: optional names and fields, namespaces, marks, a time of the day, and refusals.
WORLDLY = """\
{%- if strftime_now is defined %}{{ strftime_now('%Y') }}{% endif -%}
{%- if tools %}{{ tools | tojson }}{% endif -%}
{{ bos_token }}
{%- set ns = namespace(first=true) -%}
{%- for message in messages -%}
  {%- if message.role == 'ipython' %}{% continue %}{% endif -%}
  {%- if message.role not in ['user', 'assistant'] %}{{ raise_exception('no ' ~ message.role) }}{% endif -%}
  {%- if message.role == 'assistant' and not message.tool_calls -%}
    {% generation %}[{{ message['content'] | trim }}]{{ eos_token }}{% endgeneration %}
  {%- elif message.tool_calls -%}
    {{ message.tool_calls | tojson }}
  {%- else -%}
    {{ '' if ns.first else ' ' }}{{ message['content'].strip() }}
  {%- endif -%}
  {%- set ns.first = false -%}
{%- endfor -%}
{%- if add_generation_prompt %}[{% endif -%}
"""


def reasons(messages: Any, conversation: Conversation = CHATML) -> list[str]:
    content = json.dumps({"messages": messages}).encode()
    rows = read(jsonl_file, "a.jsonl", content, Fields(conversation=conversation))
    return [row["reason"] for row in rejected(rows)]


@pytest.mark.parametrize(
    "template, text",
    [
        ("chatml", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!\n<|im_end|>\n"),
        (
            "llama3",
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nHello!<|eot_id|>",
        ),
        ("gemma", "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nHello!<end_of_turn>\n"),
        ("plain", "User: Hi\n\nAssistant: Hello!\n"),
    ],
)
def test_a_template_of_a_name_renders_as_its_models_read(template: str, text: str) -> None:
    assert template in TEMPLATES
    conversation = Conversation("messages", chat_template(template).text)
    assert text_of(conversation, {"messages": HELLO}) == (text, {"turns": "2", "roles": "user,assistant"})


@pytest.mark.parametrize(
    "messages, reason",
    [
        (None, "no_messages"),
        ([], "no_messages"),
        ("Hi", "messages_not_a_list"),
        ({"role": "user", "content": "Hi"}, "messages_not_a_list"),
        (["Hi"], "bad_message"),
        ([{"content": "Hi"}], "bad_message"),
        ([{"role": 1, "content": "Hi"}], "bad_message"),
        ([*HELLO, {"role": "user"}], "no_content"),
        ([{"role": "user", "content": None}], "no_content"),
        ([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], "content_not_text"),
        ([{"role": "user", "content": 7}], "content_not_text"),
        ([{"role": "user", "content": " \n"}], "empty"),
        ([{"role": "user", "content": "a\0b"}], "nul_byte"),
    ],
)
def test_a_malformed_conversation_is_rejected_by_a_reason_of_its_own(messages: Any, reason: str) -> None:
    assert reasons(messages) == [reason]


def test_a_rejected_conversation_has_its_location_and_says_which_message() -> None:
    lines = [{"messages": HELLO}, {"messages": [HELLO[0], {"from": "gpt", "value": "Hello!"}]}]
    content = "\n".join(map(json.dumps, lines)).encode()
    [bad] = rejected(read(jsonl_file, "a.jsonl", content, Fields(conversation=CHATML)))
    assert (bad["location"], bad["detail"]) == (
        "line 2",
        "Message 2 has no `role` that is text; it has `from`, `value`.",
    )


def test_a_template_that_refuses_a_conversation_rejects_the_record() -> None:
    gemma = Conversation("messages", chat_template("gemma").text)
    assert reasons(HELLO, gemma) == []
    assert reasons([{"role": "system", "content": "Be brief."}, *HELLO], gemma) == ["template"]
    assert reasons([HELLO[1]], gemma) == ["template"]
    assert reasons(HELLO, Conversation("messages", "{{ messages[0].name }}")) == ["template"]
    assert reasons(HELLO, Conversation("messages", "{{ messages[5].content }}")) == ["template"]
    assert reasons(HELLO, Conversation("messages", "{{ 1 // 0 }}")) == ["template"]
    assert reasons(HELLO, Conversation("messages", "{{ messages.append(1) }}")) == ["template"]  # a sandbox


def test_other_names_of_fields_and_roles_are_mapped() -> None:
    conversation = Conversation(
        "conversations", CHATML.template, "from", "value", {"human": "user", "gpt": "assistant"}
    )
    turns = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello!\n"}]
    assert text_of(conversation, {"conversations": turns}) == text_of(CHATML, {"messages": HELLO})


def test_a_template_of_a_model_is_rendered_with_its_special_tokens(tmp_path: Path) -> None:
    config = {"bos_token": {"content": "<s>", "special": True}, "eos_token": "</s>", "pad_token": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**config, "chat_template": WORLDLY}))
    (tmp_path / "chat_template.jinja").write_text(WORLDLY)
    several = [{"name": "tool_use", "template": "x"}, {"name": "default", "template": WORLDLY}]
    (tmp_path / "several").mkdir()
    (tmp_path / "several/tokenizer_config.json").write_text(json.dumps({**config, "chat_template": several}))
    calls = {"role": "assistant", "tool_calls": [{"name": "é"}]}
    messages = [*HELLO, {"role": "ipython", "content": "x"}, {"role": "user", "content": "And?"}, calls]
    names = (".", "chat_template.jinja", "tokenizer_config.json", "several", "several/tokenizer_config.json")
    for name in names:
        template = chat_template(name, tmp_path)
        assert template.tokens == {"bos_token": "<s>", "eos_token": "</s>"}
        conversation = Conversation("messages", template.text, tokens=template.tokens)
        text, facts = text_of(conversation, {"messages": messages})
        assert text == '<s>Hi[Hello!]</s> And?[{"name": "é"}]'
        assert facts == {"turns": "5", "roles": "user,assistant,ipython"}
        assert reasons([{"role": "owl", "content": "Hu"}], conversation) == ["template"]


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("{{ messages", "`mine.jinja`, line 1: this is not a template of Jinja (unexpected end of template"),
        ("a\n{% for %}", "`mine.jinja`, line 2: this is not a template of Jinja"),
        ("{% if x %}", "`mine.jinja`, line 1: this is not a template of Jinja"),
        (
            "{{ bos_token }}",
            "`mine.jinja` cannot render messages: it uses `bos_token`, which is not defined.",
        ),
        ("{{ 'a' + eos_token }}", "it uses `eos_token`, which is not defined."),
        ("{{ strftime_now('%Y') }}", "it uses `strftime_now`, which is not defined."),
        (
            "{% for m in messages %}{{ mesage.content }}{% endfor %}",
            "it uses `mesage`, which is not defined.",
        ),
        ("{{ messages | shout }}", "No filter named 'shout'"),
    ],
)
def test_a_mistake_in_a_template_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "mine.jinja").write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        chat_template("mine.jinja", tmp_path)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_template_that_is_nowhere_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "tokenizer_config.json").write_text("{}")
    (tmp_path / "broken.json").write_text("{")
    for name, sentence in {
        "chatlm": "Unknown template `chatlm`. Did you mean `chatml`? Or name a file of a template.",
        "none.jinja": "There is no file `none.jinja`. Paths are relative to the folder of this file, ",
        "model": "The folder `model` has no chat_template.jinja and no tokenizer_config.json. Name a file.",
        "tokenizer_config.json": "`tokenizer_config.json` has no `chat_template`. Name another file.",
        "broken.json": "`broken.json` is not JSON (line 1: ",
    }.items():
        with pytest.raises(ConfigurationError) as caught:
            chat_template(name, tmp_path)
        assert str(caught.value).startswith(sentence)


_turns = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "system"]),
            "content": st.text(st.characters(codec="utf-8")),
        },
        optional={"name": st.sampled_from(["Ann", "Bob"])},
    ),
    min_size=1,
    max_size=4,
)


@given(st.lists(_turns, min_size=1, max_size=4))
def test_columns_of_messages_give_the_texts_of_lines(
    tmp_path_factory: pytest.TempPathFactory, conversations: list[list[dict[str, str]]]
) -> None:
    folder = tmp_path_factory.mktemp("columns")
    kind = pa.list_(pa.struct([(name, pa.string()) for name in ("role", "content", "name")]))
    pq.write_table(pa.table({"messages": pa.array(conversations, kind)}), folder / "a.parquet")
    lines = "".join(json.dumps({"messages": messages}) + "\n" for messages in conversations)
    (folder / "a.jsonl").write_text(lines)
    fields = Fields(conversation=CHATML)
    rows = [
        [
            (row.get("text"), row.get("reason"), row.get("metadata"))
            for row in reader(source(folder, name), fields)
        ]
        for reader, name in ((parquet_file, "a.parquet"), (jsonl_file, "a.jsonl"))
    ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    "columns, reason",
    [({"text": ["Hi"]}, "no_messages"), ({"messages": ["Hi"]}, "messages_not_a_list")],
)
def test_a_file_without_a_column_of_messages_is_one_rejected_record(
    tmp_path: Path, columns: dict[str, list[str]], reason: str
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    [row] = parquet_file(source(tmp_path, "a.parquet"), Fields(conversation=CHATML))
    assert row["reason"] == reason
