from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.count_message_tokens_body import CountMessageTokensBody
from ...models.count_message_tokens_response_200 import CountMessageTokensResponse200
from ...models.count_message_tokens_response_default import CountMessageTokensResponseDefault
from ...types import Response


def _get_kwargs(
    *,
    body: CountMessageTokensBody,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/messages/count_tokens",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> CountMessageTokensResponse200 | CountMessageTokensResponseDefault:
    if response.status_code == 200:
        response_200 = CountMessageTokensResponse200.from_dict(response.json())

        return response_200

    response_default = CountMessageTokensResponseDefault.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[CountMessageTokensResponse200 | CountMessageTokensResponseDefault]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CountMessageTokensBody,
) -> Response[CountMessageTokensResponse200 | CountMessageTokensResponseDefault]:
    """Counts the tokens of an agent's message request (Anthropic's API). Stores nothing.

    Args:
        body (CountMessageTokensBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CountMessageTokensResponse200 | CountMessageTokensResponseDefault]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: CountMessageTokensBody,
) -> CountMessageTokensResponse200 | CountMessageTokensResponseDefault | None:
    """Counts the tokens of an agent's message request (Anthropic's API). Stores nothing.

    Args:
        body (CountMessageTokensBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CountMessageTokensResponse200 | CountMessageTokensResponseDefault
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CountMessageTokensBody,
) -> Response[CountMessageTokensResponse200 | CountMessageTokensResponseDefault]:
    """Counts the tokens of an agent's message request (Anthropic's API). Stores nothing.

    Args:
        body (CountMessageTokensBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CountMessageTokensResponse200 | CountMessageTokensResponseDefault]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: CountMessageTokensBody,
) -> CountMessageTokensResponse200 | CountMessageTokensResponseDefault | None:
    """Counts the tokens of an agent's message request (Anthropic's API). Stores nothing.

    Args:
        body (CountMessageTokensBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CountMessageTokensResponse200 | CountMessageTokensResponseDefault
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
