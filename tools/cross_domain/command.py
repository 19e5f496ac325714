"""The command line: four verbs; errors in two lines, exit codes 0, 1 and 2."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from cross_domain import agree, expand, export, generate
from cross_domain.corpora import read_corpora
from cross_domain.endpoint import Endpoint, check_url, read_key
from isthmus._progress import Track, silent, track
from isthmus.cli.failures import describe
from isthmus.cli.streams import complain, drop
from isthmus.cli.text import one_line
from isthmus.errors import CountMismatchError, InputError
from isthmus.spaces import VectorSet

__all__ = ["main"]

PROGRAM = "cross_domain"
FAILED, USAGE, INTERRUPTED = 1, 2, 130


class _Parser(argparse.ArgumentParser):
    """Says a wrong command line in two lines."""

    def error(self, message: str) -> NoReturn:
        """Exit with 2; an option that is not known is named without its value, perhaps a key."""
        what, colon, rest = message.partition("unrecognized arguments: ")
        if colon:
            names = [word.partition("=")[0] for word in rest.split() if word.startswith("-")]
            message = f"{what}{colon}{' '.join(names) or 'more words than are needed'}"
        complain(f"{self.prog}: {one_line(message)}\n  do: run '{self.prog} --help'\n")
        sys.exit(USAGE)


def main(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code: 0 done, 1 failed, 2 not understood."""
    try:
        given = _parser().parse_args(arguments)
        said = given.run(given)
        sys.stdout.write(said + "\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        drop(sys.stdout)
    except KeyboardInterrupt:
        complain(f"{PROGRAM}: interrupted; run the same command again to go on\n")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - all of them end here
        failure = describe(error)
        if failure.exit_code == FAILED and failure.kind != "EndpointError":
            complain(f"{PROGRAM}: unexpected {failure.got}\n")
            return FAILED
        complain(f"{PROGRAM}: expected {failure.expected}; got {failure.got}\n  do: {failure.do}\n")
        return FAILED
    return 0


# --- options -----------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=PROGRAM, description="Build a benchmark of cross-domain queries.")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    add = partial(_add, verbs)
    _generate_options(add("generate", _generate, "queries that need all of the corpora"))
    _expand_options(add("expand", _expand, "relevant sets, grown by retrieval"))
    _export_options(add("export", _export, "pairs for people to judge, as CSV"))
    agreeing = add("agree", _agree, "how far the people who judged agree")
    agreeing.add_argument("files", nargs="+", type=Path, metavar="FILE")
    return parser


def _add(verbs: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(
        name, help=text, description=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.set_defaults(run=run, parser=parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


def _generate_options(parser: argparse.ArgumentParser) -> None:
    rules = generate.Rules()
    parser.add_argument("corpora", nargs="+", type=Path, metavar="CORPUS", help="JSON lines")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--queries", type=_count, default=500, metavar="N")
    parser.add_argument("--seed", type=_seed, default=0, metavar="N")
    parser.add_argument("--shortest", type=_count, default=rules.shortest, metavar="CHARACTERS")
    parser.add_argument("--longest", type=_count, default=rules.longest, metavar="CHARACTERS")
    parser.add_argument(
        "--answers", type=_count, default=rules.answers, metavar="N", help="before a new draw"
    )
    _endpoint_options(parser)


def _expand_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="that generate wrote")
    parser.add_argument("--corpora", nargs="+", type=Path, required=True, metavar="CORPUS")
    parser.add_argument(
        "--vectors",
        nargs="+",
        type=Path,
        required=True,
        metavar="FILE",
        help="vectors of the documents, one file for each corpus in the same order",
    )
    parser.add_argument(
        "--query-vectors",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="one file, or one for each corpus",
    )
    parser.add_argument(
        "--embedding-model", metavar="NAME", help="asked instead of --query-vectors"
    )
    parser.add_argument("--k", type=_count, default=10, metavar="N", help="candidates of a corpus")
    _endpoint_options(parser)


def _export_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="that expand was run on")
    parser.add_argument("--corpora", nargs="+", type=Path, required=True, metavar="CORPUS")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--sample", type=_count, default=100, metavar="N", help="queries")
    parser.add_argument("--annotators", type=_count, default=3, metavar="N")
    parser.add_argument("--seed", type=_seed, default=0, metavar="N")


def _endpoint_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--endpoint", type=_url, required=True, metavar="URL")
    parser.add_argument("--model", required=True, metavar="NAME")
    parser.add_argument(
        "--key-variable",
        metavar="VARIABLE",
        help="environment variable that holds the key; OPENAI_API_KEY, where that is set",
    )
    parser.add_argument("--characters", type=_count, default=4_000, metavar="N", help="a document")
    parser.add_argument("--workers", type=_count, default=4, metavar="N", help="requests at once")
    parser.add_argument("--timeout", type=_seconds, default=60.0, metavar="SECONDS")
    parser.add_argument("--tries", type=_count, default=6, metavar="N", help="requests an answer")
    parser.add_argument(
        "--wait", type=_seconds, default=1.0, metavar="SECONDS", help="before the second try"
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress and no retries")


def _count(text: str) -> int:
    return _number(text, least=1)


def _seed(text: str) -> int:
    return _number(text, least=0)


def _number(text: str, *, least: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) >= least):
        raise argparse.ArgumentTypeError(f"expected a whole number from {least}; got {text!r:.40}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value <= 3600.0:
        raise argparse.ArgumentTypeError(f"expected seconds over 0, to 3600; got {text!r:.40}")
    return value


def _url(text: str) -> str:
    try:
        return check_url(text)
    except InputError as error:  # which never repeats the URL: it may hold a password
        raise argparse.ArgumentTypeError(str(error)) from None


# --- verbs -------------------------------------------------------------------------------------


def _endpoint(given: argparse.Namespace) -> Endpoint:
    return Endpoint(
        given.endpoint,
        key=read_key(given.key_variable),
        timeout=given.timeout,
        tries=given.tries,
        wait=given.wait,
        warn=None if given.quiet else _warn,
    )


def _warn(text: str) -> None:
    complain(f"{PROGRAM}: {one_line(text)}\n")


def _track(given: argparse.Namespace) -> Track[Any]:
    return silent if given.quiet else track


def _generate(given: argparse.Namespace) -> str:
    if given.shortest > given.longest:
        given.parser.error("--shortest is over --longest")
    new = generate.generate(
        read_corpora(given.corpora),
        _endpoint(given),
        model=given.model,
        queries=given.queries,
        out=given.out,
        seed=given.seed,
        rules=generate.Rules(given.shortest, given.longest, given.answers, given.characters),
        workers=given.workers,
        track=_track(given),
    )
    path = given.out / generate.QUERIES
    if given.json:
        return _json({"file": str(path), "new": new})
    return f"{new:,} new queries in {path}"


def _expand(given: argparse.Namespace) -> str:
    if (given.query_vectors is None) == (given.embedding_model is None):
        given.parser.error("give either --query-vectors or --embedding-model")
    _check_count(given.vectors, given.corpora, name="--vectors")
    corpora, endpoint = read_corpora(given.corpora), _endpoint(given)
    queries = expand.open_queries(given.folder, corpora)
    documents = [VectorSet.load(path) for path in given.vectors]
    if given.query_vectors is None:
        asked = [
            expand.embed_queries(given.folder, queries, one, endpoint, model=given.embedding_model)
            for one in documents
        ]
    else:
        paths = given.query_vectors
        paths = paths * len(corpora) if len(paths) == 1 else paths
        _check_count(paths, given.corpora, name="--query-vectors")
        asked = [VectorSet.load(path) for path in paths]
    found = expand.expand(
        given.folder,
        corpora,
        documents,
        asked,
        endpoint,
        model=given.model,
        k=given.k,
        characters=given.characters,
        workers=given.workers,
        track=_track(given),
    )
    path = given.folder / expand.QRELS
    if given.json:
        return _json({"file": str(path), **asdict(found)})
    unclear = f", {found.unclear:,} unclear and left out" if found.unclear else ""
    return (
        f"{found.queries:,} queries, {found.judged:,} candidates judged ({found.new:,} new), "
        f"{found.added:,} added{unclear}; {found.pairs:,} pairs in {path}"
    )


def _check_count(given: Sequence[Path], corpora: Sequence[Path], *, name: str) -> None:
    if len(given) != len(corpora):
        raise CountMismatchError(
            expected=f"{len(corpora)} files after {name}, one for each corpus",
            got=f"{len(given)}",
            do="name them in the order of the corpora",
        )


def _export(given: argparse.Namespace) -> str:
    queries, pairs = export.export(
        given.folder,
        read_corpora(given.corpora),
        sample=given.sample,
        annotators=given.annotators,
        seed=given.seed,
        out=given.out,
    )
    if given.json:
        return _json({"folder": str(given.out), "queries": queries, "pairs": pairs})
    return f"{queries:,} queries, {pairs:,} pairs for {given.annotators} annotators in {given.out}"


def _agree(given: argparse.Namespace) -> str:
    if len({path.resolve() for path in given.files}) < len(given.files):
        given.parser.error("a file is named twice")
    if len(given.files) < 2:
        given.parser.error("agreement needs the files of at least two annotators")
    found = agree.agree([agree.read_judged(path) for path in given.files])
    return _json(found.to_dict()) if given.json else agree.show(found)


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
