from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.create_message_body import CreateMessageBody
from ...models.create_message_response_200 import CreateMessageResponse200
from ...models.create_message_response_default import CreateMessageResponseDefault
from ...types import Response


def _get_kwargs(
    *,
    body: CreateMessageBody,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/messages",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> CreateMessageResponse200 | CreateMessageResponseDefault:
    if response.status_code == 200:
        response_200 = CreateMessageResponse200.from_dict(response.json())

        return response_200

    response_default = CreateMessageResponseDefault.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[CreateMessageResponse200 | CreateMessageResponseDefault]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CreateMessageBody,
) -> Response[CreateMessageResponse200 | CreateMessageResponseDefault]:
    """Answers an agent's message request (Anthropic's API).

    Args:
        body (CreateMessageBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CreateMessageResponse200 | CreateMessageResponseDefault]
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
    body: CreateMessageBody,
) -> CreateMessageResponse200 | CreateMessageResponseDefault | None:
    """Answers an agent's message request (Anthropic's API).

    Args:
        body (CreateMessageBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CreateMessageResponse200 | CreateMessageResponseDefault
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CreateMessageBody,
) -> Response[CreateMessageResponse200 | CreateMessageResponseDefault]:
    """Answers an agent's message request (Anthropic's API).

    Args:
        body (CreateMessageBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CreateMessageResponse200 | CreateMessageResponseDefault]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: CreateMessageBody,
) -> CreateMessageResponse200 | CreateMessageResponseDefault | None:
    """Answers an agent's message request (Anthropic's API).

    Args:
        body (CreateMessageBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CreateMessageResponse200 | CreateMessageResponseDefault
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
