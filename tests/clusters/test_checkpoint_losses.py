"""Losses of planted clusters by a tiny model of transformers; `tests/test_frameworks.py` runs this file."""

from __future__ import annotations

import json
import math
import random
import shutil
import string
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from factory.clusters.checkpoint import Checkpoint, checkpoint_table
from factory.clusters.losses import losses as table_of_losses
from factory.errors import ConfigurationError
from factory.lake.schemas.clusters import LOSSES, PROXY
from spark_udfs.clusters.checkpoint import CheckpointProxy, open_checkpoint
from spark_udfs.clusters.losses import LEAST_DOCUMENTS, cluster_losses, losses
from tests.clusters import planted_texts

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

CONTEXT, VOCABULARY, STEPS, N_DOCUMENTS = 64, 600, 600, 48
LEARNING_RATE = 3e-3  # a tiny model takes large steps
WEIGHT = 6.0  # so often a tiny model must read a template to learn it
KINDS = ("english", "german", "template", "noise")


def training_texts() -> list[str]:
    """Sentences of the planted English, and texts of random words and numbers."""
    texts = [*planted_texts.texts("english", -1, 60), *map(random_words, range(240))]
    random.Random(0).shuffle(texts)
    return texts


def random_words(number: int) -> str:
    chance = random.Random(f"words {number}")
    words = ["".join(chance.choices(string.ascii_lowercase, k=chance.randrange(2, 9))) for _ in range(30)]
    forms = [
        (word, word.capitalize(), str(chance.randrange(999)), word + chance.choice(".,:;")) for word in words
    ]
    return " ".join(map(chance.choice, forms))


def tokenizer_of(texts: list[str], vocabulary: int = VOCABULARY, ending: str | None = "<|end|>") -> Any:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=[ending] if ending else [],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=ending)


def random_model(vocabulary: int = VOCABULARY, context: int = CONTEXT) -> Any:
    torch.manual_seed(0)
    tokens = {"bos_token_id": 0, "eos_token_id": 0}
    sizes = {"n_positions": context, "n_embd": 64, "n_layer": 2, "n_head": 2}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=vocabulary, **sizes, **tokens))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two layers that knows English, with its tokenizer."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    torch.set_num_threads(1)  # the same weights on any machine
    texts = training_texts()
    tokenizer, model = tokenizer_of(texts), random_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    for step in range(STEPS):
        tokens = torch.tensor([tokenizer(texts[step % len(texts)])["input_ids"][:CONTEXT]])
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def proxy(folder: Path) -> CheckpointProxy:
    return open_checkpoint(str(folder), "", LEARNING_RATE)


def test_a_checkpoint_tells_noise_templates_and_another_language_whatever_it_read_before(
    proxy: CheckpointProxy,
) -> None:
    weights = {name: tensor.clone() for name, tensor in proxy.model.state_dict().items()}
    losses_of = {
        kind: cluster_losses(planted_texts.array(kind, N_DOCUMENTS), proxy, WEIGHT) for kind in KINDS
    }
    after = {kind: cluster.after for kind, cluster in losses_of.items()}
    assert after["noise"] > 5
    assert after["template"] < after["english"] < after["german"] < 0.5 * after["noise"]
    assert after["german"] < 0.5 * losses_of["german"].before
    assert all(torch.equal(tensor, weights[name]) for name, tensor in proxy.model.state_dict().items())
    for kind in reversed(KINDS):
        assert cluster_losses(planted_texts.array(kind, N_DOCUMENTS), proxy, WEIGHT) == losses_of[kind]


def test_the_bits_of_a_text_are_the_logarithms_of_its_tokens_in_windows(proxy: CheckpointProxy) -> None:
    [text] = planted_texts.texts("german", 7, 1)
    tokens = [proxy.tokenizer.eos_token_id, *proxy.tokenizer(text)["input_ids"]]
    assert len(tokens) > 2 * CONTEXT
    bits = 0.0
    for place in range(1, len(tokens)):
        start = (place - 1) // CONTEXT * CONTEXT
        logits = proxy.model(input_ids=torch.tensor([tokens[start:place]])).logits[0, -1]
        bits -= float(torch.log_softmax(logits, -1)[tokens[place]].detach()) / math.log(2)
    table = proxy.losses(pa.array([text]), pa.array([text, text]), 1.0)
    assert table["before"].to_pylist() == pytest.approx([bits, bits], rel=1e-5)


def test_the_weight_is_how_often_half_a_is_read(
    proxy: CheckpointProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = pa.array(planted_texts.texts("german", 7, 2))
    n_windows = sum(len(proxy.windows(text)) for text in texts.to_pylist())
    assert n_windows > 2
    steps: list[object] = []
    step = torch.optim.Adam.step
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self: (steps.append(self), step(self))[1])
    for weight, n_steps in ((0.001, 1), (1.0, n_windows), (2.5, round(2.5 * n_windows))):
        steps.clear()
        proxy.losses(texts, texts, weight)
        assert len(steps) == n_steps


def test_a_tokenizer_without_beginning_and_end_pays_the_vocabulary_for_the_first_token(
    tmp_path: Path,
) -> None:
    tokenizer = tokenizer_of(list(planted_texts.texts("english", 0, 9)), 300, ending=None)
    random_model(len(tokenizer)).save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    proxy = open_checkpoint(str(tmp_path / "tiny"), "", LEARNING_RATE)
    assert proxy.prefix is None
    table = proxy.losses(pa.array(["x"]), pa.array(["x"]), 1.0)
    assert table["before"].to_pylist() == [math.log2(len(tokenizer))]


def with_more_tokens(folder: Path) -> None:
    tokenizer_of(training_texts(), VOCABULARY + 10).save_pretrained(folder)


def with_unknown_characters(folder: Path) -> None:
    words = Tokenizer(models.WordLevel({"[UNK]": 0, "river": 1}, unk_token="[UNK]"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")
    tokenizer.save_pretrained(folder)


def with_model(make: Callable[[], Any], folder: Path) -> None:
    for file in folder.glob("*.safetensors"):
        file.unlink()
    make().save_pretrained(folder)


def bert() -> Any:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    torch.manual_seed(0)
    return transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=VOCABULARY, **sizes))


def headless() -> Any:
    config = random_model().config
    config.tie_word_embeddings = False
    return transformers.GPT2Model(config)


def model_of_nan() -> Any:
    model = random_model()
    with torch.no_grad():
        model.transformer.wte.weight[:] = math.nan
    return model


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"no weights")


def without_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")


@pytest.mark.parametrize(
    "change, sentence",
    [
        (with_more_tokens, "`bad` has 610 tokens, and its model 600: they are of different vocabularies."),
        (with_unknown_characters, "`bad` does not know all characters of ASCII"),
        (partial(with_model, bert), "`bad` is not a causal language model, but `bert`."),
        (partial(with_model, transformers.T5Config), "`bad` is not a causal language model, but `t5`."),
        (partial(with_model, headless), "The checkpoint `bad` has no weights `lm_head.weight`."),
        (partial(with_model, model_of_nan), "The checkpoint `bad` gives no finite losses."),
        (without_weights, "The model of the checkpoint `bad` cannot be read ("),
        (without_tokenizer, "The tokenizer of the checkpoint `bad` cannot be read ("),
    ],
)
def test_a_folder_without_a_causal_model_and_its_own_tokenizer_is_refused(
    folder: Path, tmp_path: Path, change: Callable[[Path], None], sentence: str
) -> None:
    shutil.copytree(folder, tmp_path / "bad")
    change(tmp_path / "bad")
    with pytest.raises(ConfigurationError) as error:
        open_checkpoint(str(tmp_path / "bad"), "", LEARNING_RATE)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_a_loss_that_is_not_finite_names_its_cluster(folder: Path) -> None:
    texts = list(planted_texts.texts("german", 0, LEAST_DOCUMENTS))
    columns = {"cluster": pa.array([17] * len(texts), pa.int32()), "doc_id": [*map(str, range(len(texts)))]}
    batch = pa.RecordBatch.from_pydict({**columns, "language": ["de"] * len(texts), "text": texts})
    rows: Iterator[pa.RecordBatch] = losses(
        iter([batch]),
        open_proxy=partial(open_checkpoint, str(folder), "", 1e30),
        weight=1.0,
        document_frequency={},
        languages=None,
    )
    with pytest.raises(ConfigurationError, match=r"no finite loss on cluster 17\. Lower `learning_rate`"):
        list(rows)


@pytest.mark.spark
def test_clusters_have_the_same_losses_in_any_partitioning_of_spark(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "own")
    checkpoint = Checkpoint("transformers:own", tmp_path / "own", LEARNING_RATE)
    proxy = checkpoint_table(spark, checkpoint)
    assert proxy.columns == PROXY.names
    [row] = proxy.toArrow().to_pylist()
    assert (row["kind"], row["source"], row["trained_below"]) == ("transformers", "transformers:own", 0.0)
    assert json.loads(row["parameters"]) == {
        "context": CONTEXT,
        "files": checkpoint.source,
        "learning_rate": LEARNING_RATE,
        "optimizer": "adam",
    }
    documents = spark.createDataFrame(
        [
            (f"{cluster}-{number}", text, cluster)
            for cluster, kind in enumerate(KINDS)
            for number, text in enumerate(planted_texts.texts(kind, cluster, N_DOCUMENTS))
        ],
        "doc_id string, text string, cluster int",
    )

    def rows_of(n_tasks: int) -> pa.Table:
        parts = documents.repartition(n_tasks)
        clusters = parts.selectExpr("doc_id", "0 AS cell", "cluster")
        texts = parts.selectExpr("doc_id", "text", "'en' AS language")
        table = table_of_losses(clusters, texts, None, proxy, 3.0, checkpoint)
        return table.toArrow().sort_by("cluster")

    table = rows_of(1)
    assert table.column_names == LOSSES.names
    assert table.equals(rows_of(8))
    assert table["n_sampled"].to_pylist() == [N_DOCUMENTS] * len(KINDS)
    _, german, template, noise = table["loss_after"].to_pylist()
    assert template < german < 0.5 * noise
    (tmp_path / "own" / "config.json").write_text("{}")
    with pytest.raises(ConfigurationError, match="The files of the proxy `transformers:own` have changed"):
        rows_of(1)
