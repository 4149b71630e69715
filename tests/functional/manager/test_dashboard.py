# SPDX-License-Identifier: Apache-2.0
"""The dashboard and the alerting rules name metrics that are exported."""

import json
import pathlib
import re
import shutil
import subprocess

import prometheus_client
import pytest
import yaml

from blazar_sched.service import metrics
from tests import tables

FOLDER = pathlib.Path(__file__).parents[3] / 'doc/source/admin'
NAME = re.compile(r'\b(?:blazar_sched|process)_\w+')
SUFFIXES = {
    prometheus_client.Counter: ('_total',),
    prometheus_client.Gauge: ('',),
    prometheus_client.Histogram: ('_bucket', '_sum', '_count'),
}


def panels():
    dashboard = json.loads((FOLDER / 'dashboard.json').read_text())
    return [each for each in dashboard['panels'] if each['type'] != 'row']


def of_dashboard():
    return [each['expr'] for panel in panels() for each in panel['targets']]


def of_alerts():
    [group] = yaml.safe_load((FOLDER / 'alerts.yml').read_text())['groups']
    return [rule['expr'] for rule in group['rules']]


def exported():
    """Return the labels of each name that Prometheus sees."""
    names = {
        each.name + suffix: set(each.labels)
        for each in tables.METRICS for suffix in SUFFIXES[each.kind]
    }
    for family in metrics.new().registry.collect():
        for sample in family.samples:
            if sample.name.startswith('process_'):
                names[sample.name] = set()
    return names


@tables.EVERY
@pytest.mark.parametrize('expression', [*of_dashboard(), *of_alerts()])
def test_each_metric_and_label_of_an_expression_is_exported(expression):
    names = NAME.findall(expression)
    assert names
    assert set(names) <= exported().keys()
    labels = {'le', 'instance', 'job'}.union(
        *(exported()[name] for name in names)
    )
    for listed in re.findall(r'(?:by|on) \(([^)]*)\)', expression):
        assert set(listed.split(', ')) <= labels
    assert set(re.findall(r'(\w+)=~?"', expression)) <= labels


def test_each_legend_names_labels_of_its_expression():
    known = {'instance'}.union(*exported().values())
    for panel in panels():
        for target in panel['targets']:
            assert set(
                re.findall(r'{{(\w+)}}', target['legendFormat'])
            ) <= known


def test_no_panel_covers_another():
    places = [each['gridPos'] for each in panels()]
    cells = [
        (x, y)
        for at in places
        for x in range(at['x'], at['x'] + at['w'])
        for y in range(at['y'], at['y'] + at['h'])
    ]
    assert len(cells) == len(set(cells))


def test_prometheus_reads_each_expression_of_the_dashboard(tmp_path):
    promtool = shutil.which('promtool')
    if promtool is None:
        pytest.skip('promtool is not installed: it comes with Prometheus')
    rules = [
        {'record': f'a:{n}', 'expr': expression}
        for n, expression in enumerate(of_dashboard())
    ]
    path = tmp_path / 'rules.json'
    path.write_text(
        json.dumps({'groups': [{'name': 'dashboard', 'rules': rules}]})
    )
    ran = subprocess.run(
        [promtool, 'check', 'rules', path], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
