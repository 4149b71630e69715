# SPDX-License-Identifier: Apache-2.0
"""Nodes to run DevStack's scripts on, of which there is a stand-in."""

import pytest

from tests.devstack.node import Node


@pytest.fixture(scope='session')
def stacked(tmp_path_factory):
    """A node after stack.sh, to look at only."""
    node = Node(tmp_path_factory.mktemp('stacked'))
    node.stack()
    return node


@pytest.fixture
def new_node(tmp_path):
    """new_node(**settings) -> a Node, on which nothing was run yet."""

    def make(name='node', **settings):
        state = tmp_path / name
        state.mkdir()
        return Node(state, **settings)

    return make


@pytest.fixture
def node(new_node):
    """A node after stack.sh, to go on with."""
    node = new_node()
    node.stack()
    return node
