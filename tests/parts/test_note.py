# SPDX-License-Identifier: Apache-2.0
"""A new noun is a part of four files, and the client is made from it.

The part `note`, of another distribution, is installed in a folder. A service,
the SDK and `openstack` find the part there by its entry point.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import requests

from tests import programs
from tests import serving
from tests.waiting import response

SOURCE = pathlib.Path(__file__).with_name('note')
CLIENT = pathlib.Path(__file__).parents[2] / 'client'
SCRIPT = pathlib.Path(sys.executable).with_name('blazar-sched')
VERSION = {'OpenStack-API-Version': 'reservation 1.2'}
FIELDS = {'id', 'project_id', 'text', 'created_at'}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """The folder in which the part is installed."""
    made = tmp_path_factory.mktemp('note')
    (made / 'note').mkdir()
    for each in SOURCE.glob('*.py'):
        shutil.copy(each, made / 'note')
    info = made / 'note-1.0.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text(
        'Metadata-Version: 2.1\nName: note\nVersion: 1.0\n'
    )
    (info / 'entry_points.txt').write_text(
        '[blazar_sched.parts]\nnote = note\n[openstack.blazar_sched.v1]\n'
        + ''.join(
            f'reservation_note_{each.lower()} = '
            f'blazar_sched_client.osc.noun:{each}Note\n'
            for each in ('List', 'Show', 'Create', 'Delete')
        )
    )
    return made


@pytest.fixture(scope='module')
def environ(folder):
    return {**os.environ, 'PYTHONPATH': str(folder)}


@pytest.fixture(scope='module')
def client(folder, environ):
    """A client that is made with the part, beside it."""
    package = folder / 'blazar_sched_client'
    shutil.copytree(CLIENT / 'blazar_sched_client', package)
    made = subprocess.run(
        [sys.executable, CLIENT / 'generate.py', package / 'resources.py'],
        env=environ, capture_output=True, text=True, timeout=300,
    )
    assert made.returncode == 0, made.stderr
    return package


@pytest.fixture(scope='module')
def policy(folder):
    file = folder / 'policy.yaml'
    file.write_text('{}')
    return file


@pytest.fixture(scope='module')
def url(folder, environ, policy):
    """The URL of a service that runs the part."""
    port = serving.free_port()
    config = serving.write_config(
        folder, port, f'[oslo_policy]\npolicy_file = {policy}\n'
    )
    with subprocess.Popen(
        [SCRIPT, 'serve', '--config-file', config], env=environ,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:
        url = f'http://127.0.0.1:{port}/v1'
        response(process, f'{url}/leases')
        yield url
        process.terminate()


@pytest.fixture
def ask(url):
    """ask(method, path, user, body) -> the response to a request."""

    def ask(method, path='', user='alice:p1', body=None):
        return requests.request(
            method, f'{url}/notes{path}', json=body, timeout=60,
            headers={**VERSION, 'X-Auth-Token': user},
        )

    return ask


@pytest.fixture
def note(ask):
    answer = ask('POST', body={'text': 'the rack moves'})
    assert answer.status_code == 201, answer.text
    yield answer.json()['note']
    for each in ask('GET', user='admin').json()['notes']:
        ask('DELETE', f'/{each["id"]}', 'admin')


def test_a_noun_is_a_part_of_four_files():
    lines = {
        each.name: len(each.read_text().splitlines())
        for each in SOURCE.iterdir() if each.is_file()
    }
    print(lines)
    assert len(lines) <= 4
    assert sum(lines.values()) <= 210


def test_a_project_creates_lists_shows_and_deletes_its_notes(ask, note):
    assert note.keys() == FIELDS
    assert (note['text'], note['project_id']) == ('the rack moves', 'p1')
    assert ask('GET').json() == {'notes': [note]}
    path = f'/{note["id"]}'
    assert ask('GET', path).json() == {'note': note}
    assert ask('DELETE', path).status_code == 204
    assert ask('GET', path).json()['error_name'] == 'NotFound'
    assert ask('GET').json() == {'notes': []}


@pytest.mark.parametrize(('body', 'words'), [
    ({}, 'text'), ({'text': ''}, 'text'), ({'text': 'a', 'to': 'b'}, 'to'),
])
def test_a_note_is_checked_against_its_fields(ask, body, words):
    answer = ask('POST', body=body)
    assert answer.status_code == 400
    assert words in answer.json()['error_message']


def test_a_project_has_no_notes_of_others_and_an_admin_has_all(ask, note):
    path = f'/{note["id"]}'
    for method in 'GET', 'DELETE':
        assert ask(method, path, 'bob:p2').status_code == 404
        assert ask('GET', user='bob:p2').json() == {'notes': []}
    assert ask('GET', path, 'admin').json() == {'note': note}
    assert ask('GET', user='admin').json() == {'notes': [note]}


def test_the_policy_of_the_operator_is_obeyed(ask, note, policy):
    path = f'/{note["id"]}'
    policy.write_text('"blazar:notes:delete": "rule:admin"\n')
    refused = ask('DELETE', path)
    policy.write_text('{}')
    assert refused.status_code == 403
    assert 'blazar:notes:delete' in refused.json()['error_message']
    assert ask('DELETE', path).status_code == 204


def test_the_api_says_what_notes_are_and_how_many_a_project_may_have(
    ask, note, url
):
    document = requests.get(
        url.removesuffix('/v1') + '/openapi', headers=VERSION, timeout=60
    ).json()
    assert document['paths'].keys() >= {'/v1/notes', '/v1/notes/{note_id}'}
    described = document['components']['schemas']['Note']
    assert described['properties'].keys() == FIELDS
    limits = requests.get(
        f'{url}/limits', timeout=60,
        headers={**VERSION, 'X-Auth-Token': 'alice:p1'},
    ).json()['limits']
    [limit] = [each for each in limits if each['name'] == 'max_notes']
    assert (limit['limit'], limit['used']) == (100, 1)


WITH_THE_SDK = """
import json, sys, typing
from keystoneauth1 import session, token_endpoint
from openstack import connection
import blazar_sched_client
from blazar_sched_client.resources import Note

auth = token_endpoint.Token(sys.argv[1], 'alice:p1')
conn = connection.Connection(session=session.Session(auth=auth))
blazar_sched_client.load(conn)
client = conn.reservation
made = client.create_note(text='the rack moves')
[listed] = client.notes()
found = client.find_note(made.id)
shown = client.get_note(found)
client.delete_note(shown)
print(json.dumps({
    'texts': [each.text for each in (made, listed, found, shown)],
    'left': list(client.notes()),
    'types': {k: str(v) for k, v in typing.get_type_hints(Note).items()},
}))
"""


def test_the_sdk_has_the_noun_from_its_declaration(url, environ, client):
    done = subprocess.run(
        [sys.executable, '-c', WITH_THE_SDK, url], env=environ,
        capture_output=True, text=True, timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told['texts'] == ['the rack moves'] * 4
    assert told['left'] == []
    assert told['types']['text'] == "<class 'str'>"


def test_openstack_has_the_noun_from_its_declaration(url, environ, client):
    def run(verb, *arguments):
        done = programs.run_alone(
            ['openstack', 'reservation', 'note', verb, *arguments],
            environ | {
                'OS_AUTH_TYPE': 'admin_token', 'OS_ENDPOINT': url,
                'OS_TOKEN': 'alice:p1',
            },
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert 'Text of the note' in run('create', '--help')
    made = json.loads(run('create', '--text', 'a%b', '-f', 'json'))
    assert made.keys() == FIELDS
    [listed] = json.loads(run('list', '-f', 'json'))
    assert list(listed) == ['id', 'text', 'created_at']
    assert listed.items() <= made.items()
    assert json.loads(run('show', made['id'], '-f', 'json')) == made
    assert run('delete', made['id']) == ''
    assert json.loads(run('list', '-f', 'json')) == []
