"""JSON in: a body within its limits of size and time, as a value of the type that the handler names."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import anyio
import msgspec
from starlette.requests import ClientDisconnect

from stockade.lab.web.answers import Refused
from stockade.lab.web.guard import BODY_LIMIT_BYTES, TOO_LARGE

if TYPE_CHECKING:
    from starlette.requests import Request

T = TypeVar("T")

TIMEOUT_S = 10.0
"""For the whole body; on loopback a mebibyte takes milliseconds."""


async def read_body(request: Request, wanted: type[T]) -> T:
    """The body of a request.

    Raises:
        Refused: It is too large, too slow, broken off, or not what is wanted.
    """
    data = bytearray()
    try:
        with anyio.fail_after(TIMEOUT_S):
            async for part in request.stream():
                data += part
                if len(data) > BODY_LIMIT_BYTES:
                    raise Refused(TOO_LARGE.status, TOO_LARGE.code, TOO_LARGE.message)
    except ClientDisconnect as error:  # a page that was closed in the middle is no fault of ours
        raise Refused(400, "gone", "the connection ended before the body did") from error
    except TimeoutError as error:
        raise Refused(408, "too-slow", f"the body took more than {TIMEOUT_S:.0f} s") from error
    try:
        return msgspec.json.decode(data or b"{}", type=wanted)
    except msgspec.ValidationError as error:
        raise Refused(422, "bad-request", f"{error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(400, "not-json", f"the body is no JSON that we read: {error}") from error
