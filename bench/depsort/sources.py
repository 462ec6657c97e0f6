"""Source distributions in twelve languages, fetched from package registries by each language's own tool.

`pip download`, `npm pack`, `go mod download`, Maven's `dependency:copy` and `cargo vendor` use whatever
registry they are configured for. C and C++ come from packages that carry the sources of a library; C#, PHP
and Ruby come from Debian. Every distribution is pinned, unpacked once below FACTORY_CACHE, and reduced to the
folder of its own sources, without build outputs (`dist`, `lib`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench.depsort import debian
from bench.depsort.compilers.kotlin import COPY
from bench.depsort.tools import require, run, unpack
from factory.errors import CheckFailed
from factory.settings import settings


class SourceNotFetched(CheckFailed):
    """A source distribution could not be fetched."""


@dataclass(frozen=True)
class Source:
    """One distribution: `requirement` as its tool writes it; `folders` of `root` are its own sources."""

    language: str
    name: str
    tool: str
    requirement: str
    folders: tuple[str, ...] = (".",)
    root: str = "."


# pip asks a source distribution for its metadata. `setup_requires` installs without dependencies, and
# setuptools_scm has one since 10.
_BUILD_CONSTRAINTS = "setuptools_scm<10\n"

_GEMS = "usr/share/rubygems-integration/all/gems"
SOURCES = (  # rules and weights were tuned on other repositories
    Source("python", "mkdocs", "pip", "mkdocs==1.6.1"),
    Source("python", "sqlglot", "pip", "sqlglot==26.0.0", ("sqlglot", "tests")),
    Source("python", "werkzeug", "pip", "werkzeug==3.1.3"),
    Source("javascript", "fastify", "npm", "fastify@5.2.0"),
    Source("javascript", "mocha", "npm", "mocha@11.0.1", ("lib",)),
    Source("javascript", "stylelint", "npm", "stylelint@16.12.0", ("lib", "types")),
    Source("typescript", "chevrotain", "npm", "chevrotain@11.0.3", ("src",)),
    Source("typescript", "langium", "npm", "langium@3.3.0", ("src",)),
    Source("typescript", "tiptap", "npm", "@tiptap/core@2.11.0", ("src",)),
    Source("java", "commons-compress", "mvn", "org.apache.commons:commons-compress:1.27.1"),
    Source("java", "jackson-core", "mvn", "com.fasterxml.jackson.core:jackson-core:2.18.2"),
    Source("java", "joda-time", "mvn", "joda-time:joda-time:2.13.0"),
    Source("go", "chi", "go", "github.com/go-chi/chi/v5@v5.2.0"),
    Source("go", "memberlist", "go", "github.com/hashicorp/memberlist@v0.5.1"),
    Source("go", "prometheus-common", "go", "github.com/prometheus/common@v0.61.0"),
    Source("c", "libgit2", "cargo", "libgit2-sys=0.17.0", ("libgit2/src", "libgit2/include")),
    Source("c", "libssh2", "cargo", "libssh2-sys=0.3.0", ("libssh2/src", "libssh2/include")),
    Source("cpp", "libsass", "npm", "node-sass@9.0.0", ("src/libsass",)),
    Source("cpp", "sentencepiece", "cargo", "sentencepiece-sys=0.11.3", ("source/src",)),
    Source("rust", "clap_builder", "cargo", "clap_builder=4.5.23"),
    Source("rust", "regex-automata", "cargo", "regex-automata=0.4.9"),
    Source("rust", "toml_edit", "cargo", "toml_edit=0.22.22"),
    Source("kotlin", "javalin", "mvn", "io.javalin:javalin:5.6.3"),
    Source("kotlin", "kotlinpoet", "mvn", "com.squareup:kotlinpoet:1.14.2"),
    Source("kotlin", "okhttp", "mvn", "com.squareup.okhttp3:okhttp:4.12.0"),
    Source("csharp", "keepass", "apt-source", "keepass2=2.47+dfsg-2"),
    Source(
        "csharp", "newtonsoft-json", "apt-source", "newtonsoft-json=6.0.8+dfsg-1.1", ("Src/Newtonsoft.Json",)
    ),
    Source("csharp", "nunit", "apt-source", "nunit=2.6.4+dfsg-1.1", ("src/NUnitCore", "src/NUnitFramework")),
    Source("php", "dbal", "apt", "php-doctrine-dbal=3.6.1+dfsg-1", root="usr/share/php"),
    Source("php", "monolog", "apt", "php-monolog=2.9.1-1", root="usr/share/php"),
    Source("php", "php-parser", "apt", "php-parser=4.15.4-1", root="usr/share/php"),
    Source("ruby", "kramdown", "apt", "ruby-kramdown=2.4.0-2", ("lib",), f"{_GEMS}/kramdown-2.4.0"),
    Source("ruby", "rouge", "apt", "ruby-rouge=3.30.0-2", ("lib",), f"{_GEMS}/rouge-3.30.0"),
    Source("ruby", "rubocop", "apt", "rubocop=1.39.0+dfsg-1", ("lib",), f"{_GEMS}/rubocop-1.39.0"),
)


def fetch(source: Source, console: Console) -> Path:
    """The folder of a distribution's own sources. Raises SourceNotFetched, and ToolMissing."""
    home = settings().cache / "bench" / "sources" / f"{source.tool}-{source.requirement}".replace("/", "_")
    found, stamp = home / "own", home / "_SUCCESS"
    wanted = " ".join((source.root, *source.folders))
    if not stamp.exists() or stamp.read_text() != wanted:
        fetch_into, commands = _TOOLS[source.tool]
        for command, package in commands.items():
            require(command, package)
        console.print(f"fetching {source.requirement} ({source.tool})")
        shutil.rmtree(home, ignore_errors=True)
        whole = home / "whole"
        whole.mkdir(parents=True)
        try:
            root = fetch_into(source.requirement, whole)
        except (OSError, subprocess.CalledProcessError) as error:
            message = getattr(error, "stderr", None) or str(error)
            raise SourceNotFetched(
                f"`{source.tool}` did not fetch {source.requirement}: {message.strip()[-300:]} "
                "Check that the tool is installed and its registry answers."
            ) from error
        _own(root / source.root, source.folders, found)
        shutil.rmtree(whole)
        stamp.write_text(wanted)
    return found


def _own(root: Path, folders: tuple[str, ...], found: Path) -> None:
    """Copy the chosen folders, and the manifests at the top, which resolve names."""
    found.mkdir()
    for folder in folders:
        shutil.copytree(root / folder, found / folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
    for name in ("package.json", "tsconfig.json", "go.mod", "pyproject.toml", "Cargo.toml"):
        if (root / name).exists():
            shutil.copyfile(root / name, found / name)
    for path in found.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)  # a module cache is read-only


def _pip(requirement: str, folder: Path) -> Path:
    constraints = folder / "constraints.txt"
    constraints.write_text(_BUILD_CONSTRAINTS)
    run(
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
        "--dest", str(folder), requirement,
        variables={"PIP_CONSTRAINT": str(constraints)},
    )  # fmt: skip
    return _unpacked(folder)


def _npm(requirement: str, folder: Path) -> Path:
    run("npm", "pack", "--silent", "--pack-destination", str(folder), requirement)
    return _unpacked(folder)


def _maven(requirement: str, folder: Path) -> Path:
    run(
        "mvn", "--quiet", "--batch-mode", COPY,
        f"-Dartifact={requirement}:jar:sources", f"-DoutputDirectory={folder}",
    )  # fmt: skip
    (jar,) = folder.glob("*.jar")
    with zipfile.ZipFile(jar) as archive:
        archive.extractall(folder / "sources")
    return folder / "sources"


def _go(requirement: str, _: Path) -> Path:
    return Path(json.loads(run("go", "mod", "download", "-json", requirement))["Dir"])


def _cargo(requirement: str, folder: Path) -> Path:
    name, _, version = requirement.partition("=")
    (folder / "lib.rs").touch()
    (folder / "Cargo.toml").write_text(
        '[package]\nname = "sources"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n'
        f'[dependencies]\n{name} = "={version}"\n[workspace]\n'
    )
    run("cargo", "vendor", "--quiet", "--manifest-path", str(folder / "Cargo.toml"), str(folder / "vendor"))
    return folder / "vendor" / name


def _apt(requirement: str, folder: Path) -> Path:
    return debian.unpack([requirement], folder)


def _unpacked(folder: Path) -> Path:
    (archive,) = [it for it in folder.iterdir() if it.suffix in (".gz", ".tgz")]
    return unpack(archive, folder / "sources")


# The function that fetches a requirement into a folder, and its commands with their Debian packages.
_TOOLS: dict[str, tuple[Callable[[str, Path], Path], Mapping[str, str]]] = {
    "pip": (_pip, {}),
    "npm": (_npm, {"npm": "npm"}),
    "mvn": (_maven, {"mvn": "maven"}),
    "go": (_go, {"go": "golang-go"}),
    "cargo": (_cargo, {"cargo": "cargo"}),
    "apt": (_apt, {"apt-get": "apt", "dpkg-deb": "dpkg"}),
    "apt-source": (debian.unpack_source, {"apt-get": "apt"}),
}
