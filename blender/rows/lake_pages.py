"""The state that all readers of a lake's tables share: page indexes, files, and the cache of pages.

    FACTORY_HOME/page-index/    indexes (`index/index_files`), a cache that may be deleted at any time

`reading` alone turns errors of the data below a blend into errors of `blender.errors`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pyarrow as pa
from obstore.exceptions import BaseError

from blender.errors import (
    CorruptPage,
    InvalidBlend,
    InvalidRequest,
    SourceGone,
    StoreUnavailable,
    UnsupportedPageLayout,
)
from blender.rows.index.index_files import IndexFiles
from blender.rows.lake_files import LakeFiles
from factory import _native
from factory.errors import DamagedFile, first_line
from factory.settings import Settings

_REWRITE = "Spark's `rewrite_data_files` with `rewrite-all` rewrites a table, with offset indexes."


class LakePages:
    """Page indexes, files and at most `memory_bytes` of cached pages of one lake; safe for many threads."""

    def __init__(self, settings: Settings, memory_bytes: int) -> None:
        self.indexes = IndexFiles(settings.files.page_index)
        self.files = LakeFiles(settings)
        self.cache = _native.PageCache(memory_bytes)


@contextlib.contextmanager
def reading(what: str) -> Iterator[None]:
    """Translate errors of file readers into errors of this package; `what` names table and snapshot.

    CorruptPage for bytes that changed after they were written, SourceGone for missing files, StoreUnavailable
    for a store that does not answer, UnsupportedPageLayout for files that cannot be read by page.
    """
    try:
        yield
    except KeyError as error:
        raise InvalidBlend(f"{what}: {error.args[0]}") from error
    except NotImplementedError as error:
        raise UnsupportedPageLayout(f"{what}: {error} {_REWRITE}") from error
    except IndexError as error:
        raise InvalidRequest(f"{what}: {error}") from error
    except FileNotFoundError as error:
        raise _gone(what, error) from error
    except BaseError as error:
        raise StoreUnavailable(
            f"{what}: the store of its files does not answer ({first_line(error)}). "
            "Start it, or check the endpoint and the credentials of the lake's settings."
        ) from error
    except (OSError, pa.ArrowInvalid) as error:
        raise _gone(what, error) from error
    except (ValueError, DamagedFile) as error:
        raise CorruptPage(f"{what}: {error}") from error


def _gone(what: str, error: Exception) -> SourceGone:
    return SourceGone(
        f"{what}: a file cannot be read ({first_line(error)}). "
        "Restore it, or materialize the table again and create the blend again."
    )
