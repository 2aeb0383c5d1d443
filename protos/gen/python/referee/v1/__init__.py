"""Version 1 of the referee protocol, generated from protos/referee/v1."""
