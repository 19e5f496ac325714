"""The model card: what a person should know, taken from the bridge and from nothing else."""

import dataclasses

import numpy as np

from isthmus.bridge.card import write_card
from isthmus.evaluate.report import Report, Value


def with_(bridge, **changes):
    return dataclasses.replace(bridge, **changes)


def test_card_says_what_matters(bridge):
    card = write_card(bridge)
    assert card.startswith("# Bridge from old to new\n")
    assert f"**{bridge.verdict.status}**" in card
    assert bridge.verdict.reason in card
    assert f"Usable for: {', '.join(bridge.verdict.usable_for)}" in card
    assert "120 pairs, chosen: as given" in card
    assert "Kind of the source rows: passage" in card
    assert "it does not lead from new back to old" in card
    assert "About 3% of such rows lie outside" in card
    assert "as sensitive as the text they came from" in card
    assert "They are no signature" in card
    assert f"Hash: `{bridge.hash}`" in card
    assert f"numpy {np.__version__}" in card
    assert f"`{bridge.source.fingerprint[:16]}`" in card


def test_numbers_stand_beside_the_null_map(bridge):
    card = write_card(bridge)
    for name, value in bridge.report.values.items():
        line = next(line for line in card.splitlines() if line.startswith(f"| {name} |"))
        null = bridge.report.null[name]
        assert f"{value.mean:.3f}" in line.split("|")[2]
        assert f"{null.mean:.3f}" in line.split("|")[3]
    assert f"[{value.low:.3f}, {value.high:.3f}]" in card


def test_the_oracle_has_a_column_where_it_is_known(bridge):
    value = Value("nDCG@10", 0.5, 0.4, 0.6)
    oracle = Value("nDCG@10", 0.7, 0.65, 0.75)
    card = write_card(with_(bridge, report=Report({"nDCG@10": value}, {}, {"nDCG@10": oracle}, 9)))
    assert "| measure | bridge | null map | oracle |" in card
    assert "| nDCG@10 | 0.500 [0.400, 0.600] | - | 0.700 [0.650, 0.750] |" in card


def test_undefined_numbers_are_said_and_not_printed_as_nan(bridge):
    values = {"a": Value("a", np.nan, np.nan, np.nan), "b": Value("b", 0.25, np.nan, np.nan)}
    card = write_card(with_(bridge, report=Report(values, {}, {}, 9)))
    assert "| a | undefined | - |" in card
    assert "| b | 0.250 | - |" in card
    assert "nan" not in card


def test_pairs_that_would_be_enough_are_named(bridge):
    verdict = dataclasses.replace(
        bridge.verdict, status="insufficient_pairs", pairs_needed=2_500, usable_for=()
    )
    card = write_card(with_(bridge, verdict=verdict))
    assert "- Pairs that it would take: about 2,500 or more\n" in card
    assert "Usable for: nothing" in card
    assert "Pairs that it would take" not in write_card(bridge)


def test_coverage_is_said_where_it_was_measured(planted, bridge):
    coverage = planted.pairs.coverage(planted.source, planted.target).to_dict()
    made = dataclasses.replace(bridge.provenance, coverage=coverage)
    share = coverage["source"]["covered"]
    assert f"Within reach of a pair: {share:.0%} of the source rows, " in write_card(
        with_(bridge, provenance=made)
    )
    odd = dataclasses.replace(bridge.provenance, coverage={"source": {"covered": "all"}})
    assert "Within reach" not in write_card(with_(bridge, provenance=odd))


def test_comparison_maps_say_that_they_cannot_search(fitted):
    assert "cannot search an index of the target model as it is" in " ".join(
        write_card(fitted("cca")).split()
    )


def test_text_of_the_maker_brings_no_markup_of_its_own(bridge):
    source = dataclasses.replace(
        bridge.source, model="a|b\n# Trust me\n<script>x</script> [here](http://x) `y` \x1b[31m"
    )
    card = write_card(with_(bridge, source=source))
    assert "\n# Trust me" not in card
    assert "\\<script\\>" in card
    assert "](http" not in card
    assert "\x1b" not in card
    assert "a\\|b" in card


def test_card_has_no_spare_lines_and_ends_in_one(bridge):
    card = write_card(bridge)
    assert "\n\n\n" not in card
    assert card.endswith("`\n")
    assert "{" not in card
