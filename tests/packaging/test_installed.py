# SPDX-License-Identifier: Apache-2.0
"""Both wheels in a bare venv, away from the sources."""

import contextlib
import json
import re
import signal
import time
import urllib.error
import urllib.request

import pytest

from tests import serving
from tests.packaging import imported
from tests.packaging import source

INDEX = """
from blazar_sched import ext
index = ext.TimelineIndex(('VCPU',))
index.apply([('capacity', 'host', [8])])
index.apply([('add', 'id', 'owner', 'host', 10, 20, (5,), False)])
print([list(index.fits(None, *when, [4])) for when in ((0, 10), (0, 11))])
"""
WHERE = 'import blazar_sched; print(blazar_sched.__file__)'
# All modules except those that act on their surroundings when imported.
EVERYTHING = """
import importlib, pkgutil, blazar_sched
alone = {'blazar_sched.wsgi', 'blazar_sched.service.ledger.migrations.env'}
for module in pkgutil.walk_packages(blazar_sched.__path__, 'blazar_sched.'):
    try:
        module.name in alone or importlib.import_module(module.name)
    except ModuleNotFoundError as e:
        print(e.name.partition('.')[0])
"""
# The packages of the extras.
EXTRAS = {'fixtures', 'nova'}
# None of these is a dependency of the service.
UNWANTED = {
    'cython', 'matplotlib', 'nova', 'numpy', 'openstack-placement', 'pytest',
    'psycopg2-binary', 'pymysql',
}

# What the metadata of each package says: an expression, classifiers or words.
LICENCES = """
import importlib.metadata
for each in importlib.metadata.distributions():
    of = each.metadata
    words = [
        name.rpartition(' :: ')[2] for name in of.get_all('Classifier') or ()
        if name.startswith('License :: OSI Approved :: ')
    ]
    print(each.name, of['License-Expression'] or ' OR '.join(words)
          or (of['License'] or 'unknown').partition('\\n')[0], sep='\t')
"""
# What may be distributed beside a program under the Apache License, whether
# or not its sources are changed.
ALLOWED = re.compile(
    r'\b(0?BSD|Apache|CC0|ISC|MIT|MPL|Mozilla|PSF|Python Software|ZPL|Zope)\b'
)

# One Python after the other, each with both wheels: its venv is made once.
pytestmark = pytest.mark.usefixtures('bare')


@pytest.fixture
def config(tmp_path, port):
    return serving.write_config(tmp_path, port)


def get(url, process):
    """GET until the server responds; return the status and the JSON."""
    deadline = time.monotonic() + source.PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(urllib.error.URLError):
            return _get(url)
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.1)
    raise TimeoutError(url)


def _get(url):
    try:
        request = urllib.request.Request(url, headers=serving.ADMIN)
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        # The status of GET / is 300, which urllib treats as an error.
        return e.code, json.load(e)


def test_package_that_runs_is_the_installed_one(installed):
    installation, _ = installed
    assert str(installation.folder) in installation.python(WHERE)


def test_status_says_which_index_runs(installed):
    installation, compiled = installed
    shown = installation.blazar_sched('status').stdout
    assert ('compiled' if compiled else 'plain Python') in shown


def test_the_index_answers(installed):
    installation, _ = installed
    assert installation.python(INDEX).strip() == '[[1], [0]]'


def test_the_service_is_served_over_sqlite(installed, config, port):
    installation, _ = installed
    options = ('--config-file', config)
    installation.blazar_sched('db', *options, 'upgrade')
    with installation.running('serve', *options) as process:
        url = f'http://127.0.0.1:{port}'
        status, versions = get(f'{url}/', process)
        assert (status, list(versions)) == (300, ['versions'])
        assert get(f'{url}/v1/leases', process) == (200, {'leases': []})
        process.send_signal(signal.SIGTERM)
        assert process.wait(source.PATIENCE) == 0


def test_installation_brings_no_unwanted_packages(installed):
    installation, _ = installed
    packages = installation.packages()
    assert 'blazar-sched' in packages
    assert packages & UNWANTED == set()


def unlicensed(shown):
    """Return the packages one of whose licences, joined by AND, is missing.

    :param shown: lines of a package and its licence, separated by a tab
    """
    return {
        name for name, licence in
        (line.split('\t') for line in shown.splitlines())
        if not all(ALLOWED.search(part) for part in licence.split(' AND '))
    }


def test_each_package_has_a_licence_that_is_allowed(installed):
    installation, _ = installed
    shown = installation.python(LICENCES)
    assert 'SQLAlchemy' in shown
    made_up = 'a\tGPL-3.0-only\nb\tMIT AND GPL-2.0\nc\tGPL-2.0 OR MIT\n'
    assert unlicensed(shown + made_up) == {'a', 'b'}


def test_all_that_is_imported_is_needed_by_the_metadata(installed):
    installation, _ = installed
    assert set(installation.python(EVERYTHING).split()) <= EXTRAS


@pytest.mark.parametrize('part', imported.PARTS)
def test_only_what_a_part_works_with_is_imported(installed, part):
    installation, _ = installed
    found = installation.python(
        f'{part}; import sys; print(*sys.modules, sep="\\n")'
    ).splitlines()
    unwanted = imported.PARTS[part]
    assert [
        name for name in found
        if any(f'{name}.'.startswith(f'{each}.') for each in unwanted)
    ] == []
