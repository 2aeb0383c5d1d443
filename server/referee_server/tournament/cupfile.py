"""The file that describes a tournament: what is wrong with one, all of it at once."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from referee.v1 import match_pb2
from referee_games import registry
from referee_games.contract import OptionError, shown
from referee_server.match import spec
from referee_server.match.errors import RefusedError
from referee_server.match.names import fold_name
from referee_server.tournament.cup import KINDS, Cup, Entrant, Fault, remembers, rule_of

MOST_BYTES: Final = 1_000_000
"""The largest file, in characters."""
_MOST_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a file.

    Attributes:
        path: where in the file, such as `entrant.1.command`; empty for the file as a whole.
        message: what is wrong, and what would be right.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class CupError(ValueError):
    """A file does not describe a tournament.

    Attributes:
        problems: everything that is wrong with it, at least one.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = tuple(problems)

    @classmethod
    def of(cls, path: str, message: str) -> CupError:
        """Returns the error of one problem."""
        return cls([Problem(path, message)])


def parse_cup(text: str) -> Cup:
    """Returns the tournament that a file describes.

    Raises:
        CupError: with everything that is wrong with it.
    """
    if len(text) > MOST_BYTES:
        raise CupError([Problem("", f"a file has at most {MOST_BYTES:,} bytes")])
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise CupError([Problem("", f"not TOML: {error}")]) from None
    try:
        cup = Cup.model_validate(found)
    except ValidationError as error:
        problems = [_problem(one) for one in error.errors(include_url=False)[:_MOST_SHOWN]]
        raise CupError([*problems, *_loose_ends(found)][:_MOST_SHOWN]) from None
    problems = [*_check_game(cup), *_check_entrants(cup), *_check_play(cup)]
    if problems:
        raise CupError(problems[:_MOST_SHOWN])
    return cup


def entrant_of(cup: Cup, name: str, kind: str, value: str) -> Entrant:
    """Returns a late entrant of a tournament.

    Args:
        cup: the tournament.
        name: the name in the standings.
        kind: `bot` or `remote`.
        value: the house bot, or name or id of the agent.

    Raises:
        CupError: it cannot enter.
    """
    try:
        entrant = Entrant.model_validate({"name": name, kind: value})
    except ValidationError as error:
        raise CupError([_problem(one) for one in error.errors(include_url=False)]) from None
    with_it = cup.model_copy(update={"entrant": [*cup.entrant, entrant]})
    problems = [*_check_entrants(with_it), *_check_play(with_it)]
    if cup.format.kind == "knockout":
        problems.append(Problem("format.kind", "a knock-out takes no late entries"))
    if problems:
        raise CupError(problems)
    return entrant


_SAID: Final = {
    "extra_forbidden": "there is no such setting",
    "missing": "it is needed",
    "string_type": "it has to be text in quotes",
    "int_type": "it has to be a whole number",
    "float_type": "it has to be a number",
    "bool_type": "it has to be true or false",
    "list_type": "it has to be a list in brackets",
    "dict_type": "it has to be a table",
    "model_type": "it has to be a table",
    "model_attributes_type": "it has to be a table",
}


def _problem(error: Any) -> Problem:
    place = [str(part) for part in error["loc"] if part not in ("int", "str", "bool")]
    # The key is the author's own text, whatever it holds.
    path = ".".join(part if part.isidentifier() or part.isdigit() else shown(part) for part in place)
    if error["type"] == "value_error":
        return Problem(path, str(error["ctx"]["error"]))
    if error["type"] == "literal_error":
        return Problem(path, f"it is {error['ctx']['expected']}, not {shown(error['input'])}")
    said = _SAID.get(error["type"]) or error["msg"][:1].lower() + error["msg"][1:]
    if error["type"] in ("missing", "extra_forbidden"):
        return Problem(path, said)
    return Problem(path, f"{said}, not {shown(error['input'])}" if error["type"] in _SAID else said)


def _loose_ends(found: dict[str, Any]) -> list[Problem]:
    """Returns what is wrong with names even where other parts of the file cannot be read yet."""
    problems: list[Problem] = []
    game = found.get("game")
    if isinstance(game, str):
        problems += _check_game_name(game)
    entrants = found.get("entrant")
    if isinstance(entrants, list):
        names = [one.get("name") if isinstance(one, dict) else None for one in entrants]
        problems += _check_names([name if isinstance(name, str) else None for name in names])
    return problems


def _check_game_name(game: str) -> list[Problem]:
    try:
        registry.find(game)
    except registry.UnknownGameError as error:
        return [Problem("game", str(error))]
    return []


def _check_names(names: Sequence[str | None]) -> list[Problem]:
    first: dict[str, int] = {}
    problems = []
    for number, name in enumerate(names):
        if name is None or len(name) > 1_000:
            continue
        earlier = first.setdefault(fold_name(name), number)
        if earlier != number:
            other = names[earlier]
            problems.append(
                Problem(f"entrant.{number}.name", f"{shown(name)} reads like {shown(other)} of entrant.{earlier}")
            )
    return problems


def _check_game(cup: Cup) -> list[Problem]:
    unknown = _check_game_name(cup.game)
    if unknown:
        return unknown
    problems = [*_check_options(cup), *_check_clock(cup), *_check_faults(cup)]
    if problems:
        return problems
    try:
        seats = cup.rules.seats(cup.game_options)
        cup.match_spec()
    except OptionError as error:
        return [Problem(f"options.{error.name}", str(error))]
    except RefusedError as error:
        return [Problem(str(error.metadata.get("field", "")).removeprefix("spec."), error.message)]
    if cup.first_dealer is not None and cup.first_dealer >= seats:
        return [Problem("first_dealer", f"it is a seat from 0 to {seats - 1}, not {cup.first_dealer}")]
    return []


def _check_options(cup: Cup) -> list[Problem]:
    """Checks each option by itself, so that all that is wrong is found."""
    known = {option.name: option for option in cup.rules.options}
    problems = []
    for name, value in cup.options.items():
        try:
            if name in known:
                known[name].parse(value)
            else:
                cup.rules.configure({name: value})
        except OptionError as error:
            problems.append(Problem(f"options.{name if name.isidentifier() else shown(name)}", str(error)))
    return problems


def _check_clock(cup: Cup) -> list[Problem]:
    problems = []
    for name, value in cup.clock.model_dump(exclude_none=True, exclude={"untimed"}).items():
        try:
            spec.settle_clock(match_pb2.Clock(**{name: value}))
        except ValueError:  # beyond what the protocol can carry
            problems.append(Problem(f"clock.{name}", f"{shown(value)} is far too much"))
        except RefusedError as error:
            problems.append(Problem(f"clock.{name}", error.message))
    return problems


def _check_faults(cup: Cup) -> list[Problem]:
    problems = []
    for kind in KINDS:
        fault: Fault | None = getattr(cup.faults, kind)
        if fault is None:
            continue
        try:
            spec.settle_policy(match_pb2.FaultPolicy(rules=[rule_of(kind, fault)]))
        except ValueError:
            problems.append(Problem(f"faults.{kind}.ask_again", f"{shown(fault.ask_again)} is far too much"))
        except RefusedError as error:
            key = str(error.metadata.get("field", "")).rpartition(".")[2].replace("ask_again_count", "ask_again")
            problems.append(Problem(f"faults.{kind}.{key}", error.message))
    return problems


def _check_entrants(cup: Cup) -> list[Problem]:
    problems = _check_names([entrant.name for entrant in cup.entrant])
    remotes: dict[str, int] = {}
    for number, entrant in enumerate(cup.entrant):
        path = f"entrant.{number}"
        kinds = [kind for kind in ("bot", "command", "remote") if getattr(entrant, kind) is not None]
        if len(kinds) != 1:
            which = " and ".join(kinds) if kinds else "none of them"
            problems.append(Problem(path, f"it has exactly one of bot, command and remote, not {which}"))
        if entrant.command is None:
            local = [
                key
                for key in ("folder", "env", "fresh", "isolation", "reads", "limits")
                if key in entrant.model_fields_set
            ]
            problems += [Problem(f"{path}.{key}", "only a command has that") for key in local]
        elif not entrant.command[0].strip():
            problems.append(Problem(f"{path}.command", "the program has no name"))
        for key in entrant.env:
            if not key.isascii() or not key.replace("_", "a").isalnum() or key[0].isdigit():
                problems.append(Problem(f"{path}.env", f"{shown(key)} is not the name of a variable"))
            elif key.startswith("REFEREE_"):
                problems.append(Problem(f"{path}.env.{key}", "the referee sets that itself"))
        if entrant.remote is not None:
            earlier = remotes.setdefault(fold_name(entrant.remote), number)
            if earlier != number:
                problems.append(Problem(f"{path}.remote", f"entrant.{earlier} is that agent already"))
    return problems


def _check_play(cup: Cup) -> list[Problem]:
    problems = []
    if cup.mode == "rotation" and not cup.duplicate.trust_memory:
        problems += [
            Problem(
                f"entrant.{number}",
                "in rotation it would meet cards again that it may remember; use mode once, let a command be fresh, or"
                " say duplicate.trust_memory = true",
            )
            for number, entrant in enumerate(cup.entrant)
            if remembers(entrant)
        ]
    if cup.duplicate.trust_memory and cup.mode != "rotation":
        problems.append(Problem("duplicate.trust_memory", "it only means something in mode rotation"))
    if cup.stop is not None:
        names = [entrant.name for entrant in cup.entrant]
        for key in ("better", "than"):
            if getattr(cup.stop, key) not in names:
                problems.append(Problem(f"stop.{key}", f"no entrant is called {shown(getattr(cup.stop, key))}"))
        if cup.stop.better == cup.stop.than:
            problems.append(Problem("stop.than", "an entrant cannot be better than itself"))
    return problems
