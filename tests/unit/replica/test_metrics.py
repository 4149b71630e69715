# SPDX-License-Identifier: Apache-2.0
"""The metrics file of a worker of nova-scheduler."""

import os
import time

from prometheus_client import parser
import pytest

from blazar_sched.replica import metrics


@pytest.fixture
def made():
    return metrics.Metrics(metrics.ALL, 'h1-1')


def read(folder):
    """Return the samples in all files, by name and labels."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for path in folder.glob('*.prom')
        for family in parser.text_string_to_metric_families(path.read_text())
        for sample in family.samples
    }


def test_each_sample_says_whose_it_is(made, tmp_path):
    other = metrics.Metrics(metrics.ALL, 'h1-2')
    made.of(metrics.REVISION).set(7)
    other.of(metrics.REVISION).set(8)
    metrics.write(made, tmp_path, 'h1-1')
    metrics.write(other, tmp_path, 'h1-2')
    found = read(tmp_path)
    name = metrics.REVISION.name
    assert found[name, ('worker', 'h1-1')] == 7
    assert found[name, ('worker', 'h1-2')] == 8


def test_labels_come_after_the_workers(made, tmp_path):
    made.of(metrics.DECISIONS, 'LifetimeFilter', 'stale').inc()
    metrics.write(made, tmp_path, 'h1-1')
    labels = {'worker': 'h1-1', 'filter': 'LifetimeFilter', 'outcome': 'stale'}
    key = f'{metrics.DECISIONS.name}_total', *sorted(labels.items())
    assert read(tmp_path)[key] == 1


def test_files_of_workers_that_are_gone_are_removed(made, tmp_path):
    for name, age in (
        ('blazar-sched-gone.prom', metrics.GONE_AFTER + 1),
        ('blazar-sched-busy.prom', metrics.GONE_AFTER - 60),
        ('blazar-sched-killed.prom.12.34', metrics.GONE_AFTER + 1),
        ('node.prom', metrics.GONE_AFTER + 1),
    ):
        path = tmp_path / name
        path.touch()
        os.utime(path, (time.time() - age,) * 2)
    metrics.write(made, tmp_path, 'h1-1')
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        'blazar-sched-busy.prom', 'blazar-sched-h1-1.prom', 'node.prom',
    ]


def test_what_cannot_be_written_leaves_nothing_half(made, tmp_path):
    with pytest.raises(OSError):
        metrics.write(made, tmp_path / 'none', 'h1-1')
    assert list(tmp_path.iterdir()) == []


def test_two_of_one_table_do_not_meet(made):
    other = metrics.Metrics(metrics.ALL, 'h1-1')
    made.of(metrics.SNAPSHOTS).inc()
    assert other.registry.get_sample_value(
        f'{metrics.SNAPSHOTS.name}_total', {'worker': 'h1-1'}
    ) is None
