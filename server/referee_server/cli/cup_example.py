"""The example that `referee init` writes: runs as it is, and names every setting."""

from __future__ import annotations

from typing import Final

EXAMPLE: Final = """\
# A tournament. Run it with: referee run THIS-FILE
# A line that begins with # is a comment; take the # away from a setting to use it. What is left out has its default.

name = "First cup"
game = "guillotine"             # or "regicide"

# 64 hex digits from which all cards follow, for repeats and tests. The results are then marked UNSEALED, because
# whoever knows the seed knows every card. Left out, the referee draws one, commits to it, and reveals it at the end.
# seed = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

# The seat that deals first. Left out, it is drawn by lot.
# first_dealer = 0

[options]                       # of the game: docs/rules.md has them all
# rank_order = "standard"

[format]                        # who meets whom: docs/formats.md
kind = "round_robin"            # round_robin, swiss, knockout, gauntlet, ladder
# rounds = 0                    # 0: as many as the format has
sets = 2                        # board sets that every group plays
# challengers = 1               # gauntlet: so many of the first entrants meet all others

[duplicate]                     # several tables play the same cards, so that luck counts less
# mode = "auto"                 # rotation: every group plays each board set in every seating of a rotation
                                # once: an entrant meets a board set once
                                # none: every table has cards of its own
                                # auto: rotation where no entrant can remember cards, else once
# seatings = "cyclic"           # or "all"
# trust_memory = false          # rotation for entrants that could remember, too; the standings say so
# fillers = ["greedy"]          # house bots that sit beside the entrants

[clock]                         # milliseconds
# allowance_ms = 5000           # for each decision
# bank_ms = 60000               # on top of it, for a whole match
# increment_ms = 0
# connect_ms = 30000
# ready_ms = 60000
# reconnect_grace_ms = 30000
# shutdown_ms = 10000
# untimed = false
# liveness_ms = 600000          # untimed: when an agent is taken for dead

[faults]
# strikes = 3                   # so many replace an entrant by a house bot to the end of the match; it is placed last
# replacement_bot = "greedy"
# illegal = { action = "substitute", ask_again = 0, strike = true }
# timeout = { action = "substitute", bot = "greedy" }
# Kinds: no_show, start_timeout, timeout, illegal, malformed, disconnect, crash, flood.
# Actions: substitute, replace, void_deal, forfeit; before the start: cancel, replace.

[running]
concurrency = 8                 # tables at once, at most
# share = 0                     # how many of them one entrant may sit at; 0: three quarters, or all where one table
#                               # seats everybody
# attempts = 3                  # how often a table is played at most, where the referee itself fails
# start_at_once = 2             # local programs that start up at the same time
# auto_play = true              # the referee plays what everybody can tell is forced

# Ends the tournament once this much is certain.
# [stop]
# better = "greedy"
# than = "random"
# by = "place"                  # or "points"
# confidence = 0.95
# effect = 0.1                  # the difference that would matter, in standard deviations of one board set

[[entrant]]
name = "greedy"
bot = "greedy"                  # a house bot: greedy, shaky, random, first, stride

[[entrant]]
name = "random"
bot = "random"

[[entrant]]
name = "first"
bot = "first"

[[entrant]]
name = "stride"
bot = "stride"

# A program that the referee starts. {address}, {name} and {credential} in it stand for what it is to use;
# REFEREE_ADDRESS, REFEREE_NAME and REFEREE_CREDENTIAL in its environment hold the same.
# [[entrant]]
# name = "mine"
# command = ["python", "my_bot.py", "--connect", "{address}"]
# folder = "."                  # relative to this file
# env = { MODEL = "small" }
# isolation = "process"         # or "bubblewrap": no network, no files but its own
# reads = ["/opt/model"]        # what else it can read in a sandbox
# fresh = true                  # started anew for every table
# limits = { memory_mb = 512, cpu_s = 3600, files = 256, processes = 64, file_mb = 64 }

# An agent that connects by itself, with a credential of `referee agents add`, or one that registered itself.
# [[entrant]]
# name = "guest"
# remote = "guest"
"""
"""Text of the file."""
