"""The page about conversions says what happens."""

from __future__ import annotations

import doctest
import re
import tomllib
from pathlib import Path

from isthmus.cli.app import GROUPS
from isthmus.federate.config import FederationConfig

PAGE = Path(__file__).parents[2] / "docs" / "convert.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_runs():
    tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert (tried.failed, tried.attempted > 15) == (0, True)


def test_the_commands_of_the_page_are_there():
    shown = set(re.findall(r"isthmus convert ([a-z]+)", TEXT))
    assert shown == set(GROUPS["convert"]) - {"run"}


def test_the_federation_of_the_page_is_one():
    text = re.search(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    assert text is not None
    config = FederationConfig.model_validate(tomllib.loads(text.group(1)))
    assert config.stores[1].supersedes == config.stores[0].name
    assert config.fusion == "one_directional"
