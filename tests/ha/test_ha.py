# SPDX-License-Identifier: Apache-2.0
"""Nodes of clusters are killed, frozen and cut off while 24 clients work.

Each answer of the clients is compared with SQL afterwards. What is measured is
printed at the end.
"""

import pytest

from tests.ha import cluster
from tests.ha import network

pytestmark = pytest.mark.timeout(1200)
# Seconds between two kills, and of a freeze or a partition.
BETWEEN, DURING = 10, 20
# Seconds until the loss of a primary is noticed, as a tool for that would.
NOTICED = 3


@pytest.mark.parametrize('engine', ['galera', 'postgresql'])
def test_without_faults(play, request, engine):
    """The control: what the same service does while nothing fails."""
    play(
        f'{engine}, no fault', request.getfixturevalue(engine),
        lambda scene: scene.wait(2 * DURING),
    )


def test_galera_nodes_are_killed(play, galera):
    def kill(scene):
        while not scene.is_over():
            scene.wait(BETWEEN)
            # The writer, then another node, and so on.
            number = kill.count % 2
            node = galera.in_use() if not number else galera.not_in_use()
            scene.note(f'{"another node" if number else "writer"} killed')
            node.kill()
            kill.count += 1
            scene.until_answered()
            node.start()
            galera.wait()

    kill.count = 0
    play('Galera, nodes killed', galera, kill)
    assert kill.count > 1


@pytest.mark.parametrize('fault', ['frozen', 'cut off'])
def test_galera_writer(play, galera, fault):
    def faults(scene):
        scene.wait(BETWEEN)
        node = galera.in_use()
        scene.note(f'writer {fault}')
        node.freeze() if fault == 'frozen' else network.cut(node.machine)
        scene.wait(DURING)
        scene.note(f'writer {fault} no longer')
        node.resume() if fault == 'frozen' else network.join(node.machine)
        galera.wait()
        scene.until_answered()
        scene.wait(BETWEEN)

    play(f'Galera, writer {fault}', galera, faults)


def test_postgresql_nodes_are_killed(play, postgresql):
    def kill(scene):
        while not scene.is_over():
            scene.wait(BETWEEN)
            if kill.count % 2:
                node = postgresql.standby()
                scene.note('standby killed')
                node.kill()
            else:
                node = postgresql.primary
                scene.note('primary killed')
                node.kill()
                scene.wait(NOTICED)
                postgresql.fail_over()
            kill.count += 1
            scene.until_answered()
            postgresql.add(node)
            postgresql.wait()

    kill.count = 0
    play('PostgreSQL, nodes killed', postgresql, kill)
    assert kill.count > 1


@pytest.mark.parametrize('fault', ['frozen', 'cut off'])
def test_postgresql_primary(play, postgresql, fault):
    def faults(scene):
        scene.wait(BETWEEN)
        node = postgresql.primary
        scene.note(f'primary {fault}')
        node.freeze() if fault == 'frozen' else network.cut(node.machine)
        scene.wait(NOTICED)
        if fault == 'frozen':
            node.kill()
        postgresql.fail_over()
        scene.until_answered()
        scene.wait(BETWEEN)
        node.kill()
        network.join(node.machine)
        postgresql.add(node)
        postgresql.wait()
        scene.wait(BETWEEN)

    play(f'PostgreSQL, primary {fault}', postgresql, faults)


def test_rabbitmq_nodes_are_killed(play, galera, broker):
    def kill(scene):
        while not scene.is_over():
            for node in broker.nodes:
                scene.wait(BETWEEN)
                scene.note(f'{node.machine} killed')
                node.kill()
                scene.until_answered()
                node.start()
                broker.wait()

    play('RabbitMQ, nodes killed', galera, kill)


@pytest.mark.parametrize('fault', ['frozen', 'cut off'])
def test_rabbitmq_node(play, galera, broker, fault):
    def faults(scene):
        for node in broker.nodes:
            scene.wait(BETWEEN)
            scene.note(f'{node.machine} {fault}')
            node.freeze() if fault == 'frozen' else network.cut(node.machine)
            scene.wait(DURING)
            scene.note(f'{node.machine} {fault} no longer')
            node.resume() if fault == 'frozen' else network.join(node.machine)
            broker.wait()
            scene.until_answered()

    play(f'RabbitMQ, nodes {fault}', galera, faults)


def test_manager_is_cut_off_from_a_rabbitmq_node(play, galera, tmp_path):
    other = tmp_path / 'other-bus.conf'
    bus = (cluster.PAGES / 'blazar-sched.conf').read_text()
    for name in network.OTHERS:
        bus = bus.replace(f'@{name.removesuffix("-other")}:', f'@{name}:')
    other.write_text(bus)

    def faults(scene):
        for name in network.OTHERS:
            machine = name.removesuffix('-other')
            scene.wait(BETWEEN)
            scene.note(f'a manager cut off from {machine}')
            network.cut_other(machine)
            scene.wait(DURING)
            network.join_other(machine)
            scene.until_answered()
        scene.wait(BETWEEN)

    play(
        'RabbitMQ, a manager cut off from each node in turn', galera, faults,
        {'manager-0': [other]},
    )
