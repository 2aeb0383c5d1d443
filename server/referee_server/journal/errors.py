"""What can go wrong in the journal: requests it refuses, storage that fails, files it will not open, damaged logs."""

from __future__ import annotations

from typing import ClassVar


class JournalError(Exception):
    """Base of everything the journal raises."""


class ClosedError(JournalError):
    """The journal has been closed."""


# A batch that contradicts what is stored: the fault of whoever made it. Nothing of the batch was written.


class RefusedError(JournalError):
    """The batch was refused as a whole; the journal is as before and takes further batches."""


class UnknownMatchError(RefusedError):
    """No match has that id."""


class UnknownTournamentError(RefusedError):
    """There is no such tournament."""


class UnknownAgentError(RefusedError):
    """No agent has that id."""


class DuplicateError(RefusedError):
    """Something that has to be unique is taken.

    Attributes:
        what: `match_id`, `request_id`, `agent_id`, `folded_name` or `credential_hash`.
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"this {what} is taken")
        self.what = what


class MatchFinalError(RefusedError):
    """The match is final and takes no further events."""


class MatchNotFinalError(RefusedError):
    """Only a final match can be replaced by its log file."""


class WrongLogError(RefusedError):
    """The log file is not exactly the stored match: id, number of events or digest differ."""


class LimitError(RefusedError):
    """An event, or the match with it, would be larger than a log may be (see the limits in `chain`)."""


# Storage.


class StorageError(JournalError):
    """The storage failed. Nothing of the batch counts as written."""


class StorageFullError(StorageError):
    """No space is left. A later batch is tried afresh."""


class StorageBusyError(StorageError):
    """Somebody else holds a lock on the database. A later batch is tried afresh."""


class StorageIOError(StorageError):
    """Reading or writing failed, or the file is gone. The journal takes no further batches; it can still be read.

    What of the failed batch reached the disk shows only when the data is opened again.
    """


class StorageCorruptError(StorageError):
    """The database is damaged. The journal takes no further batches, and deletes nothing."""


class OpenError(JournalError):
    """The data cannot be opened."""


class DataInUseError(OpenError):
    """Another referee has the data open for writing."""


class ForeignFileError(OpenError):
    """The file is something else than a referee's journal."""


class SchemaVersionError(OpenError):
    """The file was laid out by another release.

    Attributes:
        found: number of the file's schema.
        known: number of the newest schema that this release knows.
    """

    def __init__(self, message: str, *, found: int, known: int) -> None:
        super().__init__(message)
        self.found = found
        self.known = known


class NewerSchemaError(SchemaVersionError):
    """A newer release made the file; this one leaves it alone."""


class OlderSchemaError(SchemaVersionError):
    """An older release made the file and nobody has upgraded it yet; only seen when opening to read."""


# Damage to a match or a log file, with its place.


class LogError(JournalError):
    """A log is not as it was written.

    Attributes:
        place: number of the event at fault, from 1; for a log that was cut or has something added, of the last event
            that is intact; 0 for the header.
    """

    code: ClassVar[str] = "LOG_ERROR"
    """Key of this kind of damage, for programs."""

    def __init__(self, place: int, message: str) -> None:
        super().__init__(message)
        self.place = place


class EmptyLogError(LogError):
    """There are no bytes, or no events, at all."""

    code = "EMPTY"


class NotALogError(LogError):
    """The bytes do not begin like a log file."""

    code = "NOT_A_LOG"


class NewerLogError(LogError):
    """A newer release made the log file.

    Attributes:
        version: the file's version.
    """

    code = "NEWER_VERSION"

    def __init__(self, version: int, known: int) -> None:
        super().__init__(0, f"this is a log file of version {version}; this release reads version {known}")
        self.version = version


class TruncatedLogError(LogError):
    """The log ends too early: what follows event `place` is missing."""

    code = "TRUNCATED"


class HeaderOnlyLogError(TruncatedLogError):
    """The log ends right behind the line that says what it is."""

    code = "HEADER_ONLY"


class DamagedLogError(LogError):
    """Event `place` is not the one that was written there, or the seal behind the last event is broken."""

    code = "HASH_MISMATCH"


class TrailingDataError(LogError):
    """Something follows the end of the log."""

    code = "TRAILING_DATA"


class LogTooLargeError(LogError):
    """The log holds more than a log may."""

    code = "TOO_LARGE"
