from __future__ import annotations

pytest_plugins = ["workers", "shared_fixtures"]
