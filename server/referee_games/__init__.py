"""The rules: pure games, dealing and house bots. Standard library only, so that an agent can train with them."""
