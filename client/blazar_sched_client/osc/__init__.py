# SPDX-License-Identifier: Apache-2.0
"""Commands of the `openstack` program, beside those of python-blazarclient."""
