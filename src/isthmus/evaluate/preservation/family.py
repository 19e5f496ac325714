"""The whole family of values for one set of held-out rows, for a map and the null map alike."""

from __future__ import annotations

import numpy.typing as npt

from isthmus._types import FloatArray, Metric
from isthmus.evaluate.hubness import hubness_of
from isthmus.evaluate.preservation.clusters import agreement_with
from isthmus.evaluate.preservation.decisions import (
    calibrated_kept,
    decisions_kept,
    margin,
    score_error,
)
from isthmus.evaluate.preservation.order import neighbor_order, relation_order_corr
from isthmus.evaluate.preservation.overlap import answers_kept, neighbors_kept, own_found
from isthmus.evaluate.reconstruction import cos_to_target, mse, r2
from isthmus.evaluate.report import Value, summarise
from isthmus.evaluate.view import Native, View

__all__ = ["measure_pairs"]

K = 10


def measure_pairs(
    mapped: npt.ArrayLike,
    target: npt.ArrayLike,
    collection: npt.ArrayLike | None = None,
    *,
    own_rows: npt.ArrayLike | None = None,
    metric: Metric = "cosine",
    native: Native | None = None,
    clusters: bool = True,
    seed: int = 0,
) -> dict[str, Value]:
    """Measure how well mapped held-out rows stand in for their native target rows.

    Parameters
    ----------
    mapped : array-like of shape (m, dim)
        Mapped source rows. For the null map with unequal dimensions, the caller cuts or pads.
    target : array-like of shape (m, dim)
        Target rows of the same objects in the comparison space: the native ones, unless the map
        moves the target side.
    collection : array-like of shape (n, dim), optional
        Target rows to search, in the comparison space; the held-out rows by default.
    own_rows : array-like of int of shape (m,), optional
        Row of the collection that is the object itself, -1 for none; see `Native`.
    metric : {"cosine", "dot", "l2"}, default "cosine"
        Of the comparison space and of the native one.
    native : Native, optional
        The native side, made once for all maps that are compared; it brings its own rows and
        metric. Needed where the map moves the target side, else made from the target here.
    clusters : bool, default True
        Measure ``cluster_agreement`` too: k-means takes as long as all the rest.
    seed : int, default 0
        Of partners, halves, clusters and draws. The same seed gives paired draws for all maps.

    Returns
    -------
    dict of name to Value
        Preservation: ``nbr_overlap@10``, ``nbr_overlap@1``, ``retrieval_agreement@10``,
        ``rank_corr``, ``relation_order_corr``, ``threshold_transfer``, ``calibration_transfer``,
        ``similarity_error``, ``hard_negative_margin``, ``cluster_agreement``, ``hubness@10``; and
        ``hit@1`` and
        ``hit@10`` where a row is in the collection. Reconstruction: ``cos_to_target``, ``mse``,
        ``r2``.

    Raises
    ------
    CountMismatchError, DimensionError, EmptyInputError, InvalidVectorsError, ParameterError
    UnknownNameError, ZeroVectorError

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).standard_normal((50, 8))
    >>> values = measure_pairs(rows, rows)
    >>> values["nbr_overlap@10"].mean, values["mse"].mean
    (1.0, 0.0)
    """
    if native is None:
        native = Native(target, collection, own_rows=own_rows, metric=metric)
        view = View(mapped, native, depth=K)
    else:
        view = View(mapped, native, target=target, collection=collection, depth=K)
    values = summarise(_per_query(view, seed), seed=seed)
    if clusters:
        labels, start = native.clusters(seed=seed)
        values["cluster_agreement"] = agreement_with(
            view.mapped, labels, start, metric=native.metric, seed=seed
        )
    values[f"hubness@{K}"] = hubness_of(view.neighbors.rows, n=len(view.index), k=K)
    values["r2"] = r2(view.mapped, view.target, seed=seed)
    return values


def _per_query(view: View, seed: int) -> dict[str, FloatArray]:
    native = view.native
    per_query = {
        f"nbr_overlap@{K}": neighbors_kept(view, K),
        "nbr_overlap@1": neighbors_kept(view, 1),
        f"retrieval_agreement@{K}": answers_kept(view, K),
        "rank_corr": neighbor_order(view),
        "relation_order_corr": relation_order_corr(
            view.mapped, native.target, metric=native.metric, seed=seed
        ),
        "threshold_transfer": decisions_kept(view),
        "calibration_transfer": calibrated_kept(view, seed=seed),
        "similarity_error": score_error(view),
        "hard_negative_margin": margin(view),
    }
    if (native.own_rows >= 0).any():
        per_query |= {"hit@1": own_found(view, 1), f"hit@{K}": own_found(view, K)}
    return per_query | {
        "cos_to_target": cos_to_target(view.mapped, view.target),
        "mse": mse(view.mapped, view.target),
    }
