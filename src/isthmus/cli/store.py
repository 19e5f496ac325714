"""``isthmus store``: fill and look at stores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli.options import Json, Quiet, Seed
from isthmus.cli.output import Output, facts
from isthmus.errors import UnsupportedOperationError

__all__ = ["check_lasting", "store_add", "store_info", "store_record"]

_UNRECORDED = "no; isthmus store record URL --model NAME says which model made it"

Url = Annotated[
    str,
    typer.Argument(
        metavar="URL",
        help="For example sqlite:///dir/file.db?collection=docs (four slashes: absolute path).",
        show_default=False,
    ),
]


def store_add(
    url: Url,
    vectors: Annotated[
        Path, typer.Argument(metavar="F", help="Vectors to write.", show_default=False)
    ],
    *,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Write the vectors of a file, with their metadata, to a collection.

    It is created when it is not there. Rows with ids that are there already are replaced. Batches
    are committed one by one; run it again after an interruption. Nothing in it is random: --seed
    changes nothing.
    """
    del seed
    from isthmus.workflows.store_files import import_file

    output = Output("store add", as_json=as_json, quiet=quiet)
    check_lasting(url)
    done = import_file(url, vectors, track=output.track)
    if done.taken:
        output.say(f"Read: {done.taken}")
    if done.mixed:
        output.warn(
            f"the vectors are {_origin(done.added_from)}, the collection was made for "
            f"{_origin(done.there_from)} ones: they lie side by side and nothing tells them apart; "
            "a collection of its own keeps them apart"
        )
    if done.without_metadata:
        output.warn(f"{done.without_metadata:,} rows lost their metadata: the store keeps none")
    output.say(f"{done.rows:,} rows written, {done.new:,} of them new: {done.url}")
    output.done(
        {
            "url": done.url,
            "written": done.rows,
            "new": done.new,
            "count": done.count,
            "read": done.taken,
            "without_metadata": done.without_metadata,
        }
    )


def _origin(bridge: str) -> str:
    return f"mapped by bridge {bridge[:16]}" if bridge else "native"


def check_lasting(url: str) -> None:
    """Refuse a store that is gone when the command ends."""
    from isthmus.stores.registry import STORES, scheme_of, store_class

    scheme = scheme_of(url)
    if not store_class(scheme).capabilities.persistent:
        lasting = [name for name in STORES if store_class(name).capabilities.persistent]
        raise UnsupportedOperationError(
            expected="a store that lasts longer than this command",
            got=f"{url!r}: what a {scheme} store holds ends with the process",
            do=f"write to another kind of store: {', '.join(lasting)}",
        )


def store_info(url: Url, *, as_json: Json = False, quiet: Quiet = False, seed: Seed = 0) -> None:
    """Show a collection and what its store can do.

    Nothing in it is random: --seed changes nothing.
    """
    del seed
    from isthmus.stores import open_store

    output = Output("store info", as_json=as_json, quiet=quiet)
    with open_store(url) as store:
        told, space = store.info(), store.space
    able = told["capabilities"]
    output.show(
        facts(
            [
                ("url", str(told["url"])),
                ("rows", f"{told['count']:,}"),
                ("space", str(space)),
                ("recorded", "yes" if told["recorded"] else _UNRECORDED),
                ("fingerprint", str(told["fingerprint"])[:16]),
                *([("bridged from", space.bridged_from)] if space.bridged_from else []),
                ("metrics", ", ".join(able["metrics"])),
                ("exact search", "yes" if able["exact_search"] else "no"),
                ("reads back", _read_back(float(able["read_back_error"]))),
                ("concurrency", str(able["concurrency"])),
            ]
        )
    )
    output.done(told)


def store_record(
    url: Url,
    *,
    model: Annotated[
        str,
        typer.Option("--model", metavar="NAME", help="Encoder of the vectors.", show_default=False),
    ],
    revision: Annotated[
        str, typer.Option("--revision", metavar="TEXT", help="Version of its weights.")
    ] = "",
    preprocessing: Annotated[
        str, typer.Option("--preprocessing", metavar="TEXT", help="What was done to the texts.")
    ] = "",
    normalized: Annotated[
        bool, typer.Option("--normalized", help="The encoder gives vectors of length 1.")
    ] = False,
    dim: Annotated[
        int | None,
        typer.Option(
            "--dim",
            metavar="N",
            min=1,
            help="Length of the vectors, where the database knows none yet.",
            show_default=False,
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="The record that is there is wrong: put this instead.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> None:
    """Record which model made a collection that another program filled.

    Dimension and metric are the database's own. From then on nothing of another space meets these
    vectors without a bridge, so spell the model as its other vectors do. No row is touched. Nothing
    in it is random: --seed changes nothing.
    """
    del seed
    from isthmus.workflows.record_space import record_space

    output = Output("store record", as_json=as_json, quiet=quiet)
    done = record_space(
        url,
        model=model,
        revision=revision,
        preprocessing=preprocessing,
        normalized=normalized,
        dim=dim,
        replace=replace,
    )
    for note in done.notes:
        output.warn(note)
    said = "Recorded already" if done.before == done.space else "Recorded"
    if done.before not in (None, done.space):
        said = f"Recorded instead of {done.before}"
    output.say(f"{said}: {done.space}, fingerprint {done.space.fingerprint[:16]}, for {done.url}")
    output.done(done.to_dict())


def _read_back(error: float) -> str:
    return f"to {error:.0e} of a row's largest number" if error else "bit for bit"
