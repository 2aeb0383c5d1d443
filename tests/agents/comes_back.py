"""Connects again at once, whatever it was told."""

from __future__ import annotations

import grpc
from raw import Zoo, main, say


class ComesBack(Zoo):
    def run(self) -> None:
        while True:
            try:
                super().run()
            except grpc.RpcError as error:
                say("lost", error.code().name)


main(ComesBack)
