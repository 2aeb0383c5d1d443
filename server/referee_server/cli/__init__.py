"""The command line: the one place where everything is put together."""
