"""Goes at the n-th item of a kind: dies when it is `received`, half-closes once its own is `sent`."""

from __future__ import annotations

import os
import signal
from typing import Any

from raw import Stream, Zoo, main, say

from referee.v1 import agent_service_pb2 as pb


class Disconnect(Zoo):
    count = 0

    def run(self) -> None:
        self.way, self.kind, self.nth = self.more[0], self.more[1], int(self.more[2])
        super().run()

    def took(self, item: pb.ServerItem) -> None:
        if self.way == "received" and item.WhichOneof("item") == self.kind:
            self.count += 1
            if self.count == self.nth:
                say("gone")
                os.kill(os.getpid(), signal.SIGKILL)
        super().took(item)

    def open(self, **options: Any) -> Stream:
        stream = super().open(**options)
        send = stream.send

        def sent(*items: pb.ClientItem) -> None:
            send(*items)
            if self.way == "sent" and items[0].WhichOneof("item") == self.kind:
                self.count += 1
                if self.count == self.nth:
                    say("gone")
                    stream.half_close()

        stream.send = sent  # type: ignore[method-assign]
        return stream


main(Disconnect)
