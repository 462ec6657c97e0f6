"""Vectors by a tiny model of sentence-transformers; `tests/test_frameworks.py` runs this file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from factory.errors import ConfigurationError
from factory.models.embedders import embedder_table, parse_embedder, vectors
from spark_udfs.models.embedders import open_sentence_transformer
from tests.clusters import planted_texts
from tests.models.test_embedders import by_id, raw

sentence_transformers = pytest.importorskip("sentence_transformers")
transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

DIMENSIONS = 32
TEXTS: dict[str, str | None] = {
    **{f"english{number}": text for number, text in enumerate(planted_texts.texts("english", 0, 5))},
    **{f"german{number}": text for number, text in enumerate(planted_texts.texts("german", 0, 5))},
    "short": "rain",
    "empty": "",
    "null": None,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers with word pieces and mean pooling, as `model.save` writes it."""
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    home = tmp_path_factory.mktemp("sentences")
    pieces = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    pieces.normalizer = normalizers.BertNormalizer()
    pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=names, show_progress=False)
    pieces.train_from_iterator(filter(None, TEXTS.values()), trainer)
    pieces.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    roles = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=pieces, model_max_length=64, **dict(zip(roles, names, strict=True))
    )
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=DIMENSIONS, max_position_embeddings=64, **sizes
    )
    transformers.BertModel(config).save_pretrained(home / "bert")
    tokenizer.save_pretrained(home / "bert")
    modules = [Transformer(str(home / "bert")), Pooling(DIMENSIONS)]
    sentence_transformers.SentenceTransformer(modules=modules, device="cpu").save(str(home / "sentences"))
    return home


def test_a_text_has_the_same_vector_of_length_one_in_any_batch(folder: Path) -> None:
    embedder = open_sentence_transformer(str(folder / "sentences"), "")
    assert embedder.dimensions == DIMENSIONS
    texts = list(filter(None, TEXTS.values()))
    rows = embedder.embed(pa.array(texts))
    assert rows.shape == (len(texts), DIMENSIONS)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-6)
    assert len(np.unique(rows, axis=0)) == len(texts)
    alone = [embedder.embed(pa.array([text]))[0] for text in reversed(texts)]
    assert np.array_equal(rows, alone[::-1])
    model = sentence_transformers.SentenceTransformer(str(folder / "sentences"), device="cpu")
    assert rows == pytest.approx(model.encode(texts, normalize_embeddings=True), abs=1e-5)


@pytest.mark.spark
def test_documents_have_the_vectors_of_the_model_in_any_partitioning(
    spark: SparkSession, folder: Path
) -> None:
    documents = raw(spark, TEXTS)
    spec = parse_embedder("sentence_transformers:sentences", folder)
    embedder = embedder_table(documents, spec)
    [row] = embedder.toArrow().to_pylist()
    assert (row["kind"], row["dimensions"], row["content"]) == ("sentence_transformers", DIMENSIONS, None)
    assert json.loads(row["parameters"]) == {"source": spec.source}
    vectors_by_id = by_id(vectors(documents.coalesce(1), embedder, spec))
    assert vectors_by_id == by_id(vectors(documents.repartition(5), embedder, spec))
    assert vectors_by_id.keys() == TEXTS.keys()
    assert vectors_by_id["null"] is None
    model = open_sentence_transformer(str(folder / "sentences"), spec.source)
    [vector] = model.embed(pa.array([TEXTS["german1"]]))
    assert vectors_by_id["german1"] == vector.astype("<f4").tobytes()
    with pytest.raises(ConfigurationError, match="gives 32 numbers, not 64"):
        embedder_table(documents, spec, 64)


@pytest.mark.spark
def test_changed_files_and_another_folder_are_refused(spark: SparkSession, folder: Path) -> None:
    documents = raw(spark, TEXTS)
    spec = parse_embedder("sentence_transformers:sentences", folder)
    embedder = embedder_table(documents, spec).localCheckpoint()
    readme = folder / "sentences" / "README.md"
    page = readme.read_text()
    readme.write_text("another page")
    with pytest.raises(ConfigurationError, match="have changed since its table was made"):
        vectors(documents, embedder, spec)
    readme.write_text(page)
    (folder / "nothing").mkdir()
    with pytest.raises(ConfigurationError, match="is not a model of sentence-transformers"):
        embedder_table(documents, parse_embedder("sentence_transformers:nothing", folder))
