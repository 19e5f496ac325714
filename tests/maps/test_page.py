"""docs/maps.md names every map and step, and says of each what its class says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from isthmus.maps import MAPS, STEPS

PAGE = (Path(__file__).parents[2] / "docs" / "maps.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MAPS)
def test_every_map_has_a_section_and_a_true_row(name):
    made = MAPS[name]

    assert re.search(rf"^### `{name}`$", PAGE, re.MULTILINE)
    row = f"| `{name}` | `{made.__name__}` | {made.lands_in} | {made.freedom} |"
    assert row in PAGE


def test_no_section_of_a_map_that_is_not_there():
    assert set(re.findall(r"^### `(\w+)`$", PAGE, re.MULTILINE)) == set(MAPS)


def test_rows_stand_in_the_order_of_freedom():
    assert re.findall(r"^\| `(\w+)` \| `\w+` \| \w+ \| \d+ \|", PAGE, re.MULTILINE) == list(MAPS)


def test_it_says_who_looks_at_rows_without_a_pair():
    (told,) = re.findall(r"^Rows without a pair, .*?take none\.$", PAGE, re.DOTALL | re.MULTILINE)
    seen, unpaired = told.split("All other maps")
    looking = {name for name, made in MAPS.items() if made.paired and made.sees_unpaired}
    assert set(re.findall(r"`(\w+)`", seen)) - {"unpaired_source", "unpaired_target"} == looking
    assert set(re.findall(r"`(\w+)`", unpaired)) == {
        name for name, made in MAPS.items() if not made.paired
    }


@pytest.mark.parametrize("name", STEPS)
def test_every_step_has_a_row(name):
    assert f"\n| `{name}` |" in PAGE


def test_the_example_runs():
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict = {}

    exec(compile(example, "docs/maps.md", "exec"), names)  # noqa: S102 - our own page

    assert names["bridge"].inner.name == "procrustes_ridge"
