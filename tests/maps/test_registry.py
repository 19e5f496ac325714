"""Maps by name."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from isthmus.errors import ParameterError, UnknownNameError
from isthmus.maps import MAPS, DriftAdapter, Ridge, make, names


def test_names_in_the_order_of_freedom():
    assert names() == (
        "null",
        "dummy",
        "procrustes",
        "unpaired_iterative",
        "mini_vec2vec",
        "barycentric",
        "cca",
        "csa",
        "relative",
        "asif",
        "low_rank",
        "procrustes_ridge",
        "ridge",
        "drift_adapter",
        "mlp_small",
        "mlp",
        "embedding_converter",
        "sue",
        "vec2vec",
        "anchor_cca",
        "contrastive",
        "sotalign",
        "anchordot",
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


def test_a_parameter_that_came_later_does_not_change_what_is_recorded():
    """An older manifest lacks it, and its hash covers what is recorded."""
    adapter = DriftAdapter(form="orthogonal").fit(np.eye(12), np.eye(12))
    older = {k: v for k, v in adapter.recorded_params().items() if k != "metric"}
    state, dims = adapter.get_state(), {"dim_source": 12, "dim_target": 12}
    restored = DriftAdapter.from_state({**older, "patience": 3}, state, **dims)
    assert restored.recorded_params() == {**older, "patience": 3}
    assert restored.metric == "cosine"
    assert "metric" in clone(restored).recorded_params()
