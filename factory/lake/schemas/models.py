"""The tables of models."""

from __future__ import annotations

import pyarrow as pa

from factory.lake.schemas.base import column, list_of, required, table

TOKENIZER = table(
    required("name", pa.string(), "name of the tokenizer"),
    required("n_tokens", pa.int64(), "tokens in its vocabulary"),
    required("tokenizer", pa.string(), "the content of a Hugging Face tokenizer.json"),
    key=("name",),
    chart="models.tokenizer",
)

CLASSIFIER = table(
    required("class", pa.string(), "the class whose documents it recognizes"),
    required("bits", pa.int32(), "binary logarithm of the number of buckets"),
    required("weights", pa.binary(), "the weight of every bucket, little-endian float32"),
    required("intercept", pa.float64(), "score of a text without features"),
    required("knot_scores", list_of(pa.float64(), nullable=False), "scores where calibration bends"),
    required("knot_logits", list_of(pa.float64(), nullable=False), "calibrated log-odds at these scores"),
    required("end_slope", pa.float64(), "log-odds per score before the first and after the last bend"),
    required("n_trained", pa.int64(), "documents that it was trained on, of all classes"),
    required("n_held_out", pa.int64(), "documents of held-out sources"),
    required("n_held_out_sources", pa.int64(), "held-out sources; 0 if documents were held out instead"),
    column("auc", pa.float64(), "area under the ROC curve, on the documents held out"),
    column("calibration_error", pa.float64(), "mean distance of probability and share, on the same"),
    column("rejected_own", pa.float64(), "share of the class's own examples with a probability below .5"),
    column(
        "reliability",
        list_of(pa.struct([("probability", pa.float64()), ("share", pa.float64())])),
        "mean probability and share of the class, by fifteenth of the documents held out",
    ),
    key=("class",),
    chart="models.classifier",
)

WORD_LIST = table(
    required("language", pa.string(), "language whose texts are searched, by its code"),
    required("tier", pa.string(), "`profane` decides, `flagged` is only shown"),
    required("entry", pa.string(), "a word or phrase"),
    key=("language", "tier", "entry"),
    chart="models.word_list",
)

NGRAM_MODEL = table(
    required("language", pa.string(), "language that it is a model of, by its code"),
    required("merges", list_of(pa.int32(), nullable=False), "pairs of tokens that are merged, in order"),
    required("ngrams", list_of(pa.int64(), nullable=False), "tokens of each n-gram, and their number"),
    required("counts", list_of(pa.int64(), nullable=False), "how often it occurs"),
    required("n_documents", pa.int64(), "documents that it was counted in"),
    required("n_bytes", pa.int64(), "their bytes"),
    column("bits_per_byte", pa.float64(), "of documents that were held out"),
    key=("language",),
    chart="models.ngram_model",
)

ONNX_MODEL = table(
    required("input", pa.string(), "what it takes, `texts` or `features`"),
    required("content", pa.binary(), "the bytes of the ONNX file"),
    key=("input",),
    chart="models.onnx_model",
)

EXAMPLES = table(
    required("doc_id", pa.string(), "identifies the document"),
    required("class", pa.string(), "the class that it shows"),
    required("source", pa.string(), "what it was split by"),
    required("held_out", pa.bool_(), "whether it was kept from training"),
    column("probability", pa.float64(), "probability of its class, by a model that has not seen its source"),
    about="The documents that a classifier was trained and checked on.",
    chart="models.examples",
)
