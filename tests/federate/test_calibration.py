"""Calibrated canonical scores."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import (
    ConfigError,
    CountMismatchError,
    MalformedArtifactError,
    MissingFileError,
    TooFewPairsError,
    UnknownVersionError,
)
from isthmus.federate.calibration import ScoreCalibration
from isthmus.federate.calibration_quality import measure
from isthmus.federate.scoring import Scoring

NAN = float("nan")
SOURCE = np.repeat([0, 1], 5)
NAMES = ("one", "two")


def planted(m, seed=0):
    """Return scores that mean different things: relevant with the score, and with its square."""
    rng = np.random.default_rng(seed)
    scores = rng.random((m, 10)).astype(np.float32)
    chance = np.where(SOURCE == 0, scores, scores**3)
    return scores, rng.random(chance.shape) < chance


def test_one_threshold_means_the_same_in_both_sources():
    curves = ScoreCalibration.fit(*planted(400), SOURCE, names=NAMES)
    scores, relevant = planted(400, seed=1)
    before = measure(scores, relevant, SOURCE)
    after = measure(curves.probability(scores, SOURCE), relevant, SOURCE)
    assert max(after.error) < 0.05 < before.error[1]
    assert after.spread < before.spread / 2


@given(seed=st.integers(0, 500))
def test_it_keeps_the_order_within_a_source_without_ties(seed):
    curves = ScoreCalibration.fit(*planted(60, seed=seed), SOURCE, names=NAMES)
    rising = np.linspace(-2, 3, 400, dtype=np.float32)[:, None] * np.ones((1, 10), np.float32)
    probability = curves.probability(rising, SOURCE)
    assert probability.dtype == np.float32
    assert (np.diff(probability, axis=0) > 0).all()
    assert ((probability > 0) & (probability < 1)).all()


def test_nan_is_kept_and_a_row_does_not_depend_on_the_others():
    scores, relevant = planted(50)
    scores[3, 4:] = NAN
    curves = ScoreCalibration.fit(scores, relevant, SOURCE, names=NAMES)
    probability = curves.probability(scores, SOURCE)
    np.testing.assert_array_equal(np.isnan(probability), np.isnan(scores))
    np.testing.assert_array_equal(curves.probability(scores[3:4], SOURCE), probability[3:4])


def test_a_source_without_relevant_candidates_takes_the_curve_of_all():
    scores, relevant = planted(100)
    relevant[:, SOURCE == 1] = False
    curves = ScoreCalibration.fit(scores, relevant, SOURCE, names=NAMES)
    assert curves.shares[1] == 0
    assert 0.5 < curves.shares[0] < 1
    np.testing.assert_array_equal(curves.curves[1].native, curves.together.native)


def test_a_source_with_no_candidate_at_all():
    scores, relevant = planted(100)
    scores[:, SOURCE == 1] = NAN
    curves = ScoreCalibration.fit(scores, relevant, SOURCE, names=NAMES)
    assert np.isfinite(curves.probability(np.full((1, 10), 0.5, np.float32), SOURCE)).all()


def test_measures_by_hand():
    scores = np.float32([[0.25, 0.25], [0.75, 0.75], [NAN, 0.75]])
    relevant = [[0, 1], [1, 1], [1, 0]]
    found = measure(scores, relevant, np.array([0, 1]), ideal=[[1, 0], [1, 1], [1, 0]])
    # bins of one each: |.25 - 0|, |.75 - 1|; and |.25 - 1|, |.75 - 1|, |.75 - 0|
    assert found.error == pytest.approx((0.25, (0.75 + 0.25 + 0.75) / 3))
    assert np.isnan(found.spread)  # too few candidates for a precision
    assert found.ndcg == pytest.approx((1 / np.log2(3) + 1 + 0) / 3)


def test_a_spread_by_hand():
    scores = np.tile(np.float32([[0.5, 0.5]]), (40, 1))
    relevant = np.zeros((40, 2))
    relevant[:10, 0] = relevant[:30, 1] = 1
    assert measure(scores, relevant, np.array([0, 1])).spread == pytest.approx(0.5)


def test_it_comes_back_from_its_file(tmp_path):
    scores, relevant = planted(100)
    scoring = Scoring("score(common=0.2)", ("s to h",))
    curves = ScoreCalibration.fit(scores, relevant, SOURCE, names=NAMES, scoring=scoring)
    curves.to_file(tmp_path / "scores.json")
    back = ScoreCalibration.from_file(tmp_path / "scores.json")
    np.testing.assert_array_equal(
        back.probability(scores, SOURCE), curves.probability(scores, SOURCE)
    )
    assert (back.names, back.shares) == (curves.names, curves.shares)
    back.check(["one", "two"], scoring)
    with pytest.raises(ConfigError, match="one, two; got two, one"):
        back.check(["two", "one"], scoring)


def test_what_is_refused(tmp_path):
    scores, relevant = planted(20)
    with pytest.raises(CountMismatchError):
        ScoreCalibration.fit(scores, relevant[:, 1:], SOURCE, names=NAMES)
    with pytest.raises(TooFewPairsError, match="at least 10 relevant candidates"):
        ScoreCalibration.fit(scores, np.zeros_like(scores), SOURCE, names=NAMES)
    curves = ScoreCalibration.fit(scores, relevant, SOURCE, names=NAMES)
    with pytest.raises(CountMismatchError, match="sources from 0 to 1"):
        curves.probability(scores, SOURCE + 1)
    with pytest.raises(CountMismatchError, match="one source per column"):
        curves.probability(scores[:, 1:], SOURCE)
    with pytest.raises(MissingFileError):
        ScoreCalibration.from_file(tmp_path / "nothing.json")


def test_files_that_are_no_curves(tmp_path):
    path = tmp_path / "scores.json"
    ScoreCalibration.fit(*planted(50), SOURCE, names=NAMES).to_file(path)
    fields = json.loads(path.read_text())
    bad = [
        ("not json", MalformedArtifactError),
        ("[]", UnknownVersionError),
        (json.dumps(fields | {"version": 1}), UnknownVersionError),
        (json.dumps({"version": 2}), MalformedArtifactError),
        (json.dumps(fields | {"scoring": {"method": 1, "bridges": []}}), MalformedArtifactError),
        (json.dumps(fields | {"scoring": {"method": "x", "bridges": 3}}), MalformedArtifactError),
        (json.dumps(fields | {"scoring": "x"}), MalformedArtifactError),
        (json.dumps(fields | {"curves": [{"name": "x"}]}), MalformedArtifactError),
        (json.dumps(fields | {"together": "x"}), MalformedArtifactError),
    ]
    for change in (
        {"share": 1.0},
        {"native": [0, 10**400]},
        {"share": "x"},
        {"native": [NAN, 1]},
        {"native": [1, 0]},
    ):
        curves = [fields["curves"][0] | change]
        bad.append((json.dumps(fields | {"curves": curves}), MalformedArtifactError))
    for text, error in bad:
        path.write_text(text)
        with pytest.raises(error):
            ScoreCalibration.from_file(path)
