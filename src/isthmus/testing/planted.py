"""Synthetic pairs of spaces whose true map is known: for tests, examples and first steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isthmus._types import FloatArray, Metric
from isthmus._validate import check_positive
from isthmus.errors import ParameterError
from isthmus.spaces import Space, VectorSet

__all__ = ["PlantedPair", "planted_pair"]


@dataclass(frozen=True)
class PlantedPair:
    """Two views of the same objects.

    Parameters
    ----------
    source, target : VectorSet
        Row i of both is the same object, with the same id.
    weight : FloatArray of shape (dim_source, dim_target)
        The planted map: orthonormal rows or columns, times the scale.
    shift : FloatArray of shape (dim_target,)
        Without noise, and before a target is normalised, ``target = source @ weight + shift``.
    """

    source: VectorSet
    target: VectorSet
    weight: FloatArray
    shift: FloatArray


def planted_pair(
    n: int = 1_000,
    dim_source: int = 32,
    dim_target: int = 32,
    *,
    clusters: int = 20,
    scale: float = 1.0,
    shift: float = 0.0,
    noise: float = 0.0,
    metric: Metric = "cosine",
    normalized: bool = False,
    seed: int = 0,
) -> PlantedPair:
    """Make two spaces that a rotation, a scale, a shift and noise separate.

    Rows lie around cluster centres, so that they have neighbours worth keeping; real embeddings do.

    Parameters
    ----------
    n : int, default 1000
    dim_source, dim_target : int, default 32
        Unequal widths are joined by a semi-orthogonal map.
    clusters : int, default 20
        Cluster centres have unit length; rows lie about .5 from theirs.
    scale : float, default 1.0
        Factor from source to target.
    shift : float, default 0.0
        Length of the vector that is added to every target row.
    noise : float, default 0.0
        Expected length of the normal noise that is added to each target row; rows have length
        about 1.1 before the scale.
    metric : {"cosine", "dot", "l2"}, default "cosine"
        Of both spaces.
    normalized : bool, default False
        Bring both sides to unit length at the end.
    seed : int, default 0

    Raises
    ------
    ParameterError

    Examples
    --------
    >>> pair = planted_pair(100, 8, 6, seed=1)
    >>> bool(np.allclose(pair.source.vectors @ pair.weight, pair.target.vectors, atol=1e-6))
    True
    """
    for name, value in (("n", n), ("dim_source", dim_source), ("dim_target", dim_target)):
        check_positive(value, name=name)
    check_positive(clusters, name="clusters")
    check_positive(scale, name="scale")
    if not (noise >= 0 and shift >= 0):
        raise ParameterError(
            expected="noise and shift of at least 0", got=f"{noise}, {shift}", do="change them"
        )
    generator = np.random.default_rng(seed)
    centres = _unit(generator.standard_normal((clusters, dim_source)))
    spread = generator.standard_normal((n, dim_source)) * (0.5 / np.sqrt(dim_source))
    source = (centres[generator.integers(0, clusters, n)] + spread).astype(np.float32)
    weight = scale * _semi_orthogonal(generator, dim_source, dim_target)
    direction = shift * _unit(generator.standard_normal((1, dim_target)))[0]
    blur = generator.standard_normal((n, dim_target)) * (noise / np.sqrt(dim_target))
    target = source.astype(np.float64) @ weight + direction + blur
    if normalized:
        source, target = _unit(source), _unit(target)
    ids = np.array([f"object-{row}" for row in range(n)])
    names = ("planted-source", "planted-target")
    sets = [
        VectorSet(
            ids,
            side.astype(np.float32),
            Space(model=name, dim=side.shape[1], metric=metric, normalized=normalized),
        )
        for name, side in zip(names, (source, target), strict=True)
    ]
    return PlantedPair(sets[0], sets[1], weight.astype(np.float32), direction.astype(np.float32))


def _unit(rows: FloatArray) -> FloatArray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=rows.dtype)


def _semi_orthogonal(generator: np.random.Generator, rows: int, columns: int) -> FloatArray:
    """Draw a matrix with orthonormal rows or columns, whichever are fewer."""
    square, _ = np.linalg.qr(generator.standard_normal((max(rows, columns), min(rows, columns))))
    return square if rows >= columns else square.T
