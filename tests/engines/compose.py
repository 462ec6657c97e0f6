"""A compose file's services as processes of this machine, in the order and under the conditions it names.

One machine replaces the containers: free ports stand for a service's ports, 127.0.0.1 for its name and
folders of the test for its volumes. Servers from packages stand for images of other projects. Commands,
environments, health checks and conditions are taken from the file.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import yaml

from tests.engines.processes import NO_ANSWER, QUOTED, Postgres, Process
from tests.ports import free_ports

_BIN = Path(sys.executable).parent
_HOSTS = re.compile(r"(?<=[/@=])(postgres|object-store|spark-master|code-server)(?=:\d|$)")
_PORTS = re.compile(r"(?<![\w.])(5432|8333|7077|8080|8081|4000|3000|50051|9464)(?![\w.])")
_HEALTHY_S, _DONE_S = 300, 300


def interpolated(text: str, given: dict[str, str]) -> str:
    """Replace `${NAME:-default}`, `${NAME:?remedy}` and `${NAME:+other}` in the text of a compose file."""

    def value(found: re.Match[str]) -> str:
        name, kind, rest = found.groups()
        if not given.get(name) and kind == "?":
            raise KeyError(f"{name}: {rest}")
        if kind == "+":
            return re.sub(r"\$\{(\w+)\}", lambda inner: given[inner[1]], rest) if given.get(name) else ""
        return given.get(name) or rest

    return re.sub(r"\$\{(\w+):([-?+])((?:\$\{\w+\}|[^{}])*)\}", value, text)


class Platform:
    """The services of a compose file; `environment` overrides variables where this machine is smaller."""

    def __init__(self, file: Path, folder: Path, environment: dict[str, str]) -> None:
        text = interpolated(file.read_text(), {"POSTGRES_PASSWORD": QUOTED, "S3_SECRET": "factory-secret"})
        self.services: dict[str, dict[str, Any]] = yaml.safe_load(text)["services"]
        self.started: list[str] = []
        self.said: dict[str, str] = {}  # output of each service that ends
        self._file, self._folder, self._environment = file, folder, environment
        self._running: list[Process] = []
        self._postgres = Postgres()
        self._postgres.database(self.services["postgres"]["environment"]["POSTGRES_DB"])
        self._ports = {"5432": str(self._postgres.port)}

    def up(self) -> None:
        """Start each service once its dependencies are healthy or done."""
        for name in ("home", "objects"):
            (self._folder / name).mkdir()
        workspace = self._file.parent / "docker" / "workspace.yaml"
        (self._folder / "workspace.yaml").write_text(
            self._here(workspace.read_text().replace("host: code-server", "host: 127.0.0.1"))
        )
        waiting = list(self.services)
        while waiting:
            ready = [
                service
                for service in waiting
                if set(self.services[service].get("depends_on", {})) <= {*self.started}
            ]
            assert ready, f"{waiting} wait for each other"
            for name in ready:
                for _ in range(self.services[name].get("deploy", {}).get("replicas", 1)):
                    self._start(name)
                self.started.append(name)
                waiting.remove(name)

    def down(self) -> None:
        """Stop all services, the last first."""
        for process in reversed(self._running):
            process.stop()
        self._postgres.remove()

    def port(self, inside: int) -> int:
        """The port of this machine that stands for a port of the file."""
        if str(inside) not in self._ports:
            (free,) = free_ports(1)
            self._ports[str(inside)] = str(free)
        return int(self._ports[str(inside)])

    def environment(self, name: str) -> dict[str, str]:
        """The environment of a service on this machine."""
        given = {key: self._here(value) for key, value in self.services[name]["environment"].items()}
        if "FACTORY_SPARK_DRIVER_HOST" in given:
            given["FACTORY_SPARK_DRIVER_HOST"] = "127.0.0.1"
        return {**given, **{key: value for key, value in self._environment.items() if key in given}}

    def _start(self, name: str) -> None:
        """Start one process of a service and wait until it is healthy or done."""
        service = self.services[name]
        if name == "spark-worker":  # containers may share a port number, processes may not
            self._ports.pop("8081", None)
        health = service.get("healthcheck", {"test": [], "interval": "0s"})
        check = self._words(health["test"][1:])
        every_s = int(health["interval"].removesuffix("s")) / 10  # each check starts a process
        if name == "postgres":
            self._postgres.process.wait_for(lambda: self._healthy(name, check), _HEALTHY_S, every_s)
            return
        command = self._words(service["command"])
        if name == "object-store":
            command = ["weed", *command, *_apart()]
        command = [str(_BIN / command[0]), *command[1:]]
        log = self._folder / f"{name}.log"
        if check:
            environment = self._surroundings(name)
            self._running.append(Process(command, log, environment=environment, folder=self._folder))
            self._running[-1].wait_for(lambda: self._healthy(name, check), _HEALTHY_S, every_s)
            return
        self.said[name] = ""
        again = int(service["restart"].removeprefix("on-failure:"))
        for _ in range(1 + again):
            ended = self._run(name, command, _DONE_S)
            self.said[name] += ended.stdout + ended.stderr
            if ended.returncode == 0:
                return
        raise AssertionError(self.said[name])

    def _healthy(self, name: str, check: list[str]) -> bool:
        program, *arguments = check
        if program == "wget":
            try:
                return bool(urlopen(arguments[-1], timeout=60).status == 200)
            except NO_ANSWER:
                return False
        folder = self._postgres.programs if name == "postgres" else _BIN
        return self._run(name, [str(folder / program), *arguments], 300).returncode == 0

    def _run(self, name: str, command: Sequence[str], wait_s: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env=os.environ | self._surroundings(name),
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=wait_s,
            check=False,
        )

    def _surroundings(self, name: str) -> dict[str, str]:
        """The variables that a service adds to the environment of this process."""
        path = f"{_BIN}:{os.environ['PATH']}"
        return {"PATH": path, "SPARK_LOCAL_IP": "127.0.0.1", **self.environment(name)}

    def _words(self, words: Sequence[str]) -> list[str]:
        """A command with the addresses and ports of this machine."""
        hosts = [False, *(word == "--host" for word in words)]
        return [
            "127.0.0.1" if host and word in self.services else self._here(word)
            for word, host in zip(words, hosts, strict=False)
        ]

    def _here(self, text: str) -> str:
        for inside, outside in (
            ("/var/lib/factory", "home"),
            ("/opt/factory/cache", ""),
            ("/opt/factory/workspace.yaml", "workspace.yaml"),
            ("/tmp/spark-work", "work"),
            ("=/data", "objects"),
        ):
            sign = "=" if inside.startswith("=") else ""
            text = text.replace(inside, f"{sign}{self._folder / outside}")
        return _PORTS.sub(lambda found: str(self.port(int(found[1]))), _HOSTS.sub("127.0.0.1", text))


def _apart() -> list[str]:
    """Options that give the object store free ports, so that two stores can run at once."""
    names = ("master.port", "volume.port", "filer.port")
    names = (*names, *(f"{name}.grpc" for name in names), "s3.port.grpc")
    free = [f"-{name}={port}" for name, port in zip(names, free_ports(len(names)), strict=True)]
    return [*free, "-master.volumeSizeLimitMB=64"]


@contextmanager
def platform(file: Path, folder: Path, environment: dict[str, str]) -> Iterator[Platform]:
    """Run the services of a compose file until the block ends."""
    made = Platform(file, folder, environment)
    try:
        made.up()
        yield made
    finally:
        made.down()
