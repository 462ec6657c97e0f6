"""Certificates for the tests of TLS."""

from __future__ import annotations

from pathlib import Path

import trustme


class Papers:
    """An authority and what it signed, as PEM files: a server, a client, and a stranger's client."""

    def __init__(self, folder: Path) -> None:
        authority, other = trustme.CA(), trustme.CA()
        self.ca, self.stranger_ca = folder / "ca.pem", folder / "stranger-ca.pem"
        authority.cert_pem.write_to_path(self.ca)
        other.cert_pem.write_to_path(self.stranger_ca)
        self.server = self._pair(folder, "server", authority.issue_cert("127.0.0.1", "localhost"))
        self.client = self._pair(folder, "client", authority.issue_cert("trainer@example.org"))
        self.stranger = self._pair(folder, "stranger", other.issue_cert("stranger@example.org"))

    @staticmethod
    def _pair(folder: Path, name: str, issued: trustme.LeafCert) -> tuple[Path, Path]:
        certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
        issued.private_key_pem.write_to_path(key)
        key.chmod(0o600)
        for number, part in enumerate(issued.cert_chain_pems):
            part.write_to_path(certificate, append=number > 0)
        return certificate, key
