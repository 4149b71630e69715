# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched db import-blazar`, as an operator runs it."""

import pytest

from blazar_sched.cmd import main
from tests.functional.importing import database


@pytest.fixture
def run(tmp_path, site, capsys):
    """run(action, …) -> the exit status, and what was printed."""

    def run(*arguments):
        config = f'{tmp_path}/blazar-sched.conf'
        status = main.main(['db', '--config-file', config, *arguments])
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    return run


@pytest.fixture
def leases(site):
    return site.manager().ledger.leases


def test_a_dry_run_writes_nothing(blazar, run, leases):
    blazar.lease('TERMINATED', -2 * database.HOUR, -database.HOUR)
    status, printed = run('import-blazar', '--dry-run', blazar.url)
    assert status == 0
    assert 'TERMINATED' in printed
    assert leases() == []
    status, printed = run('import-blazar', blazar.url)
    assert status == 0
    assert 'Imported' in printed
    assert len(leases()) == 1


def test_nothing_is_imported_if_anything_is_refused(blazar, run, leases):
    good, bad = blazar.lease(), blazar.lease('CREATING', name='[half]')
    status, printed = run('import-blazar', blazar.url)
    assert status == 1
    assert f'refused: lease {bad} ([half]): it is CREATING' in printed
    assert leases() == []
    status, printed = run('import-blazar', '--skip-refused', blazar.url)
    assert status == 0
    assert bad in printed
    assert [lease.id for lease in leases()] == [good]


def test_hosts_need_a_cloud(blazar, run, leases):
    blazar.host('compute-1')
    blazar.lease()
    status, printed = run('import-blazar', blazar.url)
    assert status == 1
    assert 'no compute service is configured' in printed
    assert leases() == []


@pytest.mark.parametrize(
    'url', ['mysql+nothing://host/blazar', 'mysql://root:hush@host:hu/blazar']
)
def test_what_is_no_database_of_blazars_is_told(url, run):
    status, printed = run('import-blazar', url)
    assert status == 1
    assert "Blazar's database cannot be opened" in printed
    assert 'hu' not in printed


def test_tidying_says_what_it_left(blazar, run):
    blazar.lease()
    run('import-blazar', blazar.url)
    status, printed = run('tidy-blazar')
    assert status == 0
    assert '1 leases' in printed or 'left: lease' in printed
