"""The bridge: a fitted map with its spaces, its report, its verdict, its scope and its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from isthmus._linalg import normalise
from isthmus._progress import Track, silent
from isthmus._rowwise import in_row_blocks
from isthmus._types import FloatArray
from isthmus.bridge.calibration import Calibration
from isthmus.bridge.carry import carry
from isthmus.bridge.judgement import MIN_RETENTION
from isthmus.bridge.provenance import Provenance, record_rows
from isthmus.bridge.rule import Purpose
from isthmus.bridge.scope import Scope, ScopeReport
from isthmus.bridge.verdict import Verdict
from isthmus.errors import (
    EmptyInputError,
    SpaceMismatchError,
    UnsupportedOperationError,
    VerdictError,
    WrongDirectionError,
)
from isthmus.evaluate.report import Report
from isthmus.maps import Compose
from isthmus.spaces import Pairs, Space, VectorSet

__all__ = ["Bridge"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Bridge:
    """A way from one embedding space to another, with what is known about it.

    A bridge makes stored vectors as sensitive as the text they came from: whoever holds it can read
    vectors of the source space with tools made for the target space.

    Parameters
    ----------
    source, target : Space
    map : Compose
        Preprocessing steps and fitted map.
    report : Report
        Held-out values, beside the null map's.
    verdict : Verdict
    calibration : Calibration
        From bridged scores to the scale of native scores.
    scope : Scope
        Where the paired source rows lie.
    provenance : Provenance

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a, b = Space(model="a", dim=8), Space(model="b", dim=8)
    >>> ids, rows = [str(i) for i in range(100)], rng.normal(size=(100, 8))
    >>> turned = rows @ np.linalg.qr(rng.normal(size=(8, 8)))[0]
    >>> one, two = VectorSet(ids, rows, a), VectorSet(ids, turned, b)
    >>> bridge = Bridge.fit(Pairs.from_ids(one, two), method="procrustes")
    >>> bridge.apply(one).space.model
    'b'
    """

    source: Space
    target: Space
    map: Compose
    report: Report
    verdict: Verdict
    calibration: Calibration
    scope: Scope
    provenance: Provenance

    @classmethod
    def fit(
        cls,
        pairs: Pairs | None,
        *,
        unpaired_source: VectorSet | None = None,
        unpaired_target: VectorSet | None = None,
        method: str = "auto",
        purpose: Purpose = "search",
        min_retention: float = MIN_RETENTION,
        collection: VectorSet | None = None,
        coverage: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        seed: int = 0,
        track: Track[Any] = silent,
    ) -> Self:
        """Fit a bridge on pairs, choose the map on held-out pairs, and measure it.

        Parameters
        ----------
        pairs : Pairs or None
            None, with both unpaired sets, for maps that do not learn from pairs; with pairs these
            maps are measured, and not fitted.
        unpaired_source, unpaired_target : VectorSet, optional
            More rows of both spaces, for the maps that look at them. What stands in a pair is left
            out; of more than 20,000 rows on a side that many are drawn.
        method : str, default "auto"
            A name of `isthmus.maps.names`, or ``auto``: the most constrained map within noise of
            the best.
        purpose : {"search", "score"}, default "search"
            What the mapped rows are for: searching the target's collection, or being ranked by
            their similarity beside native rows, as candidates that a federation carries back.
        min_retention : float, default 0.5
            The preservation target: share of the native top 10 that has to be kept for the verdict
            ``bridge``; in (0, 1].
        collection : VectorSet, optional
            The whole target collection: neighbours are then measured among all of it, as users will
            search it, and not among the paired rows only.
        coverage : mapping, optional
            ``pairs.coverage(...).to_dict()``, kept in the manifest.
        params : mapping, optional
            Parameters of the map that ``method`` names, as ``{"objective": "mse"}`` for ``mlp``.
        seed : int, default 0
            Of everything random: the held-out pairs, and the fit of maps that take a seed.
        track : Track, default silent

        Returns
        -------
        Bridge
            Too few pairs, or a map that keeps too little, is a verdict and not an error.

        Raises
        ------
        TooFewPairsError, DegenerateVectorsError, SpaceMismatchError, UnknownNameError
        EmptyInputError
            No pairs for a map that learns from them, or an unpaired set of nothing but paired rows.
        ParameterError
            A parameter that the map does not have, or parameters without a name of a map.
        MissingExtraError, DivergedTrainingError
            From the training of learned maps.
        """
        from isthmus.bridge.fitting import check_needs, fit_parts
        from isthmus.bridge.unpaired import Unpaired

        check_needs(method, pairs)
        unpaired = Unpaired.draw(unpaired_source, unpaired_target, pairs, seed=seed)
        source, target = _spaces(pairs, unpaired_source, unpaired_target)
        parts = fit_parts(
            (source, target),
            pairs,
            unpaired,
            method=method,
            purpose=purpose,
            min_retention=min_retention,
            collection=collection,
            params=params,
            seed=seed,
            track=track,
        )
        return cls(
            source=replace(source, bridged_from=""),
            target=replace(target, bridged_from=""),
            map=parts.map,
            report=parts.report,
            verdict=parts.verdict,
            calibration=parts.calibration,
            scope=parts.scope,
            provenance=Provenance.now(
                seed=seed,
                purpose=purpose,
                min_retention=min_retention,
                source_kind=source.kind,
                target_kind=target.kind,
                coverage=coverage,
                candidates=parts.candidates,
                **record_rows(parts.map.inner, pairs, unpaired, held_out=parts.report.n_queries),
            ),
        )

    def __repr__(self) -> str:
        return f"Bridge({self.source} to {self.target}, {self.method}: {self.verdict.status})"

    @property
    def method(self) -> str:
        """Name of the map inside the preprocessing steps."""
        return self.map.inner.name

    @property
    def lands_in(self) -> Literal["target", "comparison"]:
        """Whether mapped rows can search an untouched store of the target space."""
        return self.map.lands_in

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the manifest, which holds the hash of every tensor: 64 hexadecimal digits."""
        from isthmus.bridge.artifact import describe

        return str(describe(self)[0]["hash"])

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Carry source rows (n, dim_source) over, as float32, of unit length among unit vectors."""
        return carry(self.map, X, self.target)

    def transform_target(self, Y: npt.ArrayLike) -> FloatArray:
        """Carry target rows (n, dim_target) there: the identity unless both sides move."""
        return self.map.transform_target(Y)

    def apply(self, vectors: VectorSet) -> VectorSet:
        """Carry a set over, of unit length where the vectors of the space that it lands in are.

        A map that lands in the target space carries source vectors there. One that lands in a
        comparison space carries vectors of either side to `comparison_space`, where both meet.

        Rows outside the scope, or of another kind than the pairs, are carried too; `examine` counts
        them. The set's kind and prompt stay; ``bridged_from`` becomes the bridge's hash.

        Raises
        ------
        WrongDirectionError
            Vectors of the target space, where that is where the map lands.
        SpaceMismatchError
            Vectors of any other space.
        """
        space = self.space_of_applied(vectors.space)
        forward = self.transform if self.starts_from(vectors.space) else self.transform_target

        def carry_block(rows: FloatArray) -> FloatArray:
            mapped = forward(rows)
            return mapped if self.lands_in == "target" else normalise(mapped)

        return VectorSet(vectors.ids, in_row_blocks(carry_block, vectors.matrix()), space)

    def space_of_applied(self, space: Space) -> Space:
        """Return the space of what `apply` gives for vectors of ``space``.

        Raises
        ------
        WrongDirectionError, SpaceMismatchError
        """
        self.starts_from(space)
        lands = self.target if self.lands_in == "target" else self.comparison_space
        return replace(lands, kind=space.kind, prompt=space.prompt, bridged_from=self.hash)

    def starts_from(self, space: Space) -> bool:
        """Return whether vectors of ``space`` go through the source side, or, if not, the other.

        Where both sides are of one space, through the source side: then
        `transform_target` alone takes the other.

        Raises
        ------
        WrongDirectionError, SpaceMismatchError
            Vectors that `apply` does not carry.
        """
        at_target = space.fingerprint == self.target.fingerprint
        if self.lands_in == "comparison" and at_target:
            return self.source.fingerprint == space.fingerprint
        self.check_source(space)
        return True

    @property
    def comparison_space(self) -> Space:
        """The space in which both sides meet, of this bridge alone; vectors have length one.

        Raises
        ------
        UnsupportedOperationError
            A map that lands in its target space.
        """
        if self.lands_in == "target":
            raise UnsupportedOperationError(
                expected="a bridge that lands in a comparison space",
                got=f"one that lands in its target space ({self.method})",
                do="compare what apply gives with vectors of the target",
            )
        width = self.transform(np.eye(1, self.source.dim, dtype=np.float32)).shape[1]
        return Space(
            model=f"{self.method} of {self.source.model} and {self.target.model}",
            revision=self.hash,
            dim=width,
            normalized=True,
        )

    def outside(self, X: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Tell which source rows (n, dim_source) lie outside the scope, as booleans (n,)."""
        return self.scope.outside(X)

    def examine(self, vectors: VectorSet) -> ScopeReport:
        """Count the rows of a set that lie outside the scope, and compare its kind to the pairs'.

        Raises
        ------
        SpaceMismatchError, WrongDirectionError
        """
        self.check_source(vectors.space)
        outside = sum(
            int(np.count_nonzero(self.outside(batch.vectors))) for batch in vectors.iter_batches()
        )
        return ScopeReport(len(vectors), outside, vectors.space.kind, self.scope.kind)

    def check_source(self, space: Space) -> None:
        """Refuse vectors that this bridge does not start from.

        Raises
        ------
        WrongDirectionError, SpaceMismatchError
        """
        try:
            self.source.check(space)
        except SpaceMismatchError as error:
            if space.fingerprint != self.target.fingerprint:
                raise
            raise WrongDirectionError(
                expected=f"vectors of the source space, {self.source}",
                got=f"vectors of the target space, {self.target}",
                do=f"load the reverse bridge, from {self.target.model} to {self.source.model}; "
                "a bridge leads one way only",
            ) from error

    def check_lands_in_target(self) -> None:
        """Refuse a map that lands in a comparison space.

        Raises
        ------
        UnsupportedOperationError
        """
        if self.lands_in != "target":
            raise UnsupportedOperationError(
                expected="a bridge that lands in its target space",
                got=f"one that lands in a comparison space ({self.method})",
                do="apply it to both sides and search there, or fit procrustes or ridge",
            )

    def require(self, status: str = "bridge") -> None:
        """Raise where the verdict is less than ``bridge`` (or not ``pre_aligned``, when asked).

        ``pre_aligned`` satisfies ``bridge``: the spaces meet without help.

        Raises
        ------
        VerdictError
        """
        enough = {"bridge": ("bridge", "pre_aligned")}.get(status, (status,))
        if self.verdict.status not in enough:
            raise VerdictError(
                expected=f"the verdict {' or '.join(enough)}",
                got=f"{self.verdict.status}: {self.verdict.reason}",
                do="add pairs that cover the collection, or embed it again with the target's model",
            )

    def save(self, folder: Path | str) -> None:
        """Write the artifact: a new folder, or in place of an older bridge; whole or not at all.

        Raises
        ------
        WriteFailedError
            The disk refuses, or the folder holds something that is not a bridge.
        """
        from isthmus.bridge.artifact import save

        save(self, Path(folder))

    def to_onnx(self, path: Path | str) -> None:
        """Write the way from raw source rows to what `transform` gives as an ONNX graph.

        Input ``source`` (n, dim_source), output ``target`` (n, dim_target), both float32, n free.

        Parameters
        ----------
        path : Path or str
            A file, which is written whole or not at all; what was there is replaced.

        Raises
        ------
        MissingExtraError
            Without the extra ``onnx``.
        UnsupportedOperationError
            A map that lands in a comparison space, or arrays over 2 GiB, where such a file ends.
        WriteFailedError
        """
        from isthmus.bridge.onnx import write_onnx

        write_onnx(self, Path(path))

    def to_sentence_transformers(self, folder: Path | str, model: Any) -> None:
        """Write a folder that ``SentenceTransformer(folder)`` loads as model and bridge in one.

        Neither this package nor foreign code is needed to load it: the bridge stands in it as that
        library's own modules.

        Parameters
        ----------
        folder : Path or str
            A new folder, which is written whole or not at all.
        model : Path or str, or SentenceTransformer
            The source's model: the folder that its ``save`` wrote, or the model itself.

        Raises
        ------
        UnsupportedOperationError
            A map that lands in a comparison space, or that those modules cannot express.
        DimensionError
            A model of another width than the source.
        MissingFileError, CorruptFileError, WriteFailedError
        """
        from isthmus.bridge.sentence_transformers import write_sentence_transformer

        write_sentence_transformer(self, Path(folder), model)

    @classmethod
    def load(cls, folder: Path | str) -> Bridge:
        """Read an artifact, trusting nothing in it; SPEC.md lists what is refused.

        Raises
        ------
        MissingFileError, CorruptFileError, TamperedArtifactError, UnknownVersionError,
        MalformedArtifactError, OversizedArtifactError, UnsafePathError
        """
        from isthmus.bridge.artifact import load

        return load(Path(folder))


def _spaces(
    pairs: Pairs | None, source: VectorSet | None, target: VectorSet | None
) -> tuple[Space, Space]:
    """Return the spaces that a bridge joins: those of the pairs, or of both sets.

    Raises
    ------
    EmptyInputError
    """
    if pairs is not None:
        return pairs.source_space, pairs.target_space
    if source is None or target is None:
        raise EmptyInputError(
            expected="pairs, or unpaired rows on both sides",
            got="neither",
            do="give pairs, or both unpaired sets and a map that needs no pairs",
        )
    return source.space, target.space
