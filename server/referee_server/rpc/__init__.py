"""The gRPC services: check, convert, call, convert."""
