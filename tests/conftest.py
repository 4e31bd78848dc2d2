pytest_plugins = ["workers", "shared_fixtures"]
