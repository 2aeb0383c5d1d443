"""What can go wrong for the author of an agent. Each message is one sentence that says what to do."""

from __future__ import annotations


class RefereeError(Exception):
    """Anything this package raises on its own account."""


class CredentialError(RefereeError):
    """The credential cannot be used: a file that others can read, or that holds none, or a referee that refuses it."""


class RegistrationClosedError(CredentialError):
    """The referee takes only agents that its host has added."""


class NameTakenError(RefereeError):
    """Another agent has that name, or one that reads the same."""


class NameInvalidError(RefereeError):
    """The referee does not take that name."""


class ProtocolVersionError(RefereeError):
    """This package and the referee have no protocol version in common, or the other side is no referee at all."""


class NotReachableError(RefereeError):
    """Nobody answered at the address for as long as `connect_timeout` says."""


class SupersededError(RefereeError):
    """The same agent has connected a second time; the newer one plays on. Coming back would throw that one out."""


class RefusedError(RefereeError):
    """The referee refused something else, and trying again would not help.

    Attributes:
        reason: the referee's reason as its protocol names it, such as `MESSAGE_TOO_LARGE`; empty if it gave none.
    """

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class IllegalAnswer(RefereeError):  # noqa: N818 - it is named for what happened, and authors catch it while training
    """In a local match an agent answered something that is not legal. The service would rule on it instead.

    Attributes:
        seat: the seat that answered.
        answer: what it answered.
        legal: what it could have answered.
    """

    def __init__(self, seat: int, answer: object, legal: tuple[str, ...]) -> None:
        super().__init__(f"seat {seat} answered {answer!r}, but only {', '.join(legal)} would be legal")
        self.seat = seat
        self.answer = answer
        self.legal = legal
