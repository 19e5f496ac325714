"""Pseudo-pairs: the rows of two clouds that a map says belong together, the surest first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isthmus._linalg import mean_rows, normalise
from isthmus._types import FloatArray, IntArray
from isthmus._validate import as_matrix, check_whole
from isthmus.maps.base import Map
from isthmus.neighbors import local_scaling, mutual_by_csls

__all__ = ["PseudoPairs", "pseudo_pairs"]

NEIGHBORHOOD = 10
"""Lample et al. 2018, section 2.3."""


@dataclass(frozen=True, eq=False)
class PseudoPairs:
    """Rows that are each other's nearest, the surest first.

    Parameters
    ----------
    source_rows, target_rows : IntArray of shape (n_pairs,)
        A row is in at most one pair.
    margin : FloatArray of shape (n_pairs,)
        CSLS of the pair: how much nearer it is than the neighbourhoods of both rows.
    confidence : float
        ``confidence_`` of the map, 0 to 1; 1 for a map that has none, such as one learned from
        pairs.
    """

    source_rows: IntArray
    target_rows: IntArray
    margin: FloatArray
    confidence: float

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.source_rows)


def pseudo_pairs(
    fitted: Map, X: npt.ArrayLike, Y: npt.ArrayLike, *, n: int | None = None
) -> PseudoPairs:
    """Return the ``n`` surest pairs of rows that are mutual nearest neighbours after the map.

    Both sides are centred by the mean of Y's side, as unpaired maps do, and compared by CSLS. Pairs
    are seeds for linking, not links: where few objects are shared, most pairs are of objects that
    are merely alike, and the surest are right most often.

    Parameters
    ----------
    fitted : Map
    X : array-like of shape (n_source, dim_source)
    Y : array-like of shape (n_target, dim_target)
    n : int, optional
        All of them when left out.

    Raises
    ------
    NotFittedError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError

    Examples
    --------
    >>> from isthmus.maps import Procrustes
    >>> cloud = np.random.default_rng(0).standard_normal((40, 6))
    >>> fitted = Procrustes().fit(cloud, cloud[:, ::-1])
    >>> found = pseudo_pairs(fitted, cloud, cloud[::-1, ::-1], n=5)
    >>> (found.source_rows + found.target_rows).tolist()
    [39, 39, 39, 39, 39]
    """
    if n is not None:
        check_whole(n, name="n")
    target = fitted.transform_target(as_matrix(Y, name="Y"))
    mean = mean_rows(target).astype(np.float32)
    mapped, others = normalise(fitted.transform(X) - mean), normalise(target - mean)
    scaling = local_scaling(mapped, others, neighborhood=NEIGHBORHOOD)
    found = mutual_by_csls(mapped, others, neighborhood=NEIGHBORHOOD, scaling=scaling)
    order = np.argsort(-found.scores, kind="stable")[:n]
    return PseudoPairs(
        source_rows=found.source_rows[order],
        target_rows=found.target_rows[order],
        margin=found.scores[order],
        confidence=float(getattr(fitted, "confidence_", 1.0)),
    )
