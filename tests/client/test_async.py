"""The asyncio client: the same steps, awaited."""

import asyncio
from typing import Any

import grpc
import pytest
from colcast.client import AsyncRankingClient, ColcastError, InputError, ModelSchema, ServerError

from .conftest import ITEMS, USER
from .test_transport import metadata, scores, unavailable_until


async def test_rank_encode_and_send(scripted: Any, schema: ModelSchema) -> None:
    server = scripted(
        GetModelMetadata=lambda *_: metadata(schema), Predict=lambda request, _: scores(request)
    )
    async with AsyncRankingClient(server.address, "movies") as client:
        ranking = await client.rank(USER, ITEMS)
        assert ranking.order.tolist() == [2, 1, 0]
        request = await client.encode(USER, ITEMS, target="example")
        assert len(request) > 0
        assert (await client.schema()).version == 3
        sent = await client.send(await client.encode(USER, ITEMS))
        assert sent.scores.tolist() == ranking.scores.tolist()
    assert server.count("GetModelMetadata") == 1


async def test_many_calls_at_once(scripted: Any, schema: ModelSchema) -> None:
    server = scripted(
        GetModelMetadata=lambda *_: metadata(schema), Predict=lambda request, _: scores(request)
    )
    async with AsyncRankingClient(server.address, "movies", timeout_seconds=10) as client:
        calls = [client.rank(USER, ITEMS[: 1 + n % 3]) for n in range(30)]
        answers = await asyncio.gather(*calls)
    assert [len(answer.scores) for answer in answers] == [1 + n % 3 for n in range(30)]


async def test_unavailable_is_tried_again(scripted: Any, schema: ModelSchema) -> None:
    server = scripted(
        GetModelMetadata=lambda *_: metadata(schema),
        Predict=unavailable_until(3, lambda request, _: scores(request)),
    )
    async with AsyncRankingClient(server.address, "movies", timeout_seconds=10) as client:
        await client.rank(USER, ITEMS)
    assert server.count("Predict") == 3


async def test_errors_are_the_same(scripted: Any, schema: ModelSchema) -> None:
    server = scripted(
        GetModelMetadata=lambda *_: metadata(schema),
        Predict=lambda _, context: context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "queue full"),
    )
    client = AsyncRankingClient(server.address, "movies")
    with pytest.raises(InputError, match="feature 'age'"):
        await client.rank({}, ITEMS)
    with pytest.raises(ServerError, match=r"RESOURCE_EXHAUSTED .*: queue full"):
        await client.rank(USER, ITEMS)
    await client.close()
    with pytest.raises(ColcastError, match="the client is closed"):
        await client.rank(USER, ITEMS)


def test_one_client_for_several_event_loops(scripted: Any, schema: ModelSchema) -> None:
    server = scripted(
        GetModelMetadata=lambda *_: metadata(schema), Predict=lambda request, _: scores(request)
    )
    client = AsyncRankingClient(server.address, "movies", timeout_seconds=10)
    for _ in range(2):
        assert asyncio.run(client.rank(USER, ITEMS)).order.tolist() == [2, 1, 0]
