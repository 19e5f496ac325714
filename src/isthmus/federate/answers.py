"""From scored candidates to a ranking: the k best, each document once, with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus._types import FloatArray, IdArray
from isthmus.federate.candidates import Candidates
from isthmus.federate.merging import keep_best, merged_places, order
from isthmus.rankings import COMMON, Ranking

if TYPE_CHECKING:
    from isthmus.spaces import Space

__all__ = ["make_ranking"]


def make_ranking(
    candidates: Candidates,
    scores: FloatArray,
    query_ids: IdArray,
    *,
    k: int,
    merge: bool,
    names: IdArray,
    fingerprints: IdArray,
    spaces: Sequence[Space],
    shares: FloatArray | None = None,
    probabilities: FloatArray | None = None,
    min_probability: float | None = None,
) -> Ranking:
    """Return the k best candidates per query; as many columns as there are, where these are fewer.

    Parameters
    ----------
    candidates : Candidates
    scores : FloatArray of shape (m, w)
        Canonical, NaN for no candidate.
    query_ids : IdArray of shape (m,)
    k : int
    merge : bool
        Whether only the best candidate of a document is kept.
    names, fingerprints : IdArray of shape (n_sources,)
        Of the sources, and of the spaces that they hold.
    spaces : sequence of Space
        The hub's first.
    shares : FloatArray of shape (n_spaces, n_spaces + 1), optional
        What each similarity counts, see `Fusion.shares`; kept where similarities are explained.
    probabilities : FloatArray of shape (m, w), optional
        That each candidate is relevant, shown beside its score.
    min_probability : float, optional
        Candidates under it are left out, before copies of a document are merged.
    """
    if probabilities is not None and min_probability is not None:
        scores = np.where(probabilities >= min_probability, scores, np.float32("nan"))
    if merge:
        scores = keep_best(scores, candidates.same)
    best = order(scores)[:, :k]
    rows = np.arange(len(best))[:, None]
    chosen = scores[rows, best]
    absent = np.isnan(chosen)
    nothing = np.float32("nan")
    holder = candidates.source[best]
    more: dict[str, Any] = {}
    if merge:
        more["also"] = merged_places(candidates, scores, best, names.tolist())
    if probabilities is not None:
        more["probabilities"] = np.where(absent, nothing, probabilities[rows, best])
    if candidates.explained is not None:
        more["similarities"] = np.where(absent, nothing, candidates.explained[:, rows, best])
        more["space_names"] = _space_names(spaces)
        more["weights"] = {} if shares is None else _weights(spaces, shares)
        if candidates.common is not None:
            more["common"] = np.where(absent, nothing, candidates.common[rows, best])
    if candidates.skipped is not None:
        more |= {"skipped": candidates.skipped, "source_names": tuple(names.tolist())}
    return Ranking(
        query_ids=query_ids,
        ids=np.where(absent, "", candidates.ids[rows, best]),
        scores=chosen,
        stores=np.where(absent, "", names[holder]),
        spaces=np.where(absent, "", fingerprints[holder]),
        native_scores=np.where(absent, nothing, candidates.native[rows, best]),
        mapped_scores=np.where(absent, nothing, candidates.mapped[rows, best]),
        outages=candidates.outages,
        **more,
    )


def _weights(spaces: Sequence[Space], shares: FloatArray) -> dict[str, dict[str, float]]:
    """Return the shares by name, for the documents of each space by its fingerprint."""
    names = _space_names(spaces)
    if shares[:, -1].any():
        names += (COMMON,)
    return {
        space.fingerprint: dict(zip(names, row, strict=False))
        for space, row in zip(spaces, shares.tolist(), strict=True)
    }


def _space_names(spaces: Sequence[Space]) -> tuple[str, ...]:
    """Name each space by its model, with its fingerprint where two have one model."""
    models = [space.model for space in spaces]
    return tuple(
        space.model if models.count(space.model) == 1 else f"{space.model}@{space.fingerprint[:8]}"
        for space in spaces
    )
