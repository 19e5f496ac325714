"""What every method of linking is: steps that can be watched, stopped and taken up again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isthmus._types import FloatArray, IntArray
from isthmus.errors import ParameterError
from isthmus.link.links import Iteration, Links
from isthmus.link.problem import LinkProblem

__all__ = ["LinkState", "Linker", "Watch"]


@dataclass(frozen=True, eq=False, kw_only=True)
class LinkState:
    """All that an iteration hands to the next: enough to go on from after a stop.

    Parameters
    ----------
    source_rows, target_rows : IntArray of shape (n_links,)
        The links promoted last, one-to-one: the anchors of the next iteration, with the seeds.
    posterior : FloatArray of shape (n_links,), float64
    pairs : IntArray of shape (n_candidates, 2)
        All candidate links so far: source row, target row; sorted.
    votes : IntArray of shape (n_candidates,)
        Views that proposed each.
    views : int
        Views so far.
    history : tuple of Iteration
    done : bool
        Whether the method has ended by itself.
    """

    source_rows: IntArray
    target_rows: IntArray
    posterior: FloatArray
    pairs: IntArray
    votes: IntArray
    views: int
    history: tuple[Iteration, ...]
    done: bool = False


Watch = Callable[[LinkState], None]
"""Is shown the state after every iteration: for progress, and to keep it."""


class Linker(ABC):
    """A method of linking: its parameters, and nothing learned.

    Subclasses are frozen dataclasses with a ``name``. The same problem and seed give the same
    links on any number of threads.
    """

    name: ClassVar[str]

    def link(
        self,
        problem: LinkProblem,
        *,
        seed: int = 0,
        watch: Watch | None = None,
        resume: LinkState | None = None,
    ) -> Links:
        """Find the links.

        Parameters
        ----------
        problem : LinkProblem
        seed : int, default 0
        watch : callable, optional
            Called with a `LinkState` after each iteration.
        resume : LinkState, optional
            Of the same problem, method and seed: go on after it. The links are those of a run
            that was never stopped.

        Returns
        -------
        Links
            With ``interrupted`` where Ctrl-C came after the first iteration: the links so far.
            Whether seed pairs are among them is the method's matter: `Geh`, as published, holds to
            them; the others let the vectors speak.

        Raises
        ------
        ParameterError
            A negative seed.
        """
        if seed < 0:
            raise ParameterError(expected="a seed of at least 0", got=f"{seed}", do="change it")
        state, interrupted = resume, False
        try:
            if state is None or not state.done:
                for state in self.iterate(problem, seed=seed, state=resume):
                    if watch is not None:
                        watch(state)
        except KeyboardInterrupt:
            if state is None:
                raise
            interrupted = True
        if state is None:
            raise RuntimeError("a method of linking made no step")
        return self.finish(problem, state, seed=seed, interrupted=interrupted)

    @abstractmethod
    def iterate(
        self, problem: LinkProblem, *, seed: int, state: LinkState | None
    ) -> Iterator[LinkState]:
        """Yield the state after each iteration, the last one done.

        What is random in iteration t depends on ``(seed, t)`` alone, so that going on from a kept
        state is going on as before.
        """

    @abstractmethod
    def finish(
        self, problem: LinkProblem, state: LinkState, *, seed: int, interrupted: bool
    ) -> Links:
        """Make the result out of the last state."""
