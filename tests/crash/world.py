"""A referee that is killed over and over, agents that live on, matches that are always in flight."""

from __future__ import annotations

import contextlib
import random
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import match_pb2
from referee.v1.agent_service_pb2_grpc import AgentServiceStub
from referee_client import convert

from .audit import Found, Tail, audit
from .referee import PATIENCE_S, Child, Host, Referee, environment, until

AGENTS = ("ann", "ben", "cat", "dan")
_FAST = [("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 100)]
"""For channels that outlive many a referee."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class World:
    """Everything around the referee, and the referee of the moment.

    Args:
        folder: an empty folder for its data and the ledgers.
        seed: of everything drawn here; when the processes run when is not in our hand.
        in_flight: how many matches there are to be at once.
        think_ms: for how long an agent thinks at most, in one decision of five.
        short: whether matches are short, so that they begin and end all the time.

    Attributes:
        in_flight: how many matches there are to be at once; may be changed.
        referee: the referee of the moment.
        up_s: how long each start took until it listened.
        created: ids of the matches that were acknowledged, by request id.
        visitors: names and ids of the agents whose registration was acknowledged.
    """

    referee: Referee

    def __init__(self, folder: Path, seed: int, in_flight: int = 8, think_ms: int = 20, *, short: bool = False) -> None:
        self.data = folder / "data"
        self.rng = random.Random(seed)
        self.address = f"127.0.0.1:{free_port()}"
        self.up_s: list[float] = []
        self.created: dict[str, str] = {}
        self.visitors: list[tuple[str, str]] = []
        self._ledgers = folder / "ledgers"
        self._ledgers.mkdir(parents=True)
        self.tail = Tail(self._ledgers)
        self.over: set[str] = set()
        self.in_flight = in_flight
        self._short = short
        self._enough = threading.Event()
        self._looking = threading.Lock()
        self._asked = 0
        self.agents = {name: self._agent(name, think_ms) for name in AGENTS}
        self._specs = random.Random(self.rng.getrandbits(32))
        self._feeder: threading.Thread | None = None

    def _agent(self, name: str, think_ms: int) -> Child:
        ledger, seed = self._ledgers / f"{name}.ledger", self.rng.getrandbits(32)
        told = (self.address, name, str(ledger), str(seed), str(think_ms))
        return Child([sys.executable, "-m", "crash.agent", *told], environment())

    # The referee's life.

    def start(self, failpoints: str = "") -> None:
        """Starts a referee, and does not wait for it. The one before, if it is still there, is killed."""
        if self._feeder is not None:
            self.referee.close()
        self.referee = Referee(self.data, self.address, failpoints)
        if self._feeder is None:
            self._feeder = threading.Thread(target=self._feed, daemon=True)
            self._feeder.start()

    def listening(self) -> bool:
        if not self.referee.listening():
            return False
        self.up_s.append(self.referee.up_s)
        return True

    def kill(self) -> None:
        """Kills it, however far it is, and lets it go."""
        self.referee.close()

    def at_play(self, seconds: float = PATIENCE_S) -> None:
        """Waits until some agent is asked something that it was not asked before."""
        asked = self.look()
        until(lambda: self.look() > asked, "an agent is asked", seconds)

    def look(self) -> int:
        """Reads what the agents have noted since, and returns how many questions they have noted in all."""
        with self._looking:
            for entry in self.tail.read():
                if entry["kind"] == "over":
                    self.over.add(entry["match"])
                self._asked += entry["kind"] == "asked"
            return self._asked

    # What goes on around it.

    def visit(self) -> None:
        """Comes as a new agent and leaves; notes the registration if it was acknowledged."""
        name = f"visitor {self.rng.getrandbits(40):x}"
        token = f"{self.rng.getrandbits(256):064x}"
        hello = agent_pb.Hello(protocol_version=1, name=name, max_matches=1)
        request = agent_pb.PlayRequest(items=[agent_pb.ClientItem(hello=hello)])
        gone = threading.Event()

        def requests() -> Iterator[agent_pb.PlayRequest]:
            yield request
            gone.wait(PATIENCE_S)

        with grpc.insecure_channel(self.address, options=_FAST) as channel, contextlib.suppress(grpc.RpcError):
            call = AgentServiceStub(channel).Play(
                requests(), metadata=(("authorization", f"Bearer {token}"),), timeout=10
            )
            first = next(iter(call)).items[0]
            if first.HasField("welcome"):
                self.visitors.append((name, first.welcome.agent_id))
            gone.set()
            call.cancel()
        gone.set()

    def _feed(self) -> None:
        """Keeps matches in flight. A request that got no answer is made again, under the same id."""
        token = self.data / "host.token"
        while not token.exists():
            if self._enough.wait(0.02):
                return
        with grpc.insecure_channel(self.address, options=_FAST) as channel:
            host = Host(channel, token.read_text().strip())
            number = 0
            spec = self._spec()
            while not self._enough.wait(0.02):
                self.look()
                if len(self.created) - len(self.over) >= self.in_flight:
                    continue
                request_id = f"request-{number}"
                with contextlib.suppress(grpc.RpcError):
                    self.created[request_id] = host.create(spec, request_id, seconds=5.0)
                    number, spec = number + 1, self._spec()

    def _spec(self) -> match_pb2.MatchSpec:
        rng = self._specs
        game = rng.choice(("guillotine", "regicide"))
        seats = 4 if game == "guillotine" else rng.choice((2, 3, 4))
        options = {"deals_per_dealer": 1 if self._short else rng.randint(1, 6)}
        if game == "regicide":
            options = {"players": seats, "target": 10 if self._short else 50}
        spec = match_pb2.MatchSpec(game=game, options=convert.options_to(game, options))
        for name in rng.sample(AGENTS, seats):
            spec.seats.add(agent=name)
        # No bank, so that a second of down time charged to an agent would be a time loss.
        spec.clock.allowance_ms, spec.clock.bank_ms = 2_000, 0
        return spec

    # Its end.

    def finish(self) -> Found:
        """Lets every match come to its end, stops everything in good order, and audits."""
        self._enough.set()
        if self._feeder is not None:
            self._feeder.join(PATIENCE_S)
        with self.referee.host() as host:
            until(lambda: all(match.result.totals for match in host.list()), "all matches end", 120.0, every_s=0.1)
        for agent in self.agents.values():
            agent.send(signal.SIGTERM)
        codes = {name: agent.wait() for name, agent in self.agents.items()}
        code = self.referee.stop()
        self.look()
        found = audit(self.data / "journal.db", self.tail.entries, self.created, self.visitors)
        if code != 0:
            found.broken.append(f"the referee ended with {code}: {self.referee.text[-2000:]}")
        found.broken += [f"agent {name} ended with {code}" for name, code in codes.items() if code != 0]
        return found

    def close(self) -> None:
        self._enough.set()
        for child in (*self.agents.values(), getattr(self, "referee", None)):
            if child is not None:
                child.close()
