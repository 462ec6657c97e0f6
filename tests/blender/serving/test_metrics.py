"""Metrics for Prometheus, of one process and of several that start and end."""

from __future__ import annotations

import socket
import threading
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from blender import BlenderClient, Source
from blender.catalog.blends import Blends
from blender.errors import InvalidRequest
from blender.rows.counts import BYTES, COUNTS, PAGES
from blender.serving.calls import CallLimiter, Limits
from blender.serving.metrics import FAMILIES, SampleFile, Samples, samples, serve_metrics, summed_samples
from blender.serving.scrapes import MAX_CONNECTIONS
from blender.serving.server import BlenderServer
from blender.serving.service import SENT, blend_services
from factory.errors import MachineError
from tests.ports import free_ports


def scraped(port: int) -> Samples:
    """The samples of a scrape, by name and values of labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    assert {family.name for family in families} == {family.name for family in FAMILIES}
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_a_scrape_says_what_was_answered_sent_and_read(blends: Blends) -> None:
    (port,) = free_ports(1)
    with (
        BlenderServer(blend_services(blends), limits=Limits(calls=9)) as server,
        BlenderClient(server.address) as client,
    ):
        scrapes = serve_metrics("127.0.0.1", port, lambda: samples(server.calls))
        before = scraped(port)
        blend = client.create([Source("packed.code", 5)])
        assert len(list(client.fetch(blend.id, steps=8))) == 8
        with pytest.raises(InvalidRequest):
            client.explain(blend.id, -1)
        after = scraped(port)
        scrapes.shutdown()
        scrapes.server_close()
    grown = {key: value - before.get(key, 0) for key, value in after.items()}
    assert grown["blender_calls_total", ("Create", "OK")] == 1
    assert grown["blender_calls_total", ("Explain", "INVALID_ARGUMENT")] == 1
    assert grown["blender_rows_total", ()] == 40
    assert grown["blender_blocks_total", ()] == 1
    assert grown["blender_bytes_total", ()] > 40 * 8 * 2  # the tokens alone
    assert grown["blender_read_rows_total", ("packed.code",)] >= 40  # and some whose size is tried first
    assert grown["blender_wait_seconds_total", ("packed.code",)] > 0
    assert grown["blender_answer_seconds_count", ("Create",)] == 1
    assert grown["blender_answer_seconds_count", ("Fetch",)] == 1
    assert not grown.get(("blender_answer_seconds_count", ("Explain",)))  # it was refused
    assert after["blender_call_slots", ()] == 9
    for name, metric in ((PAGES, "blender_pages_total"), (BYTES, "blender_read_bytes_total")):
        assert after[metric, ("packed.code",)] == COUNTS.sums()[name, "packed.code"] > 0


def test_messages_of_all_methods_are_summed() -> None:
    before = samples(CallLimiter(Limits()))
    SENT.add("blocks", "Fetch", 2)
    SENT.add("blocks", "Load", 3)
    after = samples(CallLimiter(Limits()))
    assert after["blender_blocks", ()] - before.get(("blender_blocks", ()), 0) == 5


def test_ended_processes_keep_their_counts_and_have_no_open_calls(tmp_path: Path) -> None:
    COUNTS.add(PAGES, "packed.metrics", 3)
    for pid in (11, 12):
        SampleFile(tmp_path / f"{pid}.samples", CallLimiter(Limits(calls=4))).close()
    total = summed_samples(tmp_path, lambda: {12})
    assert total["blender_pages", ("packed.metrics",)] == 6
    assert total["blender_call_slots", ()] == 4
    assert total["blender_processes", ()] == 1


def test_connections_that_ask_for_nothing_hold_no_scrape_up() -> None:
    (port,) = free_ports(1)
    server = serve_metrics("127.0.0.1", port, dict)
    idle = []
    for _ in range(5):
        idle += [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(60)]
        assert scraped(port) == {}
        assert sum("process_request" in thread.name for thread in threading.enumerate()) < 4 * MAX_CONNECTIONS
    assert idle[0].recv(1) == b""  # the oldest was ended
    for one in idle:
        one.close()
    server.shutdown()
    server.server_close()


def test_a_port_of_metrics_that_is_taken_is_named() -> None:
    (port,) = free_ports(1)
    first = serve_metrics("127.0.0.1", port, dict)
    with pytest.raises(MachineError, match=rf"Port {port} of 127.0.0.1 cannot be bound for metrics"):
        serve_metrics("127.0.0.1", port, dict)
    first.shutdown()
    first.server_close()
