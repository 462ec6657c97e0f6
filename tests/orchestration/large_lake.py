"""A datasets file of about 150 tables, with everything that decides where a table stands in the graph."""

from __future__ import annotations

from pathlib import Path

LARGE = """\
classifiers:
  quality: {positives: wiki, negatives: {table: web, rules: [c4], fails: 1}}
word_lists:
  profanity: {profane: {en: words.txt}}
language_models:
  fluency: {table: books, languages: [en], limit: {at_most: 3}}
tokenizers:
  tokenizer: {vocabulary: 32_000}
  code: {vocabulary: 48_000}
datasets:
  - {name: wiki, kind: prose, format: jsonl, key: id, paths: wiki}
  - {name: books, kind: prose, format: jsonl, key: id, paths: books}
  - name: web
    kind: prose
    format: jsonl
    key: id
    metadata: url
    paths: web
    facts: {paths: hosts.csv, by: host}
    rounds:
      - {rules: [gopher_quality], predicates: {facts.rank: {at_most: 100_000}}}
      - {rules: [quality, fluency, profanity]}
    validation: 0.01
    variants:
      strict: {rules: [gopher_quality, c4]}
      loose: {threshold: 0.9}
  - {name: news, kind: prose, format: jsonl, key: id, paths: news}
  - {name: forum, kind: prose, format: jsonl, key: id, paths: forum, rules: [gopher_quality, profanity]}
  - {name: papers, kind: prose, format: jsonl, key: id, paths: papers, text: html, markup: keep}
  - {name: paper_texts, kind: prose, format: html, from: papers}
  - {name: questions, kind: prose, format: jsonl, key: id, paths: questions, group: questions}
  - {name: own_code, kind: code, format: repositories, paths: repositories}
  - {name: public_code, kind: code, format: jsonl, key: id, paths: public, tokenizer: code}
groups:
  prose: {threshold: 0.7, sweep: [0.9]}
  code: {repositories: {share: 0.8}}
blend:
  weights: {web: 4, web__strict: 2, wiki: 1, books: 1, own_code: 2}
  pad: true
"""

# A model of deduplicated documents judges other datasets, and datasets have facts from each other's tables.
CROSSED = (
    LARGE.replace("table: books,", "table: deduplicated.questions,")
    .replace("name: books, kind: prose,", "name: books, kind: prose, rules: [quality],")
    .replace(
        "paths: questions,",
        "paths: questions, facts: {table: raw.web, by: host, columns: [n_bytes]},",
    )
    .replace("paths: news}", "paths: news, facts: {table: raw.forum_rejected, by: key, columns: [reason]}}")
)


def fill(folder: Path, text: str = LARGE) -> Path:
    """Write the file and an empty folder for each path; return the path of the file."""
    for name in ("wiki", "books", "web", "news", "forum", "papers", "questions", "repositories", "public"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "words.txt").write_text("darn\n")
    (folder / "hosts.csv").write_text("host,rank\nexample.org,1\n")
    (folder / "datasets.yaml").write_text(text)
    return folder / "datasets.yaml"
