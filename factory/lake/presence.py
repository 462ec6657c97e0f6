"""Which runs are alive on a lake, to distinguish leftovers of dead runs from the work of live ones.

On the embedded lake one run writes at a time (`factory.lake.lock`). On servers many may write: each holds an
advisory lock in Postgres while its process lives, and Postgres releases it when the connection ends. A caller
must list the leftovers first and ask second: a run takes its lock before it begins its first branch, so a
branch without a lock has no live run.
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
    """Mark the run `token` as alive until the block or the process ends."""
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
    """Return the tokens of dead runs; none if the lake cannot tell."""
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
    """Return the Postgres URI for the locks and its setting: the catalog's, else Dagster's."""
    if settings.catalog == "postgres":
        return str(settings.catalog_uri), CATALOG_URI
    if settings.catalog == "rest" and settings.dagster_uri:
        return settings.dagster_uri, DAGSTER_URI
    return None


def _key(token: str) -> int:
    """Return the number of a run's lock; 63 bits, because Postgres's numbers are signed."""
    hashed = hashlib.blake2b(token.encode(), digest_size=8, key=_SPACE).digest()
    return int.from_bytes(hashed, "big") >> 1
