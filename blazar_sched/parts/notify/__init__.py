# SPDX-License-Identifier: Apache-2.0
"""Notify: what happens to the leases of a project is told to its receivers.

A webhook of a project has the notifications posted to a URL, or e-mailed.
"""
