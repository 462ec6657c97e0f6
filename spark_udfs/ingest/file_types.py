"""The language and media type of a file, by the end of its name."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """What a file's name says about its text."""

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
# Their files are known by name to other files, so that even one without text has a meaning.
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
    """The kind of a file; where its name does not say, plain text of no language."""
    name = path.rpartition("/")[2].lower()
    stem, _, extension = name.rpartition(".")
    if extension in _BY_EXTENSION:
        return _BY_EXTENSION[extension]
    if (stem or name).partition("-")[0].partition(".")[0] in _WITHOUT_EXTENSION:
        return PLAIN
    return _UNKNOWN
