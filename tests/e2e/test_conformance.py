"""`referee conformance`: agents that keep to the protocol pass, each bad one fails for what is wrong with it."""

from __future__ import annotations

import sys

import pytest

from .arena import AGENTS
from .kit import Home

HOUSE = (sys.executable, "-m", "referee_client.house", "greedy", "--connect", "{address}", "--name", "{name}")
GOOD = (sys.executable, str(AGENTS / "good.py"), "{address}", "{name}", "{credential}")


def bad(program: str, *more: str) -> tuple[str, ...]:
    return (sys.executable, str(AGENTS / f"{program}.py"), "{address}", "{name}", "{credential}", *more)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("command", [(*HOUSE, "--credential", "{credential}"), GOOD], ids=["house", "sdk"])
def test_who_keeps_to_the_protocol_passes_every_check(home: Home, command: tuple[str, ...]) -> None:
    process = home.start("conformance", "--quick", "--answer", 20, "--", *command)
    code = process.wait()
    assert code == 0, process.output
    *checks, summary = process.lines
    assert all(line.startswith("PASS") for line in checks), process.output
    assert summary == f"{len(checks)} checks: {len(checks)} passed, 0 failed, 0 skipped"


@pytest.mark.parametrize("how", ["slow", "async"])
def test_who_thinks_keeps_to_the_protocol_meanwhile(home: Home, how: str) -> None:
    checks = ("at-once", "pings", "cut-open", "cut-answered", "sigterm")
    only = [word for check in checks for word in ("--only", check)]
    done = home.run("conformance", "--quick", "--game", "regicide", *only, "--", *bad("thinker", how))
    assert done.out.splitlines() == [*(f"PASS {check}" for check in checks), "5 checks: 5 passed, 0 failed, 0 skipped"]


TABLE = [
    ("hello", "crash_at_start", (), "its process ended with code 3, saying: no module named nothing"),
    ("hello", "never_hello", (), "it connected and said nothing within 4 s"),
    ("hello", "old_version", (), "Hello says protocol_version 0; right: 1"),
    ("hello", "gzipped", (), "its process ended with code 0, saying: end UNIMPLEMENTED"),
    ("ready", "slow_start", (), "no Ready for a match that was offered within 4 s"),
    ("ready", "decline", (), "it declined a match"),
    ("ready", "nonce", (), "Ready has a nonce of 1 bytes; right: a nonce has 32 random bytes, or is left out"),
    ("answers", "silent", (), "no answer to a decision within 3 s"),
    ("answers", "stall", (), "no answer to a decision within 3 s"),
    ("answers", "late", (), "no answer to a decision within 3 s"),
    ("answers", "illegal", (), "it answered decision 0 with '7C'; right: one of the decision's legal actions"),
    ("answers", "malformed", (), "it answered decision 0 with '\\x00\\x1b[2J"),
    ("answers", "noise", (), "a message of 203 bytes is no PlayRequest"),
    ("answers", "wrong_id", (), "it answered decision 1000, which was not put"),
    ("answers", "duplicate", (), "it answered decision 0 twice"),
    ("answers", "two_answers", (), "then with"),
    ("answers", "guess", (), "it answered decision 1, which was not put"),
    ("answers", "oversize", ("1",), "a message has 65537 bytes; right: at most Welcome's max_message_size: here 65536"),
    ("answers", "many_items", (), "a message holds 257 items; right: at most Welcome's max_items: here 256"),
    ("answers", "leave", (), "it said Leave"),
    ("answers", "foreign", (), "an answer names match 'aaaaaaaaaaaaaaaaaaaaaaaaaa'"),
    ("answers", "other_seat", (), "an answer names seat 1; right: leave the seat out"),
    ("answers", "hello_again", (), "it said Hello twice on one stream"),
    ("answers", "unknown_item", (), "an item has nothing set that version 1 knows"),
    ("answers", "flood", ("empty",), "no answer to a decision"),
    ("answers", "storm", (), "it ended its stream"),
    ("answers", "double_connect", (), "no answer to a decision"),
    ("answers", "disconnect", ("received", "decision", "3"), "its process ended by SIGKILL"),
    ("answers", "disconnect", ("sent", "answer", "3"), "it ended its stream"),
    ("answers", "plain", (), "PASS"),
    ("at-once", "plain", (), "SKIP at-once: its Hello says that it plays one match at a time"),
    ("at-once", "takes_many", (), "no answer to a decision within 3 s"),
    ("limits", "duplicate", (), "twice"),
    ("pings", "thinks_in_loop", (), "a Ping was answered after"),
    ("unknown", "strict", (), "its process ended with code 1, saying"),
    ("verdicts", "answers_verdicts", (), "twice"),
    ("cut-open", "plain", (), "its process ended with code 0"),
    ("back-off", "comes_back", (), "while its streams were cut at once"),
    ("superseded", "comes_back", (), "it came back after SUPERSEDED; right: do not reconnect"),
    ("refused", "comes_back", (), "it came back after CREDENTIAL_REVOKED; right: end, and say why"),
    ("sigterm", "ignores_sigterm", (), "it was still there 5 s after SIGTERM"),
    # Not always in decision 0: in domino the first may be a forced pass, which nobody is asked for.
    ("matches", "illegal", (), "the referee ruled illegal in decision "),
    ("matches", "leave", (), "its process ended with code 0"),
    ("matches", "disconnect", ("sent", "answer", "3"), "it"),
]


@pytest.mark.parametrize(("check", "program", "more", "said"), TABLE, ids=[f"{row[0]}-{row[1]}" for row in TABLE])
def test_a_bad_agent_fails_for_what_is_wrong_with_it(
    home: Home, check: str, program: str, more: tuple[str, ...], said: str
) -> None:
    start = 4 if program in ("never_hello", "slow_start") else 30
    answer = 8 if program == "thinks_in_loop" else 3
    options = ("--quick", "--game", "guillotine", "--start", start, "--answer", answer, "--only", check)
    done = home.run("conformance", *options, "--", *bad(program, *more))
    line = done.out.splitlines()[0]
    if said.startswith("PASS"):
        assert (done.code, line) == (0, f"PASS {check}")
    elif said.startswith("SKIP"):
        assert (done.code, line) == (0, said)
    else:
        assert line.startswith(f"FAIL {check}: "), done
        assert said in line
        assert "; right: " in line
        assert done.code == 1
        assert done.err.splitlines()[-1] == "referee: the agent does not conform"
