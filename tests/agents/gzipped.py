"""Compresses what it sends."""

from __future__ import annotations

from typing import Any

import grpc
from raw import Stream, Zoo, main


class Gzipped(Zoo):
    def open(self, **options: Any) -> Stream:
        return super().open(compression=grpc.Compression.Gzip, **options)


main(Gzipped)
