# SPDX-License-Identifier: Apache-2.0
"""Nodes on which a stand-in for DevStack runs the plugin's scripts."""

import pytest

from tests.devstack.node import Node


@pytest.fixture(scope='session')
def stacked(tmp_path_factory):
    """A node after stack.sh, for tests that only read."""
    node = Node(tmp_path_factory.mktemp('stacked'))
    node.stack()
    return node


@pytest.fixture
def new_node(tmp_path):
    """new_node(**settings) -> a Node on which no script has run."""

    def make(name='node', **settings):
        state = tmp_path / name
        state.mkdir()
        return Node(state, **settings)

    return make


@pytest.fixture
def node(new_node):
    """A node after stack.sh, for tests that change it."""
    node = new_node()
    node.stack()
    return node
