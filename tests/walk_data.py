"""The data of the walk: a folder of a stranger's own files, made from those of this Python installation."""

from __future__ import annotations

import re
import shutil
import sysconfig
from pathlib import Path


def write_data(folder: Path) -> None:
    """Notes of many lengths, one copied, one short; files of repositories: good, alike, generated, broken."""
    from pydoc_data.topics import topics

    words = re.findall(r"\S+", " ".join(topics[name] for name in sorted(topics)))
    texts = {f"n{n:02}": " ".join(words[200 * n : 200 * n + 100 + 5 * n]) for n in range(40)}
    texts |= {"copy": texts["n39"], "short": "Too short."}
    (folder / "notes").mkdir(parents=True)
    for name, text in texts.items():
        (folder / "notes" / f"{name}.md").write_text(f"{text}\n")
    standard = Path(sysconfig.get_path("stdlib"))
    files = {
        "cpython": ["stringprep.py", "encodings/cp1252.py", "encodings/cp1254.py", "encodings/cp1250.py"],
        "email": ["email/charset.py", "email/errors.py", "email/message.py", "email/utils.py"],
    }
    files["cpython"] += [f"json/{name}.py" for name in ("__init__", "decoder", "encoder", "scanner", "tool")]
    for repository, names in files.items():
        for name in names:
            target = folder / "checkouts" / repository / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(standard / name, target)
    broken = folder / "checkouts" / "cpython" / "test" / "tokenizedata" / "badsyntax_pep3120.py"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b'print("b\xf6se")\n')
