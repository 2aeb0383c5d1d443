"""Ends at anything that it does not know."""

from __future__ import annotations

import sys

from raw import Zoo, main

from referee.v1 import agent_service_pb2 as pb


class Strict(Zoo):
    def took(self, item: pb.ServerItem) -> None:
        if item.WhichOneof("item") is None:
            sys.exit("an item that I do not know")
        super().took(item)


main(Strict)
