"""Methods of linking by name."""

from __future__ import annotations

import pytest

from isthmus.errors import ParameterError, UnknownNameError
from isthmus.link import LINKERS, Procrustes, SelfTraining, make, names


def test_every_method_of_the_paper_is_there():
    paper = {"linear", "cca", "mlp", "rcsls", "procrustes", "ugw", "ao", "geh"}
    assert paper | {"self_training"} <= set(names())
    assert {name: made.name for name, made in LINKERS.items()} == {name: name for name in names()}


def test_a_method_is_made_with_its_parameters():
    assert make("self_training", rounds=3) == SelfTraining(rounds=3)
    assert make("procrustes") == Procrustes()
    assert make("ao", overlap=12).overlap == 12


def test_an_unknown_name_names_the_nearest():
    with pytest.raises(UnknownNameError, match=r"a method of linking among .*mean 'procrustes'"):
        make("procustes")


def test_unknown_parameters():
    with pytest.raises(
        ParameterError,
        match="parameters of self_training among csls_neighborhood, rounds, undetermined; "
        "got depth, speed",
    ):
        make("self_training", speed=1, depth=2)


def test_a_parameter_that_is_needed():
    with pytest.raises(ParameterError, match="overlap, which ao needs; got none"):
        make("ao", steps=3)


def test_parameters_are_checked_at_once():
    with pytest.raises(ParameterError, match="rounds"):
        make("self_training", rounds=0)
