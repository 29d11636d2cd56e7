"""The asyncio client, which awaits the same steps as the blocking one."""

import asyncio
import threading
from typing import Any

import grpc
import pytest
from colcast.client import AsyncRankingClient, ColcastError, InputError, ServerError
from colcast.client.request._request import build_request

from .conftest import ITEMS, USER, scores, unavailable_until


async def test_rank_encode_and_send(serves: Any):
    server = serves()
    async with AsyncRankingClient(server.address, "movies") as client:
        ranking = await client.rank(USER, ITEMS)
        assert ranking.order.tolist() == [2, 1, 0]
        request = await client.encode(USER, ITEMS, target="example")
        assert len(request) > 0
        assert (await client.schema()).version == 3
        sent = await client.send(await client.encode(USER, ITEMS))
        assert sent.scores.tolist() == ranking.scores.tolist()
    assert server.count("GetModelMetadata") == 1


async def test_unavailable_is_tried_again(serves: Any):
    server = serves(predict=unavailable_until(3, lambda request, _: scores(request)))
    async with AsyncRankingClient(server.address, "movies", timeout_seconds=120) as client:
        await client.rank(USER, ITEMS)
    assert server.count("Predict") == 3


async def test_errors_are_the_same(serves: Any):
    server = serves(
        predict=lambda _, context: context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "queue full")
    )
    client = AsyncRankingClient(server.address, "movies")
    with pytest.raises(InputError, match="feature 'age'"):
        await client.rank({}, ITEMS)
    with pytest.raises(ServerError, match=r"RESOURCE_EXHAUSTED .*: queue full"):
        await client.rank(USER, ITEMS)
    await client.close()
    with pytest.raises(ColcastError, match="the client is closed"):
        await client.rank(USER, ITEMS)


def test_one_client_for_several_event_loops(serves: Any):
    server = serves()
    client = AsyncRankingClient(server.address, "movies", timeout_seconds=120)
    for _ in range(2):
        assert asyncio.run(client.rank(USER, ITEMS)).order.tolist() == [2, 1, 0]


async def test_many_candidates_are_encoded_beside_the_loop(
    serves: Any, monkeypatch: pytest.MonkeyPatch
):
    server = serves()
    goes_on = threading.Event()

    def waits_for_the_loop(*args: Any) -> Any:
        assert goes_on.wait(60)
        return build_request(*args)

    monkeypatch.setattr("colcast.client._asking.build_request", waits_for_the_loop)
    async with AsyncRankingClient(server.address, "movies", timeout_seconds=120) as client:
        call = asyncio.ensure_future(client.rank(USER, ITEMS * 400))
        while not server.count("GetModelMetadata"):
            await asyncio.sleep(0.01)
        goes_on.set()
        assert len((await call).scores) == 1200
