"""Bodies that are lines of JSON, and how wrong keys are refused."""

import json

import schemathesis
from schemathesis.specs.openapi import checks

# With 401, and too many of them with 429.
checks.AUTH_REJECTION_STATUSES = {*checks.AUTH_REJECTION_STATUSES, 429}


@schemathesis.serializer("application/x-ndjson")
def lines(ctx, value):
    return value if isinstance(value, bytes) else json.dumps(value).encode()
