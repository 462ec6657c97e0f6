"""The language and media type of a file, by its extension."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """The language and media type that a file's name implies."""

    language: str | None
    media_type: str


PLAIN = Kind("text", "text/plain")
MARKDOWN = Kind("markdown", "text/markdown")
RST = Kind("rst", "text/x-rst")
_UNKNOWN = Kind(None, "text/plain")

_CODE_BY_EXTENSION = {
    "c": Kind("c", "text/x-c"),
    "cc": Kind("cpp", "text/x-c++"),
    "cpp": Kind("cpp", "text/x-c++"),
    "cs": Kind("csharp", "text/x-csharp"),
    "cxx": Kind("cpp", "text/x-c++"),
    "go": Kind("go", "text/x-go"),
    "h": Kind("c", "text/x-c"),
    "hpp": Kind("cpp", "text/x-c++"),
    "java": Kind("java", "text/x-java"),
    "js": Kind("javascript", "text/javascript"),
    "jsx": Kind("javascript", "text/javascript"),
    "kt": Kind("kotlin", "text/x-kotlin"),
    "mjs": Kind("javascript", "text/javascript"),
    "php": Kind("php", "text/x-php"),
    "py": Kind("python", "text/x-python"),
    "pyi": Kind("python", "text/x-python"),
    "pyx": Kind("cython", "text/x-cython"),
    "rb": Kind("ruby", "text/x-ruby"),
    "rs": Kind("rust", "text/x-rust"),
    "ts": Kind("typescript", "text/x-typescript"),
    "tsx": Kind("typescript", "text/x-typescript"),
}
# Other files refer to these files by name, so even an empty one has a meaning.
CODE = frozenset(kind.language for kind in _CODE_BY_EXTENSION.values())
_BY_EXTENSION = _CODE_BY_EXTENSION | {
    "css": Kind("css", "text/css"),
    "htm": Kind("html", "text/html"),
    "html": Kind("html", "text/html"),
    "json": Kind("json", "application/json"),
    "markdown": MARKDOWN,
    "md": MARKDOWN,
    "rst": RST,
    "sh": Kind("shell", "text/x-shellscript"),
    "sql": Kind("sql", "text/x-sql"),
    "tex": Kind("latex", "text/x-tex"),
    "toml": Kind("toml", "application/toml"),
    "txt": PLAIN,
    "xml": Kind("xml", "application/xml"),
    "yaml": Kind("yaml", "application/yaml"),
    "yml": Kind("yaml", "application/yaml"),
}
_WITHOUT_EXTENSION = {"authors", "copying", "licence", "license", "notice", "readme"}  # prose by custom


def kind_of(path: str) -> Kind:
    """Return the kind of a file, plain text of no language for an unknown name."""
    name = path.rpartition("/")[2].lower()
    stem, _, extension = name.rpartition(".")
    if extension in _BY_EXTENSION:
        return _BY_EXTENSION[extension]
    if (stem or name).partition("-")[0].partition(".")[0] in _WITHOUT_EXTENSION:
        return PLAIN
    return _UNKNOWN
