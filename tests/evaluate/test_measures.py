"""Names of measures: parsing, equality, and that the documentation has each of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import ParameterError, UnknownNameError
from isthmus.evaluate.measures import MEASURES, Measure
from isthmus.evaluate.preservation import measure_pairs

PAGE = Path(__file__).parents[2] / "docs" / "measures.md"


@settings(derandomize=True, deadline=None)
@given(base=st.sampled_from(sorted(MEASURES)), k=st.integers(1, 999_999_999))
def test_names_survive_a_round_trip(base, k):
    measure = Measure(base, k if MEASURES[base].cutoff else None)
    assert Measure.parse(str(measure)) == measure
    assert len({measure, Measure.parse(str(measure))}) == 1
    assert measure.definition is MEASURES[base]


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("ndcg@10", UnknownNameError, "got 'ndcg'. Do: did you mean 'nDCG'?"),
        ("", UnknownNameError, "a measure among"),
        ("nDCG", ParameterError, "a cutoff of at least 1, as in nDCG@10; got nDCG"),
        ("nDCG@", ParameterError, "a whole number from 1 after @ in nDCG@k; got nDCG@"),
        ("nDCG@0", ParameterError, "got nDCG@0"),
        ("nDCG@ten", ParameterError, "got nDCG@ten"),
        ("nDCG@1@2", ParameterError, "got nDCG@1@2"),
        ("r2@10", ParameterError, "r2 without a cutoff; got @10"),
    ],
)
def test_bad_names_say_expected_got_do(name, error, text):
    with pytest.raises(error, match="Do: ") as caught:
        Measure.parse(name)
    assert text in str(caught.value)


def test_constructor_checks_as_the_parser_does():
    with pytest.raises(ParameterError, match="got nDCG@0"):
        Measure("nDCG", 0)
    with pytest.raises(UnknownNameError, match="got 'MAP'"):
        Measure("MAP")


def test_every_value_of_the_family_has_a_definition_and_stays_in_its_range():
    draw = np.random.default_rng(0)
    mapped, target = draw.standard_normal((2, 60, 5))
    for name, value in measure_pairs(mapped, target).items():
        definition = Measure.parse(name).definition
        assert definition.low <= value.mean <= definition.high
        assert (len(value.per_query) > 0) == definition.per_query


def test_every_measure_is_documented():
    page = PAGE.read_text(encoding="utf-8")
    for base, definition in MEASURES.items():
        heading = f"### `{base}@k`" if definition.cutoff else f"### `{base}`"
        assert heading in page, heading
    documented = [line for line in page.splitlines() if line.startswith("### `")]
    assert len(documented) == len(MEASURES)
