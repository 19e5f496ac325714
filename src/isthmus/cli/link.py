"""``isthmus link``: find which vectors of two sets are the same object."""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from isthmus._progress import silent
from isthmus.cli.failures import INTERRUPTED
from isthmus.cli.iterations import track_iterations
from isthmus.cli.options import (
    Coverage,
    EveryCandidate,
    Json,
    LinkMethod,
    LinksOut,
    MethodParams,
    Precision,
    Quiet,
    RequireLinked,
    Resume,
    Seed,
    SeedFile,
    SeedVectorFiles,
    Source,
    Target,
    Threshold,
)
from isthmus.cli.output import Output
from isthmus.cli.params import as_pairs, as_params
from isthmus.cli.tables import about_iterations, about_links
from isthmus.errors import ParameterError, UnknownNameError

if TYPE_CHECKING:
    from isthmus.link.links import Threshold as AnyThreshold
    from isthmus.workflows import FoundLinks

__all__ = ["link"]

REQUIRABLE = ("linked",)


def link(
    source: Source,
    target: Target,
    *,
    seeds: SeedFile = None,
    seed_vectors: SeedVectorFiles = None,
    out: LinksOut,
    method: LinkMethod = "auto",
    param: MethodParams = None,
    threshold: Threshold = "own",
    precision: Precision = None,
    coverage: Coverage = None,
    every: EveryCandidate = False,
    resume: Resume = False,
    require: RequireLinked = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Find which vectors of A and B are the same object.

    From a few seed pairs, and no text; '--seeds none' finds its own, in large sets that share many
    objects. Objects without a partner stay without. The file of links is
    a file of pairs for 'isthmus fit', with posteriors as weights. Ctrl-C writes the links so far
    and exits with 130; --resume goes on from there, or after a crash. Doubt about the links is a
    verdict: the exit code is 0, unless --require asks for more.
    """
    from isthmus.link import registry
    from isthmus.workflows import find_links

    since = time.monotonic()
    output = Output("link", as_json=as_json, quiet=quiet)
    if require is not None and require not in REQUIRABLE:
        raise UnknownNameError.of("verdict to require", require, REQUIRABLE)
    checkpoint = _check_place(out, [source.file, target.file, seeds, *(seed_vectors or ())])
    if checkpoint.exists() and not resume:
        output.warn(f"{checkpoint.name} of a stopped run is replaced; --resume would go on from it")
    found = find_links(
        source,
        target,
        as_pairs(seeds),
        seed_vectors=seed_vectors,
        method=registry.make(method, **as_params(param or [])),
        threshold=_as_threshold(threshold),
        precision=precision,
        coverage=coverage,
        seed=seed,
        track=silent if quiet or as_json else functools.partial(track_iterations, since=since),
        checkpoint=checkpoint,
        resume=resume,
    )
    found.save(out, every=every)
    found.discard_checkpoint()
    _tell(found, output, out)
    if found.links.interrupted:
        raise typer.Exit(INTERRUPTED)
    if require is not None:
        found.require()
    output.done({"path": out, **found.to_dict()})


def _tell(found: FoundLinks, output: Output, out: Path) -> None:
    links = found.links
    for note in found.notes:
        output.warn(note)
    if links.interrupted:
        output.warn(
            f"interrupted after iteration {links.history[-1].number}: {out.name} has the links so "
            "far; --resume goes on"
        )
    if links.verdict.status != "linked" and links.verdict.reasons:
        reasons = "; ".join(links.verdict.reasons)
        output.warn(f"the verdict is {links.verdict.status}: {reasons}")
    if not len(found):
        output.warn("no candidate is sure enough to be a link")
    if not output.quiet:
        output.show(about_links(found), about_iterations(links.history))
    output.say(f"Written: {out}")


def _check_place(out: Path, read: list[Path | None]) -> Path:
    """Refuse a place that cannot be written, or that is read; return that of the checkpoint."""
    from isthmus._files import check_file_writable
    from isthmus.spaces.links_file import check_links_path

    check_links_path(out)
    checkpoint = out.with_name(f"{out.name}.checkpoint")
    for path in (out, checkpoint):
        check_file_writable(path)
        if path.exists() and not path.is_file():
            raise ParameterError(
                expected="a plain file to write to", got=repr(path.name), do="name a new file"
            )
        for one in read:
            if one is not None and path.exists() and one.exists() and path.samefile(one):
                raise ParameterError(
                    expected="another file to write to than those that are read",
                    got=repr(path.name),
                    do="write to a new file",
                )
    return checkpoint


def _as_threshold(text: str) -> AnyThreshold:
    """Read a threshold: a number, or a name that the library checks."""
    try:
        return float(text)
    except ValueError:
        return cast("AnyThreshold", text)
