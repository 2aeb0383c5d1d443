"""What a report is made of. Whoever runs or reads a tournament fills it in; everything here only shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from referee_server.tournament.bias import Bias
from referee_server.tournament.crosstable import Meeting
from referee_server.tournament.model import Outcome, Standing
from referee_server.tournament.sequential import By, Comparison

FINISHED: Final = "finished"

_LEADS: Final = {
    FINISHED: "Finished",
    "running": "Not finished: it is still running",
    "paused": "Not finished: it is paused",
    "cancelled": "Not finished: it was cancelled",
}


@dataclass(frozen=True, slots=True)
class Duel:
    """Two entrants held against each other, where that is what the tournament was for.

    Attributes:
        first: number of the one.
        second: number of the other.
        by: what was compared: place points a table, or points of the game a deal, more being better.
        found: what came of it.
        verdict: what can be said, in words without a full stop; empty for what the figures say by themselves.
    """

    first: int
    second: int
    by: By
    found: Comparison
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """A tournament as it stands.

    Attributes:
        name: its name.
        game: key of the game.
        game_title: name of the game as people write it.
        format: how it is played, in words, such as `round robin in duplicate, 3 rounds`.
        state: `running`, `paused`, `finished`, `cancelled`, or `stopped early: …` with the reason.
        names: display names of the entrants, by number.
        tables_total: how many tables there are to play, as far as is known.
        lowest_wins: whether few points are good in this game.
        filler_names: display names of the house bots that fill seats: that of number -1 first.
        notes: sentences that a reader has to know before the figures, such as that the host gave the seed himself, or
            how far the agents were kept apart.
        standings: the standings, in their order.
        crosstable: a row for each entrant with a meeting for each entrant, by their numbers.
        bias: what the seat, the dealer and the kind of deal were worth.
        comparison: two entrants held against each other.
        outcomes: the tables that have ended, in any order.
        commitment: what the host was bound to before the first card, in hexadecimal.
        master: the master secret that the commitment binds, in hexadecimal; empty until the tournament has ended.
        generated: from what, and when, the report was made, as one sentence.
    """

    name: str
    game: str
    game_title: str
    format: str
    state: str
    names: Sequence[str]
    tables_total: int
    lowest_wins: bool
    filler_names: Sequence[str] = ()
    notes: Sequence[str] = ()
    standings: Sequence[Standing] = ()
    crosstable: Sequence[Sequence[Meeting]] = ()
    bias: Bias | None = None
    comparison: Duel | None = None
    outcomes: Sequence[Outcome] = field(default=(), repr=False)
    commitment: str = ""
    master: str = ""
    generated: str = ""

    @property
    def finished(self) -> bool:
        """Whether nothing is left to play."""
        return self.state == FINISHED

    @property
    def scored(self) -> int:
        """How many tables have a result."""
        return sum(outcome.scored for outcome in self.outcomes)

    @property
    def ordered(self) -> list[Outcome]:
        """The tables that have ended, by number."""
        return sorted(self.outcomes, key=lambda outcome: outcome.table.number)

    def name_of(self, number: int) -> str:
        """Returns the display name of an entrant, or of a house bot where the number is negative."""
        names, index, unnamed = (self.names, number, "entrant") if number >= 0 else (self.filler_names, ~number, "bot")
        return names[index] if index < len(names) else f"{unnamed} {index + 1}"

    def game_points(self, line: Standing) -> int:
        """Returns the points of a line as the game counts them; in standings more is better, whatever the game."""
        return -line.points if self.lowest_wins else line.points

    def proof(self) -> str:
        """Returns in a line what anybody can check the cards with; empty where the host was bound to nothing."""
        if not self.commitment:
            return ""
        master = f", the master secret {self.master}" if self.master else ""
        return " ".join(filter(None, (f"Cards: the commitment {self.commitment}{master}.", self.generated)))

    def progress(self) -> str:
        """Returns in a sentence or two how far the tournament is, and what had no result."""
        lead = _LEADS.get(self.state) or self.state[:1].upper() + self.state[1:].rstrip(".")
        ended = len(self.outcomes)
        said = f"{lead}. {ended} of {self.tables_total} tables have ended"
        without = Counter(outcome.reason for outcome in self.outcomes if not outcome.scored)
        if not without:
            return f"{said}."
        reasons = ", ".join(f"{times} {reason.replace('_', ' ')}" for reason, times in sorted(without.items()))
        return f"{said}, {without.total()} of them without a result ({reasons})."
