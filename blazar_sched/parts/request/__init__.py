# SPDX-License-Identifier: Apache-2.0
"""Lease requests: projects that wait until a lease finds room."""
