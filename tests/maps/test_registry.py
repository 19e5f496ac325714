"""Maps by name."""

from __future__ import annotations

import pytest

from isthmus.errors import ParameterError, UnknownNameError
from isthmus.maps import MAPS, Ridge, make, names


def test_names_in_the_order_of_freedom():
    assert names() == (
        "null",
        "dummy",
        "procrustes",
        "cca",
        "relative",
        "low_rank",
        "procrustes_ridge",
        "ridge",
        "drift_adapter",
        "mlp_small",
        "mlp",
        "embedding_converter",
    )


def test_a_map_is_made_with_its_parameters():
    assert make("ridge", penalty=3.0).get_params() == Ridge(penalty=3.0).get_params()
    assert all(type(make(name)) is MAPS[name] for name in names())


def test_an_unknown_name_names_the_nearest():
    with pytest.raises(UnknownNameError, match=r"got 'procustes'\. Do: did you mean 'procrustes'"):
        make("procustes")


def test_unknown_parameters():
    with pytest.raises(ParameterError, match="ridge among penalties, penalty; got alpha, speed"):
        make("ridge", speed=1, alpha=2)
    with pytest.raises(ParameterError, match=r"null among \(none\); got speed"):
        make("null", speed=1)
