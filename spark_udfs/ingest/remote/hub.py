"""Files of a dataset on the Hugging Face Hub, or on a server with its interface (HF_ENDPOINT).

A run, or a tick of a sensor, resolves a revision once (`resolve_branches_anew`), and workers read the commit
that was listed (`of_one_commit`). The token is HF_TOKEN, or the one of `hf auth login`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote

import httpx
from huggingface_hub import HfApi, constants
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile, RepoFolder
from huggingface_hub.utils._headers import build_hf_headers

from factory.errors import ConfigurationError
from spark_udfs.ingest.remote.objects import Interrupted, ObjectState, RemoteFailure, persistent
from spark_udfs.ingest.remote.web import WebObjects


@dataclass(frozen=True)
class HubObjects:
    """The files of a dataset, `owner/name`, at a revision: a branch, a tag or a commit."""

    dataset: str
    revision: str

    @cached_property
    def commit(self) -> str:
        """The hash of the commit that the revision has."""

        def commit() -> str:
            with self._explained():
                return str(self._api.dataset_info(self.dataset, revision=self.revision).sha)

        return persistent(commit, self._address)

    @cached_property
    def _api(self) -> HfApi:
        return HfApi(library_name="corpus-factory")

    @cached_property
    def _files(self) -> WebObjects:
        headers = build_hf_headers(library_name="corpus-factory")
        return WebObjects(constants.ENDPOINT, headers, "Set or renew HF_TOKEN, or correct the address.")

    @property
    def _address(self) -> str:
        return f"hf://datasets/{self.dataset}@{self.revision}"

    def state(self, name: str) -> ObjectState | None:
        """Return the state of a file, None if there is none."""
        return self._files.state(self._path(name))

    def below(self, prefix: str) -> Iterator[tuple[str, ObjectState]]:
        """Yield the files with names that begin with `prefix`, in the order of the Hub, page by page."""
        for entry in self._entries(prefix, recursive=True):
            if isinstance(entry, RepoFile):
                content = entry.lfs.sha256 if entry.lfs else entry.blob_id
                yield entry.path, ObjectState(entry.size, content, 0)

    def folder(self, prefix: str) -> list[str]:
        """Return the names directly below `prefix`, which is empty or ends with `/`; folders end with `/`."""
        return [
            entry.path.removeprefix(prefix) + ("" if isinstance(entry, RepoFile) else "/")
            for entry in self._entries(prefix, recursive=False)
        ]

    def obstacle(self, name: str) -> None:
        """Return None: every name can be asked for."""

    def pieces(self, name: str, begin: int, end: int, state: ObjectState) -> Iterator[bytes]:
        """Yield the bytes from `begin` to `end` of a file with that state."""
        return self._files.pieces(self._path(name), begin, end, state)

    def _path(self, name: str) -> str:
        return f"datasets/{self.dataset}/resolve/{self.commit}/{quote(name)}"

    def _entries(self, prefix: str, *, recursive: bool) -> Iterator[RepoFile | RepoFolder]:
        folder = prefix.rstrip("/") or None
        try:
            with self._explained():
                yield from self._api.list_repo_tree(
                    self.dataset, folder, recursive=recursive, revision=self.commit, repo_type="dataset"
                )
        except EntryNotFoundError:
            return
        except Interrupted as interruption:  # the library has tried several times
            raise RemoteFailure(
                f"`{self._address}` cannot be listed ({interruption}). Run again when the Hub answers."
            ) from None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn the errors of the Hub into one sentence each."""
        try:
            yield
        except GatedRepoError:
            raise ConfigurationError(
                f"`{self._address}` is gated. Accept its terms on {constants.ENDPOINT}, and set HF_TOKEN."
            ) from None
        except RevisionNotFoundError:
            raise ConfigurationError(
                f"`{self._address}` names a revision that the dataset has not. Correct it."
            ) from None
        except (RepositoryNotFoundError, HFValidationError):
            raise ConfigurationError(
                f"{constants.ENDPOINT} has no dataset `{self.dataset}`, or HF_TOKEN gives no access to it. "
                "Correct one of them."
            ) from None
        except EntryNotFoundError:
            raise
        except (HfHubHTTPError, httpx.HTTPError) as error:
            status = getattr(getattr(error, "response", None), "status_code", None)
            raise Interrupted(f"status {status}" if status else type(error).__name__) from None
