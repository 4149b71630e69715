# SPDX-License-Identifier: Apache-2.0
"""The files of the web page, and the sign-in that it needs."""

from concurrent import futures
import json
import logging
import re
import threading

import pytest

from blazar_sched.conf import service as service_conf
from blazar_sched.parts.page import api as page
from blazar_sched.parts.page import keystone as page_keystone
from blazar_sched.service.api import deploy
from tests import loopback
from tests.standins.keystone import KeystoneServer

FILES = sorted(
    path.name for path in page.FOLDER.iterdir() if path.name != 'README.md'
)


@pytest.fixture
def keystone():
    server = KeystoneServer()
    server.add_user('alice', p1=['member', 'reader'], p2=['reader'])
    server.credentials['c1'] = 'alice', 'p1', 'hidden'
    yield server
    server.stop()


def deployed(tmp_path, manager, options):
    path = tmp_path / 'api.conf'
    path.write_text(f'[api]\n{options}')
    conf = service_conf.load(files=[str(path)])
    return loopback.Client(deploy.deploy(conf, manager))


@pytest.fixture
def signing_in(tmp_path, manager, keystone):
    """The API with a Keystone."""
    return deployed(
        tmp_path, manager,
        'auth_strategy = keystone\n' + keystone.configuration(),
    )


def password(**more):
    return {'user': 'alice', 'domain': 'Default', 'password': 'secret', **more}


def send_form(api, text):
    """Send a form as a browser does for Keystone."""
    return api.post('/ui/websso', body=text, headers={
        'Content-Type': 'application/x-www-form-urlencoded',
        'Origin': 'https://keystone.example',
    })


@pytest.mark.parametrize('name', ['', *FILES])
def test_each_file_is_served_without_a_token(api, name):
    answer = api.get(f'/ui/{name}', token='')
    assert answer.status_code == 200
    file = page.FOLDER / (name or 'index.html')
    assert answer.content == file.read_bytes()
    kind = {'js': 'javascript', 'css': 'css', 'svg': 'svg', 'html': 'html'}
    assert kind[file.suffix[1:]] in answer.headers['content-type']
    assert api.head(f'/ui/{name}').status_code == 200


def test_every_answer_has_the_strict_policy(api, signing_in):
    for path in ('/ui/', '/ui/main.js', '/ui/none', '/ui/settings', '/ui'):
        headers = api.get(path).headers
        policy = headers['content-security-policy'].split('; ')
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert 'unsafe' not in headers['content-security-policy']
        assert headers['x-content-type-options'] == 'nosniff'
    refused = signing_in.post('/ui/token', json={})
    assert refused.headers['x-frame-options'] == 'DENY'


def test_page_has_no_inline_code_and_no_foreign_files():
    """What the policy would forbid, or would load from other machines."""
    for name in FILES:
        text = (page.FOLDER / name).read_text()
        text = text.replace('http://www.w3.org/2000/svg', '')
        assert not re.search(r'https?://|\.innerHTML|document\.write', text)
        assert not re.search(r'localStorage|cookie =', text)
        # No token is stored: only when a sign-in has left the page.
        stored = re.findall(r'sessionStorage\.setItem.*', text)
        assert set(stored) <= {
            'sessionStorage.setItem(BEGUN, String(Date.now()));'
        }
    markup = (page.FOLDER / 'index.html').read_text()
    assert not re.search(r'\s(on\w+|style)=|<style|<script>', markup)


def test_a_copy_that_is_the_newest_is_not_sent_again(api):
    first = api.get('/ui/main.js')
    assert first.headers['cache-control'] == 'no-cache'
    again = api.get(
        '/ui/main.js', headers={'If-None-Match': first.headers['etag']}
    )
    assert again.status_code == 304
    assert again.content == b''
    other = api.get('/ui/main.js', headers={'If-None-Match': '"x"'})
    assert other.status_code == 200


@pytest.mark.parametrize('path', [
    '/ui/README.md', '/ui/../conf.py', '/ui/..%2f..%2fwsgi.py',
    '/ui/%2e%2e/api/page.py', '/ui//etc/passwd', '/ui/..', '/ui/.',
    '/ui/main.js/', '/ui/main.js%00.css', '/ui/MAIN.JS', '/ui/token/x',
])
def test_no_other_file_is_served(api, path):
    answer = api.get(path)
    assert answer.status_code == 404
    assert answer.json['error_name'] == 'NotFound'


def test_without_a_slash_it_is_found_too(api):
    answer = api.get('/ui')
    assert answer.status_code == 308
    # Not with the Host header, which anyone may send.
    assert answer.headers['location'] == 'ui/'


def test_only_reading_is_possible(api):
    assert api.post('/ui/main.js').status_code == 405
    assert api.delete('/ui/').status_code == 405


def test_the_page_can_be_switched_off(tmp_path, manager):
    api = deployed(
        tmp_path, manager, 'auth_strategy = noauth\nserve_page = false\n'
    )
    for path in ('/ui', '/ui/', '/ui/main.js', '/ui/settings', '/ui/token'):
        answer = api.get(path, headers={'Host': 'localhost'})
        assert answer.status_code == 401


def test_without_keystone_nothing_is_forwarded(api):
    assert api.get('/ui/settings').json == {
        'auth_strategy': 'noauth', 'websso': {},
    }
    assert api.post('/ui/token', json=password()).status_code == 405
    assert send_form(api, 'token=gAAA').status_code == 405


def test_a_password_enters_the_projects_of_its_user(signing_in, keystone):
    answer = signing_in.post('/ui/token', json=password())
    assert answer.status_code == 201
    assert answer.headers['cache-control'] == 'no-store'
    base = answer.json['token']
    assert base['user'] == {'id': 'alice', 'name': 'alice'}
    assert (base['project'], base['roles']) == (None, [])
    listed = signing_in.get('/ui/projects', token=base['id'])
    assert [each['id'] for each in listed.json['projects']] == ['p1', 'p2']
    entered = signing_in.post(
        '/ui/token', json={'token': base['id'], 'project_id': 'p2'}
    ).json['token']
    assert entered['project'] == {'id': 'p2', 'name': 'p2'}
    assert entered['roles'] == ['reader']
    assert keystone.tokens[entered['id']] == ('alice', 'p2', False)


def test_the_page_has_the_token_that_keystone_sends(signing_in):
    answer = send_form(signing_in, 'token=gAAAAA-b_c%3D&x=1')
    assert answer.status_code == 200
    assert '<meta name="token" content="gAAAAA-b_c=">' in answer.text
    index = (page.FOLDER / 'index.html').read_text()
    assert answer.text.startswith(index[:index.index('</head>')])
    assert answer.headers['cache-control'] == 'no-store'
    assert answer.headers['content-security-policy'] == page.POLICY
    # The file itself is the same for all.
    assert 'gAAAAA' not in signing_in.get('/ui/').text


@pytest.mark.parametrize('form', [
    '', 'token=', 'token=%22%3E%3Cb%3E', 'token=a&token=b', 'token=%E2%82%AC',
    'token=a%0Ab', 'other=a', '\xff', '{"token": "a"}',
    'x=' + 'a' * 20000 + '&token=b',
])
def test_a_form_without_a_token_is_refused(signing_in, form):
    answer = send_form(signing_in, form)
    assert answer.status_code == 400
    assert 'token' in answer.json['error_message']


def test_the_type_of_a_sign_in_is_in_any_case(signing_in):
    answer = signing_in.post(
        '/ui/token', body=json.dumps(password()),
        headers={'Content-Type': 'Application/JSON'},
    )
    assert answer.status_code == 201


def test_an_application_credential_has_its_project(signing_in):
    body = {'application_credential_id': 'c1', 'secret': 'hidden'}
    answer = signing_in.post('/ui/token', json=body)
    assert answer.json['token']['project']['id'] == 'p1'


@pytest.mark.parametrize('body, status', [
    (password(password='guess'), 401),
    (password(user='nobody'), 401),
    (password(project_id='p9'), 401),
    ({'token': 'guess'}, 401),
    ({'application_credential_id': 'c1', 'secret': 'guess'}, 401),
    (password(password=''), 400),
    (password(auth_url='http://evil.example'), 400),
    ({'user': 'alice'}, 400),
    ({'token': 5}, 400),
    ([], 400),
    ({}, 400),
])
def test_a_refusal_is_in_the_envelope(signing_in, body, status):
    answer = signing_in.post('/ui/token', json=body)
    assert answer.status_code == status, answer.text
    assert answer.json['error_code'] == status
    # The dialog of a browser would ask for a password of its own.
    assert 'www-authenticate' not in answer.headers


def test_signing_out_revokes(signing_in, keystone):
    token = keystone.issue('alice', 'p1')
    for _ in range(2):
        answer = signing_in.delete('/ui/token', token=token)
        assert answer.status_code == 204
    assert token not in keystone.tokens
    assert signing_in.delete('/ui/token').status_code == 401
    assert signing_in.get('/ui/projects').status_code == 401


@pytest.mark.parametrize('status', [409, 413, 429, 500, True])
def test_callers_do_not_read_the_answers_of_keystone(
    signing_in, keystone, caplog, status
):
    signing_in.post('/ui/token', json=password())
    keystone.broken = status
    answer = signing_in.post('/ui/token', json=password())
    limited = status == 429
    assert answer.status_code == (429 if limited else 503)
    # Every 503 says when to send the request again, as every 429 does.
    assert 'retry-after' in answer.headers
    assert answer.json['error_message'].startswith('the identity service ')
    assert '10.20.30.40' not in answer.text
    assert '10.20.30.40' in caplog.text


def test_callers_do_not_read_where_keystone_is(signing_in, keystone, caplog):
    keystone.stop()
    answer = signing_in.post('/ui/token', json=password())
    assert answer.status_code == 503
    assert answer.json['error_message'] == (
        'the identity service cannot be reached now'
    )
    assert keystone.url in caplog.text


@pytest.fixture
def waiting(signing_in, keystone):
    """The answers of sign-ins for which Keystone takes its time."""
    signing_in.post('/ui/token', json=password())
    keystone.entered = threading.Semaphore(0)
    keystone.gate.clear()
    with futures.ThreadPoolExecutor() as pool:
        # A quarter of the threads of the API.
        yield [
            pool.submit(signing_in.post, '/ui/token', json=password())
            for _ in range(4)
        ]
        keystone.gate.set()


def test_sign_ins_leave_threads_to_others(signing_in, keystone, waiting):
    for _ in waiting:
        assert keystone.entered.acquire(timeout=10)
    token = {'X-Auth-Token': 'guess'}
    for answer in (
        signing_in.post('/ui/token', json=password(user='bob')),
        signing_in.get('/ui/projects', headers=token),
        signing_in.delete('/ui/token', headers=token),
    ):
        assert answer.status_code == 429
        assert answer.headers['retry-after'] == '1'
    keystone.gate.set()
    assert {each.result().status_code for each in waiting} == {201}
    answer = signing_in.post('/ui/token', json=password())
    assert answer.status_code == 201


def test_a_sign_in_waits_for_seconds_only(signing_in, keystone, monkeypatch):
    signing_in.post('/ui/token', json=password())
    monkeypatch.setattr(page_keystone, 'USER_TIMEOUT', 0.01)
    keystone.gate.clear()
    answer = signing_in.post('/ui/token', json=password())
    keystone.gate.set()
    assert answer.status_code == 503


@pytest.mark.parametrize('trusted', [False, True])
def test_a_password_is_guessed_a_few_times_only(
    tmp_path, manager, keystone, trusted
):
    api = deployed(
        tmp_path, manager,
        'auth_strategy = keystone\n' + keystone.configuration()
        + f'[oslo_middleware]\nenable_proxy_headers_parsing = {trusted}\n',
    )

    def sign_in(number, **more):
        headers = {'X-Forwarded-For': f'{number}, 192.0.2.{number}'}
        return api.post(
            '/ui/token', json=password(**more), headers=headers
        ).status_code

    guesses = [sign_in(1, password='guess') for _ in range(12)]
    assert guesses == [401] * 10 + [429] * 2
    assert sign_in(1) == 429
    assert sign_in(1, user='bob', password='guess') == 401
    # Only a proxy is believed about the address.
    assert sign_in(2) == (201 if trusted else 429)


def test_without_the_group_keystone_it_says_so(tmp_path, manager):
    api = deployed(
        tmp_path, manager, 'auth_strategy = keystone\nuse_trusts = false\n'
    )
    answer = api.post('/ui/token', json=password())
    assert answer.status_code == 503
    assert '[keystone] auth_type' in answer.json['error_message']


def test_only_keystones_three_paths_are_asked(signing_in, keystone):
    signing_in.post('/ui/token', json=password())
    keystone.asked.clear()
    for path in ('/ui/users', '/ui/token/../users', '/ui/projects/p1'):
        assert signing_in.get(path).status_code == 404
    signing_in.post('/ui/token', json=password())
    assert keystone.asked == [('POST', '/v3/auth/tokens')]


def test_no_secret_is_logged(signing_in, caplog):
    caplog.set_level(logging.DEBUG)
    for body in (
        password(password='secret'), password(password='guess-me-not'),
        {'application_credential_id': 'c1', 'secret': 'hidden'},
    ):
        answer = signing_in.post('/ui/token', json=body)
        token = answer.json.get('token', {}).get('id')
        assert token is None or token not in caplog.text
    assert 'guess-me-not' not in caplog.text
    assert 'hidden' not in caplog.text


def test_a_form_of_another_page_is_refused(signing_in):
    """Browsers send such a body to any origin without asking."""
    answer = signing_in.post(
        '/ui/token', body='{"token": "x"}',
        headers={'Content-Type': 'text/plain'},
    )
    assert answer.status_code == 415


@pytest.mark.parametrize('origin, status', [
    ('http://localhost:1234', 200),
    ('http://localhost:9999', 403),
    ('https://localhost:1234', 403),
    ('http://127.0.0.1:1234', 403),
    ('null', 403),
])
def test_noauth_answers_its_own_page(api, manager, origin, status):
    manager.answers['list_leases'] = []
    answer = api.get(
        '/v1/leases', headers={'Host': 'localhost:1234', 'Origin': origin}
    )
    assert answer.status_code == status
