# Tests. Each tests/unit/test_*.c is a cmocka program linked with everything but the hooks.
