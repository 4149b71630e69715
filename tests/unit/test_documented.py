# SPDX-License-Identifier: Apache-2.0
"""Everything that users and operators see is in the guides and references.

The references are made from the code: each item there must have a description.
Everything else must be named on the page about it.
"""

import argparse
import dataclasses
import importlib
import importlib.metadata
import importlib.util
import json
import pathlib
import re

import prometheus_client
import pytest
import yaml

from blazar_sched import filters
from blazar_sched import weighers
from blazar_sched.cmd import main
from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import flavor
from blazar_sched.domain import hints
from blazar_sched.domain import host
from blazar_sched.service import metrics
from blazar_sched.service.api import errors
from blazar_sched.service.api import lease
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api import openapi
from blazar_sched.service.api import policies
from blazar_sched.service.api import routes
from blazar_sched.service.api import rule
from blazar_sched.service.api.field import Field
from blazar_sched.service.bus import notifier
from tests import tables

ROOT = pathlib.Path(__file__).parents[2]
GUIDES = ROOT / 'doc/source'
MADE_UP = 'made_up_by_nobody'
# The sections of reno's notes.
SECTIONS = {
    'critical', 'deprecations', 'features', 'fixes', 'issues', 'other',
    'prelude', 'security', 'upgrade',
}


def read(page):
    return (GUIDES / page).read_text()


def undocumented(names, text):
    """Return the names that a text does not have as literals.

    A literal has the name by itself, or before a value, as in ``on_stale =
    open``.
    """
    literals = set(re.findall(r'`+([^`]+)`+', text))
    said = literals | {re.split(r'[ =]', each)[0] for each in literals}
    return [name for name in names if name not in said]


def classes_of(module, kind):
    return [
        c.__name__
        for c in vars(module).values()
        if isinstance(c, type) and issubclass(c, kind)
    ]


def entry_points(group):
    return sorted(
        {e.name for e in importlib.metadata.entry_points(group=group)}
    )


def error_names():
    """Return the names of the errors that clients can get."""
    ours = classes_of(exception, exception.BlazarSchedError)
    return sorted({*ours, *errors.NAMES.values()} - {'BlazarSchedError'})


def notification_types():
    """Return whole event types, without mere prefixes and suffixes."""
    types = {
        value
        for name, value in vars(notifier).items()
        if name.isupper() and isinstance(value, str) and '.' in value
    }
    parts = {notifier.LEASE_EVENT, notifier.ERROR, notifier.PUBLISHER}
    of_events = {f'{notifier.LEASE_EVENT}{kind}' for kind in event.OF_LEASE}
    return sorted(types - parts | of_events)


def extra_specs():
    return [
        value
        for name, value in vars(flavor).items()
        if isinstance(value, str)
        and value.startswith(flavor.PREFIX)
        and value != flavor.PREFIX
    ]


def option_groups():
    return sorted({
        f'[{group}]'
        for entry_point in ours('oslo.config.opts')
        for group, _ in entry_point.load()()
    })


def ours(group):
    return [
        each
        for each in importlib.metadata.entry_points(group=group)
        if each.name.startswith('blazar_sched')
    ]


NAMED = {
    'error names': ('user/refusals.rst', error_names()),
    'notification types': ('admin/notifications.rst', notification_types()),
    'hints': ('user/servers.rst', hints.ALL),
    'extra specs': ('user/servers.rst', extra_specs()),
    'option groups': ('reference/config.rst', option_groups()),
    'enforcement': (
        'admin/limits.rst', entry_points('blazar_sched.enforcement'),
    ),
    'reservation types': (
        'admin/leases.rst', entry_points('blazar_sched.resources'),
    ),
    'filters': ('admin/nova.rst', [c.__name__ for c in filters.all_filters()]),
    'weighers': (
        'admin/nova.rst', [c.__name__ for c in weighers.all_weighers()],
    ),
    'holds': ('admin/hosts.rst', host.HOLDS),
    'roles': ('reference/policy.rst', [r.name for r in rule.base()]),
    'events': ('admin/leases.rst', event.ORDER),
}


@pytest.mark.row('C51')
@pytest.mark.parametrize('kind', NAMED)
def test_everything_is_named_on_its_page(kind):
    page, names = NAMED[kind]
    text = read(page)
    assert names, 'nothing is looked for'
    assert undocumented([*names, MADE_UP], text) == [MADE_UP]


def test_a_mention_in_passing_is_no_documentation():
    assert undocumented(['on_stale'], 'see on_stale') == ['on_stale']
    assert undocumented(['on_stale'], 'see ``on_stale = open``') == []
    assert undocumented(['stale'], 'see ``on_stale``') == ['stale']


def without_help(parser, command='blazar-sched'):
    """Return the subcommands and arguments without a help text."""
    lacking = [] if parser.description else [command]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, each in action.choices.items():
                lacking += without_help(each, f'{command} {name}')
        elif not action.help:
            lacking.append(f'{command} {action.dest}')
    return lacking


def test_every_command_and_argument_says_what_it_does():
    assert ':module: blazar_sched.cmd.main' in read('reference/cli.rst')
    assert without_help(main.parser()) == []


def test_a_command_or_argument_that_says_nothing_is_found():
    parser = argparse.ArgumentParser(description='said')
    parser.add_argument('--mute')
    parser.add_subparsers().add_parser('silent')
    assert without_help(parser) == ['blazar-sched mute', 'blazar-sched silent']


def commands(parser, command='blazar-sched'):
    """Yield every command, without its arguments."""
    inside = [
        (name, each)
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for name, each in action.choices.items()
    ]
    if not inside:
        yield command
    for name, each in inside:
        yield from commands(each, f'{command} {name}')


def test_every_command_is_in_a_guide():
    guides = ' '.join(
        word
        for page in sorted(GUIDES.rglob('*.rst'))
        for word in page.read_text().split()
    )
    known = [*commands(main.parser()), f'blazar-sched {MADE_UP}']
    assert 'blazar-sched db upgrade' in known
    assert [
        command
        for command in known
        if not re.search(rf'\b{command}\b', guides)
    ] == [f'blazar-sched {MADE_UP}']


def test_every_option_is_in_the_reference():
    shown = re.findall(
        r'^\.\. show-options:: (\S+)$', read('reference/config.rst'), re.M
    )
    assert shown == [entry_point.name for entry_point in sorted(
        ours('oslo.config.opts')
    )]
    assert [
        f'[{group}] {opt.name}'
        for entry_point in ours('oslo.config.opts')
        for group, opts in entry_point.load()()
        for opt in opts
        if not (opt.help or '').strip()
    ] == []


def test_every_rule_says_what_it_allows():
    assert '.. show-policy::' in read('reference/policy.rst')
    roles = {each.name for each in rule.base()}
    assert [
        each.name
        for each in policies.list_rules()
        if each.name not in roles
        and not (each.description and each.operations)
    ] == []


@pytest.fixture(scope='module')
def api_reference():
    spec = importlib.util.spec_from_file_location(
        'api_reference', ROOT / 'doc/ext/api_reference.py'
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize('version', microversion.KNOWN, ids=str)
def test_every_field_of_the_api_says_what_it_means(api_reference, version):
    document = openapi.document(routes.ROUTES, version)
    assert api_reference.undescribed(document) == []
    assert f'   api-{version}\n' in read('reference/index.rst')


@pytest.mark.row('C42')
@pytest.mark.parametrize('version', microversion.KNOWN, ids=str)
def test_the_api_reference_names_every_request_object_and_field(
    api_reference, version
):
    document = openapi.document(routes.ROUTES, version)
    page = api_reference.page(document)
    for path, methods in document['paths'].items():
        for method in methods:
            assert f'## {method.upper()} {path}\n' in page
    for name, noun in document['components']['schemas'].items():
        [(_, section)] = re.findall(
            rf'(^|\n)## {name}\n(.*?)(?=\n## |\Z)', page, re.DOTALL
        )
        for field in noun.get('properties', ()):
            assert f'| `{field}` |' in section


def test_route_without_description_is_found(api_reference):
    [show] = [r for r in routes.ROUTES if r.handler is lease.show_lease]
    made_up = dataclasses.replace(show, query=(Field(MADE_UP, ''),))
    document = openapi.document([made_up], microversion.KNOWN[-1])
    nouns = document['components']['schemas']
    nouns['Made'] = {'properties': {MADE_UP: {'type': 'string'}}}
    assert api_reference.undescribed(document) == [
        'Made', f'Made: {MADE_UP}', f'GET {made_up.path}: {MADE_UP}',
    ]


def test_no_meaning_is_of_what_is_gone():
    document = openapi.document(routes.ROUTES, microversion.KNOWN[-1])
    shared = [v for k, v in vars(meaning).items() if k.isupper()]
    said = json.dumps(document)
    assert [
        each
        for each in (*shared, MADE_UP)
        if json.dumps(each)[1:-1] not in said
    ] == [MADE_UP]


def environment_variables(*places):
    """Return the environment variables that Python code names in a text."""
    found = set()
    for place in places:
        path = ROOT / place
        for file in [path] if path.is_file() else path.rglob('*.py'):
            found |= set(re.findall(
                r"""['"]((?:OS_)?BLAZAR_SCHED_[A-Z_]+)['"]""", file.read_text()
            ))
    return sorted(found)


def test_every_environment_variable_is_named():
    text = ''.join(
        page.read_text()
        for page in (*GUIDES.rglob('*.rst'), ROOT / 'CONTRIBUTING.rst')
    )
    names = environment_variables(
        'blazar_sched', 'benchmarks', 'tests', 'setup.py'
    )
    assert 'BLAZAR_SCHED_NO_EXTENSION' in names
    assert undocumented([*names, MADE_UP], text) == [MADE_UP]


def test_every_setting_of_devstack_is_named():
    names = re.findall(
        r'^(BLAZAR_SCHED_\w+)=.*(?::-|trueorfalse)',
        (ROOT / 'devstack/settings').read_text(), re.M,
    )
    assert names, 'nothing is looked for'
    text = (ROOT / 'devstack/README.md').read_text()
    assert undocumented([*names, MADE_UP], text) == [MADE_UP]


def unshown(table, text):
    """Return the metrics of a table that no directive of a page shows."""
    shown = set()
    for module, lists in re.findall(r'^\.\. show-metrics:: (\S+) (.+)$', text,
                                    re.M):
        for name in lists.split():
            shown |= set(getattr(importlib.import_module(module), name))
    return [metric.name for metric in table if metric not in shown]


@tables.EVERY
def test_every_metric_is_shown():
    made_up = metrics.Metric(prometheus_client.Gauge, MADE_UP, 'nothing')
    text = read('admin/metrics.rst')
    assert unshown([*tables.METRICS, made_up], text) == [MADE_UP]
    assert [m.name for m in tables.METRICS if not m.documentation] == []
    # The metrics that the page recommends exist.
    names = {m.name for m in tables.METRICS}
    told = set(re.findall(r'``(blazar_sched_\w+?)(?:_total)?``', text))
    assert told - names == set()


def wrong_notes(notes):
    """Return the names of the notes that reno could not read.

    This includes notes that reno would read with another meaning: a section
    must begin a line.

    :param notes: texts by name
    """
    inside = re.compile(rf'\S ({"|".join(SECTIONS)}):\n  - ')
    found = []
    for name, text in notes.items():
        try:
            said = yaml.safe_load(text)
        except yaml.YAMLError:
            said = None
        is_read = isinstance(said, dict) and said.keys() <= SECTIONS
        if not is_read or inside.search(text):
            found.append(name)
    return found


def test_release_notes_are_read():
    notes = {
        path.name: path.read_text()
        for path in (ROOT / 'releasenotes/notes').glob('*.yaml')
    }
    assert notes, 'nothing is looked for'
    assert wrong_notes({
        **notes, MADE_UP: 'feature:\n  - it has no such section\n',
        f'{MADE_UP} too': 'features:\n  - | no text\n',
        f'{MADE_UP} again': 'features:\n  - |\n    New. upgrade:\n  - None.\n',
    }) == [MADE_UP, f'{MADE_UP} too', f'{MADE_UP} again']


@tables.EVERY
def test_alerts_are_of_metrics_that_are_there():
    rules = yaml.safe_load(read('admin/alerts.yml'))['groups'][0]['rules']
    known = {
        each.name + suffix
        for each in tables.METRICS
        for suffix in ('', '_total', '_bucket')
    }
    for alert in rules:
        named = re.findall(r'blazar_sched_\w+', alert['expr'])
        assert named and not set(named) - known, alert['alert']
        assert alert['annotations']['summary']
