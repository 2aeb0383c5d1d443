"""Ends before it has said anything, as a program does that lacks a module."""

from __future__ import annotations

import sys

print("no module named nothing", flush=True)
sys.exit(3)
