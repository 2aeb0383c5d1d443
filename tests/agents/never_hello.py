"""Connects and says nothing."""

from __future__ import annotations

from raw import Zoo, main


class NeverHello(Zoo):
    def run(self) -> None:
        self.stream = self.open()
        self.read(self.stream)


main(NeverHello)
