"""Tournaments as they are run: what is played next, by whom it is played, and what goes on record of it."""
