"""Messages and stubs of the referee protocol."""
