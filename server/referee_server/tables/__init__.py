"""The asyncio shell around the match machine: tables, agents' sessions, group commit, timers."""
