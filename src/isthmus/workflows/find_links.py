"""Find which vectors of two sets are the same object, from a few seed pairs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isthmus._progress import Track, silent
from isthmus.errors import ParameterError
from isthmus.link import Iteration, Linker, LinkProblem, Links, LinkState, LinkVerdict
from isthmus.link.links import Threshold
from isthmus.spaces import Pairs, VectorSet
from isthmus.workflows._found_links import FoundLinks
from isthmus.workflows._link_checkpoint import identify, read_checkpoint, write_checkpoint
from isthmus.workflows._link_seeds import SeedVectors, make_problem
from isthmus.workflows._opening import NONE_GIVEN, open_vectors
from isthmus.workflows._zero_seeds import ZeroSeeds, find_seeds

__all__ = ["UNKNOWN", "FoundLinks", "check_choice", "find_links"]

UNKNOWN = 0
"""Steps in all, as the progress is told: nobody knows how many iterations there will be."""


def find_links(
    source: VectorSet | Path | str,
    target: VectorSet | Path | str,
    seeds: Pairs | Path | str | None = None,
    *,
    seed_vectors: SeedVectors | None = None,
    method: str | Linker = "auto",
    threshold: Threshold = "own",
    precision: float | None = None,
    coverage: float | None = None,
    seed: int = 0,
    track: Track[Iteration] = silent,
    checkpoint: Path | str | None = None,
    resume: bool = False,
    **params: Any,
) -> FoundLinks:
    """Find the links between two sets of vectors.

    Parameters
    ----------
    source, target : VectorSet, or path of its file
        Of two models, as a rule. Directions are compared, whatever the metric of the spaces.
    seeds : Pairs, or path of a file with ``source,target``, optional
        At least 3, better 15 to 30. A file names ids of the two sets. `Pairs` may be rows of the
        two sets (ids and vectors are theirs), or pairs of other objects in the same two spaces
        (vector linking, section 5.4), which are no links themselves. ``"none"``: there are none; a
        map is fitted between both sets without pairs, and the pairs that it is surest of are the
        seeds. At least some thousand rows on each side are needed for that, many of them of
        objects that are in both; where the map says that it found nothing, the verdict is at most
        ``doubtful``.
    seed_vectors : (VectorSet or path, VectorSet or path), optional
        Other objects in the spaces of source and target, as seeds: paired by the ids in the file
        ``seeds``, or by equal ids.
    method : str or Linker, default "auto"
        A name of `isthmus.link.registry`, made with ``params``; or a method that is made already.
    threshold : float, "own" or "max_f1", default "own"
        Which candidates are kept: those with this posterior, with the method's own, or as many as
        give the highest expected F1.
    precision : float, optional
        Instead: as many as are expected to be right in this share.
    coverage : float, optional
        Instead: this share of all candidates, the surest.
    seed : int, default 0
        Of everything random.
    track : Track, default silent
        Is shown each `Iteration`; the number of steps is given as 0, since it is not known.
    checkpoint : path, optional
        File that the state is kept in after each iteration; it stays there until
        `FoundLinks.discard_checkpoint`, so that the links can be written first.
    resume : bool, default False
        Go on from the checkpoint, where there is one: the links are those of a run that was never
        stopped.
    **params
        Of the method.

    Returns
    -------
    FoundLinks
        After Ctrl-C the links so far, with ``links.interrupted``. Too few seeds, wrong ones, or no
        overlap is a verdict and not an error, for methods that judge their links.

    Raises
    ------
    TooFewPairsError, UnknownIdError, DuplicateIdError, EmptyInputError
        Fewer than 3 seeds, ids that are not there, ids in two seeds.
    SpaceMismatchError
        Seeds of other spaces than the two sets.
    DegenerateVectorsError, ZeroVectorError, UnknownNameError, ParameterError, FileError

    Examples
    --------
    >>> from isthmus import sample
    >>> documents = sample.load().documents
    >>> small, large = (documents[model].select(range(200)) for model in ("minilm-l6", "mpnet"))
    >>> seeds = Pairs.from_ids(small, large).sample(30, seed=0)
    >>> found = find_links(small, large, seeds, method="self_training")
    >>> pairs = found.pairs()
    >>> bool((pairs.source_ids == pairs.target_ids).mean() > 0.9)
    True
    """
    check_choice(threshold, precision=precision, coverage=coverage)
    linker = _make(method, params)
    if resume and checkpoint is None:
        raise ParameterError(expected="a checkpoint to resume from", got="none", do="give its path")
    left, right = open_vectors(source), open_vectors(target)
    found = _zero_seeds(left, right, seeds, seed_vectors, seed=seed)
    problem = make_problem(left, right, seeds if found is None else found.rows, seed_vectors)
    run = _Run(problem, linker, seed=seed, path=None if checkpoint is None else Path(checkpoint))
    notes = [*_notes(left, right), *([] if found is None else [found.note])]
    state = run.kept() if resume else None
    if resume and state is None:
        notes.append("there is no checkpoint to resume from: linking started anew")
    start = time.monotonic()
    links = run.link(state, track)
    if found is not None:
        links = found.judge(links)
    return FoundLinks(
        source=left,
        target=right,
        links=links,
        threshold=threshold,
        precision=precision,
        coverage=coverage,
        n_seeds=problem.n_seeds,
        seeds_inside=problem.seed_rows is not None,
        resumed_after=0 if state is None else len(state.history),
        seconds=time.monotonic() - start,
        notes=tuple(notes),
        checkpoint=run.path,
    )


def _zero_seeds(
    source: VectorSet,
    target: VectorSet,
    seeds: Pairs | Path | str | None,
    seed_vectors: SeedVectors | None,
    *,
    seed: int,
) -> ZeroSeeds | None:
    """Find seeds where the word for none stands in their place."""
    if not isinstance(seeds, str) or seeds != NONE_GIVEN:
        return None
    if seed_vectors is not None:
        raise ParameterError(
            expected="seed vectors, or none", got="both", do="leave one of them out"
        )
    return find_seeds(source, target, seed=seed)


class _Run:
    """One method on one problem: shown to the progress, and kept, after each iteration."""

    def __init__(
        self, problem: LinkProblem, linker: Linker, *, seed: int, path: Path | None
    ) -> None:
        self.problem = problem
        self.linker = linker
        self.seed = seed
        self.path = path
        self._identity = {} if path is None else identify(problem, linker, seed=seed)

    def kept(self) -> LinkState | None:
        """Return the state in the checkpoint, or None where there is no such file."""
        if self.path is None or not self.path.exists():
            return None
        return read_checkpoint(self.path, self.problem, self._identity)

    def link(self, state: LinkState | None, track: Track[Iteration]) -> Links:
        """Link, from a state on."""
        shown: list[Iteration] = []

        def iterations() -> Iterator[Iteration]:
            while True:
                yield shown[-1]

        steps = track(iterations(), "linking", UNKNOWN)

        def watch(now: LinkState) -> None:
            if self.path is not None:
                write_checkpoint(self.path, now, self._identity)
            shown.append(now.history[-1])
            next(steps)

        try:
            return self.linker.link(self.problem, seed=self.seed, watch=watch, resume=state)
        finally:
            close = getattr(steps, "close", None)  # of a generator: its bar goes
            if close is not None:
                close()


def check_choice(
    threshold: Threshold, *, precision: float | None = None, coverage: float | None = None
) -> None:
    """Refuse a choice of links that cannot be made, before any work is done for it.

    Raises
    ------
    ParameterError
    """
    none = np.empty(0, np.int64)
    nothing = Links(
        source_rows=none,
        target_rows=none,
        posterior=np.empty(0),
        votes=none,
        views=0,
        threshold=0.0,
        method="",
        history=(),
        verdict=LinkVerdict("not_judged"),
    )
    nothing.matched_rows(threshold, precision=precision, coverage=coverage)


def _make(method: str | Linker, params: dict[str, Any]) -> Linker:
    if isinstance(method, str):
        from isthmus.link import registry

        return registry.make(method, **params)
    if params:
        raise ParameterError(
            expected="parameters with the name of a method",
            got=f"{', '.join(sorted(params))} beside a method that is made already",
            do="make it with them",
        )
    return method


def _notes(source: VectorSet, target: VectorSet) -> Iterator[str]:
    """Say what may make links less, or more, than what is wanted."""
    if source.space.fingerprint == target.space.fingerprint:
        yield (
            f"both sets are of one space, {source.space}: their vectors can be compared as they "
            "are; links find equal objects all the same"
        )
    if source.space.kind != target.space.kind:
        yield (
            f"the source holds vectors of kind {source.space.kind!r}, the target of kind "
            f"{target.space.kind!r}: links are between copies of an object, not between a question "
            "and its answer"
        )
