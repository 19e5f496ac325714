from __future__ import annotations

import pytest

from isthmus.errors import ParameterError, UnknownNameError
from isthmus.federate.fusion import FUSIONS, Rrf, make, names


def test_every_method_is_made_by_its_name():
    assert names() == ("score", "agg", "rrf", "combmnz", "one_directional", "cca")
    for name in names():
        assert make(name).name == name
        assert type(make(name)) is FUSIONS[name]


def test_parameters_reach_the_method():
    assert make("rrf", c=10) == Rrf(c=10)


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match=r"a fusion method among .*; got 'scroe'.*'score'"):
        make("scroe")


def test_a_parameter_of_another_method_is_refused():
    with pytest.raises(
        ParameterError, match=r"parameters of fusion method 'agg': none; got weight"
    ):
        make("agg", weight=0.5)


@pytest.mark.parametrize("name", names())
def test_every_method_cites_its_paper(name):
    import importlib

    module = importlib.import_module(FUSIONS[name].__module__)
    assert "Reference: " in (module.__doc__ or "")
