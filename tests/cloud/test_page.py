# SPDX-License-Identifier: Apache-2.0
"""The web page in Chromium, with Keystone's own passwords and tokens."""

import pytest

from tests.cloud import keystone
from tests.cloud import site
from tests.parts.page.browser import __main__ as page_tests
from tests.parts.page.browser import person


@pytest.fixture
def browse(demo):
    """Return a function that opens the page, in a session of its own."""
    try:
        program = page_tests.browser()
    except page_tests.Missing as e:
        pytest.skip(str(e))
    endpoint = demo.reservation.get_endpoint()
    url = f'{endpoint.removesuffix("/v1")}/ui/'
    with person.chromium(program) as browser:
        yield lambda: person.Person(browser, url)


@pytest.fixture
def federated(admin, demo):
    """Let users of an identity provider into the project of `demo`."""
    identity = admin.sdk.identity
    group = identity.create_group(name='students')
    identity.assign_project_role_to_group(
        demo.project_id, group, identity.find_role('member')
    )
    mapping = identity.create_mapping(id='students', rules=[{
        'remote': [{'type': 'HTTP_OIDC_NAME'}],
        'local': [{'user': {'name': '{0}'}, 'group': {'id': group.id}}],
    }])
    provider = identity.create_identity_provider(
        id='university', remote_ids=['https://id.example.org'], is_enabled=True
    )
    identity.create_federation_protocol(
        provider, id=keystone.PROTOCOL, mapping_id=mapping.id
    )
    yield
    identity.delete_federation_protocol(provider, keystone.PROTOCOL)
    identity.delete_identity_provider(provider)
    identity.delete_mapping(mapping)
    identity.delete_group(group)


def let_in(page, name):
    """Be the web server before Keystone, which has let in a user."""
    page.route('**/OS-FEDERATION/websso/**', lambda route: route.continue_(
        headers={
            **route.request.headers, 'OIDC-NAME': name,
            keystone.ISSUER: 'https://id.example.org',
        },
    ))


def sign_in(user, name):
    """Sign in by password, after a wrong password."""
    user.open()
    user.page.fill('#fields input[name=user]', name)
    user.page.fill('#fields input[name=password]', 'guess')
    user.page.click('#enter')
    user.until(lambda: 'refuses' in user.page.inner_text('#refused'))
    user.enter(password=site.PASSWORD)
    user.ready()


def test_a_member_books_and_an_administrator_looks(
    browse, register, demo, admin
):
    for name in ('compute-1', 'compute-2'):
        register(name)
    member = browse()
    sign_in(member, 'demo')
    page = member.page
    assert page.inner_text('#now') == '2 of 2 hosts free now'
    assert page.input_value('#project') == demo.project_id
    flavors = page.locator('#flavor_id option').all_text_contents()
    assert 'm1.tiny: 1 vCPU, 0.5 GB, 1 GB disk' in flavors
    page.fill('#count', '2')
    page.fill('#name', 'from-the-page')
    member.until(page.locator('#book').is_enabled)
    page.click('#book')
    member.says('from-the-page is booked')

    # The clients of OpenStack see what the page has booked.
    [shown] = demo.openstack('reservation', 'lease', 'list')
    assert shown['name'] == 'from-the-page'
    lease = demo.wait_for(shown, 'ACTIVE')
    assert lease['user_id'] == demo.user_id
    assert lease['reservations'][0]['max'] == 2
    page.wait_for_selector('.card:has-text("from-the-page") .status.active')

    manager = browse()
    sign_in(manager, 'admin')
    keys = manager.page.locator('.row .key').all_text_contents()
    assert sorted(keys) == ['compute-1', 'compute-2']
    assert manager.page.locator('.bar:has-text("from-the-page")').count() == 2
    # The page tells a member no name of a host.
    assert 'compute-1' not in member.text()

    page.click('#leave')
    page.wait_for_selector('#sign_in', state='visible')
    assert 'from-the-page' not in member.text()
    assert member.violations == manager.violations == []


def test_signing_out_revokes_the_token(browse, register, admin):
    register('compute-1')
    member = browse()
    sign_in(member, 'demo')
    # Any request of the page has the token.
    with member.page.expect_request('**/v1/leases') as asked:
        member.page.evaluate(
            'document.dispatchEvent(new Event("visibilitychange"))'
        )
    token = asked.value.headers['x-auth-token']

    def status():
        return admin.sdk.session.get(
            f'{admin.sdk.session.get_endpoint(service_type="identity")}'
            '/auth/tokens',
            headers={'X-Subject-Token': token}, raise_exc=False,
        ).status_code

    assert status() == 200
    member.page.click('#leave')
    member.until(lambda: status() == 404)


def test_a_federated_user_signs_in(browse, register, federated, demo):
    register('compute-1')
    student = browse()
    let_in(student.page, 'ada')
    student.open()
    student.page.select_option('#method', label='University of X')
    assert student.page.locator('#fields input').count() == 0
    student.page.click('#enter')
    student.page.wait_for_selector('#sign_in', state='hidden')
    student.ready()

    assert student.page.inner_text('#user') == 'ada'
    assert student.page.input_value('#project') == demo.project_id
    assert student.page.url.endswith('/ui/')
    assert student.page.locator('meta[name=token]').count() == 0
    student.page.reload()
    student.page.wait_for_selector('#sign_in', state='visible')
    assert student.violations == []


def test_a_token_that_another_site_sends_signs_nobody_in(browse, demo):
    """The token is valid, and is somebody else's."""
    victim = browse()
    token = demo.sdk.session.get_token()
    victim.page.route('https://other.example/', lambda route: route.fulfill(
        content_type='text/html', body=(
            f'<form method="post" action="{victim.url}websso">'
            f'<input name="token" value="{token}"></form>'
            '<script>document.forms[0].submit()</script>'
        ),
    ))
    victim.page.goto('https://other.example/')
    victim.until(lambda: 'did not begin' in victim.page.inner_text('#refused'))
    assert victim.page.is_visible('#sign_in')
    assert token not in victim.page.content()
