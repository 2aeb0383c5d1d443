"""Runs the checks one after the other, each with a process of the agent of its own, and tells what was wrong."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from referee_server.agents.local import LocalAgents
from referee_server.cli.conformance import checks, checks_links, service
from referee_server.cli.conformance.agent import NotMeant, Setting, Wrong
from referee_server.cli.conformance.exam import Exam
from referee_server.cli.logs import configure
from referee_server.cli.output import ExitCode, Failure, fail, print_json

Examine = Callable[[LocalAgents, Setting], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Attributes:
        name: what it is called on the command line.
        doc: what it means, in a sentence.
        examine: does it; raises `Wrong`, or `NotMeant`.
    """

    name: str
    doc: str
    examine: Examine


def _scripted(check: Callable[[Exam], Awaitable[None]]) -> Check:
    async def examine(agents: LocalAgents, setting: Setting) -> None:
        async with Exam(agents, setting) as exam:
            await check(exam)

    return Check(check.__name__.replace("_", "-"), inspect.getdoc(check) or "", examine)


CHECKS = [
    *map(
        _scripted,
        (
            checks.hello,
            checks.ready,
            checks.answers,
            checks.at_once,
            checks.limits,
            checks.pings,
            checks.time_pressure,
            checks.slow_referee,
            checks.unknown,
            checks.events,
            checks.verdicts,
            checks.asked_again,
            checks.rejected,
            checks.cancelled,
            checks_links.cut_welcome,
            checks_links.cut_open,
            checks_links.cut_answered,
            checks_links.cut_over,
            checks_links.restart,
            checks_links.back_off,
            checks_links.superseded,
            checks_links.refused,
            checks_links.sigterm,
        ),
    ),
    Check("matches", inspect.getdoc(service.matches) or "", service.matches),
]


def run_checks(agents: LocalAgents, setting: Setting, only: Sequence[str], *, as_json: bool) -> None:
    """Examines an agent and prints what was found.

    Args:
        agents: starts its processes.
        setting: how it is examined.
        only: names of checks; empty means all.
        as_json: whether to print JSON lines.

    Raises:
        Failure: there is no such check; CHECK_FAILED when one failed.
    """
    names = [check.name for check in CHECKS]
    for name in only:
        if name not in names:
            fail(f"there is no check {name!r}; there are {', '.join(names)}")
    configure("critical")
    asyncio.run(_run(agents, setting, [check for check in CHECKS if not only or check.name in only], as_json=as_json))


async def _run(agents: LocalAgents, setting: Setting, chosen: list[Check], *, as_json: bool) -> None:
    counts = {"pass": 0, "fail": 0, "skip": 0}
    try:
        for check in chosen:
            counts[await _examine(check, agents, setting, as_json=as_json)] += 1
    finally:
        await agents.close()
    if as_json:
        print_json({"passed": counts["pass"], "failed": counts["fail"], "skipped": counts["skip"]})
    else:
        print(f"{len(chosen)} checks: {counts['pass']} passed, {counts['fail']} failed, {counts['skip']} skipped")
    if counts["fail"]:
        raise Failure("the agent does not conform", ExitCode.CHECK_FAILED)


async def _examine(check: Check, agents: LocalAgents, setting: Setting, *, as_json: bool) -> str:
    began = time.monotonic()
    outcome, what, right = "pass", "", ""
    try:
        await check.examine(agents, setting)
    except Wrong as wrong:
        outcome, what, right = "fail", wrong.what, wrong.right
    except NotMeant as not_meant:
        outcome, what = "skip", str(not_meant)
    seconds = round(time.monotonic() - began, 2)
    if as_json:
        print_json({"check": check.name, "outcome": outcome, "what": what, "right": right, "seconds": seconds})
    elif outcome == "fail":
        print(f"FAIL {check.name}: {_plain(what)}; right: {_plain(right)}", flush=True)
    else:
        print(f"{outcome.upper()} {check.name}" + (f": {_plain(what)}" if what else ""), flush=True)
    return outcome


def _plain(text: str) -> str:
    """Returns text in which nothing of the agent's reaches the terminal but characters."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def list_checks(*, as_json: bool) -> None:
    """Prints what is checked."""
    for check in CHECKS:
        if as_json:
            print_json({"check": check.name, "means": check.doc})
        else:
            print(f"{check.name:14} {check.doc}")
