"""How a datasets file names an embedder, and the files that it reads.

lsa                             fitted on the documents (`factory.models.lsa`)
onnx:model.onnx                 a model of texts; its first output has a vector a row
sentence_transformers:folder    a model that the library of that name saved
column:metadata.embedding       vectors that came with the documents, as JSON lists of numbers
my_embedders.py:Style           a class of your own
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from factory.errors import ConfigurationError
from factory.models.model_files import existing_path, files_below, hash_of_files
from factory.models.python_file import run_file
from factory.suggestions import unknown_name

_FORMS = {
    "lsa": "lsa",
    "onnx": "onnx:FILE",
    "sentence_transformers": "sentence_transformers:FOLDER",
    "column": "column:metadata.KEY",
    "python": "FILE.py:CLASS",
}
_METADATA = "metadata."


@dataclass(frozen=True)
class EmbedderSpec:
    """An embedder: the `reference` to it, its file or folder, and the name of its class or metadata field."""

    kind: str
    reference: str
    path: Path | None = None
    name: str = ""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that it reads, in the order of their names."""
        return files_below(self.path) if self.path else ()

    @property
    def source(self) -> str:
        """A hash of its files and their names below its folder; it reads them completely."""
        return hash_of_files(self.path, self.name)


def parse_embedder(reference: str, folder: Path) -> EmbedderSpec:
    """Return the embedder that `reference` names; its path is relative to `folder`.

    Raises ConfigurationError for any other word, for a missing file or folder, and for a file of Python
    without the class.
    """
    kind, _, rest = reference.partition(":")
    match kind:
        case "lsa" if not rest:
            return EmbedderSpec("lsa", reference)
        case "onnx" if rest:
            return EmbedderSpec("onnx", reference, existing_path(rest, folder, "file"))
        case "sentence_transformers" if rest:
            return EmbedderSpec("sentence_transformers", reference, existing_path(rest, folder, "folder"))
        case "column" if rest.startswith(_METADATA) and rest != _METADATA:
            return EmbedderSpec("column", reference, name=rest.removeprefix(_METADATA))
    file, _, name = reference.rpartition(":")
    if file.endswith(".py"):
        spec = EmbedderSpec("python", reference, existing_path(file, folder, "file"), name)
        class_of_file(spec)
        return spec
    if kind in _FORMS:
        raise ConfigurationError(f"The embedder `{reference}` is not complete. Write `{_FORMS[kind]}`.")
    raise ConfigurationError(unknown_name("embedder", reference, _FORMS.values()))


def class_of_file(spec: EmbedderSpec) -> type:
    """Run the file of a user's embedder and return its class; raises ConfigurationError without one."""
    assert spec.path is not None
    module = run_file(spec.path)
    classes = {
        name: kind
        for name, kind in vars(module).items()
        if isinstance(kind, type) and callable(getattr(kind, "embed", None))
    }
    if not classes:
        raise ConfigurationError(f"{spec.path.name} has no class with a method `embed`. Write one.")
    if spec.name not in classes:
        raise ConfigurationError(unknown_name(f"embedder of {spec.path.name}:", spec.name, classes))
    return classes[spec.name]
