"""Mixed spaces, found by geometry: which rows of one collection another encoder made.

An encoder leaves some directions of its space nearly empty, whatever the texts are about; other
texts move within the rest. Rows of another encoder know nothing of these directions: their energy
in them is near that of a ball. So a second topic and a second model can be told apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from isthmus._progress import Track, silent
from isthmus._types import FloatArray, IntArray
from isthmus.evaluate._any_rows import as_any_rows
from isthmus.evaluate._empty_directions import EmptyDirections, logarithm
from isthmus.evaluate._split import FEWEST_FOREIGN, Split, find_split

__all__ = ["Mixture", "MixtureVerdict", "find_mixture"]

MixtureVerdict = Literal["one space", "mixed", "undecided", "not enough data"]

MIXED, ONE = 0.40, 0.30
"""Contrast from which rows are of another encoder, and up to which they are of the same.

Between two models, even two that share an ancestor, it was at least .49; three odd rows of one
model had .31, and topics of one model make no high level at all (development draws of
benchmarks/doctor.py)."""
LIKELY = 1.5
"""Contrast up to which it is one: more energy than a ball has is that of single odd numbers."""
EMPTY = 0.25
"""Energy up to which the main part leaves the directions empty, for rows it had no part in."""
FEWEST = 40
"""Rows without which nothing is tried."""
FIT_ROWS = 10_000
"""Rows that the spaces are estimated from; all are scored."""
PLANTED = (0.02, 0.10, 0.30)
"""Shares of rows of a made-up encoder that are planted, to see whether they would be found."""
UNUSED = 1e-5
"""Energy, beside that of a mean direction, under which a direction is not used at all: what a map
from fewer dimensions leaves, and the rounding of float16."""
MAPPED = 0.8
"""Share of the columns up to which rows that use no more directions were made by a linear map."""
PER_DIMENSION = 5
"""Rows a dimension from which more rows would not make empty directions better known."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """Whether the rows are of one space, and which are not.

    Parameters
    ----------
    verdict : {"one space", "mixed", "undecided", "not enough data"}
    reason : str
    rows : int
        Rows that the spaces were estimated from: different ones, with a direction.
    posterior : FloatArray of shape (n,)
        Of each row: that it is of the smaller, foreign part. Zero for all rows where nothing
        foreign was found; NaN for rows without a direction.
    energy : FloatArray of shape (n,)
        In the emptiest tenth of the main part's directions; 1 is what a ball has.
    share, share_low, share_high : float
        Of the foreign part among the rows with a direction, with a 95 % interval for rows drawn at
        random.
    contrast, contrast_low, contrast_high : float
        How far the foreign part disregards the main part's empty directions, from 0, as the main
        part itself, to 1, as a ball; with a 95 % interval.
    own_energy, foreign_energy : float
        Mean energy of both parts in the emptiest twentieth.
    outliers : int
        Rows that look foreign in one space: too few of them to say so.
    smallest_share : float
        Of the planted shares of a made-up encoder (the same rows, turned at random), the smallest
        that would have been found; NaN where none would have been, or a real one was found.
    dimensions : int
        Directions that the rows use at all: fewer than columns where a linear map made the rows of
        fewer. The others are left out: empty for every row, they tell nothing of where it is from.
    """

    verdict: MixtureVerdict
    reason: str
    rows: int
    posterior: FloatArray
    energy: FloatArray
    share: float = 0.0
    share_low: float = 0.0
    share_high: float = 1.0
    contrast: float = float("nan")
    contrast_low: float = float("nan")
    contrast_high: float = float("nan")
    own_energy: float = float("nan")
    foreign_energy: float = float("nan")
    outliers: int = 0
    smallest_share: float = float("nan")
    dimensions: int = 0
    _main: EmptyDirections | None = None
    _curve: tuple[FloatArray, FloatArray] | None = None
    _basis: FloatArray | None = None

    def score(self, vectors: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return posterior and energy of further rows of the collection.

        Parameters
        ----------
        vectors : array-like of shape (m, dim)

        Raises
        ------
        DimensionError, InvalidVectorsError
        """
        dim = None if self._main is None else len(self._main.mean)
        if self._basis is not None:
            dim = len(self._basis)
        unit, known = _unit(as_any_rows(vectors, name="vectors", dim=dim), self._basis)
        energy = np.full(len(unit), np.nan)
        posterior = np.where(known, 0.0, np.nan)
        if self._main is None or self._curve is None:
            return posterior, energy
        energy[known] = self._main.energies(unit[known])[0]
        if self.share > 0:
            posterior[known] = np.interp(logarithm(energy[known]), *self._curve)
        return posterior, energy

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, without those of single rows."""
        left_out = ("posterior", "energy", "_main", "_curve", "_basis")
        return {name: value for name, value in vars(self).items() if name not in left_out}


def find_mixture(vectors: npt.ArrayLike, *, seed: int = 0, track: Track[Any] = silent) -> Mixture:
    """Find the rows that are of another space than most.

    Only directions count: lengths are divided out. Rows that are cut or padded with zeros must be
    left out before (see `isthmus.evaluate.row_marks`), or they are found as foreign.

    Parameters
    ----------
    vectors : array-like of shape (n, dim)
        Rows with NaN or infinity, and zero rows, have no direction and no posterior. Memory and
        time grow with n only for the scores; the spaces are estimated from 10,000 rows at most.
    seed : int, default 0
        Of these rows, of the folds, and of what is planted.
    track : Track, default silent

    Returns
    -------
    Mixture

    Raises
    ------
    DimensionError, EmptyInputError, InvalidVectorsError

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> flat = draw.standard_normal((600, 16)) @ np.diag(np.geomspace(1, 0.01, 16))
    >>> turned = flat @ np.linalg.qr(draw.standard_normal((16, 16)))[0]
    >>> found = find_mixture(np.concatenate([flat[:500], turned[500:]]))
    >>> found.verdict, round(found.share, 2)
    ('mixed', 0.17)
    >>> find_mixture(flat).verdict
    'one space'
    """
    unit, known = _unit(as_any_rows(vectors, name="vectors"))
    posterior = np.where(known, 0.0, np.nan)
    nothing = np.full(len(unit), np.nan)
    rows = _different(unit, np.flatnonzero(known))
    if len(rows) < FEWEST or unit.shape[1] < 2:
        reason = f"different rows with a direction: {len(rows):,}, and at least {FEWEST} are needed"
        return Mixture(
            verdict="not enough data",
            reason=reason if unit.shape[1] > 1 else "one dimension has one direction",
            rows=len(rows),
            posterior=posterior,
            energy=nothing,
        )
    fitted = np.random.default_rng(seed).permutation(rows)[:FIT_ROWS]
    basis = _used_directions(unit[fitted])
    if basis is not None:
        unit = _unit(unit, basis)[0]
    split = find_split(unit[fitted], seed=seed, track=track)
    found = _judged(split, posterior=posterior, energy=nothing, rows=len(fitted))
    if found.verdict != "mixed":
        found = _with_power(found, unit[fitted], seed=seed, track=track)
    posterior, energy = found.score(unit)
    found = replace(found, dimensions=unit.shape[1], _basis=basis)
    if basis is not None and found.verdict == "one space":
        found = _mapped(found, columns=len(basis))
    # rows that took part are judged by directions that they had no part in
    energy[fitted] = np.exp(split.scores)
    if found.share > 0:
        posterior[fitted] = _smaller_part(split)
    return replace(found, posterior=posterior, energy=energy)


def _used_directions(unit: FloatArray) -> FloatArray | None:
    """Return a basis of the directions that mapped rows use, None where rows are not mapped."""
    rows, dim = unit.shape
    if rows <= dim:
        return None
    wide = unit.astype(np.float64)
    energies, directions = np.linalg.eigh(wide.T @ wide)
    used = energies > UNUSED * energies.mean()
    if used.sum() > MAPPED * dim or used.sum() < 2:
        return None  # a few that are not used are the encoder's own
    return np.asarray(directions[:, used], np.float32)


def _unit(
    matrix: FloatArray, basis: FloatArray | None = None
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return rows of unit length as float32, in a basis, and which rows have a direction."""
    if basis is not None:
        matrix = _unit(matrix)[0] @ basis
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.array(matrix, dtype=np.float32)
        largest = np.abs(rows).max(axis=1)
        known = np.isfinite(largest) & (largest > 0)
        rows[known] /= largest[known, None]  # before squaring: no length overflows or vanishes
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    rows[known] /= lengths[known, None].astype(np.float32)
    rows[~known] = 0.0
    return rows, known


def _different(unit: FloatArray, rows: IntArray) -> IntArray:
    """Return the first of equal rows."""
    if not len(rows):
        return rows
    texts = np.ascontiguousarray(unit[rows] + np.float32(0))
    keys = texts.view(np.dtype((np.void, texts.itemsize * texts.shape[1]))).ravel()
    return rows[np.sort(np.unique(keys, return_index=True)[1])]


def _judged(split: Split, *, posterior: FloatArray, energy: FloatArray, rows: int) -> Mixture:
    """Say what a split means, before anything is planted."""
    smaller = _smaller_part(split)
    low, high = _interval(split)
    verdict: MixtureVerdict = "undecided"
    reason = "a part of the rows is between another topic and another encoder"
    if split.contrast <= ONE or smaller.sum() < FEWEST_FOREIGN:
        verdict, reason = "one space", "no part of the rows disregards the others' empty directions"
    elif _is_plain(split):
        verdict = "mixed"
        reason = "a part of the rows fills the directions that the others leave empty"
    outliers = int((smaller > 0.5).sum()) if verdict == "one space" else 0
    order = np.argsort(split.scores, kind="stable")
    share = float(smaller.mean()) if verdict != "one space" else 0.0
    share_low, share_high = _wilson(share, rows)
    return Mixture(
        verdict=verdict,
        reason=reason,
        rows=rows,
        posterior=posterior,
        energy=energy,
        share=share,
        share_low=share_low,
        share_high=share_high,
        contrast=split.contrast,
        contrast_low=low,
        contrast_high=high,
        own_energy=split.own_energy,
        foreign_energy=split.foreign_energy,
        outliers=outliers,
        _main=split.main,
        _curve=(split.scores[order], smaller[order]),
    )


def _mapped(found: Mixture, *, columns: int) -> Mixture:
    """Say no more of mapped rows than can be seen: a map may damp what told them apart."""
    return replace(
        found,
        verdict="undecided",
        share_high=1.0,
        smallest_share=float("nan"),
        reason=f"the rows use {found.dimensions:,} of {columns:,} directions, as a linear map makes"
        " them, and may hide what they were before: look at the collection they were made from",
    )


def _is_plain(split: Split) -> bool:
    """Say whether the second part is of another encoder, and not the tail of the first."""
    real = split.own_energy <= EMPTY and split.crossed > ONE and split.contrast <= LIKELY
    return real and split.contrast >= MIXED and _interval(split)[0] > ONE


def _smaller_part(split: Split) -> FloatArray:
    """Return the posterior of the smaller part, whichever the main one was."""
    return 1 - split.posterior if split.posterior.mean() > 0.5 else split.posterior


def _interval(split: Split) -> tuple[float, float]:
    """Return a 95 % interval of the contrast, by the spread of the foreign rows."""
    weights, own = split.posterior, split.own_energy
    count = weights.sum()
    if count < 2 or not own < 1:
        return float("nan"), float("nan")
    spread = weights @ (split.tested - split.foreign_energy) ** 2 / count
    half = 1.96 * float(np.sqrt(spread / count)) / (1 - own)
    return split.contrast - half, split.contrast + half


def _wilson(share: float, rows: int) -> tuple[float, float]:
    """Return the 95 % interval of a share by Wilson 1927."""
    z = 1.96
    middle = share + z**2 / (2 * rows)
    half = z * float(np.sqrt(share * (1 - share) / rows + z**2 / (4 * rows**2)))
    low, high = ((middle + side) / (1 + z**2 / rows) for side in (-half, half))
    return max(0.0, low), min(1.0, high)


def _with_power(found: Mixture, unit: FloatArray, *, seed: int, track: Track[Any]) -> Mixture:
    """Plant rows of a made-up encoder: one space is only said where they would be found."""
    draw = np.random.default_rng(seed)
    dim = unit.shape[1]
    turn = np.linalg.qr(draw.standard_normal((dim, dim)))[0].astype(np.float32)
    order = draw.permutation(len(unit))
    for share in PLANTED:
        planted = order[: max(FEWEST_FOREIGN + 2, round(share * len(unit)))]
        mixed = unit.copy()
        mixed[planted] = unit[planted] @ turn
        again = find_split(mixed, seed=seed, track=track)
        seen = again.posterior[planted].mean()
        if again.posterior.mean() > 0.5:
            seen = 1 - seen
        if _is_plain(again) and seen > 0.5:
            found = replace(found, smallest_share=len(planted) / len(unit))
            break
    known = len(unit) >= PER_DIMENSION * dim
    if found.smallest_share > 0:
        few = found.verdict == "undecided" and not known
        return replace(found, verdict="not enough data") if few else found
    return replace(
        found,
        verdict="undecided" if known else "not enough data",
        share=0.0,
        share_low=0.0,
        share_high=1.0,
        reason="the vectors leave no direction empty: a foreign part would not be seen"
        if known
        else f"{len(unit):,} different rows in {dim:,} dimensions: a foreign part would not be "
        f"seen; take {PER_DIMENSION * dim:,}",
    )
