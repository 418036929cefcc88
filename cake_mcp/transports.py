"""How clients reach the server: stdio, streamable HTTP, and SSE for old clients."""

import hmac
import threading
from collections.abc import Sequence

from .server import build
from .state import ServerState

_LATE_SECONDS = 3.0  # let the client connect before the store is opened and jobs of an earlier server are looked for
MAX_BODY = 4 * 1024 * 1024
MAX_SESSIONS = 64


def serve_stdio(state: ServerState, *, read_only: bool, log_level: str) -> None:
    """Serve one client on standard input and output until it leaves."""
    server = build(state, read_only=read_only, log_level=log_level)
    _adopt_later(state, read_only)
    server.run("stdio")


def serve_http(
    state: ServerState, *, kind: str, host: str, port: int, token: str, allowed: Sequence[str], read_only: bool, log_level: str
) -> None:
    """Serve any number of clients over HTTP: `kind` is "http" (streamable) or "sse". A non-empty token is demanded of every request."""
    from mcp.server.transport_security import TransportSecuritySettings

    auth, verifier = _bearer(token, host, port) if token else (None, None)
    server = build(state, read_only=read_only, auth=auth, token_verifier=verifier, log_level=log_level)
    _adopt_later(state, read_only)
    names = [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")] + list(allowed)
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
    )
    if kind == "sse":
        server.run("sse", host=host, port=port, max_request_body_size=MAX_BODY, transport_security=security)
    else:
        server.run(
            "streamable-http", host=host, port=port, max_request_body_size=MAX_BODY, max_sessions=MAX_SESSIONS, transport_security=security
        )


def _adopt_later(state: ServerState, read_only: bool) -> None:
    if not read_only:
        timer = threading.Timer(_LATE_SECONDS, lambda: state.dispatcher.wake())
        timer.daemon = True
        timer.start()


def _bearer(token: str, host: str, port: int):
    from mcp.server.auth.provider import AccessToken, TokenVerifier
    from mcp.server.auth.settings import AuthSettings
    from pydantic import AnyHttpUrl

    class OneToken(TokenVerifier):
        """Knows one token, compared in constant time."""

        async def verify_token(self, token: str) -> AccessToken | None:
            if hmac.compare_digest(token.encode(), expected):
                return AccessToken(token=token, client_id="cake", scopes=[])
            return None

    expected = token.encode()
    url = AnyHttpUrl(f"http://{host}:{port}")
    return AuthSettings(issuer_url=url, resource_server_url=url), OneToken()
