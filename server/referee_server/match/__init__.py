"""The match machine: decide and evolve, views, replay and verification. Pure: time and chance are arguments."""
