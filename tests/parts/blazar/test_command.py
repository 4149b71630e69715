# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched db import-blazar`, as an operator runs it."""

import pytest

from blazar_sched.cmd import main
from blazar_sched.cmd import worker_query
from blazar_sched.parts.blazar.exporting import commands as exporting
from tests.parts.blazar import database


@pytest.fixture
def run(tmp_path, site, capsys, monkeypatch):
    """run(action, …) -> the exit status and the output."""
    # No manager answers on the message bus of this process.
    monkeypatch.setattr(exporting, 'WAIT', 0.1)

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


def test_no_lease_is_imported_if_one_is_refused(blazar, run, leases):
    good, bad = blazar.lease(), blazar.lease('CREATING', name='[half]')
    status, printed = run('import-blazar', blazar.url)
    assert status == 1
    assert f'refused: lease {bad} ([half]): the lease is CREATING' in printed
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


def test_the_database_need_not_be_on_the_command_line(
    blazar, run, tmp_path, monkeypatch
):
    status, printed = run('import-blazar', '--dry-run')
    assert status == 1
    assert '--blazar-config-file' in printed
    file = tmp_path / 'blazar.conf'
    file.write_text(f'[database]\nconnection = {blazar.url}\nother = 1\n')
    named = ('--blazar-config-file', str(file))
    status, _ = run('import-blazar', '--dry-run', *named)
    assert status == 0
    status, printed = run('import-blazar', '--dry-run', *named, blazar.url)
    assert status == 1
    assert 'cannot be given together' in printed
    monkeypatch.setenv('BLAZAR_DATABASE_CONNECTION', blazar.url)
    status, _ = run('import-blazar', '--dry-run')
    assert status == 0


def test_a_file_of_blazars_that_is_not_there_is_named(run):
    status, printed = run(
        'import-blazar', '--dry-run', '--blazar-config-file', '/none.conf'
    )
    assert status == 1
    assert '/none.conf' in printed


@pytest.mark.parametrize(
    'url', ['mysql+nothing://host/blazar', 'mysql://root:hush@host:hu/blazar']
)
def test_database_that_is_not_blazars_is_reported(url, run):
    status, printed = run('import-blazar', url)
    assert status == 1
    assert "Blazar's database cannot be opened" in printed
    assert 'hu' not in printed


def test_tidy_blazar_reports_the_leases_it_skipped(blazar, run):
    blazar.lease()
    run('import-blazar', blazar.url)
    status, printed = run('tidy-blazar')
    assert status == 0
    assert '1 pending leases' in printed or 'skipped: lease' in printed


def test_an_export_is_shown_done_and_compared(blazar, run, site):
    kept, gone = blazar.lease(name='kept'), blazar.lease(name='[gone]')
    run('import-blazar', blazar.url)
    assert run('compare-blazar', blazar.url) == (0, '0 differences found.\n')
    site.manager().leases.delete(gone, None)
    site.manager().leases.update(kept, None, {'name': 'für immer'})
    status, printed = run('compare-blazar', blazar.url)
    assert status == 1
    assert (
        f"differs: lease {kept} (für immer): name is 'kept' in Blazar, and "
        "'für immer' here"
    ) in printed
    assert f'differs: lease {gone} ([gone]): only Blazar has it' in printed
    assert '2 differences' in printed
    status, printed = run('export-blazar', '--dry-run', blazar.url)
    assert status == 0
    assert f'deleted in Blazar: lease {gone} ([gone])' in printed
    assert 'Everything can be exported' in printed
    assert len(blazar.rows('leases')) == 2
    status, printed = run('export-blazar', blazar.url)
    assert status == 0
    assert 'Exported. 0 differences found.' in printed
    [(_, row)] = blazar.rows('leases').items()
    assert row['name'] == 'für immer'


def test_no_lease_is_exported_if_one_is_refused(blazar, run, site):
    good, bad = blazar.lease(), blazar.lease()
    run('import-blazar', blazar.url)
    before = blazar.all_rows()
    site.manager().leases.update(bad, None, {'name': '[x]' * 30})
    status, printed = run('export-blazar', blazar.url)
    assert status == 1
    assert f'refused: lease {bad} ([x][x]' in printed
    assert 'Use --skip-refused' in printed
    assert blazar.all_rows() == before
    status, printed = run('export-blazar', '--skip-refused', blazar.url)
    assert status == 0
    assert bad in printed
    assert set(blazar.rows('leases')) == {good}


def test_an_export_is_refused_while_a_manager_answers(
    blazar, run, monkeypatch
):
    lease = blazar.lease()
    run('import-blazar', blazar.url)
    blazar.set('leases', lease, name='stale')
    monkeypatch.setattr(
        worker_query, 'ask', lambda *_: [('controller:1', {'part': 'manager'})]
    )  # fmt: skip
    status, printed = run('export-blazar', blazar.url)
    assert status == 1
    assert 'manager controller:1 is running: stop all managers' in printed
    assert blazar.rows('leases')[lease]['name'] == 'stale'
