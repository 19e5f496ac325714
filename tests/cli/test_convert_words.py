"""What the first word behind ``isthmus convert`` may be."""

from __future__ import annotations

import pytest

from isthmus.cli.failures import USAGE


def test_help_of_the_group_lists_its_commands(cli):
    ran = cli("convert", "--help")
    assert ran.code == 0
    for word in ("run", "verify", "status", "cutover", "rollback"):
        assert f"\n  {word}" in ran.out


def test_a_slip_names_the_nearest(cli):
    ran = cli("convert", "verfy", "a", "b")
    assert ran.code == USAGE
    assert "Did you mean 'verify'?" in ran.err


@pytest.mark.parametrize("words", [("--dry-run",), ("--bridge=b",), ("run",)])
def test_options_of_run_come_before_its_stores_too(cli, words, tmp_path):
    urls = [f"sqlite:///{tmp_path}/{name}.db?collection=docs" for name in "ab"]
    ran = cli("convert", *words, *urls)
    assert ran.code == 41, ran.err  # no such file: the command was understood
