# SPDX-License-Identifier: Apache-2.0
"""The manager: decides on leases and acts on them, behind RPC."""
