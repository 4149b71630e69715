# SPDX-License-Identifier: Apache-2.0
"""Each command is explained: in the guides, and by its help."""

import argparse
from importlib import metadata
import pathlib

import pytest

GUIDES = pathlib.Path(__file__).parents[2] / 'doc/source'
COMMANDS = metadata.entry_points(group='openstack.blazar_sched.v1')


def test_every_command_is_in_the_guides():
    text = ' '.join(page.read_text() for page in GUIDES.rglob('*.rst'))
    assert [
        each.name for each in COMMANDS
        if f'$ openstack {each.name.replace("_", " ")}' not in text
    ] == []


@pytest.mark.parametrize('entry_point', COMMANDS, ids=lambda each: each.name)
def test_every_option_has_help(entry_point):
    command = entry_point.load()
    assert command.__doc__
    assert [
        action.dest for action in command(None, None).get_parser('')._actions
        if not action.help and action.help != argparse.SUPPRESS
    ] == []
