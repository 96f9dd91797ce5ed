"""An environment as a server: OpenEnv's routes over HTTP and WebSocket."""
