from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.create_response_body import CreateResponseBody
from ...models.create_response_response_200 import CreateResponseResponse200
from ...models.create_response_response_default import CreateResponseResponseDefault
from ...types import Response


def _get_kwargs(
    *,
    body: CreateResponseBody,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/responses",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> CreateResponseResponse200 | CreateResponseResponseDefault:
    if response.status_code == 200:
        response_200 = CreateResponseResponse200.from_dict(response.json())

        return response_200

    response_default = CreateResponseResponseDefault.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[CreateResponseResponse200 | CreateResponseResponseDefault]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CreateResponseBody,
) -> Response[CreateResponseResponse200 | CreateResponseResponseDefault]:
    """Answers an agent's response request (OpenAI's newer API).

    Args:
        body (CreateResponseBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CreateResponseResponse200 | CreateResponseResponseDefault]
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
    body: CreateResponseBody,
) -> CreateResponseResponse200 | CreateResponseResponseDefault | None:
    """Answers an agent's response request (OpenAI's newer API).

    Args:
        body (CreateResponseBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CreateResponseResponse200 | CreateResponseResponseDefault
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CreateResponseBody,
) -> Response[CreateResponseResponse200 | CreateResponseResponseDefault]:
    """Answers an agent's response request (OpenAI's newer API).

    Args:
        body (CreateResponseBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CreateResponseResponse200 | CreateResponseResponseDefault]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: CreateResponseBody,
) -> CreateResponseResponse200 | CreateResponseResponseDefault | None:
    """Answers an agent's response request (OpenAI's newer API).

    Args:
        body (CreateResponseBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CreateResponseResponse200 | CreateResponseResponseDefault
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
