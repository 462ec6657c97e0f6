"""Every language that depsort reads, one line each, and the language of a document."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import PurePosixPath

from spark_udfs.depsort.model import Language

_MODULE_OF_CLASS = {  # a table's code version follows these names
    "Python": "spark_udfs.depsort.languages.python.symbols",
    "JavaScript": "spark_udfs.depsort.languages.javascript.symbols",
    "TypeScript": "spark_udfs.depsort.languages.javascript.symbols",
    "Go": "spark_udfs.depsort.languages.go.symbols",
    "Java": "spark_udfs.depsort.languages.java.symbols",
    "Kotlin": "spark_udfs.depsort.languages.kotlin.symbols",
    "CSharp": "spark_udfs.depsort.languages.csharp.symbols",
    "C": "spark_udfs.depsort.languages.c.symbols",
    "Cpp": "spark_udfs.depsort.languages.cpp.symbols",
    "Rust": "spark_udfs.depsort.languages.rust.symbols",
    "Ruby": "spark_udfs.depsort.languages.ruby.symbols",
    "Php": "spark_udfs.depsort.languages.php.symbols",
}


@cache
def languages() -> dict[str, Language]:
    """Every language by its name in column `language`; a grammar loads when a file first needs it."""
    instances = [
        getattr(importlib.import_module(module), name)() for name, module in _MODULE_OF_CLASS.items()
    ]
    return {language.name: language for language in instances}


@cache
def _by_suffix() -> dict[str, str]:
    return {suffix: language.name for language in languages().values() for suffix in language.suffixes}


@cache
def manifest_names() -> frozenset[str]:
    """The names of the files that some language reads as text, such as `go.mod`."""
    return frozenset(name for language in languages().values() for name in language.manifests)


def language_of(language: str | None, path: str) -> str | None:
    """The known language of a document: by its column, or by the suffix of its path where that is null."""
    if language is None:
        return _by_suffix().get(PurePosixPath(path).suffix.lower())
    return language.lower() if language.lower() in languages() else None
