"""Bodies that are lines of JSON."""

import json

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(ctx, value):
    return value if isinstance(value, bytes) else json.dumps(value).encode()
