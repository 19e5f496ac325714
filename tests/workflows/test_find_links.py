"""Finding links: where seeds come from, what is kept, how a run is taken up again."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from isthmus import Pairs, Space, VectorSet, find_links, fit_bridge
from isthmus.errors import (
    CorruptFileError,
    DuplicateIdError,
    EmptyInputError,
    InputError,
    MissingFileError,
    ParameterError,
    SpaceMismatchError,
    TooFewPairsError,
    UnknownIdError,
    VerdictError,
    ZeroVectorError,
)
from isthmus.link import Iteration, Linker, LinkProblem, Links, LinkState, LinkVerdict, registry

A, B = Space(model="a", dim=6), Space(model="b", dim=6)
N = 60


@dataclass(frozen=True, kw_only=True)
class Steps(Linker):
    """Finds more of the planted links (source row i, target row N - 1 - i) in every step."""

    name: ClassVar[str] = "steps"

    steps: int = 4
    stop_in: int = 0
    """Step that is interrupted, as if by Ctrl-C."""
    status: str = "linked"

    def iterate(
        self, problem: LinkProblem, *, seed: int, state: LinkState | None
    ) -> Iterator[LinkState]:
        history = () if state is None else state.history
        while len(history) < self.steps:
            number = len(history) + 1
            if number == self.stop_in:
                raise KeyboardInterrupt
            rows = np.arange(min(10 * number, len(problem.source)))
            draw = np.random.default_rng((seed, number))
            posterior = np.sort(draw.random(len(rows)))[::-1]
            links = np.column_stack([rows, len(problem.target) - 1 - rows])
            step = Iteration(
                number=number,
                phase="step",
                views=2,
                anchors=problem.n_seeds,
                candidates=len(rows),
                links=len(rows),
                ratio=0.5,
                threshold=0.25,
                seconds=0.0,
            )
            history = (*history, step)
            yield LinkState(
                source_rows=links[:, 0],
                target_rows=links[:, 1],
                posterior=posterior,
                pairs=links,
                votes=np.full(len(rows), number),
                views=2 * number,
                history=history,
                done=number == self.steps,
            )

    def finish(
        self,
        problem: LinkProblem,  # noqa: ARG002 - of the contract
        state: LinkState,
        *,
        seed: int,  # noqa: ARG002 - of the contract
        interrupted: bool,
    ) -> Links:
        return Links(
            source_rows=state.source_rows,
            target_rows=state.target_rows,
            posterior=state.posterior,
            votes=state.votes,
            views=state.views,
            threshold=0.25,
            method=self.name,
            overlap=float(len(state.votes)),
            history=state.history,
            verdict=LinkVerdict(self.status, ("because",)),
            interrupted=interrupted,
        )


@pytest.fixture(scope="module")
def sets() -> tuple[VectorSet, VectorSet]:
    draw = np.random.default_rng(5)
    rows = draw.normal(size=(N, 6))
    turned = rows @ np.linalg.qr(draw.normal(size=(6, 6)))[0]
    return (
        VectorSet([f"a{i}" for i in range(N)], rows, A),
        VectorSet([f"b{i}" for i in range(N)][::-1], turned[::-1], B),
    )


def true_pairs(sets, count: int = 5) -> Pairs:
    rows = np.arange(count)
    return Pairs.from_rows(*sets, rows, N - 1 - rows)


def same(one: Links, other: Links) -> None:
    for name in ("source_rows", "target_rows", "posterior", "votes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert getattr(one, name).dtype == getattr(other, name).dtype
    assert (one.views, one.history) == (other.views, other.history)


# --- seeds -----------------------------------------------------------------------------------


def test_seeds_from_a_file_are_rows(sets, tmp_path: Path):
    (tmp_path / "seeds.csv").write_text("target,source\n" + "b3,a3\nb4,a4\nb9,a9\n")
    for path, vectors in zip(("a.npz", "b.npy"), sets, strict=True):
        vectors.save(tmp_path / path, dtype="float32")
    found = find_links(
        tmp_path / "a.npz", str(tmp_path / "b.npy"), tmp_path / "seeds.csv", method="self_training"
    )
    assert (found.n_seeds, found.seeds_inside) == (3, True)
    assert found.source.ids[0] == "a0"
    assert found.to_dict()["source"] == {"rows": N, "space": "a (6, cosine)"}


class Keep(Steps):
    """Keeps the problem that it was given."""

    seen: ClassVar[list[LinkProblem]] = []

    def iterate(self, problem, *, seed, state):
        self.seen.append(problem)
        return super().iterate(problem, seed=seed, state=state)


def problem_of(*arguments, **named) -> LinkProblem:
    Keep.seen.clear()
    find_links(*arguments, method=Keep(), **named)
    (problem,) = Keep.seen
    return problem


def test_pairs_are_rows_where_ids_and_vectors_are_those_of_the_sets(sets):
    problem = problem_of(*sets, true_pairs(sets))
    assert problem.seed_rows is not None
    assert problem.seed_rows.tolist() == [[i, N - 1 - i] for i in range(5)]
    half = replace(
        true_pairs(sets), source=true_pairs(sets).source.astype(np.float16).astype(np.float32)
    )
    assert problem_of(*sets, half).seed_rows is not None


@pytest.mark.parametrize("ids", [["x0", "x1", "x2", "x3"], ["a0", "a1", "a2", "a3"]])
def test_pairs_of_other_objects_bring_their_vectors(sets, ids):
    draw = np.random.default_rng(1)
    other = Pairs(
        source=draw.normal(size=(4, 6)),
        target=draw.normal(size=(4, 6)),
        source_ids=ids,
        target_ids=["b0", "b1", "b2", "b3"],
        source_space=A,
        target_space=B,
    )
    problem = problem_of(*sets, other)
    assert problem.seed_rows is None
    unit = other.source / np.linalg.norm(other.source, axis=1, keepdims=True)
    np.testing.assert_allclose(problem.seed_source, unit, atol=1e-6)


def test_pairs_of_which_some_are_rows_are_refused(sets):
    pairs = true_pairs(sets)
    mixed = replace(pairs, source=np.vstack([pairs.source[:3], pairs.source[3:][::-1]]))
    with pytest.raises(InputError, match="got 3 of 5 that are rows of the sets"):
        find_links(*sets, mixed, method=Steps())


def test_seed_vectors_are_paired_by_equal_ids_or_a_file(sets, tmp_path: Path):
    draw = np.random.default_rng(2)
    one = VectorSet(["p", "q", "r", "s"], draw.normal(size=(4, 6)), A)
    two = VectorSet(["s", "r", "q", "x"], draw.normal(size=(4, 6)), B)
    problem = problem_of(*sets, seed_vectors=(one, two))
    assert (problem.n_seeds, problem.seed_rows) == (3, None)
    for name, vectors in (("one.npz", one), ("two.npz", two)):
        vectors.save(tmp_path / name, dtype="float32")
    (tmp_path / "seeds.csv").write_text("source,target\np,x\nq,q\nr,r\ns,s\n")
    paths = (tmp_path / "one.npz", tmp_path / "two.npz")
    by_file = problem_of(*sets, tmp_path / "seeds.csv", seed_vectors=paths)
    assert by_file.n_seeds == 4
    with pytest.raises(SpaceMismatchError, match="seeds on the source side"):
        find_links(*sets, seed_vectors=(two, one), method=Steps())
    with pytest.raises(ParameterError, match="got both"):
        find_links(*sets, true_pairs(sets), seed_vectors=(one, two), method=Steps())
    with pytest.raises(ParameterError, match="got none of them"):
        find_links(*sets, method=Steps())


def test_seeds_of_other_spaces(sets):
    pairs = true_pairs(sets)
    with pytest.raises(SpaceMismatchError, match="model 'a'"):
        find_links(*sets, pairs.reverse(), method=Steps())
    newer = replace(pairs, target_space=Space(model="b", dim=6, revision="2"))
    with pytest.raises(SpaceMismatchError, match="seeds on the target side with revision ''"):
        find_links(*sets, newer, method=Steps())


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("a0,b0\na1,b1\na2,b2\n", CorruptFileError, "a header with 'source' and 'target'"),
        ("source,target\n", EmptyInputError, "at least one pair"),
        ("source,target\na0,b0\na1,b1\n", TooFewPairsError, "at least 3 seed pairs"),
        ("source,target\na0,b0\na1,b1\na2,nobody\n", UnknownIdError, "nobody"),
        ("source,target\nb0,a0\nb1,a1\nb2,a2\n", UnknownIdError, "swap the two columns"),
        ("source,target\na0,b0\na0,b1\na2,b2\n", DuplicateIdError, "'a0' with 'b0', 'b1'"),
        ("source,target\na0,b0\na0,b0\na2,b2\n", DuplicateIdError, "2 times"),
    ],
)
def test_bad_files_of_seeds(sets, tmp_path: Path, text, error, said):
    (tmp_path / "seeds.csv").write_text(text)
    with pytest.raises(error) as caught:
        find_links(*sets, tmp_path / "seeds.csv", method=Steps())
    assert said in str(caught.value)


def test_what_is_missing_or_unusable(sets, tmp_path: Path):
    with pytest.raises(MissingFileError, match=r"seeds\.csv"):
        find_links(*sets, tmp_path / "seeds.csv", method=Steps())
    with pytest.raises(MissingFileError):
        find_links(tmp_path / "none.npz", sets[1], true_pairs(sets), method=Steps())
    rows = np.array(sets[0].vectors)
    rows[7] = 0
    dotted = VectorSet(sets[0].ids, rows, Space(model="a", dim=6, metric="dot"))
    pairs = Pairs.from_rows(dotted, sets[1], np.arange(3), np.arange(3))
    with pytest.raises(ZeroVectorError, match="row 7"):
        find_links(dotted, sets[1], pairs, method=Steps())


@pytest.mark.parametrize(
    "choice",
    [
        {"threshold": 1.5},
        {"threshold": "best"},
        {"threshold": float("nan")},
        {"precision": -1.0},
        {"coverage": 2.0},
        {"threshold": 0.5, "precision": 0.9},
        {"resume": True},
        {"growth": 1.0},
    ],
)
def test_a_choice_that_cannot_be_made_is_refused_before_any_work(choice):
    with pytest.raises(ParameterError):
        find_links("no", "file", "here", method=Steps(), **choice)


# --- what is found ---------------------------------------------------------------------------


def test_links_become_pairs_files_and_json(sets, tmp_path: Path):
    found = find_links(*sets, true_pairs(sets), method=Steps(), threshold=0.5)
    assert len(found.links) == 40
    pairs = found.pairs()
    assert 0 < len(pairs) == len(found) < 40
    assert [one[1:] for one in pairs.source_ids] == [one[1:] for one in pairs.target_ids]
    assert pairs.weight is not None
    assert pairs.weight.min() >= 0.5
    for name in ("links.csv", "links.parquet"):
        found.save(tmp_path / name)
        read = Pairs.from_file(tmp_path / name, *sets)
        assert read.source_ids.tolist() == pairs.source_ids.tolist()
        np.testing.assert_allclose(read.weight, pairs.weight, rtol=1e-6)
        found.save(tmp_path / name, every=True)
        assert len(Pairs.from_file(tmp_path / name, *sets)) == 40
    told = json.loads(json.dumps(found.to_dict()))
    assert (told["candidates"], told["links"], told["seeds"]) == (40, len(pairs), 5)
    assert told["threshold"] == 0.5
    assert told["posterior"]["min"] == pytest.approx(float(pairs.weight.min()))
    assert (told["overlap"], told["views"], len(told["history"])) == (40.0, 8, 4)
    assert told["verdict"] == {"status": "linked", "reasons": ["because"]}
    assert repr(found) == f"FoundLinks({len(pairs)} of 40 candidates by steps, linked)"


def test_what_is_kept(sets):
    every = find_links(*sets, true_pairs(sets), method=Steps(), threshold=0.0)
    posterior = every.links.posterior
    assert len(every) == 40
    own = find_links(*sets, true_pairs(sets), method=Steps())
    assert len(own) == np.count_nonzero(posterior >= 0.25)
    assert own.least_posterior == 0.25
    sure = find_links(*sets, true_pairs(sets), method=Steps(), precision=0.9)
    kept = sure.matched_rows().confidence
    assert kept.mean() >= 0.9 > posterior[: len(kept) + 1].mean()
    assert sure.least_posterior == kept[-1]
    half = find_links(*sets, true_pairs(sets), method=Steps(), coverage=0.5)
    assert len(half) == 20
    none = find_links(*sets, true_pairs(sets), method=Steps(), threshold=1.0)
    assert (len(none), none.to_dict()["posterior"]["max"]) == (0, None)
    with pytest.raises(EmptyInputError):
        none.pairs()


def test_a_verdict_is_a_result_until_more_is_required(sets):
    find_links(*sets, true_pairs(sets), method=Steps()).require()
    doubtful = find_links(*sets, true_pairs(sets), method=Steps(status="doubtful"))
    with pytest.raises(VerdictError, match="expected the verdict linked; got doubtful: because"):
        doubtful.require()
    unjudged = find_links(*sets, true_pairs(sets), method=Steps(status="not_judged"))
    with pytest.raises(VerdictError, match="another method that judges its links"):
        unjudged.require()


def test_the_same_space_and_other_kinds_are_said(sets):
    twin = VectorSet(sets[1].ids, sets[1].vectors, A.with_kind("query"))
    pairs = Pairs.from_rows(sets[0], twin, np.arange(5), N - 1 - np.arange(5))
    found = find_links(sets[0], twin, pairs, method=Steps())
    assert [note.split(",")[0] for note in found.notes] == [
        "both sets are of one space",
        "the source holds vectors of kind 'passage'",
    ]
    assert find_links(*sets, true_pairs(sets), method=Steps()).notes == ()


def test_links_fit_a_bridge(sets, tmp_path: Path):
    seeds = true_pairs(sets, 12)
    found = find_links(*sets, seeds, method="self_training")
    found.save(tmp_path / "links.csv")
    bridge = fit_bridge(*sets, tmp_path / "links.csv", method="procrustes")
    assert bridge.provenance.n_pairs == len(found) > 40


def test_progress_sees_every_iteration(sets):
    seen: list[tuple[str, int, int]] = []
    closed = []

    def watch(items, description, total):
        try:
            for item in items:
                seen.append((description, total, item.number))
                yield item
        finally:
            closed.append(True)

    find_links(*sets, true_pairs(sets), method=Steps(), track=watch)
    assert seen == [("linking", 0, number) for number in (1, 2, 3, 4)]
    assert closed == [True]


# --- taken up again --------------------------------------------------------------------------


def run(sets, path: Path, method: Linker, **more):
    return find_links(*sets, true_pairs(sets), method=method, checkpoint=path, **more)


class Killed(BaseException):
    """Ends a run as `kill -9` does: nothing is caught."""


@dataclass(frozen=True, kw_only=True)
class Dies(Steps):
    def iterate(self, problem, *, seed, state):
        for one in super().iterate(problem, seed=seed, state=state):
            if one.history[-1].number == 3:
                raise Killed
            yield one

    def __repr__(self) -> str:
        return repr(Steps())  # the same run as that of `Steps`


def test_a_killed_run_goes_on_as_if_it_was_never_stopped(sets, tmp_path: Path):
    path = tmp_path / "c"
    whole = run(sets, tmp_path / "other", Steps(), seed=3)
    with pytest.raises(Killed):
        run(sets, path, Dies(), seed=3)
    assert path.is_file()
    seen: list[int] = []

    def watch(items, description, total):
        del description, total
        for item in items:
            seen.append(item.number)
            yield item

    resumed = run(sets, path, Steps(), seed=3, resume=True, track=watch)
    same(resumed.links, whole.links)
    assert seen == [3, 4]
    assert resumed.resumed_after == 2
    assert path.is_file()  # until the links are written
    resumed.discard_checkpoint()
    assert not path.exists()


@pytest.mark.parametrize("name", registry.names())
def test_every_method_goes_on_from_what_it_kept(sets, tmp_path: Path, name):
    params = {"ao": {"overlap": N}}.get(name, {})
    first, path = tmp_path / "first", tmp_path / "c"

    def copy(items, description, total):
        del description, total
        for item in items:
            if not first.exists():
                first.write_bytes(path.read_bytes())
            yield item

    def call(**more):
        seeds = true_pairs(sets, 20)
        return find_links(*sets, seeds, method=name, checkpoint=path, seed=100, **params, **more)

    whole = call(track=copy)
    path.write_bytes(first.read_bytes())
    resumed = call(resume=True)
    assert resumed.resumed_after == 1
    assert len(resumed.links.history) == len(whole.links.history)
    for part in ("source_rows", "target_rows", "posterior", "votes"):
        np.testing.assert_array_equal(getattr(resumed.links, part), getattr(whole.links, part))
    assert resumed.links.verdict == whole.links.verdict
    assert resumed.links.overlap == whole.links.overlap


def test_an_interrupted_run_keeps_links_and_checkpoint(sets, tmp_path: Path):
    path = tmp_path / "c"
    found = run(sets, path, Steps(stop_in=3))
    assert found.links.interrupted
    assert len(found.links) == 20
    found.discard_checkpoint()
    assert path.is_file()
    again = run(sets, path, Steps(stop_in=3), resume=True)  # and before another step was done
    same(again.links, found.links)
    with pytest.raises(KeyboardInterrupt):
        run(sets, tmp_path / "none", Steps(stop_in=1))
    assert not (tmp_path / "none").exists()


def test_a_finished_run_is_only_read(sets, tmp_path: Path):
    first = run(sets, tmp_path / "c", Steps())
    second = run(sets, tmp_path / "c", Steps(), resume=True)
    assert second.resumed_after == 4
    same(second.links, first.links)


def test_nothing_to_resume_starts_anew_and_says_so(sets, tmp_path: Path):
    found = run(sets, tmp_path / "c", Steps(), resume=True)
    assert found.resumed_after == 0
    assert found.notes == ("there is no checkpoint to resume from: linking started anew",)


def test_another_run_is_not_resumed(sets, tmp_path: Path, monkeypatch):
    path = tmp_path / "c"
    run(sets, path, Steps())
    pairs = true_pairs(sets)
    other = VectorSet(sets[0].ids, 1.5 * sets[0].vectors + 0.1, A)
    for said, call in (
        ("seed", lambda: run(sets, path, Steps(), seed=1, resume=True)),
        ("parameters", lambda: run(sets, path, Steps(steps=5), resume=True)),
        (
            "seed pairs",
            lambda: find_links(
                *sets, pairs.select(range(4)), method=Steps(), checkpoint=path, resume=True
            ),
        ),
        (
            "source vectors, seed pairs",
            lambda: find_links(
                other,
                sets[1],
                Pairs.from_rows(other, sets[1], np.arange(5), N - 1 - np.arange(5)),
                method=Steps(),
                checkpoint=path,
                resume=True,
            ),
        ),
    ):
        with pytest.raises(ParameterError, match=rf"one that differs in: {said}\."):
            call()
    monkeypatch.setattr("isthmus.__version__", "9.9")
    with pytest.raises(ParameterError, match="differs in: version of Isthmus"):
        run(sets, path, Steps(), resume=True)


def opened(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    with safe_open(path, framework="np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata())  # noqa: SIM118


def resealed(path: Path, arrays: dict[str, np.ndarray], texts: dict[str, str]) -> None:
    """Write a forged checkpoint with the hash that fits it."""
    from isthmus.workflows import _link_checkpoint as module

    texts.pop("digest", None)
    try:
        digest = module._digest(arrays, texts)
    except KeyError:
        digest = ""
    save_file(arrays, path, metadata={**texts, "digest": digest})


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_checkpoint_that_was_cut_short(sets, tmp_path: Path, share):
    path = tmp_path / "c"
    run(sets, path, Steps())
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(CorruptFileError, match="'c' as a checkpoint"):
        run(sets, path, Steps(), resume=True)


def test_a_checkpoint_with_one_changed_byte(sets, tmp_path: Path):
    path = tmp_path / "c"
    run(sets, path, Steps())
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(CorruptFileError, match="content that fits its hash"):
        run(sets, path, Steps(), resume=True)
    path.unlink()
    path.mkdir()
    with pytest.raises(CorruptFileError, match="a plain file"):
        run(sets, path, Steps(), resume=True)


def set_row(name, place, value):
    def change(arrays, state):
        del state
        arrays[name][place] = value

    return change


def set_field(name, value):
    def change(arrays, state):
        del arrays
        state[name] = value

    return change


def set_step(name, value):
    def change(arrays, state):
        del arrays
        state["history"][1][name] = value

    return change


def set_array(name, make):
    def change(arrays, state):
        del state
        arrays[name] = make(arrays[name])

    return change


@pytest.mark.parametrize(
    "change",
    [
        set_row("source_rows", 0, N),
        set_row("target_rows", 0, -1),
        set_row("source_rows", 0, 1),
        set_row("pairs", (0, 1), N),
        set_row("pairs", (1, 0), 0),
        set_row("posterior", 0, 1.01),
        set_row("posterior", 0, np.nan),
        set_row("votes", 0, -1),
        set_array("votes", lambda one: one[:-1]),
        set_array("posterior", lambda one: one.astype(np.float32)),
        set_array("pairs", lambda one: one.ravel()),
        set_array("source_rows", lambda one: one[:, None]),
        set_array("source_rows", lambda one: np.array(one[0])),
        set_array("pairs", lambda one: np.array(one[0, 0])),
        set_array("more", lambda _: np.ones(2)),
        set_field("views", -1),
        set_field("views", 10**400),
        set_field(name="views", value=True),
        set_field("done", 0),
        set_field("history", {}),
        set_field("history", [1]),
        set_step("number", 7),
        set_step("links", 2.5),
        set_step("ratio", "high"),
        set_step("phase", 3),
        set_step("more", 3),
    ],
)
def test_a_forged_checkpoint(sets, tmp_path: Path, change):
    path = tmp_path / "c"
    run(sets, path, Steps())
    arrays, texts = opened(path)
    arrays.setdefault("more", np.zeros(0))
    state = json.loads(texts["state"])
    change(arrays, state)
    if not len(arrays["more"]):
        del arrays["more"]
    texts["state"] = json.dumps(state)
    resealed(path, arrays, texts)
    with pytest.raises(CorruptFileError, match="'c' as a checkpoint"):
        run(sets, path, Steps(), resume=True)


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "{", ""])
def test_a_checkpoint_with_other_json(sets, tmp_path: Path, text):
    path = tmp_path / "c"
    run(sets, path, Steps())
    arrays, texts = opened(path)
    resealed(path, arrays, {**texts, "state": text})
    with pytest.raises(CorruptFileError, match="the state as"):
        run(sets, path, Steps(), resume=True)
    resealed(path, arrays, {**texts, "identity": text})
    with pytest.raises((CorruptFileError, ParameterError)):
        run(sets, path, Steps(), resume=True)


def test_a_checkpoint_that_cannot_be_written_ends_the_run(sets, tmp_path: Path):
    with pytest.raises(OSError, match="to write 'c'"):
        run(sets, tmp_path / "none" / "c", Steps())


def test_runs_side_by_side_do_not_meet(sets, tmp_path: Path):
    """Two threads, one checkpoint each."""
    found = {}

    def work(name):
        found[name] = run(sets, tmp_path / name, Steps(), seed=len(name))

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "bb")]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    same(found["a"].links, find_links(*sets, true_pairs(sets), method=Steps(), seed=1).links)
