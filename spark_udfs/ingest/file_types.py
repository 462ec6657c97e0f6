"""The language and media type of a file, by its extension."""

from __future__ import annotations

from typing import NamedTuple


class FileKind(NamedTuple):
    """The language and media type that a file's name implies."""

    language: str | None
    media_type: str


PLAIN = FileKind("text", "text/plain")
MARKDOWN = FileKind("markdown", "text/markdown")
RST = FileKind("rst", "text/x-rst")
_UNKNOWN = FileKind(None, "text/plain")

_CODE_BY_EXTENSION = {
    "c": FileKind("c", "text/x-c"),
    "cc": FileKind("cpp", "text/x-c++"),
    "cpp": FileKind("cpp", "text/x-c++"),
    "cs": FileKind("csharp", "text/x-csharp"),
    "cxx": FileKind("cpp", "text/x-c++"),
    "go": FileKind("go", "text/x-go"),
    "h": FileKind("c", "text/x-c"),
    "hpp": FileKind("cpp", "text/x-c++"),
    "java": FileKind("java", "text/x-java"),
    "js": FileKind("javascript", "text/javascript"),
    "jsx": FileKind("javascript", "text/javascript"),
    "kt": FileKind("kotlin", "text/x-kotlin"),
    "mjs": FileKind("javascript", "text/javascript"),
    "php": FileKind("php", "text/x-php"),
    "py": FileKind("python", "text/x-python"),
    "pyi": FileKind("python", "text/x-python"),
    "pyx": FileKind("cython", "text/x-cython"),
    "rb": FileKind("ruby", "text/x-ruby"),
    "rs": FileKind("rust", "text/x-rust"),
    "ts": FileKind("typescript", "text/x-typescript"),
    "tsx": FileKind("typescript", "text/x-typescript"),
}
# Other files refer to these files by name, so even an empty one has a meaning.
CODE = frozenset(kind.language for kind in _CODE_BY_EXTENSION.values())
_BY_EXTENSION = _CODE_BY_EXTENSION | {
    "css": FileKind("css", "text/css"),
    "htm": FileKind("html", "text/html"),
    "html": FileKind("html", "text/html"),
    "json": FileKind("json", "application/json"),
    "markdown": MARKDOWN,
    "md": MARKDOWN,
    "rst": RST,
    "sh": FileKind("shell", "text/x-shellscript"),
    "sql": FileKind("sql", "text/x-sql"),
    "tex": FileKind("latex", "text/x-tex"),
    "toml": FileKind("toml", "application/toml"),
    "txt": PLAIN,
    "xhtml": FileKind("html", "application/xhtml+xml"),
    "xml": FileKind("xml", "application/xml"),
    "yaml": FileKind("yaml", "application/yaml"),
    "yml": FileKind("yaml", "application/yaml"),
}
_WITHOUT_EXTENSION = {"authors", "copying", "licence", "license", "notice", "readme"}  # prose by custom


def is_known_text(extension: str) -> bool:
    """Whether files of an extension, in small letters, are texts of a known kind."""
    return extension in _BY_EXTENSION


def kind_of(path: str) -> FileKind:
    """Return the kind of a file, plain text of no language for an unknown name."""
    name = path.rpartition("/")[2].lower()
    stem, _, extension = name.rpartition(".")
    if extension in _BY_EXTENSION:
        return _BY_EXTENSION[extension]
    if (stem or name).partition("-")[0].partition(".")[0] in _WITHOUT_EXTENSION:
        return PLAIN
    return _UNKNOWN
