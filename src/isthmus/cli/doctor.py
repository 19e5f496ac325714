"""``isthmus doctor``: what is wrong with a collection, and whether its model changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isthmus.cli.options import Json, Quiet, Seed
from isthmus.cli.output import Output, facts
from isthmus.cli.place import Place
from isthmus.cli.tables import say_number
from isthmus.cli.text import printable
from isthmus.errors import ParameterError, UnknownNameError

if TYPE_CHECKING:
    from rich.table import Table

    from isthmus.evaluate.drift import Drift
    from isthmus.workflows import CanaryCheck, Diagnosis, DriftReport

__all__ = ["doctor"]

REQUIRABLE = ("clean",)
CANARY = ("add", "check")


def doctor(
    place: Annotated[
        Place,
        typer.Argument(
            parser=Place,
            metavar="STORE",
            help="A collection's URL, or a file of vectors. Nothing is written to it.",
            show_default=False,
        ),
    ],
    *,
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample", metavar="N", min=1, help="Look at so many rows only, drawn uniformly."
        ),
    ] = None,
    against: Annotated[
        Place | None,
        typer.Option(
            "--against",
            parser=Place,
            metavar="OTHER",
            help="Say whether there is drift between the two, a store or a file.",
            show_default=False,
        ),
    ] = None,
    canary: Annotated[
        str | None,
        typer.Option(
            "--canary",
            metavar="add|check",
            help="Keep the vectors of a few fixed texts, or compare them with the same texts "
            "embedded again.",
            show_default=False,
        ),
    ] = None,
    vectors: Annotated[
        Place | None,
        typer.Option(
            "--vectors",
            parser=Place,
            metavar="FILE",
            help="Vectors of these texts: a file, or the URL of a store.",
            show_default=False,
        ),
    ] = None,
    canary_file: Annotated[
        Path | None,
        typer.Option(
            "--canary-file", metavar="FILE", help="Where canaries are kept.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="A csv file of id,posterior: that the row is of another space.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Draw the rows by what tells spaces apart: .svg or .png.",
            show_default=False,
        ),
    ] = None,
    require: Annotated[
        str | None,
        typer.Option(
            "--require",
            metavar="VERDICT",
            help="Fail unless the verdict is this: 'clean', which is also no drift, and unchanged "
            "canaries.",
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Look into a collection for what is wrong with it.

    Lengths, number types, bad, repeated and zero rows, hubs, empty dimensions, and whether some
    rows are of another encoder or were treated otherwise, which no metadata is needed for. With
    --against, drift between two snapshots; with --canary, whether the model changed. Any verdict
    is a result: the exit code is 0, unless --require asks for more.
    """
    output = Output("doctor", as_json=as_json, quiet=quiet)
    _check(against=against, canary=canary, vectors=vectors, canary_file=canary_file)
    if require is not None and require not in REQUIRABLE:
        raise UnknownNameError.of("verdict to require", require, REQUIRABLE)
    alone = against is None and canary is None
    if not alone and (out is not None or plot is not None):
        raise ParameterError(
            expected="--out and --plot with a diagnosis",
            got="them with --against or --canary",
            do="leave them out",
        )
    found: Diagnosis | DriftReport | CanaryCheck | None
    if canary is not None and vectors is not None and canary_file is not None:
        found = _canary(place, output, canary=canary, vectors=vectors, canary_file=canary_file)
    elif against is not None:
        found = _drift(place, against, output, sample=sample, seed=seed)
    else:
        found = _diagnosis(place, output, sample=sample, out=out, plot=plot, seed=seed)
    if found is None:
        return
    if require is not None:
        found.require()
    output.done(found.to_dict())


def _check(
    *, against: Place | None, canary: str | None, vectors: Place | None, canary_file: Path | None
) -> None:
    """Refuse options that do not go together, before anything is read."""
    if canary is not None and canary not in CANARY:
        raise UnknownNameError.of("thing to do with canaries", canary, CANARY)
    if canary is not None and against is not None:
        raise ParameterError(
            expected="--canary or --against", got="both", do="ask one question at a time"
        )
    if (canary is None) != (vectors is None) or (canary is None) != (canary_file is None):
        raise ParameterError(
            expected="--canary, --vectors and --canary-file together",
            got="some of them",
            do="give all three, or none",
        )


def _diagnosis(
    place: Place,
    output: Output,
    *,
    sample: int | None,
    out: Path | None,
    plot: Path | None,
    seed: int,
) -> Diagnosis:
    from isthmus._files import check_file_writable
    from isthmus.evaluate.plots import check_plot_path, save_figure
    from isthmus.workflows import diagnose

    if plot is not None:
        check_plot_path(plot)
    for file in (out, plot):
        if file is not None:
            check_file_writable(file)
    found = diagnose(str(place), sample=sample, out=out, seed=seed, track=output.track)
    output.show(_about(found, title=place.name), _about_spaces(found))
    output.show(f"Verdict: {found.verdict}", *(f"  {reason}" for reason in found.reasons))
    for note in found.notes:
        output.warn(note)
    if plot is not None:
        from isthmus.evaluate.mixture_plot import mixture_figure

        save_figure(mixture_figure(found.mixture, title=printable(place.name)), plot)
        output.say(f"Written: {plot}")
    if out is not None:
        output.say(f"Written: {out}")
    return found


def _about(found: Diagnosis, *, title: str) -> Table:
    space = found.space
    lengths = f"{found.length_low:.4g} / {found.length_median:.4g} / {found.length_high:.4g}"
    parts = {
        "number type": found.marks.grids,
        "width": found.marks.widths,
        "length": found.marks.lengths,
    }
    return facts(
        [
            ("space", "not recorded" if space is None else f"{space}, {space.kind}"),
            *([("bridged from", space.bridged_from)] if space and space.bridged_from else []),
            ("rows x columns", f"{found.rows:,} x {found.dim:,}"),
            *((f"rows of {one.numbers:g} columns", f"{one.rows:,}") for one in found.other_lengths),
            ("looked at", f"{found.looked:,} rows"),
            ("length 5 % / median / 95 %", lengths),
            ("unit length", f"{found.marks.normalized} ({found.marks.unit_rows:,})"),
            *(
                (name, ", ".join(f"{part.name} {part.share:.1%}" for part in some) or "-")
                for name, some in parts.items()
            ),
            ("NaN or infinite / zero rows", f"{found.invalid_rows:,} / {found.zero_rows:,}"),
            ("repeated rows / ids", f"{found.duplicate_rows:,} / {found.repeated_ids:,}"),
            ("with a near duplicate", f"{say_number(found.near_duplicates)} of {found.asked:,}"),
            ("hubness@10", say_number(found.hubness, digits=2)),
            (
                "constant / zero dimensions",
                f"{len(found.constant_dimensions):,} / {len(found.zero_dimensions):,}",
            ),
        ],
        title=title,
    )


def _about_spaces(found: Diagnosis) -> Table:
    mixture = found.mixture
    seen = mixture.smallest_share
    return facts(
        [
            ("spaces", f"{mixture.verdict}: {mixture.reason}"),
            (
                "foreign share [95 %]",
                _interval(mixture.share, mixture.share_low, mixture.share_high),
            ),
            (
                "contrast [95 %]",
                _interval(mixture.contrast, mixture.contrast_low, mixture.contrast_high),
            ),
            ("a planted share would be seen", f"{seen:.0%}" if seen > 0 else "-"),
        ]
    )


def _drift(
    place: Place, against: Place, output: Output, *, sample: int | None, seed: int
) -> DriftReport:
    from isthmus.workflows import drift_between

    found = drift_between(str(place), str(against), sample=sample, seed=seed, track=output.track)
    output.show(_about_drift(found.drift, title=f"{place.name} and {against.name}"))
    if found.same_space is False:
        output.warn("the recorded spaces differ: of these, drift is no question")
    output.show(f"Verdict: {found.drift.verdict}", f"  {found.drift.reason}")
    return found


def _about_drift(drift: Drift, *, title: str) -> Table:
    return facts(
        [
            ("rows compared", f"{drift.rows:,} and {drift.other_rows:,}"),
            ("p", say_number(drift.p_value)),
            (
                "moved rows [95 %]",
                _interval(drift.moved, drift.moved_low, drift.moved_high),
            ),
            ("smallest that would be seen", say_number(drift.smallest)),
        ],
        title=title,
    )


def _interval(value: float, low: float, high: float) -> str:
    return f"{say_number(value)} [{say_number(low)}, {say_number(high)}]"


def _canary(
    place: Place, output: Output, *, canary: str, vectors: Place, canary_file: Path
) -> CanaryCheck | None:
    from isthmus.workflows import add_canaries, check_canaries
    from isthmus.workflows.canary import FEWEST

    if canary == "add":
        count = add_canaries(str(place), str(vectors), canary_file)
        noun = "canary" if count == 1 else "canaries"
        output.say(f"{count:,} {noun} kept: {canary_file}")
        if count < FEWEST:
            output.warn(f"{count:,} {noun} tell little: take the texts of 20 to 100")
        output.done({"canaries": count, "file": str(canary_file)})
        return None
    found = check_canaries(str(place), str(vectors), canary_file)
    if found.missing:
        output.warn(
            f"{found.missing:,} of {found.rows + found.missing:,} canaries were not embedded "
            "again: the verdict is of the others"
        )
    if found.rows < FEWEST:
        output.warn(f"{found.rows:,} canaries are few: take 20 to 100")
    output.show(
        facts(
            [
                ("canaries", f"{found.rows:,}, {found.missing:,} missing"),
                ("relative error", say_number(found.error)),
                ("cosine mean / lowest", f"{found.cosine:.4f} / {found.lowest_cosine:.4f}"),
                ("change of cosines among them", say_number(found.similarity_error)),
            ],
            title=canary_file.name,
        ),
        f"Verdict: {found.verdict}",
        f"  {found.kind}",
    )
    return found
