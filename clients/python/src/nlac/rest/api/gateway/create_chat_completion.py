from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.create_chat_completion_body import CreateChatCompletionBody
from ...models.create_chat_completion_response_200 import CreateChatCompletionResponse200
from ...models.create_chat_completion_response_default import CreateChatCompletionResponseDefault
from ...types import Response


def _get_kwargs(
    *,
    body: CreateChatCompletionBody,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/chat/completions",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> CreateChatCompletionResponse200 | CreateChatCompletionResponseDefault:
    if response.status_code == 200:
        response_200 = CreateChatCompletionResponse200.from_dict(response.json())

        return response_200

    response_default = CreateChatCompletionResponseDefault.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[CreateChatCompletionResponse200 | CreateChatCompletionResponseDefault]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CreateChatCompletionBody,
) -> Response[CreateChatCompletionResponse200 | CreateChatCompletionResponseDefault]:
    """Answers an agent's chat completion request (OpenAI's API).

    Args:
        body (CreateChatCompletionBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CreateChatCompletionResponse200 | CreateChatCompletionResponseDefault]
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
    body: CreateChatCompletionBody,
) -> CreateChatCompletionResponse200 | CreateChatCompletionResponseDefault | None:
    """Answers an agent's chat completion request (OpenAI's API).

    Args:
        body (CreateChatCompletionBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CreateChatCompletionResponse200 | CreateChatCompletionResponseDefault
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CreateChatCompletionBody,
) -> Response[CreateChatCompletionResponse200 | CreateChatCompletionResponseDefault]:
    """Answers an agent's chat completion request (OpenAI's API).

    Args:
        body (CreateChatCompletionBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CreateChatCompletionResponse200 | CreateChatCompletionResponseDefault]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: CreateChatCompletionBody,
) -> CreateChatCompletionResponse200 | CreateChatCompletionResponseDefault | None:
    """Answers an agent's chat completion request (OpenAI's API).

    Args:
        body (CreateChatCompletionBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CreateChatCompletionResponse200 | CreateChatCompletionResponseDefault
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
