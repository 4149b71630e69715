# SPDX-License-Identifier: Apache-2.0
"""The recipe for CloudKitty: its rule, and what CloudKitty would charge.

The metrics of a manager are read once in each minute of pretended time;
promtool plays Prometheus, and answers CloudKitty's own query.
"""

import datetime
import pathlib

import pytest
import yaml

from tests import promtool
from tests.functional.manager.conftest import hosts
from tests.functional.manager.conftest import instances
from tests.parts.report import usages

FOLDER = pathlib.Path(__file__).parents[3] / 'doc/source/admin'
RULES, RECIPE = FOLDER / 'charging-rules.yml', FOLDER / 'cloudkitty.yml'
METRIC = 'blazar_sched:reserved'
PERIOD = 60


def played(world, minutes):
    """Return the metric of two managers by the minute, as for promtool."""
    series = {}
    for minute in range(minutes):
        if minute % 5 == 0:
            world.run()
            usages.of(world.manager).step()
        world.manager.gauges.step()
        for name, labels, value, *_ in (
            sample
            for family in world.manager.gauges.collect()
            for sample in family.samples
        ):
            if name == 'blazar_sched_manager_reserved':
                text = ','.join(f'{k}="{v}"' for k, v in labels.items())
                for manager in 'ab':
                    of_one = series.setdefault(
                        f'{name}{{{text},instance="{manager}"}}',
                        ['_'] * (minutes + 1),
                    )
                    of_one[minute] = repr(value)
                    # What a scrape lacks ends at once.
                    of_one[minute + 1:minute + 2] = ['stale']
        world.clock.now += 60
    return series


def of_recipe():
    """Return CloudKitty's query of an hour of project `p`, and the factor."""
    [(metric, recipe)] = yaml.safe_load(RECIPE.read_text())['metrics'].items()
    method = recipe['extra_args']['aggregation_method']
    query = (
        f'{method}({method}_over_time({metric}{{project_id="p"}}[3600s])) '
        f'by (project_id, {", ".join(recipe["metadata"])})'
    )
    assert metric == METRIC
    return query, recipe['factor']


def test_the_rule_and_the_query_charge_what_was_reserved(world, tmp_path):
    """Of p: a host with 8 VCPUs for 20 minutes, and 3 x 2 VCPUs for 40."""
    for name in 'abc':
        world.add_host(name)
    usages.of(world.manager).step()
    world.create(hosts(), start=600, end=1800, project_id='p')
    world.create(instances(3), start=1200, end=3600, project_id='p')
    world.create(hosts(), start=0, end=3600, project_id='q')
    series = played(world, PERIOD)
    query, factor = of_recipe()
    assert factor == f'1/{PERIOD}'
    expected = {
        'HOST': 20, 'VCPU': 8 * 20 + 6 * 40,
        'MEMORY_MB': 8192 * 20 + 1536 * 40, 'DISK_GB': 80 * 20 + 3 * 40,
    }
    promtool.check(tmp_path, RULES, series, [{
        'expr': query,
        'eval_time': f'{PERIOD - 1}m',
        'exp_samples': [
            {
                'labels': f'{{project_id="p",resource_class="{name}"}}',
                'value': value,
            }
            for name, value in expected.items()
        ],
    }])


def test_cloudkitty_takes_the_recipe():
    """Its own validation, and its own query."""
    base = pytest.importorskip(
        'cloudkitty.collector.prometheus_base',
        reason='needs CloudKitty: make test-programs',
    ).PrometheusCollectorBase
    conf = base.check_configuration(yaml.safe_load(RECIPE.read_text()))
    end = datetime.datetime(2030, 1, 1, 1, tzinfo=datetime.UTC)
    start = end - datetime.timedelta(hours=1)
    query, _ = of_recipe()
    [(metric, parsed)] = conf.items()
    grouped = parsed['groupby'], parsed['metadata']
    assert query == base.build_query(
        conf, metric, start, end, 'project_id', 'p', *grouped
    )
    collector = base.__new__(base)
    collector.conf = conf
    told, groups, quantity = collector._format_data(
        metric, 'project_id', 'p', start, end,
        {
            'metric': {'project_id': 'p', 'resource_class': 'HOST'},
            'value': [0, '90'],
        },
    )
    assert (told, groups) == ({'resource_class': 'HOST'}, {'project_id': 'p'})
    assert quantity == 1.5
