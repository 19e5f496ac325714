"""From numbers to verdicts."""

import pytest

from isthmus.bridge.judgement import FEWEST_PAIRS, judge, judge_too_few
from isthmus.bridge.retention import Curve
from isthmus.evaluate.report import Report, Value


def report_of(low: float, mean: float, high: float, **others: float) -> Report:
    values = {"retention@10": Value("retention@10", mean, low, high)}
    values |= {name: Value(name, least, least, least) for name, least in others.items()}
    return Report(values, {"retention@10": Value("retention@10", 0.01, 0.0, 0.02)})


def judged(report: Report, curve: Curve, *, method: str = "procrustes", n_pairs: int = 1000):
    return judge(
        report, method=method, because="so", curve=curve, n_pairs=n_pairs, min_retention=0.5
    )


GROWING = Curve((500.0, 1000.0), (0.40, 0.46), dim=100)  # ends at .52
FLAT = Curve((500.0, 1000.0), (0.40, 0.41), dim=100)  # ends at .42


def test_a_lower_bound_over_the_target_is_a_bridge():
    verdict = judged(report_of(0.5, 0.55, 0.6), FLAT)
    assert (verdict.status, verdict.usable_for[0]) == ("bridge", "search")
    assert "keeps 0.550 [0.500, 0.600] of the native top 10, the null map 0.010" in verdict.reason
    assert verdict.chosen_because == "so"


def test_the_null_map_that_is_enough_means_pre_aligned():
    assert judged(report_of(0.8, 0.9, 1.0), FLAT, method="null").status == "pre_aligned"


def test_a_point_estimate_over_the_target_is_not_enough():
    verdict = judged(report_of(0.45, 0.55, 0.65), GROWING)
    assert verdict.status == "insufficient_pairs"
    assert "search" not in verdict.usable_for
    assert verdict.pairs_needed == 4000  # an interval of half the width starts at .5


def test_pairs_needed_come_from_the_curve():
    verdict = judged(report_of(0.46, 0.46, 0.46), GROWING)
    assert verdict.status == "insufficient_pairs"
    assert verdict.pairs_needed == pytest.approx(3000, abs=2)  # .52 - 60 / n = .5
    assert "about 3000 pairs or more" in verdict.reason.replace("3001", "3000")


def test_a_curve_that_ends_below_the_target_means_reindex():
    verdict = judged(report_of(0.40, 0.41, 0.42), FLAT)
    assert verdict.status == "reindex"
    assert verdict.pairs_needed is None
    assert "embed again" in verdict.reason


def test_a_curve_that_needs_too_many_pairs_means_reindex():
    slow = Curve((500.0, 1000.0), (0.4880, 0.4940), dim=100)  # .5 is its limit
    assert judged(report_of(0.49, 0.494, 0.498), slow).status == "reindex"


def test_fewer_pairs_than_dimensions_never_mean_reindex():
    flat = Curve((25.0, 45.0), (0.02, 0.02), dim=384)
    verdict = judged(report_of(0.0, 0.02, 0.04), flat, n_pairs=50)
    assert (verdict.status, verdict.pairs_needed) == ("insufficient_pairs", 384)


def test_uses_follow_their_own_numbers():
    verdict = judged(report_of(0.6, 0.7, 0.8, **{"hit@1": 0.95, "threshold_transfer": 0.5}), FLAT)
    assert verdict.usable_for == ("search", "finding the same record")


def test_too_few_pairs_are_a_verdict():
    verdict = judge_too_few(5, different=5)
    assert (verdict.status, verdict.pairs_needed) == ("insufficient_pairs", FEWEST_PAIRS)
    assert verdict.reason.startswith("5 pairs: too few")
    assert judge_too_few(9, different=4).reason.startswith("9 pairs, 4 of them different: too")
