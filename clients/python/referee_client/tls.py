"""Whom to trust, and how to be known, where the connection is encrypted. Imports no gRPC until it is needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from referee_client.errors import CredentialError

if TYPE_CHECKING:
    import grpc


@dataclass(frozen=True, slots=True)
class Tls:
    """Encryption of the connection to a referee.

    Attributes:
        ca: file with the certificate to trust, PEM; None trusts what the system trusts.
        certificate: file with the client's own certificate, PEM; only where the referee asks for one.
        key: file with its key, PEM.
    """

    ca: str | Path | None = None
    certificate: str | Path | None = None
    key: str | Path | None = None

    def channel_credentials(self) -> grpc.ChannelCredentials:
        """Returns gRPC's credentials.

        Raises:
            CredentialError: a file cannot be read, or there is a certificate without a key or a key without one.
        """
        import grpc

        if (self.certificate is None) != (self.key is None):
            raise CredentialError("a client's certificate comes with its key, and a key with its certificate")
        return grpc.ssl_channel_credentials(
            root_certificates=_read(self.ca), private_key=_read(self.key), certificate_chain=_read(self.certificate)
        )


def _read(path: str | Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise CredentialError(f"the certificate file {path} cannot be read: {error.strerror or error}") from error
