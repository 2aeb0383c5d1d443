"""The referee service: match machine, journal, tables, gRPC services and command line."""

__version__ = "0.1.0"
