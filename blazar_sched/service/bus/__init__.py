# SPDX-License-Identifier: Apache-2.0
"""Messages on the message bus: RPC calls, notifications and fanouts."""
