# SPDX-License-Identifier: Apache-2.0
"""Run the scenario tests of Blazar's tempest plugin on the cloud.

They need one dedicated compute host. The API tests of the plugin know only the
addresses of DevStack.
"""

import json
import os
import pathlib
import subprocess
import sys

from tests.cloud import seed
from tests.cloud import site
from tests.cloud.__main__ import VARIABLE
from tests.cloud.person import Person

SCENARIOS = 'blazar_tempest_plugin.tests.scenario'


def main(arguments: list[str]) -> int:
    description = json.loads(os.environ[VARIABLE])
    folder = pathlib.Path(description['folder'], 'tempest')
    subprocess.run(
        [
            'tempest', 'init', str(folder),
            '--workspace-path', str(folder.with_suffix('.workspaces')),
        ],
        check=True,
    )  # fmt: skip
    admin = Person(description['auth_url'], 'admin', 'admin')
    (folder / 'etc/tempest.conf').write_text(
        site.ini(_configuration(admin, description['auth_url']))
    )
    # All scenarios use the same host.
    command = ['tempest', 'run', '--serial']
    return subprocess.run(
        [*command, *(arguments or ['--regex', SCENARIOS])], cwd=folder
    ).returncode


def _configuration(
    admin: Person, auth_url: str
) -> dict[str, dict[str, object]]:
    image = admin.sdk.image.find_image(seed.IMAGE)
    flavor = admin.sdk.compute.find_flavor('m1.tiny')
    return {
        'DEFAULT': {'log_dir': 'logs'},
        'oslo_concurrency': {'lock_path': 'locks'},
        'auth': {
            'admin_username': 'admin',
            'admin_password': site.PASSWORD,
            'admin_project_name': 'admin',
            'admin_domain_name': 'Default',
            'use_dynamic_credentials': True,
            'create_isolated_networks': False,
            'tempest_roles': 'member',
        },
        'identity': {
            'auth_version': 'v3', 'uri_v3': auth_url, 'region': site.REGION,
        },
        'compute': {
            'image_ref': image.id,
            'image_ref_alt': image.id,
            'flavor_ref': flavor.id,
            'flavor_ref_alt': flavor.id,
            'build_interval': 1,
        },
        'compute-feature-enabled': {'console_output': False},
        'validation': {'run_validation': False},
        'service_available': {'neutron': False, 'cinder': False},
        'resource_reservation': {'lease_interval': 1},
    }


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
