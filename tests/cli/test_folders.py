"""`factory init` and `factory check` on folders as people have them: what is read, what is left, and why."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from tests.cli.command import factory

SENTENCE = "The tide turns twice a day along this coast, and the boats follow it out. "


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def init(folder: Path) -> tuple[dict[str, dict], list[str]]:
    """Return the entries of the file that `init` writes by name, and the lines that it prints."""
    written = factory("init", str(folder))
    assert written.exit_code == 0, written.stderr
    entries = yaml.safe_load((folder / "datasets.yaml").read_text())["datasets"]
    checked = factory("check", str(folder))
    assert checked.exit_code == 0, checked.stderr
    return {entry["name"]: entry for entry in entries}, written.stdout.splitlines()


def row_of(lines: list[str], name: str) -> list[str]:
    """The line of a dataset in the table that `check` prints: name, kind, format, files."""
    return next(line.split() for line in lines if line.split()[:1] == [name])


def test_a_checkout_leaves_out_what_it_installed_vendored_built_and_git_ignores(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    write(
        shop,
        **{".git/HEAD": "ref: refs/heads/main\n", ".gitignore": "/build/\n*.gen.js\n"},
        **{f"src/{name}.js": "export const one = 1\n" for name in "abcdefghij"},
        **{f"node_modules/p{n}/index.js": "module.exports = 1\n" for n in range(290)},
        **{f"node_modules/p{n}/README.md": "A package.\n" for n in range(10)},
        **{"vendor/jquery/jquery.js": "1\n", "src/lib.min.js": "1\n", "build/out.js": "1\n"},
        **{"src/api.gen.js": "1\n", ".storybook/main.js": "1\n", "README.md": "A shop.\n"},
    )
    entries, lines = init(shop)
    assert entries["shop"]["exclude"] == [
        *("**/node_modules/**", "**/vendor/**", "**/*.min.js", "**/build/**", "**/*.gen.js", "**/.*/**"),
    ]
    assert row_of(lines, "shop") == ["shop", "code", "files", "10"]
    assert (
        "`shop` leaves out 295 files by `exclude`: 290 by `**/node_modules/**`, 1 by `**/vendor/**`, 1 by "
        "`**/*.min.js`, 1 by `**/build/**`, 1 by `**/*.gen.js` and 1 by `**/.*/**`. Remove a pattern to read "
        "its files."
    ) in lines
    text = (shop / "datasets.yaml").read_text()
    assert '      - "**/node_modules/**" # 290 files, vendored\n' in text
    assert '      - "**/build/**" # 1 file, ignored by git\n' in text
    assert (
        "No dataset reads 10 files under node_modules: installed packages. To read them: factory init "
        f"{shop}/node_modules"
    ) in lines
    packages = factory("init", str(shop / "node_modules"))
    assert row_of(packages.stdout.splitlines(), "node_modules") == [
        "node_modules",
        "code",
        "repositories",
        "290",
    ]


def test_folders_of_vendors_are_no_vendored_code(tmp_path: Path) -> None:
    write(
        tmp_path, **{f"contracts/vendor/{n}.md": SENTENCE for n in range(3)}, **{"contracts/a.md": SENTENCE}
    )
    entries, _ = init(tmp_path)
    assert "exclude" not in entries["contracts"]


CARD = """\
---
license: odc-by
language: [en]
pretty_name: Tides
configs: [{config_name: default, data_files: [{split: train, path: "data/train-*"}]}]
---
# Tides
"""


def test_a_download_of_the_hub_is_one_dataset_with_the_license_of_its_card(tmp_path: Path) -> None:
    folder = tmp_path / "tides"
    junk = {".gitattributes": "*.parquet", ".cache/huggingface/download/data/a.parquet.metadata": "1"}
    write(folder, **{"README.md": CARD, **junk, "data/ignored": ""})
    for number in range(2):
        rows = pa.table({"id": ["a", "b"], "text": [SENTENCE * 9] * 2})
        pq.write_table(rows, folder / "data" / f"train-0000{number}-of-00002.parquet")
    entries, lines = init(folder)
    assert list(entries) == ["tides"]
    assert {entries["tides"][field] for field in ("format", "paths", "license")} == {"parquet", ".", "odc-by"}
    about = 'README.md is its card and not a document. It gives name "Tides", license "odc-by" and language'
    assert lines[0] == f'`tides`: {about} "en".'
    assert row_of(lines, "tides") == ["tides", "prose", "parquet", "2"]
    write(tmp_path, **{"other/README.md": "# No card\n", "other/a.jsonl": '{"text": "one"}\n'})
    entries, lines = init(tmp_path)
    assert {name: entry["license"] for name, entry in entries.items() if "license" in entry} == {
        "tides": "odc-by"
    }
    assert {entry["format"] for entry in entries.values()} == {"parquet", "jsonl"}
