"""Every error of Isthmus: what was expected, what was got, what to do.

Each kind is a class of its own with a stable exit code for the command line, and also the built-in
exception that fits, so that ``except ValueError`` works for a reader who knows only Python.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar

__all__ = [
    "AccessDeniedError",
    "ArtifactError",
    "ConfigError",
    "ConflictingSeedsError",
    "CorruptFileError",
    "CorruptStoreError",
    "CountMismatchError",
    "DegenerateVectorsError",
    "DimensionError",
    "DivergedTrainingError",
    "DuplicateIdError",
    "EmptyInputError",
    "FileError",
    "InputError",
    "InvalidIdError",
    "InvalidVectorsError",
    "IsthmusError",
    "MalformedArtifactError",
    "MissingCollectionError",
    "MissingExtraError",
    "MissingFileError",
    "NotAStoreError",
    "NotConvergedError",
    "NotFittedError",
    "OversizedArtifactError",
    "ParameterError",
    "ReadOnlyStoreError",
    "SpaceMismatchError",
    "StoreBusyError",
    "StoreError",
    "StoreFullError",
    "StoreUnreachableError",
    "StoreVersionError",
    "TamperedArtifactError",
    "TooFewPairsError",
    "UnknownFormatError",
    "UnknownIdError",
    "UnknownNameError",
    "UnknownVersionError",
    "UnsafePathError",
    "UnsupportedOperationError",
    "VerdictError",
    "WriteFailedError",
    "WrongDirectionError",
    "ZeroVectorError",
]


class IsthmusError(Exception):
    """Base of all errors of Isthmus.

    Parameters
    ----------
    expected, got, do : str
        Three short phrases, without a full stop: what was expected, what came instead, and what the
        user can do. They become one line: ``expected ...; got .... Do: ....``
    """

    exit_code: ClassVar[int] = 10

    def __init__(self, *, expected: str, got: str, do: str) -> None:
        self.expected = expected
        self.got = got
        self.do = do
        super().__init__(f"expected {expected}; got {got}. Do: {do}.")


# --- values that a caller hands in -----------------------------------------------------------


class InputError(IsthmusError, ValueError):
    """A value that cannot be used."""

    exit_code = 11


class DimensionError(InputError):
    """A matrix of another shape or width than the space or the map has."""

    exit_code = 12


class CountMismatchError(InputError):
    """Two things that must have the same number of rows have not."""

    exit_code = 13


class InvalidVectorsError(InputError):
    """Vectors that hold NaN or infinity, or are not numbers."""

    exit_code = 14


class ZeroVectorError(InputError):
    """A vector without a direction where a direction is needed."""

    exit_code = 15


class EmptyInputError(InputError):
    """Nothing where at least one row is needed."""

    exit_code = 16


class DegenerateVectorsError(InputError):
    """Vectors that all say the same: no spread to fit a map or a step on."""

    exit_code = 17


class DuplicateIdError(InputError):
    """The same id twice in one set."""

    exit_code = 18


class InvalidIdError(InputError):
    """An id that the format or the store cannot hold."""

    exit_code = 19


class UnknownIdError(IsthmusError, LookupError):
    """An id that the set or the store does not have."""

    exit_code = 20


class TooFewPairsError(InputError):
    """Fewer pairs than the operation needs to mean anything."""

    exit_code = 21


class ParameterError(InputError):
    """A parameter out of its range."""

    exit_code = 22


class UnknownNameError(IsthmusError, ValueError, LookupError):
    """A name that is not in a registry: metric, map, measure, store, strategy."""

    exit_code = 23

    @classmethod
    def of(cls, kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
        """Name what is known, and the nearest of it.

        Examples
        --------
        >>> str(UnknownNameError.of("map", "rigde", ["ridge", "cca"]))
        "expected a map among cca, ridge; got 'rigde'. Do: did you mean 'ridge'?."
        """
        names = sorted(known)
        plain = {known_name.casefold(): known_name for known_name in names}
        near = difflib.get_close_matches(name.casefold(), plain, n=1)
        do = f"did you mean {plain[near[0]]!r}?" if near else "choose one of them"
        return cls(expected=f"a {kind} among {', '.join(names)}", got=repr(name), do=do)


class NotFittedError(IsthmusError, ValueError, AttributeError):
    """A map or a step used before ``fit``."""

    exit_code = 24


class ConfigError(InputError):
    """A configuration file that does not say what it must."""

    exit_code = 25


class MissingExtraError(IsthmusError, ImportError):
    """An optional library that is not installed."""

    exit_code = 26


class UnsupportedOperationError(IsthmusError, NotImplementedError):
    """An operation that this map or store declares it does not have."""

    exit_code = 27


class ConflictingSeedsError(InputError):
    """A row in two seed pairs: the same pair again, or two that contradict each other."""

    exit_code = 28


# --- spaces ----------------------------------------------------------------------------------


class SpaceMismatchError(IsthmusError, ValueError):
    """Vectors of two spaces that were about to meet."""

    exit_code = 30


class WrongDirectionError(SpaceMismatchError):
    """A bridge used from its target to its source."""

    exit_code = 31


class VerdictError(IsthmusError, ValueError):
    """A bridge or links whose verdict is less than the caller required."""

    exit_code = 32


class DivergedTrainingError(IsthmusError, ArithmeticError):
    """Training whose loss grew without bound."""

    exit_code = 33


class NotConvergedError(IsthmusError, ArithmeticError):
    """An iteration that stopped too far from its answer."""

    exit_code = 34


# --- files -----------------------------------------------------------------------------------


class FileError(IsthmusError, OSError):
    """A file that cannot be used."""

    exit_code = 40


class MissingFileError(FileError, FileNotFoundError):
    """No file at that path."""

    exit_code = 41


class UnknownFormatError(FileError, ValueError):
    """A file whose format Isthmus does not read."""

    exit_code = 42


class CorruptFileError(FileError, ValueError):
    """A file that was cut short or does not hold what its format says."""

    exit_code = 43


class WriteFailedError(FileError):
    """A file that could not be written; nothing was left half written."""

    exit_code = 44


# --- bridge artifacts ------------------------------------------------------------------------


class ArtifactError(IsthmusError, ValueError):
    """A bridge folder that cannot be trusted or read."""

    exit_code = 50


class TamperedArtifactError(ArtifactError):
    """Bytes that do not match their recorded hash."""

    exit_code = 51


class UnknownVersionError(ArtifactError):
    """A format version that this Isthmus does not read."""

    exit_code = 52


class MalformedArtifactError(ArtifactError):
    """A manifest or a header that does not follow SPEC.md."""

    exit_code = 53


class OversizedArtifactError(ArtifactError):
    """A manifest or a header larger than SPEC.md allows."""

    exit_code = 54


class UnsafePathError(ArtifactError):
    """A path in an artifact that leads out of its folder."""

    exit_code = 55


# --- stores ----------------------------------------------------------------------------------


class StoreError(IsthmusError, RuntimeError):
    """A store that cannot do what was asked."""

    exit_code = 60


class MissingCollectionError(StoreError, LookupError):
    """A collection that the store does not have."""

    exit_code = 61


class CorruptStoreError(StoreError):
    """A store whose file is damaged."""

    exit_code = 62


class NotAStoreError(StoreError, ValueError):
    """A file that is not a store, or a store of another program."""

    exit_code = 63


class StoreFullError(StoreError, OSError):
    """A store that the disk has no room for; nothing was left half written."""

    exit_code = 64


class ReadOnlyStoreError(StoreError, PermissionError):
    """A store that may be read and not written."""

    exit_code = 65


class StoreBusyError(StoreError, TimeoutError):
    """A store that another writer holds."""

    exit_code = 66


class StoreVersionError(StoreError):
    """A store in a format of a later Isthmus."""

    exit_code = 67


class StoreUnreachableError(StoreError, ConnectionError):
    """A database that does not answer: not started, gone, or too slow."""

    exit_code = 68


class AccessDeniedError(StoreError, PermissionError):
    """A database that does not accept who asks."""

    exit_code = 69
