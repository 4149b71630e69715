# SPDX-License-Identifier: Apache-2.0
"""Packages of npm that tests run."""

import os
import subprocess


def install(npm: str, folder: str | os.PathLike[str], *packages: str) -> bool:
    """Install packages, also from npm's cache; tell whether npm has them."""
    done = subprocess.run([
        npm, 'install', '--silent', '--no-save', '--ignore-scripts',
        '--prefer-offline', '--fetch-retries', '5', '--fetch-timeout', '20000',
        '--fetch-retry-mintimeout', '1000', '--prefix', folder, *packages,
    ], check=False)
    return not done.returncode
