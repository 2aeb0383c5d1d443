"""Keeps to the protocol."""

from __future__ import annotations

from raw import Zoo, main


class Plain(Zoo):
    pass


main(Plain)
