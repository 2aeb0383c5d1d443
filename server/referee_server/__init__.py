"""The referee service."""
