"""Real servers as processes of a test: Postgres, an S3-compatible store, a Spark cluster.

Each listens on free ports of this machine, keeps its data in a folder of its own and ends with `stop`.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psycopg2
import pyspark
from pyarrow.fs import S3FileSystem

from tests import reaper
from tests.ports import free_ports

PASSWORD = "p/w%d"  # must be quoted in a URI, like many real passwords
QUOTED = "p%2Fw%25d"
# urlopen raises URLError only while connecting; a later reset or timeout is another error.
NO_ANSWER = (OSError, HTTPException)


class Process:
    """A server process with a log, started in a session of its own so that all of it ends with it."""

    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path,
        *,
        user: str | None = None,
        environment: dict[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.log = log
        with log.open("ab") as output:
            self.popen = subprocess.Popen(
                [str(part) for part in command],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | (environment or {}),
                cwd=folder,
                start_new_session=True,
                user=user,
                group=user,
                extra_groups=[] if user else None,
            )
        if user:  # a container's root may not read the environment of another user's process
            reaper.adopt(self.popen.pid)

    def wait_for(self, ready: Callable[[], bool], wait_s: float = 180, every_s: float = 0.1) -> None:
        """Check every `every_s` until `ready`; raises with the end of the log if the process ends first."""
        deadline = time.monotonic() + wait_s
        while self.popen.poll() is None and time.monotonic() < deadline:
            if ready() and self.popen.poll() is None:  # else another server answers on its port
                return
            time.sleep(every_s)
        self.stop(signal.SIGKILL)
        raise RuntimeError(f"{self.popen.args} is not ready:\n{self.log.read_text()[-2000:]}")

    def stop(self, how: signal.Signals = signal.SIGTERM, wait_s: float = 15) -> None:
        """End the process and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.popen.pid, how)
        try:
            self.popen.wait(wait_s)
        except subprocess.TimeoutExpired:
            os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()


def listens(port: int) -> bool:
    """Whether something accepts connections on a port of this machine."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Postgres:
    """A Postgres cluster of its own, with password authentication, from the system's package."""

    user = "factory"

    def __init__(self) -> None:
        found = shutil.which("initdb") or next(
            iter(sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), reverse=True)), None
        )
        assert found, "Postgres is not installed: make system-packages installs it"
        self.programs = Path(found).resolve().parent
        # Postgres refuses to run as root, and cannot enter root's private folders.
        self._user = "postgres" if os.getuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="factory-postgres-"))
        if self._user:
            account = pwd.getpwnam(self._user)
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        (self.port,) = free_ports(1)
        options = ["-A", "scram-sha-256", "-U", self.user, f"--pwfile={secret}", "-E", "UTF8", "--no-locale"]
        initialised = subprocess.run(
            [self.programs / "initdb", "-D", self.folder / "data", "-N", *options],
            user=self._user,
            group=self._user,
            extra_groups=[] if self._user else None,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert initialised.returncode == 0, initialised.stderr
        self.start()

    def start(self) -> None:
        """Start on the existing data."""
        data = self.folder / "data"
        command = [self.programs / "postgres", "-D", data, "-p", str(self.port), "-h", "127.0.0.1"]
        command += ["-k", self.folder, "-c", "fsync=off"]
        self.process = Process(command, self.folder.with_suffix(".log"), user=self._user, folder=self.folder)
        self.process.wait_for(self._answers)

    def stop(self) -> None:
        """Stop the server and disconnect its clients."""
        self.process.stop(signal.SIGINT)

    def remove(self) -> None:
        """Stop the server and delete its data."""
        self.stop()
        shutil.rmtree(self.folder)
        self.process.log.unlink()

    def database(self, name: str) -> str:
        """Create a database and return its URI."""
        self.execute(f"create database {name}")
        return self.uri(name)

    def uri(self, database: str, user: str = user, password: str = QUOTED) -> str:
        """The URI of a database."""
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement as the owner and return its rows."""
        connection = psycopg2.connect(self.uri(database), connect_timeout=60)
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return list(cursor.fetchall()) if cursor.description else []
        finally:
            connection.close()

    def _answers(self) -> bool:
        try:
            self.execute("select 1")
        except psycopg2.OperationalError:
            return False
        return True


class ObjectStore:
    """SeaweedFS: master, volume, filer and its S3 gateway in one process."""

    key_id, secret = "factory", "hush-s3"
    keeper_id, keeper_secret = "keeper", "hush-keeper"
    """Keys that may do everything but delete objects with `/1-` in their names."""

    def __init__(self, folder: Path) -> None:
        names = ("master", "volume", "filer", "s3")
        http, grpc = (dict(zip(names, free_ports(4), strict=True)) for _ in range(2))
        self.port = http["s3"]
        (folder / "data").mkdir()
        identity = {
            "name": "factory",
            "credentials": [{"accessKey": self.key_id, "secretKey": self.secret}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        keeper = {
            "name": "keeper",
            "credentials": [{"accessKey": self.keeper_id, "secretKey": self.keeper_secret}],
            "policyNames": ["keeps"],
        }
        rules = [("Allow", "s3:*", "*"), ("Deny", "s3:DeleteObject", "*/1-*")]
        statements = [
            {"Effect": effect, "Action": [action], "Resource": [f"arn:aws:s3:::{resource}"]}
            for effect, action, resource in rules
        ]
        policy = {
            "name": "keeps",
            "content": json.dumps({"Version": "2012-10-17", "Statement": statements}),
        }
        (folder / "s3.json").write_text(json.dumps({"identities": [identity, keeper], "policies": [policy]}))
        options = {
            "dir": folder / "data",
            "ip": "127.0.0.1",
            "ip.bind": "127.0.0.1",
            **{f"{name}.port": port for name, port in http.items()},
            **{f"{name}.port.grpc": port for name, port in grpc.items()},
            "filer": "true",
            "s3": "true",
            "s3.config": folder / "s3.json",
            "s3.port.iceberg": 0,
            "s3.port.lance": 0,
            "s3.autoCreateBucket": "false",  # like S3
            "master.volumeSizeLimitMB": 64,
            "master.telemetry": "false",
            "volume.max": 0,
        }
        weed = Path(sys.executable).parent / "weed"
        arguments = [f"-{name}={option}" for name, option in options.items()]
        self.process = Process([weed, "-logtostderr", "server", *arguments], folder / "weed.log")
        self.process.wait_for(lambda: _status(f"http://127.0.0.1:{self.port}/healthz") == 200)

    @property
    def endpoint(self) -> str:
        """The address of the S3 gateway."""
        return f"http://127.0.0.1:{self.port}"

    def bucket(self, name: str) -> str:
        """Create a bucket and return its URI."""
        S3FileSystem(
            endpoint_override=self.endpoint,
            access_key=self.key_id,
            secret_key=self.secret,
            region="us-east-1",
            allow_bucket_creation=True,
        ).create_dir(name, recursive=False)
        return f"s3://{name}"

    def stop(self) -> None:
        """Kill the server; a polite stop takes ten seconds."""
        self.process.stop(signal.SIGKILL)


class SparkCluster:
    """A standalone master and two workers with one core each."""

    def __init__(self, folder: Path, memory: str = "1200m") -> None:
        self._folder = folder
        home = Path(pyspark.__file__).parent
        self._class = home / "bin" / "spark-class"
        self._environment = {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_DIRS": str(folder / "local"),
        }
        port, self._web = free_ports(2)
        self.url = f"spark://127.0.0.1:{port}"
        ports = ["--host", "127.0.0.1", "--port", port, "--webui-port", self._web]
        self._processes = [self._start("master.Master", "master", ports)]
        self._processes[0].wait_for(lambda: listens(port) and self.state() != {})
        for number in (1, 2):
            options = [
                "--host",
                "127.0.0.1",
                "--port",
                0,
                "--webui-port",
                0,
                "--cores",
                1,
                "--memory",
                memory,
            ]
            options += ["--work-dir", folder / "work", self.url]
            self._processes.append(self._start("worker.Worker", f"worker{number}", options))
        self._processes[-1].wait_for(lambda: self.state().get("aliveworkers") == 2)

    def state(self) -> dict[str, Any]:
        """The state that the master reports; empty before its page is up."""
        try:
            with urlopen(f"http://127.0.0.1:{self._web}/json/", timeout=60) as answer:
                # The master adds its pages one by one: "/" answers for "/json" until that page is there.
                return {} if answer.headers.get_content_subtype() == "html" else dict(json.load(answer))
        except NO_ANSWER:
            return {}

    def newest(self) -> str:
        """The id of the latest application; ids sort by time."""
        state = self.state()
        return max(str(application["id"]) for application in [*state["activeapps"], *state["completedapps"]])

    def executors(self, application: str) -> int:
        """The number of executors that an application got; each leaves a folder."""
        return len(list((self._folder / "work" / application).glob("[0-9]*")))

    def stop(self) -> None:
        """Kill the workers, then the master."""
        for process in reversed(self._processes):
            process.stop(signal.SIGKILL)

    def _start(self, name: str, log: str, options: Sequence[object]) -> Process:
        command = [str(self._class), f"org.apache.spark.deploy.{name}", *map(str, options)]
        return Process(command, self._folder / f"{log}.log", environment=self._environment)


def _status(address: str) -> int:
    try:
        with urlopen(address, timeout=60) as answer:
            return int(answer.status)
    except NO_ANSWER:
        return 0
