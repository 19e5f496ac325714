"""Values and reports: round trips, undefined numbers, ratios."""

from __future__ import annotations

import json

import numpy as np
import pytest

from isthmus.errors import CountMismatchError, EmptyInputError
from isthmus.evaluate.bootstrap import interval, ratio
from isthmus.evaluate.report import Report, Value, ratio_to_oracle, summarise


def test_summary_is_mean_and_interval_of_each_measure():
    columns = {name: np.random.default_rng(seed).random(30) for seed, name in enumerate("ab")}
    for name, value in summarise(columns, seed=7).items():
        assert value.name == name
        assert value.mean == pytest.approx(columns[name].mean())
        assert (value.low, value.high) == pytest.approx(interval(columns[name], seed=7))
        np.testing.assert_array_equal(value.per_query, columns[name].astype(np.float32))


def test_undefined_queries_are_left_out_and_counted():
    value = summarise({"x": np.array([1.0, np.nan, 0.0])})["x"]
    assert value.mean == 0.5
    assert value.left_out == 1
    nothing = summarise({"x": np.array([np.nan, np.nan])})["x"]
    assert np.isnan([nothing.mean, nothing.low, nothing.high]).all()
    assert nothing.left_out == 2
    assert summarise({}) == {}


def test_measures_of_other_queries_are_refused():
    with pytest.raises(CountMismatchError, match="got 2 of a, 3 of b"):
        summarise({"a": np.zeros(2), "b": np.zeros(3)})
    with pytest.raises(EmptyInputError, match="a of at least one query"):
        summarise({"a": np.zeros(0)})


def test_ratio_has_its_own_interval():
    draw = np.random.default_rng(0)
    native = draw.random(80)
    both = summarise({"kept": native * draw.random(80), "native": native})
    found = ratio_to_oracle(both["kept"], both["native"], seed=3)
    expected = ratio(both["kept"].per_query, both["native"].per_query, seed=3)
    assert found.name == "kept/oracle"
    assert (found.mean, found.low, found.high) == expected
    assert found.low < found.mean < found.high
    with pytest.raises(EmptyInputError, match="a of at least one query"):
        ratio_to_oracle(Value("r2", 0.1, 0.0, 0.2), both["native"])


def test_value_speaks():
    assert str(Value("x", 0.51234, 0.4, 0.6)) == "0.512 [0.400, 0.600]"


def test_report_survives_json_with_undefined_numbers():
    values = summarise({"x": np.array([0.5, np.nan, 0.25])})
    null = {"r2": Value("r2", float("nan"), float("nan"), float("nan"))}
    report = Report(values=values, null=null, oracle={}, n_queries=3)
    text = json.dumps(report.to_dict(), allow_nan=False)
    again = Report.from_dict(json.loads(text))
    assert again.n_queries == 3
    assert again.oracle == {}
    assert again.values["x"].mean == values["x"].mean
    np.testing.assert_array_equal(again.values["x"].per_query, values["x"].per_query)
    assert again.null == null
    assert np.isnan(again.null["r2"].mean)


def test_values_are_equal_where_all_numbers_are():
    value = summarise({"x": np.array([0.5, np.nan, 0.25])})["x"]
    again = summarise({"x": np.array([0.5, np.nan, 0.25])})["x"]
    other = summarise({"x": np.array([0.5, 0.25, np.nan])})["x"]
    assert value == again
    assert hash(value) == hash(again)
    assert value != other
    assert value != 0.375


def test_a_report_can_leave_out_the_numbers_of_every_query():
    values = summarise({"hit@1": np.array([0.0, 1.0])})
    report = Report(values=values, null=values, oracle=values)
    whole, short = report.to_dict(), report.to_dict(per_query=False)
    for side in ("values", "null", "oracle"):
        assert whole[side]["hit@1"].pop("per_query") == [0.0, 1.0]
    assert short == whole
