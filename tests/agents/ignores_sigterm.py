"""Does not end when it is told to."""

from __future__ import annotations

import signal

from raw import Zoo, main


class IgnoresSigterm(Zoo):
    def run(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        super().run()


main(IgnoresSigterm)
