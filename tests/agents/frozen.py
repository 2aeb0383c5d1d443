"""Says `asked` at its first decision and stops itself; whoever started it may let it go on."""

from __future__ import annotations

import os
import signal

from raw import Zoo, main, say

from referee.v1 import agent_service_pb2 as pb


class Frozen(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        say("asked")
        os.kill(os.getpid(), signal.SIGSTOP)


main(Frozen)
