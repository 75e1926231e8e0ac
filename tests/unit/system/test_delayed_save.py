"""A save that is put off, done in turn, and never lost at the end."""

import asyncio

from mcpzip.system.delayed_save import DelayedSave


class Disk:
    """Notes the saves. turn: lets a save end; without it they end at once."""

    def __init__(self) -> None:
        self.begun = self.ended = 0
        self.started, self.turn = asyncio.Event(), asyncio.Event()
        self.turn.set()

    async def save(self) -> None:
        assert self.begun == self.ended, "two saves overlap"
        self.begun += 1
        self.started.set()
        await self.turn.wait()
        self.ended += 1


async def test_wishes_that_come_before_the_save_cost_one_save() -> None:
    disk = Disk()
    saving = DelayedSave(disk.save, "save")
    for _ in range(5):
        saving.want(3_600)
    assert disk.begun == 0
    await saving.flush()
    assert disk.ended == 1
    await saving.flush()
    assert disk.ended == 1


async def test_a_wish_during_a_save_is_saved_after_it() -> None:
    disk = Disk()
    disk.turn.clear()
    saving = DelayedSave(disk.save, "save")
    saving.want(0)
    await disk.started.wait()
    saving.want(3_600)
    last = asyncio.create_task(saving.flush())
    await asyncio.sleep(0)
    assert disk.begun == 1
    disk.turn.set()
    await last
    assert disk.ended == 2


async def test_a_save_that_is_withdrawn_does_not_happen() -> None:
    disk = Disk()
    saving = DelayedSave(disk.save, "save")
    assert not saving.withdraw()
    saving.want(0)
    assert saving.withdraw()
    await saving.flush()
    assert disk.begun == 0


async def test_waiting_for_a_save_has_an_end() -> None:
    disk = Disk()
    disk.turn.clear()
    saving = DelayedSave(disk.save, "save")
    saving.want(0)
    await disk.started.wait()
    await saving.settled(0.0)
    assert not disk.ended
    disk.turn.set()
    await saving.settled()
    assert disk.ended == 1


async def test_only_a_quiet_wish_puts_off_what_is_planned() -> None:
    loop = asyncio.get_running_loop()
    disk = Disk()
    saving = DelayedSave(disk.save, "save")
    saving.want(3_600)
    planned = saving._timer
    saving.want(7_200)
    assert saving._timer is planned
    saving.want(7_200, quiet=True)
    assert saving._timer is not None
    assert saving._timer.when() > loop.time() + 3_600
    assert saving.withdraw()
