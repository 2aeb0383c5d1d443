"""How often, and how soon, an agent process that ended is started again."""

from __future__ import annotations

from typing import Final

PLAYED_S: Final = 60.0
"""Who has played for so long since its hello, in seconds, has started well, and its restarts are forgotten."""
FIRST_WAIT_S: Final = 0.5
"""How long the first restart in a row waits, in seconds; each further one waits twice as long."""
MOST_WAIT_S: Final = 8.0
"""The longest wait before a restart, in seconds."""
MOST: Final = 20
"""The most restarts in a row that can be asked for."""


class Restarts:
    """Allows so many restarts in a row, each after a longer wait. One more, and it is over for good.

    A row ends when a process has played for a minute. The time until its hello does not count as play: who hangs in
    each of its starts would be started for ever.
    """

    def __init__(self, allowed: int) -> None:
        self._allowed = allowed
        self._row = 0

    def ended(self, played_s: float) -> float | None:
        """Notes that the process has ended, though nobody asked it to.

        Args:
            played_s: how long it had played since its hello, in seconds; 0 if it did not say any.

        Returns:
            How long to wait before it is started again, in seconds; None when it is not.
        """
        if played_s >= PLAYED_S:
            self._row = 0
        if self._row >= self._allowed:
            return None
        self._row += 1
        return min(MOST_WAIT_S, FIRST_WAIT_S * 2.0 ** (self._row - 1))
