"""`referee conformance`: takes an agent, in whatever language, through what the protocol asks of it.

Nothing is imported here: the process that starts the agent has to be there before gRPC is.
"""
