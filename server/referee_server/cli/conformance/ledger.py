"""What an agent has said so far, held against what the protocol lets it say at any time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from referee.v1 import agent_service_pb2 as pb
from referee_server.cli.conformance.agent import Wrong
from referee_server.cli.conformance.board import Board
from referee_server.cli.conformance.peer import Message

MAX_ITEMS: Final = 256
MAX_BYTES: Final = 64 * 1024


@dataclass
class Playing:
    """What the agent has done in one match."""

    board: Board
    asks: dict[int, int] = field(default_factory=dict)
    """How often each decision was put."""
    put_at: dict[int, float] = field(default_factory=dict)
    """When it was put first."""
    answers: dict[int, list[str]] = field(default_factory=dict)
    """What it was answered, each time."""


class Ledger:
    """What was said, and what is wrong with it.

    Attributes:
        matches: what the agent has done in each match, by id.
        pings: when each ping was sent that has not been answered, by id.
        slowest_pong_s: the longest time to a Pong so far, in seconds.
        max_items: most items in a message of the agent.
        max_bytes: most bytes in one.
        may_repeat: whether the agent may say an answer once more than it was asked: it cannot know what was lost.
    """

    def __init__(self) -> None:
        self.matches: dict[str, Playing] = {}
        self.pings: dict[int, float] = {}
        self.slowest_pong_s = 0.0
        self.max_items, self.max_bytes = MAX_ITEMS, MAX_BYTES
        self.may_repeat = False

    def check_message(self, message: Message) -> None:
        """Checks what holds for a message as a whole."""
        if not message.parsed:
            raise Wrong(f"a message of {message.size} bytes is no PlayRequest", "send PlayRequest messages of protobuf")
        if len(message.items) > self.max_items:
            raise Wrong(
                f"a message holds {len(message.items)} items", f"at most Welcome's max_items: here {self.max_items}"
            )
        if message.size > self.max_bytes:
            raise Wrong(
                f"a message has {message.size} bytes", f"at most Welcome's max_message_size: here {self.max_bytes}"
            )

    def check(self, item: pb.ClientItem, at: float, *, hello: bool) -> None:
        """Checks an item, which was read at that time."""
        match item.WhichOneof("item"):
            case "hello":
                if not hello:
                    raise Wrong("it said Hello twice on one stream", "Hello comes once, first")
            case "ready":
                self._check_ready(item.ready)
            case "decline":
                raise Wrong(
                    "it declined a match", "take what Hello asked for: its games, and as many matches as max_matches"
                )
            case "answer":
                self._check_answer(item.answer, at)
            case "leave":
                raise Wrong("it said Leave", "stay until told to end")
            case None:
                raise Wrong("an item has nothing set that version 1 knows", "set exactly one member of ClientItem.item")
            case _:
                pass

    def check_pong(self, number: int, at: float) -> None:
        """Checks the Pong to a Ping, which was read at that time."""
        sent = self.pings.pop(number, None)
        if sent is None:
            raise Wrong(f"Pong names ping {number}, which was not sent", "answer each Ping once, with its id")
        self.slowest_pong_s = max(self.slowest_pong_s, at - sent)

    def _check_ready(self, ready: pb.Ready) -> None:
        found = self.matches.get(ready.match_id)
        if found is None:
            raise Wrong(f"Ready names match {ready.match_id[:30]!r}, which was not offered", "name the match offered")
        if len(ready.nonce) not in (0, 32):
            raise Wrong(f"Ready has a nonce of {len(ready.nonce)} bytes", "a nonce has 32 random bytes, or is left out")
        if found.board.ready:
            raise Wrong("Ready for a match that it is ready for", "once a match; not where the offer says `ready`")
        found.board.start(ready.nonce)

    def _check_answer(self, answer: pb.Answer, at: float) -> None:
        found = self.matches.get(answer.match_id)
        number = answer.decision_id
        if found is None:
            raise Wrong(f"an answer names match {answer.match_id[:30]!r}", "name the match of the decision")
        asks = found.asks.get(number, 0)
        if not asks or at < found.put_at[number]:
            raise Wrong(f"it answered decision {number}, which was not put", "answer with the decision's own id")
        if answer.HasField("seat") and answer.seat != found.board.seat:
            raise Wrong(f"an answer names seat {answer.seat}", "leave the seat out; the credential decides")
        given = found.answers.setdefault(number, [])
        if given and given[-1] != answer.action:
            raise Wrong(
                f"it answered decision {number} with {given[-1]!r}, then with {answer.action!r}",
                "one answer a decision; asked again after a lost connection, the same one",
            )
        if len(given) >= asks + self.may_repeat:
            raise Wrong(f"it answered decision {number} twice", "answer each decision once, each time it is put")
        given.append(answer.action)
        asked = found.board.asked
        if asked is not None and asked.decision_id == number and answer.action not in asked.legal:
            raise Wrong(
                f"it answered decision {number} with {answer.action[:40]!r}",
                f"one of the decision's legal actions, here {', '.join(asked.legal[:8])}",
            )
