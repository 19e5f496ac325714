"""Store URLs: ``scheme:///path?collection=NAME``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from isthmus.errors import ConfigError, InputError, ParameterError, UnknownNameError
from isthmus.stores._checks import check_collection

__all__ = ["COLUMN_WORDS", "EXACT_WORDS", "StoreUrl", "as_seconds"]

YES, NO = ("true", "yes", "on"), ("false", "no", "off")
EXACT = "exact"
EXACT_WORDS = (EXACT, "flat", "none")
"""A search that compares every row."""
COLUMN_WORDS = ("column", "field")
"""What databases call the place of the vectors in a row; URLs of every store take both."""


@dataclass(frozen=True)
class StoreUrl:
    """The parts of a store URL.

    Three slashes stand before a relative path, four before an absolute one, none of them where the
    store has no path. ``?``, ``#``, ``%`` and ``&`` in a path or a name are written as in any URL
    (``%3F``).

    Parameters
    ----------
    scheme : str
    place : str
        What stands between the two slashes and the third: a host, or a name.
    path : str
        A relative or an absolute path, or nothing.
    collection : str
    options : mapping of str to str
        Everything else behind the question mark.

    Examples
    --------
    >>> url = StoreUrl.parse("sqlite:///dir/one.db?collection=docs&index=hnsw")
    >>> url.path, url.collection, dict(url.options)
    ('dir/one.db', 'docs', {'index': 'hnsw'})
    >>> str(url.relative_to("/data"))
    'sqlite:////data/dir/one.db?collection=docs&index=hnsw'
    """

    scheme: str
    place: str
    path: str
    collection: str
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def parse(cls, url: str, *, options: tuple[str, ...] | None = None) -> StoreUrl:
        """Read a URL.

        Parameters
        ----------
        url : str
        options : tuple of str, optional
            Names that the store knows behind the question mark, apart from ``collection``. With one
            of ``column`` and ``field`` it takes the other word as well.

        Raises
        ------
        InputError, UnknownNameError
        """
        parts = _split(url) if isinstance(url, str) else None
        if parts is None or not parts.scheme or "://" not in url:
            raise _not_a_url(url, "no scheme", "write sqlite:///dir/file.db?collection=NAME")
        if "@" in parts.netloc and ":" in parts.netloc.rpartition("@")[0]:
            raise _not_a_url(
                url,
                "a password in it",
                "put it into an environment variable and name that: &secret=NAME",
            )
        if parts.fragment:
            raise _not_a_url(url, "a '#' in it", "write it as %23")
        try:
            pairs = parse_qsl(parts.query, keep_blank_values=True, errors="strict")
        except ValueError as error:
            raise _not_a_url(url, "bytes that are not text", "write the query as UTF-8") from error
        values = dict(pairs)
        if len(values) < len(pairs):
            raise _not_a_url(url, "the same option twice", "keep one")
        _check_secret(values.get("secret"))
        collection = values.pop("collection", "")
        if not collection:
            raise _not_a_url(url, "no collection", "add ?collection=NAME")
        _use_the_word_of(options or (), values)
        for name in values:
            if options is not None and name not in options:
                raise UnknownNameError.of("store option", name, ("collection", *options))
        return cls(
            scheme=parts.scheme,
            place=_decode(parts.netloc),
            path=_decode(parts.path[1:]),
            collection=check_collection(collection),
            options=MappingProxyType(values),
        )

    def relative_to(self, folder: Path | str) -> StoreUrl:
        """Return the URL with a relative path read from ``folder``, made absolute.

        What stands behind a host is no path of this machine and stays.
        """
        if self.place or not self.path:
            return self
        path = str(Path(folder).absolute() / self.path)
        return StoreUrl(self.scheme, self.place, path, self.collection, self.options)

    def file(self) -> Path:
        """Return the path of a store that is one file.

        Raises
        ------
        InputError
        """
        if self.place or not self.path:
            raise _not_a_url(
                str(self),
                f"{self.place!r} where the path should begin" if self.place else "no path",
                f"write {self.scheme}:///relative/file or {self.scheme}:////absolute/file",
            )
        return Path(self.path)

    def address(self, port: int) -> tuple[str, int]:
        """Return the host and the port of a server.

        Parameters
        ----------
        port : int
            Where the URL names none.

        Raises
        ------
        InputError

        Examples
        --------
        >>> StoreUrl.parse("redis://user@db.example?collection=docs").address(6379)
        ('db.example', 6379)
        """
        try:
            parts = urlsplit(f"//{self.place}")
            found = parts.port or port
        except ValueError as error:
            raise _not_a_url(str(self), f"an address that is none ({error})", "fix it") from error
        if not parts.hostname:
            raise _not_a_url(str(self), "no host", f"write {self.scheme}://host:{port}/...")
        return parts.hostname, found

    @property
    def user(self) -> str:
        """The user before the ``@``; empty where there is none."""
        return self.place.rpartition("@")[0]

    def secret(self) -> str | None:
        """Return the password or key from the environment, None where there is none.

        It is read from the variable that ``&secret=NAME`` names, or else from
        ``ISTHMUS_SCHEME_SECRET``, with the scheme of the URL in capitals. Never put it anywhere
        but into the client.

        Raises
        ------
        ConfigError
            ``&secret=`` names a variable that is not set.
        """
        named = self.options.get("secret")
        default = f"ISTHMUS_{re.sub('[^A-Z0-9]', '_', self.scheme.upper())}_SECRET"
        value = os.environ.get(named or default)
        if named and value is None:
            raise ConfigError(
                expected=f"a secret in the environment variable {named!r}",
                got="no such variable",
                do="set it, or leave &secret= out",
            )
        return value

    def flag(self, name: str) -> bool:
        """Return whether an option says ``true``, ``yes`` or ``on``; left out, it says no.

        Raises
        ------
        ParameterError
            It says something else than these, ``false``, ``no`` and ``off``.

        Examples
        --------
        >>> StoreUrl.parse("redis://host?collection=docs&tls=true").flag("tls")
        True
        """
        said = self.options.get(name, "false")
        if said not in YES + NO:
            raise ParameterError(
                expected=f"{name} as yes or no (or true or false, on or off)",
                got=repr(said[:40]),
                do="change the URL",
            )
        return said in YES

    def choice(self, name: str, known: tuple[str, ...]) -> str:
        """Return what an option says, one of those that are known; the first where it is left out.

        Every store that has ``exact`` takes ``flat`` and ``none`` for it, as databases call it.

        Raises
        ------
        ParameterError

        Examples
        --------
        >>> url = StoreUrl.parse("redis://host?collection=docs&index=flat")
        >>> url.choice("index", ("exact", "hnsw")), url.choice("type", ("vector", "halfvec"))
        ('exact', 'vector')
        """
        said = self.options.get(name, known[0])
        chosen = EXACT if said in EXACT_WORDS and EXACT in known else said
        if chosen not in known:
            raise ParameterError(
                expected=f"{name} as {' or '.join(filter(None, known))}",
                got=repr(said[:40]),
                do="change the URL",
            )
        return chosen

    def whole(self, name: str, low: int, high: int, default: int) -> int:
        """Return what an option says, a whole number from ``low`` to ``high``.

        Raises
        ------
        ParameterError

        Examples
        --------
        >>> StoreUrl.parse("redis://host?collection=docs").whole("ef_search", 1, 1000, 100)
        100
        """
        said = self.options.get(name, str(default))
        digits = said.isascii() and said.isdecimal() and len(said) <= len(str(high))
        if not digits or not low <= int(said) <= high:
            raise ParameterError(
                expected=f"{name} as a whole number from {low} to {high}",
                got=repr(said[:40]),
                do="change the URL",
            )
        return int(said)

    def __str__(self) -> str:
        """Write the URL."""
        query = urlencode({"collection": self.collection, **self.options}, quote_via=quote)
        path = "/" + quote(self.path) if self.path else ""
        return f"{self.scheme}://{quote(self.place, safe=':@[]')}{path}?{query}"


def _check_secret(named: str | None) -> None:
    """Refuse what looks like a secret where the name of its variable is due; never show it."""
    if named is None or re.fullmatch("[A-Z_][A-Z0-9_]*", named) or named in os.environ:
        return
    raise InputError(
        expected="the name of an environment variable behind &secret=, in capitals, or one that "
        "is set",
        got="something else, which is not shown, as it may be the secret itself",
        do="put the secret into a variable and write its name: &secret=NAME",
    )


def _use_the_word_of(options: tuple[str, ...], values: dict[str, str]) -> None:
    """Call the column of the vectors as the store does."""
    for known, other in (COLUMN_WORDS, COLUMN_WORDS[::-1]):
        if known in options and other not in options and other in values and known not in values:
            values[known] = values.pop(other)


def as_seconds(text: str) -> float:
    """Return the ``&timeout=`` of a URL.

    Raises
    ------
    ParameterError
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= 86_400.0:
        raise ParameterError(
            expected="timeout as seconds from 0 to 86400", got=repr(text), do="change the URL"
        )
    return seconds


def _split(url: str) -> SplitResult:
    try:
        url.encode()
    except UnicodeEncodeError as error:
        raise _not_a_url(url, "bytes that are not text", "write it as UTF-8") from error
    try:
        return urlsplit(url)
    except ValueError as error:
        raise _not_a_url(
            url, f"a host that is none ({error})", "write [ and ] as %5B, %5D"
        ) from error


def _decode(text: str) -> str:
    try:
        decoded = unquote(text, errors="strict")
    except UnicodeDecodeError:
        decoded = "\0"
    if "\0" in decoded:
        raise _not_a_url(text, "bytes that are not text", "write the path as UTF-8")
    return decoded


def _not_a_url(url: object, got: str, do: str) -> InputError:
    shown = re.sub(r"//[^/]*@", "//***@", str(url))  # never show a password
    shown = re.sub(r"([?&]secret=)[^&]*", r"\1***", shown)
    shown = shown.encode(errors="backslashreplace").decode()
    return InputError(
        expected="a store URL such as sqlite:///dir/file.db?collection=NAME",
        got=f"{shown!r} with {got}",
        do=do,
    )
