"""The client side of the referee: what the author of an agent imports."""
