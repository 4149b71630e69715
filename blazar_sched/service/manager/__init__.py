# SPDX-License-Identifier: Apache-2.0
"""The manager: combines the parts of the service, and answers RPC calls."""
