# SPDX-License-Identifier: Apache-2.0
"""Queries of nova-scheduler's workers to which no worker responds."""

import json

import pytest

from blazar_sched.cmd import main
from blazar_sched.cmd import worker_query
from blazar_sched.service.bus import schedulers

SERVER = '0b1f5d6c-0000-4000-8000-000000000001'
DECISION = {
    'worker': 'h1-1',
    'filter': 'LifetimeFilter',
    'at': 1_800_000_000,
    'outcome': 'decided',
    'revision': 790,
    'explained_by': 812,
    'asked': {
        'kind': 'bounded', 'project_id': 'p1', 'reservation_id': None,
        'end': 1_800_003_600, 'amounts': {'VCPU': 4}, 'moves_from': None,
    },
    'seen': 3,
    'passed': 1,
    'hosts': {'c2': 'a [bold] reason', 'c1': 'another reason'},
}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / 'blazar-sched.conf'
    path.write_text('[DEFAULT]\ntransport_url = fake://\n')
    return str(path)


@pytest.fixture
def answered(monkeypatch):
    """answered(*answers) sets the responses on the bus."""
    def answered(*answers):
        monkeypatch.setattr(
            worker_query, 'query', lambda args, method, **what: list(answers)
        )

    return answered


def test_no_scheduler_knows_of_the_server(config, capsys):
    arguments = ['--config-file', config, '--wait', '0.1']
    assert main.main(['why', *arguments, SERVER]) == 1
    assert f'has a decision about server {SERVER}' in capsys.readouterr().err


def test_no_scheduler_answers(config, capsys):
    arguments = ['--config-file', config, '--wait', '0.1', '--json']
    assert main.main(['replicas', *arguments]) == 1
    told = capsys.readouterr()
    # APIs of other tests may still answer.
    assert {x.get('part') for x in json.loads(told.out)} <= {'api'}
    assert 'No nova-scheduler worker responded' in told.err


def test_a_decision_as_text(config, capsys, monkeypatch, answered):
    monkeypatch.setenv('COLUMNS', '200')
    answered(('h1-1', [{**DECISION}]))
    assert main.main(['why', '--config-file', config, SERVER]) == 0
    text = capsys.readouterr().out
    for part in (
        '2027-01-15T08:00:00Z LifetimeFilter in h1-1, revision 790',
        'asked: bounded, until 2027-01-15T09:00:00Z, 4 VCPU, project p1',
        '1 of 3 hosts passed; the reasons are those at revision 812',
        'a [bold] reason',
    ):
        assert part in text
    assert text.index('c1') < text.index('c2')


def test_decisions_of_all_workers_in_their_order(config, capsys, answered):
    first = {**DECISION, 'at': DECISION['at'] - 60}
    answered(('h1-1', [DECISION]), ('h2-1', [first]))
    assert main.main(['why', '--config-file', config, '--json', SERVER]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [each['at'] for each in told] == [first['at'], DECISION['at']]


def test_a_host_that_was_not_asked_about(
    config, capsys, monkeypatch, answered
):
    monkeypatch.setenv('COLUMNS', '200')
    answered(('h1-1', [{**DECISION, 'hosts': {}}]))
    arguments = ['--config-file', config, '--host', 'c9']
    assert main.main(['why', *arguments, SERVER]) == 0
    printed = capsys.readouterr().out
    assert 'c9 was not among the hosts of the decision' in printed


def test_replicas_in_a_table(config, capsys, monkeypatch, answered):
    """The table fits in a terminal, with real names, versions and numbers."""
    monkeypatch.setenv('COLUMNS', '80')
    report = {
        'ledger': '7a41c95b-e2d0-4000-8000-000000000000', 'revision': 1234567,
        'hosts': 40000, 'age': 1.25, 'stale': False, 'wire': 7,
    }
    # A worker of a version that does not report its wire format.
    nothing = {
        'ledger': None, 'revision': None, 'hosts': 0, 'age': None,
        'stale': True,
    }
    manager = {
        'part': 'manager', 'version': '0.2.0.dev12', 'rpc': '2.0', 'wire': 7,
    }
    answered(('h1-1', report), ('h1-2', nothing), ('h2-1', manager))

    assert main.main(['replicas', '--config-file', config]) == 0

    heads, *rows, _ = capsys.readouterr().out.splitlines()
    assert all(len(row) <= 80 for row in rows)
    assert heads.split() == [
        'worker', 'part', 'version', 'rpc', 'wire', 'revision', 'age', '(s)',
        'stale', 'hosts', 'ledger',
    ]
    assert [row.split() for row in rows] == [
        ['h1-1', 'scheduler', '-', '-', '7', '1234567', '1.2', 'no', '40000',
         '7a41c95b'],
        ['h1-2', 'scheduler', '-', '-', '-', '-', '-', 'yes', '0', '-'],
        ['h2-1', 'manager', '0.2.0.dev12', '2.0', '7', '-', '-', '-', '-',
         '-'],
    ]


def test_the_answer_to_anothers_question_is_not_heard():
    end_point = schedulers._EndPoint('mine')
    end_point.answer({}, 'theirs', 'w', {})
    assert end_point.answers.empty()


def test_json_is_what_filters_tell(config, capsys, answered):
    answered(('h1-1', [{**DECISION}]))
    main.main(['why', '--config-file', config, '--json', SERVER])
    assert json.loads(capsys.readouterr().out) == [
        {**DECISION, 'worker': 'h1-1'}
    ]
