"""Tournaments as pure computation: who meets whom over which deals, and what follows from the results."""
