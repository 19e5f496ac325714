"""The learned map: never worse than its start, fixed by its seed, and used without torch."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from isthmus._linalg import normalise
from isthmus.errors import (
    DegenerateVectorsError,
    DimensionError,
    DivergedTrainingError,
    InvalidVectorsError,
    MalformedArtifactError,
    MissingExtraError,
    ParameterError,
    TooFewPairsError,
    UnknownNameError,
)
from isthmus.maps import MLP, ProcrustesRidge, Ridge, make
from isthmus.maps.mlp import choose_width
from isthmus.maps.training import OBJECTIVES
from isthmus.maps.training.closed_form import CLOSED_FORMS

SMALL = {"width": 8, "epochs": 2, "least_steps": 30, "batch": 64}


def planted(n=300, dims=(8, 10), *, bend=2.0, seed=100):
    """Return rows of length one that a bent map joins: the map is the same for every seed."""
    turn = np.random.default_rng(7).standard_normal(dims)
    rng = np.random.default_rng(seed)
    X = normalise(rng.standard_normal((n, dims[0])))
    return X, normalise(np.tanh(bend * X @ turn) + 0.05 * rng.standard_normal((n, dims[1])))


def kept(fitted, new, targets):
    """Return the share of the 10 nearest targets that mapped rows have in common with native."""
    X, Y = new
    tops = [np.argsort(-side @ targets.T)[:, :10] for side in (normalise(fitted.transform(X)), Y)]
    return np.mean([len({*a} & {*b}) / 10 for a, b in zip(*tops, strict=True)])


# --- quality -----------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_learns_from_nothing(objective):
    X, Y = planted(600)
    new = planted(200, seed=101)
    params = {"width": 64, "epochs": 1, "least_steps": 300, "batch": 128, "patience": 30}

    fitted = MLP(objective=objective, start="random", **params).fit(X, Y)

    assert kept(fitted, new, Y) > 0.5
    assert kept(fitted, new, Y) > kept(MLP(start="random", **SMALL).fit(X, Y), new, Y)


def test_it_bends_where_a_linear_map_cannot():
    X, Y = planted(2_000, bend=6.0)
    new = planted(300, bend=6.0, seed=101)
    params = {"width": 128, "epochs": 1, "least_steps": 500, "batch": 256, "patience": 30}

    fitted = MLP(learning_rate=2e-3, **params).fit(X, Y)

    linear = max(kept(made().fit(X, Y), new, Y) for made in (Ridge, ProcrustesRidge))
    assert kept(fitted, new, Y) > linear + 0.05
    assert int(fitted.steps_) > 0


@pytest.mark.parametrize("n", [10, 49, 50, 200])
@pytest.mark.parametrize("rate", [None, 0.5])
def test_it_is_not_worse_than_its_start_on_the_pairs_held_out(n, rate):
    fitted = MLP(learning_rate=rate, **SMALL).fit(*planted(n))
    scores = fitted.look_scores_
    if n < 50:
        assert int(fitted.steps_) == 0
        assert not scores.size
    else:
        assert scores.max() >= scores[0]
        assert fitted.look_steps_[int(np.argmax(scores))] == int(fitted.steps_)


@pytest.mark.parametrize("start", CLOSED_FORMS)
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_where_nothing_gains_it_is_the_closed_form(start, depth):
    X, Y = planted()
    fitted = MLP(start=start, depth=depth, learning_rate=1e4, patience=1, **SMALL).fit(X, Y)

    closed = make(start).fit(X, Y)
    assert int(fitted.steps_) == 0
    assert fitted.outcome == "no_more_gain"
    np.testing.assert_allclose(fitted.transform(X), normalise(closed.transform(X)), atol=1e-6)


def test_auto_takes_the_start_that_keeps_more():
    X, Y = planted(60, (30, 30), bend=0.1)  # ridge has too few pairs
    fits = {
        start: MLP(start=start, learning_rate=1e-12, **SMALL).fit(X, Y)
        for start in ("auto", "procrustes", "procrustes_ridge")
    }
    first = {start: fitted.look_scores_[0] for start, fitted in fits.items()}
    assert first["auto"] == max(first.values())


# --- what a fit says and keeps -----------------------------------------------------------------


def test_about_and_outcome():
    X, Y = planted()
    chosen = MLP(epochs=1, least_steps=5, batch=512).fit(X, Y)
    assert chosen.about.startswith("4 layers of width 128, ")
    assert chosen.outcome == "out_of_steps"
    asked = MLP(patience=1, learning_rate=10.0, **SMALL).fit(X, Y)
    assert asked.about == "4 layers of width 8, 0 steps (no_more_gain)"
    assert asked.outcome == "no_more_gain"


@pytest.mark.parametrize(
    ("given", "width"),
    [
        ((768, 20_000, "cpu"), 768),
        ((768, 10, "cpu"), 128),
        ((768, 10**7, "cpu"), 1_536),
        ((768, 99_999, "cuda"), 1_536),
        ((768, 100_000, "cuda"), 3_840),
        ((2, 10**6, "cpu"), 128),
    ],
)
def test_the_width_follows_the_pairs_and_the_device(given, width):
    assert choose_width(*given) == width


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
@pytest.mark.parametrize("start", ["random", "auto"])
def test_every_depth(depth, start):
    X, Y = planted()
    fitted = MLP(depth=depth, start=start, **SMALL).fit(X, Y)

    assert fitted.weight_hidden_.shape == (max(0, depth - 2), *(2 * (8 if depth > 1 else 0,)))
    np.testing.assert_allclose(np.linalg.norm(fitted.transform(X), axis=1), 1, atol=1e-6)
    again = MLP.from_state(fitted.get_params(), fitted.get_state(), dim_source=8, dim_target=10)
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))


def test_a_seed_fixes_the_result():
    X, Y = planted()

    def train(seed):
        return MLP(start="random", seed=seed, **SMALL).fit(X, Y)

    one, again, other = train(100), train(100), train(101)
    for name, array in one.get_state().items():
        np.testing.assert_array_equal(array, again.get_state()[name])
    assert not np.array_equal(one.weight_first_, other.weight_first_)


def test_the_thread_count_of_torch_is_not_changed():
    import torch

    before = torch.get_num_threads()
    MLP(**SMALL).fit(*planted(60))
    assert torch.get_num_threads() == before


def test_bfloat16_trains():
    X, Y = planted()
    params = {"start": "random", "width": 32, "epochs": 1, "least_steps": 150, "batch": 64}
    halves = MLP(precision="bfloat16", **params).fit(X, Y)
    assert halves.look_scores_.max() > halves.look_scores_[0] + 0.2
    assert all(a.dtype == np.float32 for n, a in halves.get_state().items() if "weight" in n)


# --- odd pairs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-6, 1e3])
@pytest.mark.parametrize("start", ["auto", "random"])
def test_targets_that_are_not_of_length_one(scale, start):
    X, Y = planted(400)
    Y = (scale * Y * np.linspace(0.5, 2, 400)[:, None]).astype(np.float32)
    params = {"width": 64, "epochs": 1, "least_steps": 200, "batch": 128}

    fitted = MLP(start=start, objective="mse", **params).fit(X, Y)

    assert int(fitted.unit_) == 0
    left = np.sum((fitted.transform(X) - Y) ** 2) / np.sum(Y**2)
    assert left < (0.25 if start == "auto" else 0.5)


def test_rows_of_one_number():
    rng = np.random.default_rng(100)
    X = rng.standard_normal((80, 1))
    fitted = MLP(**SMALL).fit(X, 3 * X + 1)
    assert np.corrcoef(fitted.transform(X)[:, 0], X[:, 0])[0, 1] > 0.99
    bent = MLP(start="random", objective="mse", **{**SMALL, "least_steps": 300}).fit(X, X)
    assert np.isfinite(bent.transform(X)).all()


def test_ten_pairs_and_not_nine():
    X, Y = planted(10)
    MLP(**SMALL).fit(X, Y)
    with pytest.raises(TooFewPairsError, match="at least 10 pairs; got 9"):
        MLP(**SMALL).fit(X[:9], Y[:9])


def test_rows_that_come_many_times():
    X, Y = (np.repeat(side[:3], 40, axis=0) for side in planted())
    fitted = MLP(**SMALL).fit(X, Y)
    assert np.isfinite(fitted.transform(X)).all()
    with pytest.raises(DegenerateVectorsError):
        MLP(**SMALL).fit(X[:40], Y[:40])


def test_a_row_of_zeros_and_rows_far_away_give_numbers():
    X, Y = planted()
    fitted = MLP(start="random", **SMALL).fit(X, Y)
    assert np.isfinite(fitted.transform([np.zeros(8), 1e6 * X[0], 1e-6 * X[0]])).all()


def test_weights_choose_what_is_learned():
    X, Y = planted(400)
    mixed = np.where(np.arange(400)[:, None] % 2, Y, -Y)
    weight = np.where(np.arange(400) % 2, 1.0, 1e-6)
    params = {"width": 32, "epochs": 1, "least_steps": 200, "batch": 400, "held_out": 0.0}

    fitted = MLP(start="random", objective="mse", **params)
    fitted.set_params(held_out=0.2).fit(X, mixed, sample_weight=weight)

    assert np.mean(np.sum(fitted.transform(X) * Y, axis=1)) > 0.5


def test_a_collection_of_targets_decides_when_to_stop():
    X, Y = planted()
    others = planted(700, seed=101)[1]
    plain, among = (
        MLP(start="random", **SMALL).fit(X, Y, unpaired_target=each) for each in (None, others)
    )
    assert not np.array_equal(plain.look_scores_, among.look_scores_)
    assert among.look_scores_[0] < plain.look_scores_[0]  # 10 of 700 are harder to find than of 240


def test_a_collection_that_does_not_fit():
    X, Y = planted(60)
    with pytest.raises(DimensionError, match="unpaired_target with 10 columns; got 9"):
        MLP(**SMALL).fit(X, Y, unpaired_target=Y[:, :9])
    with pytest.raises(InvalidVectorsError, match="finite numbers in unpaired_target"):
        MLP(**SMALL).fit(X, Y, unpaired_target=np.full((5, 10), np.nan))
    MLP(**SMALL).fit(X, Y, unpaired_target=Y[:1])


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "error", "text"),
    [
        ({"objective": "cosine"}, UnknownNameError, "objective among contrastive"),
        ({"start": "cca"}, UnknownNameError, "start among auto, .*, random, ridge"),
        ({"precision": "float16"}, UnknownNameError, "precision among bfloat16, float32"),
        ({"depth": 0}, ParameterError, "depth as a whole number of at least 1; got 0"),
        ({"depth": 2.0}, ParameterError, "depth as a whole number"),
        ({"width": 0}, ParameterError, "width as a whole number of at least 1; got 0"),
        ({"epochs": 0}, ParameterError, "epochs as a whole number"),
        ({"least_steps": 0}, ParameterError, "least_steps as a whole number"),
        ({"batch": True}, ParameterError, "batch as a whole number"),
        ({"patience": "8"}, ParameterError, "patience as a whole number"),
        ({"learning_rate": 0.0}, ParameterError, "learning_rate over 0 and at most 1e.06; got 0.0"),
        ({"learning_rate": np.inf}, ParameterError, "learning_rate over 0"),
        ({"learning_rate": 1e38}, ParameterError, "learning_rate over 0 and at most 1e.06"),
        ({"learning_rate": "fast"}, ParameterError, "learning_rate over 0 .* got 'fast'"),
        ({"held_out": 0.0}, ParameterError, "held_out over 0"),
        ({"objective": ["mse"]}, UnknownNameError, "objective"),
        ({"weight_decay": -1.0}, ParameterError, "weight_decay of at least 0 .*; got -1.0"),
        ({"weight_decay": np.nan}, ParameterError, "weight_decay of at least 0"),
        ({"weight_decay": "x"}, ParameterError, "weight_decay of at least 0 .*; got 'x'"),
        ({"weight_decay": None}, ParameterError, "weight_decay of at least 0 .*; got None"),
        ({"weight_decay": 10**400}, ParameterError, "weight_decay .* at most 1e.06; got 1000"),
        ({"learning_rate": 10**400}, ParameterError, "learning_rate over 0 .*; got 1000"),
        ({"epochs": 10**19}, ParameterError, "epochs as a whole number of at most 1000000000"),
        ({"least_steps": 10**19}, ParameterError, "least_steps as a whole number of at most 1000"),
        ({"width": 10**7}, ParameterError, "width as a whole number of at most 1048576; got 1000"),
        ({"held_out": 1.5}, ParameterError, "held_out from 0 to 1; got 1.5"),
        ({"held_out": np.nan}, ParameterError, "held_out from 0 to 1"),
        ({"seed": -1}, ParameterError, "seed as a whole number of at least 0; got -1"),
        ({"device": "nope"}, ParameterError, "'cpu' or 'cuda'; got 'nope'"),
    ],
    ids=str,
)
def test_parameters_out_of_range(params, error, text):
    with pytest.raises(error, match=text):
        MLP(**params).fit(*planted(60))


def test_training_that_diverges_says_what_to_do():
    X, Y = planted()
    Y = Y * np.linspace(1, 1000, 300)[:, None]
    with pytest.raises(DivergedTrainingError, match=r"lower learning_rate \(it was 1e\+06\)"):
        MLP(learning_rate=1e6, **SMALL).fit(X, Y)


# --- without torch -----------------------------------------------------------------------------


def test_without_torch_the_line_to_install_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'isthmus\[torch\]'"):
        MLP(**SMALL).fit(*planted(60))


def test_a_saved_state_is_used_in_a_process_that_has_no_torch(tmp_path):
    X, Y = planted()
    fitted = MLP(start="random", depth=3, **SMALL).fit(X, Y)
    np.savez(tmp_path / "state.npz", **fitted.get_state())
    np.save(tmp_path / "rows.npy", X)
    code = textwrap.dedent(
        """
        import sys
        import numpy as np

        class Blocker:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "torch":
                    raise ModuleNotFoundError("blocked", name="torch")

        sys.meta_path.insert(0, Blocker())
        from isthmus.maps import MLP

        folder = sys.argv[1]
        state = dict(np.load(folder + "/state.npz"))
        params = {"start": "random", "depth": 3, "width": 8}
        fitted = MLP.from_state(params, state, dim_source=8, dim_target=10)
        np.save(folder + "/mapped.npy", fitted.transform(np.load(folder + "/rows.npy")))
        assert "torch" not in sys.modules
        try:
            import torch
        except ModuleNotFoundError:
            print("no torch here", fitted.about)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("no torch here 3 layers of width 8")
    np.testing.assert_array_equal(np.load(tmp_path / "mapped.npy"), fitted.transform(X))


def test_too_few_pairs_to_hold_any_out_are_named():
    X, Y = planted(49)
    few, random = MLP(**SMALL).fit(X, Y), MLP(start="random", **SMALL).fit(X, Y)
    assert (few.outcome, int(few.steps_)) == ("too_few_pairs", 0)
    assert "0 steps (too_few_pairs)" in few.about
    assert random.outcome == "out_of_steps"


def test_the_width_that_was_taken_is_recorded():
    X, Y = planted(60)
    fitted = MLP(least_steps=1, epochs=1).fit(X, Y)
    assert fitted.recorded_params()["width"] == fitted.weight_first_.shape[1] == 128
    assert fitted.width is None
    again = MLP.from_state(
        fitted.recorded_params(), fitted.get_state(), dim_source=8, dim_target=10
    )
    assert again.recorded_params() == fitted.recorded_params()
    assert choose_width(768, 2_500_000, "cpu:0") == choose_width(768, 2_500_000, "cpu") == 1536


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("stopped", 5, r"mlp\.stopped from 0 to 2; got 5"),
        ("unit", 7, r"mlp\.unit as 0 or 1; got 7"),
        ("unit", -1, r"mlp\.unit as 0 or 1; got -1"),
        ("unit", 0.5, r"mlp\.unit as 0 or 1; got 0.5"),
        ("steps", -1, r"mlp\.steps as a count; got -1"),
        ("steps", 1.5, r"mlp\.steps as a count; got 1.5"),
    ],
)
def test_a_state_that_no_training_leaves_is_refused(name, value, text):
    fitted = MLP(**SMALL).fit(*planted(60))
    state = {**fitted.get_state(), name: np.asarray(value)}
    with pytest.raises(MalformedArtifactError, match=text):
        MLP.from_state(fitted.recorded_params(), state, dim_source=8, dim_target=10)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"depth": "x"}, "parameters that mlp takes; got .*depth as a whole number"),
        ({"objective": "x"}, "parameters that mlp takes; got .*objective among"),
        ({"width": 99}, "sizes that its parameters give; .* shape \\(8, 8\\)"),
        ({"depth": 3}, "sizes that its parameters give"),
        ({"depth": 1}, "sizes that its parameters give"),
    ],
    ids=str,
)
def test_parameters_that_the_arrays_do_not_have_are_refused(params, text):
    fitted = MLP(**SMALL).fit(*planted(60))
    params = {**fitted.recorded_params(), **params}
    with pytest.raises(MalformedArtifactError, match=text):
        MLP.from_state(params, fitted.get_state(), dim_source=8, dim_target=10)
