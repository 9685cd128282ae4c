"""What the handlers work with: the pack, what learners have done, the live bench, threads for all of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread

from stockade.lab.game.moment import Moment
from stockade.lab.pack.load import load_pack
from stockade.lab.pack.pack import Pack, shipped_bank
from stockade.lab.progress.database import default_folder
from stockade.lab.progress.people import DEFAULT_NAME, Learner, Missing
from stockade.lab.progress.store import Now, Store, open_store
from stockade.lab.web.live_desk import LiveDesk

if TYPE_CHECKING:
    from starlette.requests import Request

T = TypeVar("T")

WORKING_AT_ONCE = 4
"""Threads for answers. Two processors and one interpreter: more would only wait for each other."""


def open_lab(data: Path | None, own_pack: Path | None = None) -> Lab:
    """Open the pack (the shipped bank, if none is named) and the data folder, which is made if there is none.

    Raises:
        HostError: The folder cannot be made or used.
        UserError: What lies in it is damaged, or not ours; the pack does not load.
    """
    folder = data or default_folder()
    if own_pack is None:
        pack = shipped_bank()
    else:
        pack = load_pack(own_pack)
        folder = folder / "packs" / folder_name(pack)
    return Lab(pack, open_store(folder, pack), folder)


def folder_name(pack: Pack) -> str:
    """Where a pack's progress lies. Two packs may number their events alike, and the schedule goes by number.

    By the pack's name and not its digest or place: an edited pack, or a moved one, goes on.
    """
    plain = re.sub(r"[^a-z0-9]+", "-", pack.name.lower())[:40].strip("-")
    return f"{plain or 'pack'}-{hashlib.sha256(pack.name.encode()).hexdigest()[:8]}"


class Lab:
    """One for a server.

    Attributes:
        learner_cookie: Who plays in a browser. With the data folder in its name and not the port, since
            it outlives a start of the server. It is no secret: whoever is let in may play as anybody.
    """

    def __init__(self, pack: Pack, store: Store, folder: Path) -> None:
        self.pack = pack
        self.store = store
        self.live = LiveDesk(pack)
        self.now = Now()
        place = hashlib.sha256(str(folder.absolute()).encode(errors="surrogateescape")).hexdigest()[:8]
        self.learner_cookie = f"stockade-lab-learner-{place}"

    @cached_property
    def _threads(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(WORKING_AT_ONCE)  # belongs to the loop that it is made in

    @cached_property
    def _heavy_threads(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(1)

    async def work(self, task: Callable[[], T]) -> T:
        """Do in a thread what blocks: files and SQLite."""
        return await anyio.to_thread.run_sync(task, limiter=self._threads)

    async def work_hard(self, task: Callable[[], T]) -> T:
        """What keeps a processor busy for long, one at a time: answers are not to wait behind it."""
        return await anyio.to_thread.run_sync(task, limiter=self._heavy_threads)

    async def as_learner(self, request: Request, task: Callable[[Learner, Moment], T]) -> T:
        """Do it in a thread, for the learner of this browser."""
        named = request.cookies.get(self.learner_cookie)
        now = self.now()
        return await self.work(lambda: task(self.find_learner(named, now), now))

    def find_learner(self, named: str | None, now: Moment) -> Learner:
        """Who plays; a browser that names nobody, or nobody that is here, plays as `you`."""
        if named is not None:
            try:
                return self.store.people.find(named)
            except Missing:
                pass
        return self.store.people.enter(DEFAULT_NAME, now)

    def close(self) -> None:
        """End what was started."""
        self.live.close()
        self.store.close()
