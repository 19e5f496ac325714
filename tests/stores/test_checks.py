"""What stores make of metadata: as JSON, and back."""

from __future__ import annotations

import pytest

from isthmus.errors import InputError
from isthmus.stores._checks import from_json, to_json

DEEP = 100_000


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (None, {}),
        ('{"a": 1, "b": 2.5, "c": "9999999999999999999"}', {"a": 1, "b": 2.5, "c": "9" * 19}),
        ('{"a": 9223372036854775807}', {"a": 2**63 - 1}),
        ('{"a": -9223372036854775808}', {"a": -(2**63)}),
        ('{"a": 9223372036854775808}', {"a": 2.0**63}),
        ('{"a": 1e300, "b": 1e400, "c": -1E+400}', {"a": 1e300, "b": "1e400", "c": "-1E+400"}),
        (f'{{"a": 1{"0" * 300}}}', {"a": 1e300}),
        (f'{{"a": [{"9" * 5_000}]}}', {"a": ["9" * 5_000]}),
        (f'{{"a": {"9" * 400}.5}}', {"a": "9" * 400 + ".5"}),
        ('{"a": 0.30000000000000004, "b": 5e-324}', {"a": 0.1 + 0.2, "b": 5e-324}),
        ('{"a": 12.3400000000000000000, "b": -0.0}', {"a": 12.34, "b": 0.0}),
        ('{"a": 123456789012345678.12}', {"a": "123456789012345678.12"}),
        ('{"a": [0.12345678901234567890123]}', {"a": ["0.12345678901234567890123"]}),
        ('{"a": 18446744073709551615, "b": 1e-400}', {"a": "18446744073709551615", "b": "1e-400"}),
    ],
)
def test_numbers_that_no_float_holds_come_as_text(text, fields):
    assert from_json(text, "row") == fields


def test_too_many_levels_are_named_with_their_row():
    with pytest.raises(InputError, match="of the row 'row 7' with fewer levels"):
        from_json('{"a": ' + "[" * DEEP + "]" * DEEP + "}", "row 7")


def test_too_many_levels_are_refused_before_they_are_written():
    deep: list = []
    for _ in range(DEEP):
        deep = [deep]
    with pytest.raises(InputError, match="fewer levels in one another; got something else in row"):
        to_json([{"a": deep}], rows=1)


@pytest.mark.parametrize("fields", [{"a": 10**400}, {"a": 10**5_000}])
def test_numbers_of_too_many_digits_are_refused(fields):
    with pytest.raises(InputError, match="at most 64 bits"):
        to_json([fields], rows=1)


def test_numbers_of_too_many_digits_below_the_top_are_refused():
    with pytest.raises(InputError, match="got something else in row 0"):
        to_json([{"a": [10**5_000]}], rows=1)
