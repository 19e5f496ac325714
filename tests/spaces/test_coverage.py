"""What the coverage report says, against the same numbers by brute force."""

import json

import numpy as np
import pytest

from isthmus.errors import SpaceMismatchError, UnknownIdError
from isthmus.spaces import PairCoverage, Pairs, Space, VectorSet

A = Space(model="a", dim=5, metric="l2")
B = Space(model="b", dim=4)


def sets(rows=300, seed=0):
    rng = np.random.default_rng(seed)
    ids = [f"o{row}" for row in range(rows)]
    return (
        VectorSet(ids, rng.standard_normal((rows, 5)), A),
        VectorSet(ids, rng.standard_normal((rows, 4)), B),
    )


def brute_force(points, pair_rows):
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    closeness = distance.min(axis=1)
    np.fill_diagonal(distance, 0)
    median, quartile = np.median(closeness), np.quantile(closeness, 0.25)
    covered = (distance[:, pair_rows].min(axis=1) <= median).mean()
    return median, covered, (closeness[pair_rows] <= quartile).mean()


@pytest.mark.parametrize("strategy", ["random", "nearest", "coverage"])
def test_both_sides_agree_with_brute_force(strategy):
    source, target = sets()
    pairs = Pairs.from_ids(source, target).sample(40, strategy, seed=2)
    report = pairs.coverage(source, target)
    assert (report.pairs, report.strategy) == (40, strategy)
    unit = target.matrix() / np.linalg.norm(target.matrix(), axis=1, keepdims=True)
    for side, points in ((report.source, source.matrix()), (report.target, unit)):
        median, covered, hard = brute_force(points, source.rows_of(pairs.source_ids))
        assert side.neighbor_distance == pytest.approx(median, rel=1e-5)
        assert side.covered == pytest.approx(covered, abs=1e-12)
        assert side.hard_pairs == pytest.approx(hard, abs=1e-12)
        assert (side.rows, side.measured_rows) == (300, 300)
        assert side.cluster_rows.sum() == 300
        assert side.cluster_pairs.sum() == 40
        assert (side.cluster_pairs <= side.cluster_rows).all()


def test_all_rows_paired_are_all_covered():
    source, target = sets()
    report = Pairs.from_ids(source, target).coverage(source, target)
    assert report.source.covered == report.target.covered == 1
    assert report.source.hard_pairs == pytest.approx(0.25, abs=0.01)
    assert report.source.cluster_pairs.tolist() == report.source.cluster_rows.tolist()
    assert report.source.empty_clusters == 0


def test_a_tight_spot_leaves_blind_spots():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(5), 60)
    points = 10 * np.eye(5)[group] + 0.1 * rng.standard_normal((300, 5))
    ids = [f"o{row}" for row in range(300)]
    source = VectorSet(ids, points, A)
    pairs = Pairs.from_rows(source, source, range(20), range(20))
    side = pairs.coverage(source, source).source
    assert side.covered < 0.2
    assert side.empty_clusters >= 3


def test_large_sets_are_measured_on_a_part(monkeypatch):
    source, target = sets(600)
    whole = Pairs.from_ids(source, target).sample(200).coverage(source, target)
    monkeypatch.setattr("isthmus.spaces.coverage.MEASURED_ROWS", 150)
    part = Pairs.from_ids(source, target).sample(200).coverage(source, target)
    assert (part.source.rows, part.source.measured_rows) == (600, 150)
    assert part.source.covered == pytest.approx(whole.source.covered, abs=0.12)
    assert part.source.hard_pairs == pytest.approx(whole.source.hard_pairs, abs=0.12)
    assert part.source.cluster_rows.sum() == 600
    assert part.source.cluster_pairs.sum() == 200


def test_a_mapped_side_gives_the_same_report(tmp_path):
    source, target = sets()
    source.save(tmp_path / "v.npy", dtype="float32")
    mapped = VectorSet.load(tmp_path / "v.npy", memory_map=True)
    pairs = Pairs.from_ids(source, target).sample(30)
    wanted = pairs.coverage(source, target).to_dict()
    assert pairs.coverage(mapped, target).to_dict() == wanted


def test_the_report_is_json():
    source, target = sets(60)
    report = Pairs.from_ids(source, target).sample(10, "fps").coverage(source, target)
    assert isinstance(report, PairCoverage)
    read = json.loads(json.dumps(report.to_dict()))
    assert read["strategy"] == "fps"
    assert read["target"]["rows"] == 60
    assert sum(read["source"]["cluster_pairs"]) == 10


def test_one_row():
    one = VectorSet(["a"], [[1, 0, 0, 0, 0]], A)
    side = Pairs.from_ids(one, one).coverage(one, one).source
    assert (side.covered, side.hard_pairs) == (1, 0)
    assert side.neighbor_distance == 0


def test_sets_that_the_pairs_do_not_come_from():
    source, target = sets()
    pairs = Pairs.from_ids(source, target)
    with pytest.raises(SpaceMismatchError, match="source vectors with model 'a'"):
        pairs.coverage(target, source)
    with pytest.raises(UnknownIdError, match="299 of 300"):
        pairs.coverage(source.select([0]), target)
