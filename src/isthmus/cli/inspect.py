"""``isthmus inspect``: what one or two files of vectors are like."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isthmus.cli.options import Json, PlotOut, Quiet, Seed
from isthmus.cli.output import Output, facts, grid
from isthmus.cli.place import Place
from isthmus.cli.tables import say_number, say_value
from isthmus.cli.text import printable
from isthmus.errors import ParameterError

if TYPE_CHECKING:
    from rich.table import Table

    from isthmus.workflows import PairInspection, SetInspection

__all__ = ["inspect"]

SHOWN_BINS = 5
"""Of the twenty bins of distance: all of them are in the envelope and in the picture."""


def inspect(
    a: Annotated[
        Place,
        typer.Argument(
            parser=Place, metavar="A", help="Vectors: a file, or a store URL.", show_default=False
        ),
    ],
    b: Annotated[
        Place | None,
        typer.Argument(
            parser=Place, metavar="[B]", help="Vectors to compare A with.", show_default=False
        ),
    ] = None,
    *,
    plot: PlotOut = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Look at one or two files or collections of vectors.

    Counts, lengths, bad and repeated rows, hubs; with B, whether the spaces are the same and how
    far neighbours and distances of shared ids agree, near and far, as a picture too. A file that no
    other command takes is looked at, too.
    """
    from isthmus.workflows import inspect as look

    output = Output("inspect", as_json=as_json, quiet=quiet)
    if plot is not None:
        _check_plot(plot, b)
    result = look(a, b, seed=seed, track=output.track)
    for path, one in ((a, result.a), (b, result.b)):
        if one is not None and path is not None:
            output.show(_about_set(one, title=path.name))
            for note in one.notes:
                output.warn(f"{path.name}: {note}")
    if result.both is not None:
        output.show(*_about_both(result.both))
    elif result.b is not None:
        output.warn("the sets were not compared: one of them cannot be used as it is")
    if plot is not None and b is not None:
        if _draw(result.both, plot, title=printable(f"{a.name} (A) and {b.name} (B)")):
            output.say(f"Written: {plot}")
        else:
            output.warn(f"there is nothing to plot: {plot.name} was not written")
    output.done(result.to_dict())


def _check_plot(plot: Path, b: Place | None) -> None:
    """Refuse a picture that cannot be made or written, before anything is looked at."""
    from isthmus._files import check_file_writable
    from isthmus.evaluate.plots import check_plot_path

    if b is None:
        raise ParameterError(
            expected="two files to compare in a picture",
            got="one",
            do="give B, or leave out --plot",
        )
    check_plot_path(plot)
    check_file_writable(plot)


def _draw(both: PairInspection | None, plot: Path, *, title: str) -> bool:
    """Draw the curves, where there are any."""
    from isthmus.evaluate.plots import consistency_figure, save_figure

    if both is None or both.distances is None or both.jaccard_curve is None:
        return False
    figure = consistency_figure(
        both.distances, both.jaccard_curve, rows=both.searched_rows, title=title
    )
    save_figure(figure, plot)
    return True


def _about_set(one: SetInspection, *, title: str) -> Table:
    space = one.space
    named = "not named" if space is None else str(space)
    lengths = f"{one.norm_low:.4g} / {one.norm_median:.4g} / {one.norm_high:.4g}"
    hubs = say_number(one.hubness, digits=2)
    return facts(
        [
            ("space", named if space is None else f"{named}, {space.kind}"),
            ("fingerprint", "-" if space is None else space.fingerprint[:16]),
            ("rows x columns", f"{one.rows:,} x {one.dim:,} ({one.dtype})"),
            ("length min / median / max", lengths),
            ("NaN or infinite rows", f"{one.invalid_rows:,}"),
            ("zero rows", f"{one.zero_rows:,}"),
            ("repeated rows / ids", f"{one.duplicate_rows:,} / {one.duplicate_ids:,}"),
            ("hubness@10", f"{hubs} ({one.asked_rows:,} rows in {one.searched_rows:,})"),
        ],
        title=title,
    )


def _about_both(both: PairInspection) -> list[Table | str]:
    import numpy as np

    differing = ", ".join(both.differences)
    said = (
        "The spaces are the same: their vectors may meet without a bridge."
        if both.same_space
        else f"The spaces differ in {differing}: their vectors must not meet without a bridge."
    )
    if both.overlap is None or both.jaccard is None or both.distances is None:
        return [said, f"{both.shared_ids:,} shared ids: too few to compare neighbours on."]
    values = grid(
        ["on shared ids", "value [95 %]", "by chance"],
        [
            ["NNO@10", say_value(both.overlap), f"{both.chance:.3f}"],
            ["null map, nbr_overlap@10", say_value(both.null_retention), f"{both.chance:.3f}"],
        ],
        title=f"{both.shared_ids:,} shared ids, {both.asked_rows:,} asked among "
        f"{both.searched_rows:,}",
    )
    curve = grid(
        ["k", *(str(k) for k in both.jaccard)],
        [["Jaccard@k", *(f"{value:.3f}" for value in both.jaccard.values())]],
    )
    shown = np.linspace(0, len(both.distances.median) - 1, SHOWN_BINS).astype(int)
    bins = zip(both.distances.median[shown], both.distances.correlation[shown], strict=True)
    pairs = [(f"{median:.2f}", say_number(correlation, digits=2)) for median, correlation in bins]
    distances = grid(
        ["distance in A", *(median for median, _ in pairs)],
        [["Pearson with B", *(correlation for _, correlation in pairs)]],
    )
    return [said, values, curve, distances]
