"""The formats of a tournament: who meets whom, over which board sets, in which seats (`docs/formats.md`).

Everything follows from the plan, its seed and the outcomes; equal arguments give equal schedules.
"""

from referee_server.tournament.formats.plan import Plan, bye_worth, check, count, tables_a_group
from referee_server.tournament.formats.scheduler import Schedule, Scheduler, schedule

__all__ = ["Plan", "Schedule", "Scheduler", "bye_worth", "check", "count", "schedule", "tables_a_group"]
