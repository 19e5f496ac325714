"""Devices: those that torch has here, and a clear no to all others."""

from __future__ import annotations

import sys

import pytest
import torch

from isthmus.errors import MissingExtraError, ParameterError
from isthmus.maps.training.devices import find_device


def test_the_processor_is_there():
    assert find_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["nope", "", "cpu:x", "meta", "cuda:99", None, 1.5], ids=repr)
def test_a_device_that_is_not_here(name):
    with pytest.raises(ParameterError, match=r"as 'cpu' or 'cuda'; got .* use device='cpu'"):
        find_device(name)


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'isthmus\[torch\]'"):
        find_device("cpu")
