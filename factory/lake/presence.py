"""Which runs are alive on a lake, so that what a dead one left can be told from what a live one is writing.

On the embedded lake one run writes at a time, and `factory.lake.lock` says which. On servers many may: each
holds an advisory lock in Postgres for as long as its process lives, and Postgres lets go of it when the
connection ends, however it ends. Whoever asks must list what runs have left first and ask second: a run
takes its lock before it begins its first branch, so a branch without a lock has no run.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from contextlib import closing

from factory.lake.lock import holds
from factory.lake.servers import CATALOG_URI, DAGSTER_URI, connect
from factory.settings import Settings

_SPACE = b"model-factory run"
_HELD = (
    "select (classid::bigint << 32) | objid::bigint from pg_locks "
    "where locktype = 'advisory' and objsubid = 1 and granted "
    "and database = (select oid from pg_database where datname = current_database())"
)


@contextlib.contextmanager
def present(settings: Settings, token: str) -> Iterator[None]:
    """Let others see that the run known by `token` is alive, until the block or the process ends."""
    where = _postgres(settings)
    if where is None:
        yield
        return
    with closing(connect(*where, f"model-factory {token}")) as connection:
        connection.autocommit = True  # an idle transaction would keep Postgres from vacuuming for hours
        with connection.cursor() as cursor:
            cursor.execute("select pg_advisory_lock(%s)", (_key(token),))
        yield


def dead(settings: Settings, tokens: list[str]) -> list[str]:
    """Those of `tokens` whose runs no longer live; none where nobody can tell."""
    if settings.embedded:
        return [token for token in tokens if not holds(settings, token)]
    where = _postgres(settings)
    if where is None or not tokens:
        return []
    with closing(connect(*where, "model-factory")) as connection, connection.cursor() as cursor:
        cursor.execute(_HELD)
        held = {key for (key,) in cursor.fetchall()}
    return [token for token in tokens if _key(token) not in held]


def _postgres(settings: Settings) -> tuple[str, str] | None:
    """The Postgres that keeps the locks, and the setting that names it: the catalog's, else Dagster's."""
    if settings.catalog == "postgres":
        return str(settings.catalog_uri), CATALOG_URI
    if settings.catalog == "rest" and settings.dagster_uri:
        return settings.dagster_uri, DAGSTER_URI
    return None


def _key(token: str) -> int:
    """The number of a run's lock; 63 bits, because Postgres's are signed."""
    hashed = hashlib.blake2b(token.encode(), digest_size=8, key=_SPACE).digest()
    return int.from_bytes(hashed, "big") >> 1
