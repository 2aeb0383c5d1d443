"""The match as one value that any other program can referee again: the shape of the test vectors, and who played."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from referee.v1 import event_pb2, match_pb2
from referee_server.match.state import begin


def record(events: Sequence[event_pb2.MatchEvent]) -> dict[str, Any]:
    """Returns a log as one JSON-able dict, with these keys in this order.

    - `game`, `options` (only what differs from the defaults) and `first_dealer` (None while there is none);
    - `packs`: per deal, `hands` by seat in the order dealt and `stock` with its top card first, both as they were
      before anything was opened;
    - `steps`: each action in order, forced and substituted ones included: `deal`, `seat`, all `legal` actions, and
      the `action` taken;
    - `deals`: per deal, its `dealer`, the `score` by side, and what the game tells of it: in Guillotine the
      `contract`, in Regicide the `tricks` by seat and the `pot` after it. A voided deal stands there with scores of 0
      and has fewer steps than its rules ask for;
    - `totals` and `places` by side; empty where the match has no result (yet);
    - `match_id`, `deal_id`, `secret`, `nonces` and `commitment`, in hex; the secret is empty while it is sealed, and so
      is a nonce that was not sent. Nonces are by seat; in duplicate play those of the entrants, in their order;
    - `first_dealer_drawn`: whether the first dealer was drawn by lot;
    - `agents`: names by seat;
    - `official_places` by side, after rulings;
    - `rulings`: each with `step` (index in `steps` of the decision it concerns, which is how many steps there were
      before it), `seat`, and `kind` such as `timeout`.

    Args:
        events: a log as the view `all` has it; it may end at any event.

    Raises:
        ValueError: the log does not begin with the creation of a match, or is none that this version can follow.
    """
    match = begin(events[0])
    texts = match.game.texts
    packs: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    deals: list[dict[str, Any]] = []
    rulings: list[dict[str, Any]] = []
    secret = b""
    for event in events[1:]:
        match event.WhichOneof("payload"):
            case "cards_dealt" if event.cards_dealt.pack:
                dealt = event.cards_dealt
                packs.append({"hands": [list(hand.cards) for hand in dealt.hands], "stock": list(dealt.stock)})
            case "action_applied":
                engine = match.playing
                steps.append(
                    {
                        "deal": engine.deal_number,
                        "seat": event.action_applied.seat,
                        "legal": [texts[action] for action in engine.legal()],
                        "action": event.action_applied.action,
                    }
                )
            case "deal_scored":
                scored = event.deal_scored
                told = {detail.name: json.loads(detail.json) for detail in scored.details}
                deals.append({"dealer": scored.dealer, **told, "score": list(scored.scores)})
            case "fault_ruled":
                ruled = event.fault_ruled
                kind = match_pb2.FaultKind.Name(ruled.kind).removeprefix("FAULT_KIND_").lower()
                rulings.append({"step": len(steps), "seat": ruled.seat, "kind": kind})
            case "secret_revealed":
                secret = event.secret_revealed.secret
        match.evolve(event)
    result = match.result or match_pb2.MatchResult()
    defaults = {option.name: option.default for option in match.game.options}
    return {
        "game": match.game.name,
        "options": {name: value for name, value in match.options.items() if value != defaults[name]},
        "first_dealer": match.first_dealer if match.engine is not None else None,
        "packs": packs,
        "steps": steps,
        "deals": deals,
        "totals": list(result.totals),
        "places": list(result.places),
        "match_id": match.match_id,
        "deal_id": match.deal_id,
        "secret": secret.hex(),
        "nonces": [nonce.hex() for nonce in match.nonces],
        "commitment": match.commitment,
        "first_dealer_drawn": match.first_dealer_drawn,
        "agents": [seat.name for seat in match.seats],
        "official_places": list(result.official_places),
        "rulings": rulings,
    }
