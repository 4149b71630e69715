# SPDX-License-Identifier: Apache-2.0
"""The properties by which a project can choose hosts."""


def test_properties(api):
    found = api.get('/v1/properties', headers={
        'OpenStack-API-Version': 'reservation 1.1',
        'X-Auth-Token': 'bob:p2',
    }).json
    assert found['zones'] == ['nova']
    values = {p['property']: p['values'] for p in found['properties']}
    assert values['rack'] == ['7']
    assert values['vcpus'] == ['16']
    assert not {'hypervisor_hostname', 'service_name'} & values.keys()
